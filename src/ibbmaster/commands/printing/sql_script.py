"""A log as readable SQL: rows as INSERT, UPDATE and DELETE by key, statements as logged.

A server accepts it with the reservations of docs/printing.md: triggers run again, and a row without a primary key is
found by all its values.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from ibbmaster.api.group import Change, Event, Group, Row, UndecodableValue
from ibbmaster.errors import EventError
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.sqltext.quoting import quoted, quoted_name
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.storage.codec.printable import UNSEEN
from .server_script import ServerScript

UTF8MB4_GENERAL_CI = 45
HIDDEN = re.compile(f"[\0-\x1f]|{UNSEEN.pattern}")


class SqlScript(ServerScript):
    """With `keeps_bytes` unreadable values are their bytes."""

    delimiter = b";"
    keeps_bytes = False

    def _items(self, group: Group) -> Iterator[Event | tuple[TableSchema, Change]]:
        return group.contents()

    def _row(self, table: TableSchema, change: Change) -> bytes:
        settings = self.settings.changed(
            sql_mode="'NO_AUTO_VALUE_ON_ZERO'",
            time_zone="'+00:00'",
            character_set_client=UTF8MB4_GENERAL_CI,
            collation_connection=UTF8MB4_GENERAL_CI,
        )
        head = b"" if settings is None else self.statement(settings)
        if self.settings.client_charset not in ("", "utf8mb4", "utf8mb3"):
            self.settings.client_charset = "utf8mb4"
            head = self._client_charset() + head
        return head + self.statement(_row_statement(table, _with_bytes(change) if self.keeps_bytes else change))


def _with_bytes(change: Change) -> Change:
    def read(row: Row | None) -> Row | None:
        items = () if row is None else row.items()
        found = {name: one.data if isinstance(one, UndecodableValue) else one for name, one in items}
        return None if row is None else found

    return Change(kind=change.kind, before=read(change.before), after=read(change.after))


def _row_statement(table: TableSchema, change: Change) -> str:
    """Raises EventError, UndecodableError."""
    if not table.has_names:
        raise EventError(f"{table.name}: its columns have no names here; declare them with --schema, or print JSON")
    name = TableName(table.database, table.table).sql
    columns = {column.name: column for column in table.columns}
    before, after = change.before, change.after
    if before is None:
        assert after is not None
        values = ", ".join(literal(columns[key], value) for key, value in after.items())
        return f"INSERT INTO {name} ({', '.join(map(quoted_name, after))}) VALUES ({values})"
    where = _condition(table, before)
    if after is None:
        return f"DELETE FROM {name} WHERE {where}"
    changes = {
        key: value
        for key, value in after.items()
        if key not in before or before[key] != value or columns[key].may_renew_itself
    }
    news = ", ".join(f"{quoted_name(key)} = {literal(columns[key], value)}" for key, value in changes.items())
    if not news:
        return f"DO 0 /* an UPDATE of {name.replace('*/', '* /')} that changed nothing */"
    return f"UPDATE {name} SET {news} WHERE {where}"


def _condition(table: TableSchema, row: Row) -> str:
    names = [table.columns[number].name for number in table.primary_key]
    if names and all(name in row for name in names):
        columns = [table.columns[number] for number in table.primary_key]
        return " AND ".join(f"{quoted_name(one.name)} = {literal(one, row[one.name])}" for one in columns)
    known = [column for column in table.columns if column.name in row]
    conditions = [f"{quoted_name(one.name)} <=> {literal(one, row[one.name])}" for one in known]
    return f"{' AND '.join(conditions) or 'TRUE'} LIMIT 1 /* no primary key is known */"


def literal(column: Column, value: object) -> str:
    """SQL under NO_AUTO_VALUE_ON_ZERO and utf8mb4, safe for a terminal. Raises UndecodableError."""
    if value is None:
        return "NULL"
    if isinstance(value, UndecodableValue):
        raise value.error
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, tuple):
        return f"VEC_FromText('[{','.join(map(repr, value))}]')"
    if isinstance(value, str):
        if HIDDEN.search(value):
            return f"CONVERT(X'{value.encode('utf-8', 'surrogatepass').hex()}' USING utf8mb4)"
        return quoted(value)
    return repr(value)
