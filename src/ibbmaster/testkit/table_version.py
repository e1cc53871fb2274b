"""One version of a table with all that writing its rows needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.column_types.kind import StoredText
from ibbmaster.replication.event.column_types.registry import value_reader
from ibbmaster.replication.event.rows.charset import character_size
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.rows.declared import declare
from ibbmaster.replication.event.rows.encoding import (
    Columns,
    Row,
    WrittenColumn,
    WrittenTable,
    encode_table_map,
    written_column,
)
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.rows.value import Reader, Value
from ibbmaster.rows.expr.formulas import Evaluate, NotSimpleError, formula
from ibbmaster.schema.collations import collation_number
from ibbmaster.schema.column_text import type_text
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn, TableKind, TableVersion
from ibbmaster.sqltext.literals import VariableValueError, literal_value

KeptRow = Mapping[int, Value]  # by the id of the column: it outlives an ALTER TABLE
Values = Mapping[str, object]  # by the name of the column


@dataclass(frozen=True, slots=True, kw_only=True)
class WritableVersion:
    """Columns have numbers, from 0.

    `key` has the columns that identify rows; none: all do. `computed` has the generated columns and their formulas;
    `stored` those of them that even the smallest images have.
    """

    table: TableVersion
    written: WrittenTable
    readers: Sequence[Reader]
    key: tuple[int, ...]
    computed: Mapping[int, Evaluate | None]
    stored: frozenset[int]

    @property
    def is_sequence(self) -> bool:
        return self.table.kind is TableKind.SEQUENCE

    def named(self, values: Values) -> dict[int, Value]:
        """Values by number of column, as readers will see them. Raises ConfigurationError: there is no such column, or
        it cannot have its value."""
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
        """Raises ConfigurationError: the column cannot have it."""
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
        """Raises ConfigurationError: it is no literal."""
        try:
            return self.read(number, literal_value(expression))
        except VariableValueError:
            where = f"{self.table.full_name} column {self.table.columns[number].name}"
            raise ConfigurationError(f"{where}: what {expression} comes to is not known here: give its value") from None

    def converted(self, row: KeptRow, changed: Iterable[tuple[int, TableColumn]]) -> KeptRow:
        """Raises ConfigurationError: one cannot be converted."""
        values = dict(row)
        for number, column in changed:
            if column.id not in values:
                continue  # it is computed anew
            value = values[column.id]
            try:
                values[column.id] = self.read(number, value)
            except ConfigurationError:
                values[column.id] = self.read(number, str(value))
        return values

    def to_keep(self, row: Row | None) -> KeptRow | None:
        """A row in the form that survives an ALTER TABLE."""
        if row is None:
            return None
        return {column.id: value for column, value in zip(self.table.columns, row, strict=True)}

    def values(self, kept: KeptRow) -> tuple[Value, ...]:
        """The values of a row; a column added by ALTER TABLE has the value that this gave it."""
        found = [
            kept[column.id]
            if column.id in kept
            else None
            if number in self.computed
            else self.constant(number, column.first_value or "NULL")
            for number, column in enumerate(self.table.columns)
        ]
        return self.with_computed(found, [n for n in self.computed if self.table.columns[n].id not in kept])

    def with_computed(self, row: Sequence[Value], numbers: Iterable[int]) -> tuple[Value, ...]:
        """Raises ConfigurationError: the value of one is not known."""
        values = list(row)
        by_name = {column.name.lower(): value for column, value in zip(self.table.columns, row, strict=True)}
        for number in numbers:
            column, compute = self.table.columns[number], self.computed[number]
            where = f"{self.table.full_name} column {column.name}"
            if compute is None:
                raise ConfigurationError(
                    f"{where}: what {column.expression} comes to is not known here: give its value"
                )
            try:
                values[number] = self.read(number, compute(by_name))
            except NotSimpleError as error:
                raise ConfigurationError(f"{where}: {error}: give its value") from None
        return tuple(values)

    def image(self, row: Row | None, columns: Columns) -> bytes | None:
        return None if row is None else self.written.image(row, columns)

    def key_of(self, row: Row) -> tuple[Value, ...]:
        """The values that identify a row; empty without a key."""
        return tuple(row[number] for number in self.key)

    def shown(self, key: Sequence[Value]) -> str:
        names = [self.table.columns[number].name for number in self.key]
        return ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True))


def writable_version(table: TableVersion, table_id: int) -> WritableVersion:
    if not table.columns:
        raise ConfigurationError(f"{table.full_name} is no table of rows")
    columns = tuple(_written(table, column) for column in table.columns)
    numbers = {column.id: number for number, column in enumerate(table.columns)}
    key = row_key(table)
    parts = () if key is None else key.parts
    written = WrittenTable(
        table_id=table_id,
        database=table.database,
        table=table.name,
        columns=columns,
        primary_key=tuple(numbers[part.column_id] for part in parts),
        key_prefixes=tuple(part.length or 0 for part in parts),
    )
    declared = {column.name: column.declared for column in columns}
    schema = declare(decode_table_schema(encode_table_map(written, server_id=1)), declared)
    indexed = {part.column_id for index in table.indexes for part in index.parts}
    return WritableVersion(
        table=table,
        written=written,
        readers=[value_reader(column) for column in schema.columns],
        key=written.primary_key,
        computed=_computed(table, schema),
        stored=frozenset(
            numbers[column.id]
            for column in table.columns
            if column.expression is not None and (column.is_stored or column.id in indexed)
        ),
    )


def _written(table: TableVersion, column: TableColumn) -> WrittenColumn:
    if column.period is not None or column.is_hidden:
        what = "with the hash of a unique index" if column.is_internal else f"column {column.name}"
        raise ConfigurationError(f"{table.full_name} {what} is filled in by the server: its rows cannot be written")
    kind, storage = column.type, None
    if kind.charset is not None:
        number = collation_number(kind.collation or "")
        if number is None:
            problem = f"text in {kind.charset}, of which no collation {kind.collation} is known"
            raise ConfigurationError(f"{table.full_name} column {column.name} is {problem}")
        storage = StoredText(kind.charset, number, character_size(kind.charset))
    declared = type_text(replace(kind, is_compressed=False)) + ("" if column.is_nullable else " NOT NULL")
    if kind.charset is not None:
        declared += f" CHARACTER SET {kind.charset}"
    return written_column(column.name, declared, storage=storage, is_compressed=kind.is_compressed)


def _computed(table: TableVersion, schema: TableSchema) -> dict[int, Evaluate | None]:
    pairs = list(zip(table.columns, schema.columns, strict=True))
    plain = {
        known.name.lower(): column for known, column in pairs if known.expression is None and not known.type.is_zerofill
    }
    found: dict[int, Evaluate | None] = {}
    for number, (known, column) in enumerate(pairs):
        if known.expression is not None:
            try:
                found[number] = formula(known.expression, plain, column)[1]
            except NotSimpleError:
                found[number] = None
    return found
