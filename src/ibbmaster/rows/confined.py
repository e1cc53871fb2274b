"""An UPDATE in statement format that changes some columns of one table, whatever its expressions are."""

from __future__ import annotations

from collections.abc import Collection

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.schema.clause import FullName, NotUnderstoodError
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import expect_table, named_in
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.token import Token

_ENDS = ("WHERE", "ORDER", "LIMIT")


def confined_update(statement: LoggedStatement) -> tuple[FullName, tuple[str, ...]] | None:
    """The table and the columns that an UPDATE sets, in lower case; None for what is no UPDATE of one table."""
    cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
    if not cursor.takes_words("UPDATE"):
        return None
    cursor.pass_words("LOW_PRIORITY", "IGNORE")
    try:
        table = expect_table(cursor, statement.database)
    except NotUnderstoodError:
        return None
    if not cursor.peek().is_word("SET"):
        cursor.takes_words("AS")
        cursor.name()  # what it is called in the statement
    if not cursor.takes_words("SET"):
        return None
    names = [_set_column(part) for part in parts_of(_assignments(cursor))]
    return None if None in names or not names else (table, tuple(name for name in names if name is not None))


def _assignments(cursor: Cursor) -> list[Token]:
    found: list[Token] = []
    depth = 0
    while not cursor.is_at_end and (depth or not cursor.peek().is_word(*_ENDS)):
        token = cursor.take()
        depth += token.is_sign("(") - token.is_sign(")")
        found.append(token)
    return found


def _set_column(part: list[Token]) -> str | None:
    cursor = Cursor(part)
    name = cursor.name()
    while name is not None and cursor.takes_sign("."):
        name = cursor.name()
    return name.lower() if name is not None and (cursor.takes_sign("=") or cursor.takes_sign(":=")) else None


def columns_touched(table: TableVersion, names: Collection[str]) -> set[int] | None:
    """The ids of the columns that have other values once these are set; None if rows are not told apart any more."""
    key = row_key(table)
    known = {column.name.lower(): column for column in table.columns}
    if key is None or table.is_versioned or not known.keys() >= set(names):
        return None
    touched = {*names, *(name for name, column in known.items() if column.on_update is not None)}
    while True:
        made = {
            name
            for name, column in known.items()
            if name not in touched and column.expression is not None and named_in(column.expression) & touched
        }
        if not made:
            break
        touched |= made
    ids = {known[name].id for name in touched}
    return None if ids & {part.column_id for part in key.parts} else ids
