"""UPDATE and DELETE of several tables in statement format: which tables they may change, and which columns of these."""

from __future__ import annotations

from collections.abc import Mapping

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.schema.reading import expect_name, expect_table
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import Token

_JOINS = ("JOIN", "STRAIGHT_JOIN")
_BEFORE_JOINS = ("INNER", "CROSS", "LEFT", "RIGHT", "OUTER", "NATURAL")
_AFTER_NAMES = (*_JOINS, *_BEFORE_JOINS, "ON", "USING")

Targets = Mapping[TableName, frozenset[str] | None]
"""The columns that a table may get other values in, in lower case; None: its rows may be gone."""


def joined_targets(statement: LoggedStatement) -> Targets | None:
    """What a change of several tables may change; None if it is something else, or of a form not known here."""
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    try:
        if cursor.takes_words("UPDATE"):
            return _updated(cursor, statement.database)
        return _deleted(cursor, statement.database) if cursor.takes_words("DELETE") else None
    except NotUnderstoodError:
        return None


def _updated(cursor: Cursor, database: str) -> Targets:
    cursor.pass_words("LOW_PRIORITY", "IGNORE")
    known = _called(_until(cursor, "SET"), database)
    if not cursor.takes_words("SET"):
        raise NotUnderstoodError("SET")
    found: dict[TableName, frozenset[str] | None] = {}
    for part in parts_of(_until(cursor, "WHERE", "ORDER", "LIMIT")):
        assigned = Cursor(part)
        names = [expect_name(assigned)]
        while assigned.takes_sign("."):
            names.append(expect_name(assigned))
        if len(names) < 2:
            raise NotUnderstoodError("a column of any of them")
        table = known.get(names[-2].lower())
        if table is None:
            raise NotUnderstoodError("a table")
        found[table] = (found.get(table) or frozenset()) | {names[-1].lower()}
    return found


def _deleted(cursor: Cursor, database: str) -> Targets:
    cursor.pass_words("LOW_PRIORITY", "QUICK", "IGNORE")
    is_first = cursor.takes_words("FROM")
    targets = _until(cursor, "USING" if is_first else "FROM")
    if not cursor.takes_words("USING" if is_first else "FROM"):
        raise NotUnderstoodError("tables")
    known = _called(_until(cursor, "WHERE", "ORDER", "LIMIT"), database)
    found: dict[TableName, frozenset[str] | None] = {}
    for part in parts_of(targets):
        names = [token.text for token in part if token.is_name]
        table = known.get(names[-1].lower()) if names else None
        if table is None:
            raise NotUnderstoodError("a table")
        found[table] = None
    return found


def _until(cursor: Cursor, *words: str) -> list[Token]:
    """What stands before one of these words that is in no brackets."""
    found: list[Token] = []
    depth = 0
    while not cursor.is_at_end and (depth or not cursor.peek().is_word(*words)):
        token = cursor.take()
        depth += token.is_sign("(") - token.is_sign(")")
        found.append(token)
    return found


def _called(references: list[Token], database: str) -> dict[str, TableName]:
    """The tables of a join, by what they are called in the statement, in lower case.

    Raises:
        NotUnderstoodError: there is a query, or a join in brackets; or two are called alike.
    """
    found: dict[str, TableName] = {}
    cursor = Cursor(references)
    while not cursor.is_at_end:
        table = expect_table(cursor, database)
        name = table.name
        if cursor.takes_words("AS") or (cursor.peek().is_name and not cursor.peek().is_word(*_AFTER_NAMES)):
            name = expect_name(cursor)
        if name.lower() in found:
            raise NotUnderstoodError("two tables of one name")
        found[name.lower()] = table
        depth = 0
        while not cursor.is_at_end:  # a condition, if there is one
            token = cursor.take()
            depth += token.is_sign("(") - token.is_sign(")")
            if not depth and (token.is_sign(",") or token.is_word(*_JOINS)):
                break
    return found
