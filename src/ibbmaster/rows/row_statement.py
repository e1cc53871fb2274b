"""INSERT, REPLACE, UPDATE and DELETE of one table in statement format, as trees: which rows, and what they get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.schema.expression_text import statement_expression
from ibbmaster.schema.reading import expect_table
from ibbmaster.sqltext.cursor import END, Cursor, outside_brackets, parts_of
from ibbmaster.sqltext.expression import Call, Expression, Literal
from ibbmaster.sqltext.literals import number_value
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import SqlError, Token, TokenKind

#: What is not understood: its value is never simple.
UNREAD: Expression = Call("", "", is_read=False)
_OF_QUERIES = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "DUPLICATE", "INTO"),
    *("DISTINCT", "ALL", "STRAIGHT_JOIN", "FOR", "LOCK", "PROCEDURE", "OFFSET", "FETCH", "RETURNING"),
)
_ENDS = ("WHERE", "ORDER", "LIMIT", "RETURNING")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetColumn:
    """What a column gets, by its name in lower case."""

    column: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInserted:
    """INSERT or REPLACE. Without `columns`, all that are shown have a value; without `rows` a query gives them.

    `on_duplicate`: what a row gets instead that is there already; None: nothing is said of it.
    """

    table: TableName
    columns: tuple[str, ...] | None
    rows: tuple[tuple[Expression, ...], ...] | None
    on_duplicate: tuple[SetColumn, ...] | None = None
    is_replacing: bool = False
    is_ignoring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Rows that meet a condition, in an order; `is_limited`: not all of them, `is_ignoring`: some may stay."""

    where: Expression | None = None
    order: tuple[tuple[Expression, bool], ...] = ()  # and whether it is descending
    is_limited: bool = False
    is_ignoring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsChanged:
    """UPDATE: what chosen rows get, in order."""

    table: TableName
    assignments: tuple[SetColumn, ...]
    chosen: RowFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsGone:
    """DELETE of chosen rows."""

    table: TableName
    chosen: RowFilter


RowStatement = RowsInserted | RowsChanged | RowsGone


def row_statement(statement: LoggedStatement) -> RowStatement | None:
    """The change of one table's rows that a statement is; None if it is something else, or of a form not known here."""
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    try:
        return _Reader(cursor, statement).read()
    except NotUnderstoodError:
        return None


class _Reader:
    def __init__(self, cursor: Cursor, statement: LoggedStatement) -> None:
        self._cursor = cursor
        self._statement = statement
        self._ahead: list[Token] = []  # of a query that is none of constants

    def read(self) -> RowStatement | None:
        cursor = self._cursor
        if cursor.takes_words("INSERT"):
            return self._insert(is_replacing=False)
        if cursor.takes_words("REPLACE"):
            return self._insert(is_replacing=True)
        if cursor.takes_words("UPDATE"):
            return self._update()
        return self._delete() if cursor.takes_words("DELETE") else None

    def _insert(self, *, is_replacing: bool) -> RowsInserted | None:
        cursor = self._cursor
        cursor.pass_words("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY")
        is_ignoring = cursor.takes_words("IGNORE")
        cursor.takes_words("INTO")
        table = expect_table(cursor, self._statement.database)
        columns: tuple[str, ...] | None = None
        rows: list[tuple[Expression, ...]] | None = None
        if cursor.peek().is_word("SET"):
            cursor.take()
            given = self._assignments("ON")
            columns, rows = tuple(one.column for one in given), [tuple(one.value for one in given)]
        else:
            if cursor.peek().is_sign("(") and not cursor.peek(1).is_word("SELECT", "WITH", "VALUES"):
                columns = tuple(map(_column_name, parts_of(cursor.bracketed())))
            if cursor.peek().is_word("VALUES", "VALUE"):
                cursor.take()
                rows = self._rows()
            elif cursor.peek().is_word("SELECT"):
                rows = self._constants()
        on_duplicate: tuple[SetColumn, ...] | None = None
        if rows is None:
            on_duplicate = () if any(token.is_word("DUPLICATE") for token in self._left()) else None
        elif cursor.takes_words("ON", "DUPLICATE", "KEY", "UPDATE"):
            on_duplicate = self._assignments()
        if rows is not None and not (cursor.is_at_end or cursor.peek().is_word("RETURNING")):
            cursor.takes_sign(";")
            if not cursor.is_at_end:
                return None
        return RowsInserted(
            table=table,
            columns=columns,
            rows=None if rows is None else tuple(rows),
            on_duplicate=on_duplicate,
            is_replacing=is_replacing,
            is_ignoring=is_ignoring,
        )

    def _rows(self) -> list[tuple[Expression, ...]]:
        cursor, rows = self._cursor, []
        while cursor.peek().is_sign("("):
            rows.append(tuple(map(self._expression, parts_of(cursor.bracketed()))))
            if not cursor.takes_sign(","):
                return rows
        raise NotUnderstoodError("rows")

    def _left(self) -> list[Token]:
        """All that is left, with what was read ahead of it."""
        return [*self._ahead, *self._cursor.rest()]

    def _constants(self) -> list[tuple[Expression, ...]] | None:
        """The row of a SELECT that reads no table outside of brackets; None if it does, or says more."""
        self._ahead = self._cursor.rest()
        part = [token for token in self._ahead[1:] if not token.is_sign(";")]
        if any(token.is_word(*_OF_QUERIES) for token in outside_brackets(part)):
            return None
        self._ahead = []
        return [tuple(map(self._expression, parts_of(part)))]

    def _update(self) -> RowsChanged | None:
        cursor = self._cursor
        cursor.takes_words("LOW_PRIORITY")
        is_ignoring = cursor.takes_words("IGNORE")
        table = expect_table(cursor, self._statement.database)
        if not cursor.peek().is_word("SET"):
            cursor.takes_words("AS")
            cursor.name()  # what it is called in the statement
        if not cursor.takes_words("SET"):
            return None
        assignments = self._assignments()
        chosen = self._chosen(is_ignoring=is_ignoring)
        if not assignments or chosen is None:
            return None
        return RowsChanged(table=table, assignments=assignments, chosen=chosen)

    def _delete(self) -> RowsGone | None:
        cursor = self._cursor
        is_ignoring = False
        while cursor.peek().is_word("LOW_PRIORITY", "QUICK", "IGNORE"):
            is_ignoring |= cursor.take().is_word("IGNORE")
        if not cursor.takes_words("FROM"):
            return None
        table = expect_table(cursor, self._statement.database)
        if not (cursor.is_at_end or cursor.peek().is_word(*_ENDS, "USING", "PARTITION", "FOR", "JOIN")):
            cursor.takes_words("AS")
            cursor.name()
        chosen = self._chosen(is_ignoring=is_ignoring)
        return None if chosen is None else RowsGone(table=table, chosen=chosen)

    def _chosen(self, *, is_ignoring: bool) -> RowFilter | None:
        """What stands from WHERE on; None if something else does."""
        cursor = self._cursor
        where = self._expression(self._part("ORDER", "LIMIT", "RETURNING")) if cursor.takes_words("WHERE") else None
        order: tuple[tuple[Expression, bool], ...] = ()
        if cursor.takes_words("ORDER", "BY"):
            order = tuple(map(self._order, parts_of(self._part("LIMIT", "RETURNING"))))
        is_limited = cursor.peek().is_word("LIMIT")
        cursor.takes_sign(";")
        if not (is_limited or cursor.peek().is_word("RETURNING") or cursor.peek() is END):
            return None
        return RowFilter(where=where, order=order, is_limited=is_limited, is_ignoring=is_ignoring)

    def _order(self, part: list[Token]) -> tuple[Expression, bool]:
        is_descending = bool(part) and part[-1].is_word("DESC")
        if part and part[-1].is_word("ASC", "DESC"):
            part = part[:-1]
        return self._expression(part), is_descending

    def _assignments(self, *ends: str) -> tuple[SetColumn, ...]:
        """
        Raises:
            NotUnderstoodError: something else is set than columns.
        """
        return tuple(self._assignment(part) for part in parts_of(self._part(*_ENDS, *ends)))

    def _assignment(self, part: list[Token]) -> SetColumn:
        cursor = Cursor(part)
        name = cursor.name()
        while name is not None and cursor.takes_sign("."):
            name = cursor.name()
        if name is None or not (cursor.takes_sign("=") or cursor.takes_sign(":=")):
            raise NotUnderstoodError("an assignment")
        return SetColumn(column=name.lower(), value=self._expression(cursor.rest()))

    def _part(self, *ends: str) -> list[Token]:
        """What stands before one of these words that is in no brackets."""
        found: list[Token] = []
        depth = 0
        cursor = self._cursor
        while not cursor.is_at_end and (depth or not (cursor.peek().is_word(*ends) or cursor.peek().is_sign(";"))):
            token = cursor.take()
            depth += token.is_sign("(") - token.is_sign(")")
            found.append(token)
        return found

    def _expression(self, part: Sequence[Token]) -> Expression:
        if len(part) == 1 and part[0].kind is TokenKind.NUMBER:
            return Literal(number_value(part[0].text), written=part[0].text)
        try:
            return statement_expression(self._statement.text, part, self._statement.sql_mode)
        except SqlError:
            return UNREAD


def _column_name(part: list[Token]) -> str:
    cursor = Cursor(part)
    name = cursor.name()
    while name is not None and cursor.takes_sign("."):
        name = cursor.name()
    if name is None or not cursor.is_at_end:
        raise NotUnderstoodError("a column")
    return name.lower()
