"""Expressions of DDL as trees, and as a server prints them; what is not known stays as it was written."""

from __future__ import annotations

from typing import NoReturn

from ibbmaster.sqltext.expression import Expression, ExpressionParser
from ibbmaster.sqltext.printing import ExpressionText, UnknownTextError, printed
from ibbmaster.sqltext.sql_mode import IGNORE_SPACE
from ibbmaster.sqltext.token import SqlError, tokenize, tokens

EXPRESSION_SIZE_MAX = 4096  # characters; longer ones stay as they are


class _DefinitionParser(ExpressionParser):
    """Reads one expression, which has no query in it."""

    is_of_definition = True

    def whole(self) -> Expression:
        found = self._expression()
        self.expect_end()
        return found

    def _query(self) -> NoReturn:
        raise self._error()


def definition_expression(written: str) -> Expression:
    """The tree of an expression in DDL, as it is kept: under sql_mode ''.

    Raises:
        SqlError: it is none that is understood.
    """
    return _DefinitionParser(tokenize(written, sql_mode=IGNORE_SPACE)).whole()


def expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it, without brackets around it."""
    return _printed(written).text


def default_expression_text(written: str) -> str:
    """An expression as SHOW CREATE TABLE prints it behind DEFAULT: in brackets, but a call."""
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
