"""Expressions of DDL as trees, and as a server prints them; unknown ones stay as written."""

from ibbmaster.sqltext.expression import Call, Expression, Literal
from ibbmaster.sqltext.expression_parser import ExpressionParser
from ibbmaster.sqltext.printing import ExpressionText, UnknownTextError, printed
from ibbmaster.sqltext.sql_mode import HIGH_NOT_PRECEDENCE, IGNORE_SPACE, ORACLE, PIPES_AS_CONCAT
from ibbmaster.sqltext.token import SqlError, tokenize, tokens

OF_OPERATORS = PIPES_AS_CONCAT | ORACLE | HIGH_NOT_PRECEDENCE
EXPRESSION_SIZE_MAX = 4096  # characters; longer ones stay as they are


class _DefinitionParser(ExpressionParser):
    def whole(self) -> Expression:
        found = self._expression()
        self.expect_end()
        return found

    def _called(self, name: str, written: str) -> Expression:
        match name:
            case "trim":
                arguments = self._trimmed()
            case "extract":
                unit = Literal(self._take_word())
                self.expect("FROM")
                arguments = unit, self._expression()
            case _:
                return super()._called(name, written)
        self.expect(")")
        return Call(name, written, arguments)

    def _trimmed(self) -> tuple[Expression, ...]:
        """TRIM(text), or the ends, the text to remove, and the text; both ends if none is named."""
        ends = next((word for word in ("BOTH", "LEADING", "TRAILING") if self._accept(word)), None)
        first = self._expression()
        if self._accept("FROM"):
            return Literal(ends or "BOTH"), first, self._expression()
        if ends is not None:
            raise self._error()
        return (first,)


def definition_expression(written: str, sql_mode: int = 0) -> Expression:
    """An expression in DDL as kept: with quotes of sql_mode '', and this one's operators. Raises SqlError."""
    return _DefinitionParser(tokenize(written, sql_mode=sql_mode & OF_OPERATORS | IGNORE_SPACE)).whole()


def plain_expression(written: str, sql_mode: int) -> str:
    """Under sql_mode '' with its meaning under this one; as it is if not understood."""
    try:
        return printed(definition_expression(written, sql_mode)).text
    except (SqlError, UnknownTextError):
        return written


def expression_text(written: str) -> str:
    """As in SHOW CREATE TABLE, without brackets around it."""
    return _printed(written).text


def default_expression_text(written: str) -> str:
    """As in SHOW CREATE TABLE after DEFAULT: in brackets, unless it is a call."""
    found = _printed(_without_brackets(written.strip()))
    return f"({found.text})" if found.needs_brackets else found.text


def _without_brackets(text: str) -> str:
    found = list(tokens(text)) if text.startswith("(") else []
    opened: list[int] = []
    closed = {}  # by the number of the token that opens
    for number, token in enumerate(found):
        if token.is_sign("("):
            opened.append(number)
        elif token.is_sign(")") and opened:
            closed[opened.pop()] = number
    count = 0
    while 2 * count < len(found) and closed.get(count) == len(found) - 1 - count:
        count += 1
    inside = found[count : len(found) - count]
    return text[inside[0].start : inside[-1].end] if count and inside else text


def _printed(written: str) -> ExpressionText:
    written = written.strip()
    if len(written) <= EXPRESSION_SIZE_MAX:
        try:
            return printed(definition_expression(written))
        except (SqlError, UnknownTextError):
            pass
    return ExpressionText(written, needs_brackets=True)
