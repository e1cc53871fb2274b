"""One version of a table with all that writing its rows needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.declared import declare
from ibbmaster.event.rows.encoding import Columns, Row, WrittenTable, encode_table_map, written_table
from ibbmaster.event.rows.kinds.registry import value_reader
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.rows.value import Reader, Value
from ibbmaster.schema.column_text import type_text
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sql.literals import VariableValueError, constant_of

KeptRow = Mapping[int, Value]  # by the id of the column: it outlives an ALTER TABLE
Values = Mapping[str, object]  # by the name of the column


@dataclass(frozen=True, slots=True, kw_only=True)
class WritableVersion:
    """A version of a table whose rows can be written. Columns have numbers, from 0.

    `key` are the numbers of the columns that tell its rows apart; none: all of them do.
    """

    table: TableVersion
    written: WrittenTable
    readers: Sequence[Reader]
    key: tuple[int, ...]

    def named(self, values: Values) -> dict[int, Value]:
        """Values by the numbers of their columns, as they will be read.

        Raises:
            ConfigurationError: there is no such column, or one cannot have its value.
        """
        numbers = {column.name.lower(): number for number, column in enumerate(self.table.columns)}
        found = {}
        for name, value in values.items():
            number = numbers.get(name.lower())
            if number is None:
                names = ", ".join(column.name for column in self.table.columns)
                raise ConfigurationError(f"{self.table.full_name} has no column {name!r}; it has {names}")
            found[number] = self.read(number, value)
        return found

    def read(self, number: int, value: object) -> Value:
        """A value as a reader of the log will have it.

        Raises:
            ConfigurationError: the column cannot have it.
        """
        column = self.written.columns[number]
        where = f"{self.table.full_name} column {column.name} ({column.declared})"
        if value is None:
            if not column.is_nullable:
                raise ConfigurationError(f"{where}: NULL")
            return None
        try:
            return self.readers[number](column.encode(value), 0)[0]
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"{where}: {value!r}: {error}") from None

    def constant(self, number: int, expression: str) -> Value:
        """The value of a literal of SQL in a column.

        Raises:
            ConfigurationError: it is no literal.
        """
        try:
            return self.read(number, constant_of(expression))
        except VariableValueError:
            where = f"{self.table.full_name} column {self.table.columns[number].name}"
            raise ConfigurationError(f"{where}: what {expression} comes to is not known here: give its value") from None

    def converted(self, row: KeptRow, changed: Iterable[tuple[int, TableColumn]]) -> KeptRow:
        """A row of the version before, where columns have other types now.

        Raises:
            ConfigurationError: a value cannot be one of its new type.
        """
        values = dict(row)
        for number, column in changed:
            value = values.get(column.id)
            try:
                values[column.id] = self.read(number, value)
            except ConfigurationError:
                values[column.id] = self.read(number, str(value))
        return values

    def to_keep(self, row: Row | None) -> KeptRow | None:
        """A row so that it outlives an ALTER TABLE."""
        if row is None:
            return None
        return {column.id: value for column, value in zip(self.table.columns, row, strict=True)}

    def values(self, kept: KeptRow) -> tuple[Value, ...]:
        """The values of a row; those of before an ALTER TABLE have in a new column what it gave them."""
        return tuple(
            kept[column.id] if column.id in kept else self.constant(number, column.first_value or "NULL")
            for number, column in enumerate(self.table.columns)
        )

    def image(self, row: Row | None, columns: Columns) -> bytes | None:
        """The image of a row with some of its columns; None if there is no such row."""
        return None if row is None else self.written.image(row, columns)

    def key_of(self, row: Row) -> tuple[Value, ...]:
        """What tells a row apart; nothing where there is no key."""
        return tuple(row[number] for number in self.key)

    def shown(self, key: Sequence[Value]) -> str:
        """A key for people."""
        names = [self.table.columns[number].name for number in self.key]
        return ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True))


def writable_version(table: TableVersion, table_id: int) -> WritableVersion:
    """A version with how its rows are written.

    Raises:
        ConfigurationError: that cannot be done.
    """
    for column in table.columns:
        if column.expression is not None or column.period is not None or column.type.is_compressed:
            what = "compressed" if column.type.is_compressed else "filled in by the server"
            raise ConfigurationError(f"{table.full_name} column {column.name} is {what}: its rows cannot be written")
    declared = {column.name: _declared(column) for column in table.columns}
    names = {column.id: column.name for column in table.columns}
    primary = table.primary_key
    written = written_table(
        table.full_name,
        declared,
        table_id=table_id,
        primary_key=[] if primary is None else [names[part.column_id] for part in primary.parts],
    )
    schema = declare(decode_table_schema(encode_table_map(written, server_id=1)), declared)
    numbers = {column.id: number for number, column in enumerate(table.columns)}
    key = row_key(table.indexes, table.columns)
    return WritableVersion(
        table=table,
        written=written,
        readers=[value_reader(column) for column in schema.columns],
        key=() if key is None else tuple(numbers[part.column_id] for part in key.parts),
    )


def _declared(column: TableColumn) -> str:
    charset = f" CHARACTER SET {column.type.charset}" if column.type.charset is not None else ""
    return type_text(column.type) + charset + ("" if column.is_nullable else " NOT NULL")
