"""The columns of a view, where they are nothing but columns of the tables that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.statement import Select
from ibbmaster.schema.model import TableColumn, TableKind, TableVersion
from ibbmaster.schema.view_text import view_parts
from ibbmaster.sqltext.expression import ColumnName, Star
from ibbmaster.sqltext.query_tree import GivenTable, Item, SelectBlock
from ibbmaster.sqltext.token import SqlError
from ibbmaster.wire.refusal import RefusedError

NESTING_MAX = 8  # views of views

FindTable = Callable[[str, str], TableVersion]


def with_columns(view: TableVersion, find: FindTable, depth: int = 0) -> TableVersion | None:
    """A view with its columns; None where one of them is an expression, or of a table that is joined or not known."""
    parts = view_parts(view)
    try:
        (statement,) = parse(parts.query)
    except (SqlError, ValueError):
        return None
    query = statement.query if isinstance(statement, Select) else None
    if not isinstance(query, SelectBlock) or not isinstance(query.source, GivenTable) or depth > NESTING_MAX:
        return None
    name = query.source
    table = _found(name, view.database, find)
    if table is not None and table.kind is TableKind.VIEW:
        table = with_columns(table, find, depth + 1)
    if table is None:
        return None
    columns = list(_columns(query.items, table, name))
    names = [part.strip().strip("`") for part in parts.columns.strip(" ()").split(",")] if parts.columns else None
    if None in columns or (names is not None and len(names) != len(columns)):
        return None
    found = [column for column in columns if column is not None]
    if names is not None:
        found = [replace(column, name=name) for column, name in zip(found, names, strict=True)]
    return replace(view, columns=tuple(found))


def _found(name: GivenTable, database: str, find: FindTable) -> TableVersion | None:
    try:
        return find(name.database or database, name.name)
    except RefusedError:
        return None


def _columns(items: Sequence[Item], table: TableVersion, name: GivenTable) -> Iterator[TableColumn | None]:
    qualifiers = {name.alias or name.name}
    for item in items:
        match item.node:
            case Star(table=()):
                yield from (_seen(each) for each in table.columns if not (each.is_invisible or each.is_hidden))
            case ColumnName(parts=parts):
                column = table.column(parts[-1])
                is_known = column is not None and (len(parts) == 1 or parts[-2] in qualifiers)
                yield replace(_seen(column), name=item.name) if column is not None and is_known else None
            case _:
                yield None


def _seen(column: TableColumn) -> TableColumn:
    """A column as a view shows it: its value alone."""
    default = "0" if column.is_auto_increment else column.default
    return replace(
        column,
        default="NULL" if column.expression is not None and column.is_nullable else default,
        is_auto_increment=False,
        expression=None,
        on_update=None,
        is_invisible=False,
        is_unversioned=False,
        period=None,
        check=None,
    )
