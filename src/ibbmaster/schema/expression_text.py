"""Expressions of DDL as trees, and as a server prints them; what is not known stays as it was written."""

from typing import NoReturn

from ibbmaster.sqltext.expression import Call, Expression, Literal
from ibbmaster.sqltext.expression_parser import ExpressionParser
from ibbmaster.sqltext.operators import PREDICATE
from ibbmaster.sqltext.printing import ExpressionText, UnknownTextError, printed
from ibbmaster.sqltext.sql_mode import HIGH_NOT_PRECEDENCE, IGNORE_SPACE, ORACLE, PIPES_AS_CONCAT
from ibbmaster.sqltext.token import SqlError, tokenize, tokens

OF_OPERATORS = PIPES_AS_CONCAT | ORACLE | HIGH_NOT_PRECEDENCE  # what of sql_mode says what they do
EXPRESSION_SIZE_MAX = 4096  # characters; longer ones stay as they are


class _DefinitionParser(ExpressionParser):
    """Reads one expression, which has no query in it."""

    def whole(self) -> Expression:
        found = self._expression()
        self.expect_end()
        return found

    def query(self) -> NoReturn:
        raise self._error()

    def _called(self, name: str, written: str) -> Expression:
        arguments = () if self._peek(")") else self._arguments(name)
        self.expect(")")
        return Call(name, written, arguments)

    def _arguments(self, name: str) -> tuple[Expression, ...]:
        match name:
            case "trim":
                return self._trimmed()
            case "position":
                part = self._expression(PREDICATE + 1)
                self.expect("IN")
                return part, self._expression()
            case "extract":
                unit = Literal(self._take_word())
                self.expect("FROM")
                return unit, self._expression()
            case "cast":
                value = self._expression()
                self.expect("AS")
                return value, Literal(self._cast_type())
        return self._list(self._expression)

    def _trimmed(self) -> tuple[Expression, ...]:
        """TRIM(text), or the ends, what is taken from them, and the text; from both where no end is named."""
        ends = next((word for word in ("BOTH", "LEADING", "TRAILING") if self._accept(word)), None)
        first = self._expression()
        if self._accept("FROM"):
            return Literal(ends or "BOTH"), first, self._expression()
        if ends is not None:
            raise self._error()
        return (first,)

    def _cast_type(self) -> str:
        """A type that has no character set."""
        kind = self._take_word().lower()
        if kind in ("decimal", "datetime", "time") and self._accept("("):
            sizes = ",".join(str(size) for size in self._list_of_numbers())
            return f"{kind}({sizes})"
        if kind in ("signed", "unsigned"):
            self._accept("INTEGER")
        elif kind not in ("date", "double", "datetime", "time"):
            raise self._error()
        return kind

    def _list_of_numbers(self) -> list[int]:
        found = [self._take_int()]
        while self._accept(","):
            found.append(self._take_int())
        self.expect(")")
        return found


def definition_expression(written: str, sql_mode: int = 0) -> Expression:
    """The tree of an expression in DDL, as it is kept: its quotes are those of sql_mode '', its operators of this one.

    Raises:
        SqlError: it is none that is understood.
    """
    return _DefinitionParser(tokenize(written, sql_mode=sql_mode & OF_OPERATORS | IGNORE_SPACE)).whole()


def plain_expression(written: str, sql_mode: int) -> str:
    """An expression whose operators have their meaning of this sql_mode, so that they have it under '', too.

    One that is not understood stays as it is.
    """
    try:
        return printed(definition_expression(written, sql_mode)).text
    except (SqlError, UnknownTextError):
        return written


def expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it, without brackets around it."""
    return _printed(written).text


def default_expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it after DEFAULT: in brackets, but a call."""
    found = _printed(_without_brackets(written.strip()))
    return f"({found.text})" if found.needs_brackets else found.text


def _without_brackets(text: str) -> str:
    """What is in the brackets that are around the whole."""
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
