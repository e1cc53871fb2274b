"""Tables as tests change them: rows by name, of which the contents are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.changes import ChangeKind
from ibbmaster.event.rows.declared import declare
from ibbmaster.event.rows.encoding import (
    ROW_EVENT_BYTES,
    Columns,
    Row,
    RowMetadata,
    WrittenTable,
    encode_rows,
    encode_table_map,
    written_table,
)
from ibbmaster.event.rows.kinds.registry import value_reader
from ibbmaster.event.rows.row_image import RowImage, image_columns
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.rows.value import Reader, Value
from ibbmaster.schema.column_text import type_text
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sql.literals import VariableValueError, constant_of
from ibbmaster.testkit.clock import FixtureClock

KeptRow = Mapping[int, Value]  # by the id of the column: it outlives an ALTER TABLE
Values = Mapping[str, object]  # by the name of the column
_NOW = re.compile(r"current_timestamp(?:\((\d?)\))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """How changes of rows are written, in the words of the server's settings.

    Attributes:
        image: `binlog_row_image`.
        metadata: `binlog_row_metadata`.
        is_compressed: `log_bin_compress`, with no least size.
        event_bytes: `binlog_row_event_max_size`: rows of a statement that are more get several events.
    """

    image: RowImage = RowImage.FULL
    metadata: RowMetadata = RowMetadata.FULL
    is_compressed: bool = False
    event_bytes: int = ROW_EVENT_BYTES


class RowStep(NamedTuple):
    """One row that a statement has changed, to be taken back or done again; None: there was, or is, no such row."""

    table: FixtureTable
    number: int
    before: KeptRow | None
    after: KeptRow | None

    def undo(self) -> None:
        self.table.keep(self.number, self.before)

    def redo(self) -> None:
        self.table.keep(self.number, self.after)


class StatementWriter(Protocol):
    """What the events of a statement go to: a transaction."""

    @property
    def server_id(self) -> int: ...

    @property
    def format(self) -> RowFormat: ...

    def take(self, events: Iterable[bytes], steps: Sequence[RowStep]) -> None:
        """Write events, and remember what they change."""


class _Version(NamedTuple):
    """One version of a table with all that writing its rows needs."""

    table: TableVersion
    written: WrittenTable
    readers: list[Reader]
    key: tuple[int, ...]  # the numbers of the columns that tell its rows apart; none: all of them do


class FixtureTable:
    """A table whose rows a test changes. Made by `FixturePrimary.table`.

    It follows what DDL of its primary does to the table. Values are taken as Python has them, or
    as texts as SQL has them (`"9.90"`, `"2026-01-01 12:00:00"`), and read as `Log.groups` gives them.
    Statements that are logged as texts change no row here.
    """

    def __init__(self, name: str, clock: FixtureClock, taking: Callable[[], AbstractContextManager[StatementWriter]]):
        self.name = name
        self._clock = clock
        self._taking = taking
        self._version: _Version | None = None
        self._why_not = f"there is no table {name}"
        self._kept: dict[int, KeptRow] = {}
        self._numbers: dict[tuple[Value, ...], int] = {}  # by key
        self._last_number = 0
        self._last_increment = 0

    def __repr__(self) -> str:
        return f"<FixtureTable {self.name} of {len(self._kept)} rows>"

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def rows(self) -> list[dict[str, Value]]:
        """Its rows, in the order in which they were inserted."""
        version = self._current()
        names = [column.name for column in version.table.columns]
        return [dict(zip(names, self._values(version, kept), strict=True)) for kept in self._kept.values()]

    @property
    def known(self) -> TableVersion | None:
        """The table as it is now; None if there is none whose rows can be written."""
        return None if self._version is None else self._version.table

    # Changes ----------------------------------------------------------------------------------

    def insert(self, *rows: Values, **values: object) -> None:
        """Insert one row by its values, or several as one statement; columns that are left out get their default.

        Raises:
            ConfigurationError: a value cannot be that of its column, there is no such column, one without
                default is missing, or there is a row of that key already.
        """
        version = self._current()
        named = [self._named(version, row) for row in (rows or (values,))]
        if rows and values:
            raise ConfigurationError(f"{self.name}: give rows, or the values of one row, not both")
        complete = [self._completed(version, row) for row in named]
        given = [
            set(row) | {number for number in computed if number not in row}
            for row, (_, computed) in zip(named, complete, strict=True)
        ]
        if any(numbers != given[0] for numbers in given):
            raise ConfigurationError(f"{self.name}: the rows of one statement have different columns")
        keys: set[tuple[Value, ...]] = set()
        for row, _ in complete:
            key = tuple(row[number] for number in version.key)
            if key and (key in self._numbers or key in keys):
                raise ConfigurationError(f"{self.name}: there is a row of the key {self._shown(version, key)} already")
            keys.add(key)
        self._change(version, ChangeKind.INSERT, [(None, None, row) for row, _ in complete], given[0])

    def update(self, where: Values | None = None, /, **values: object) -> None:
        """Change the row that has the key among `values`, or the one that `where` tells, which may change its key.

        As on a server, what changes nothing is not logged.

        Raises:
            ConfigurationError: as `insert`, or there is no such row.
        """
        version = self._current()
        named = self._named(version, values)
        if where is None:
            found = {number: named.pop(number) for number in self._key_among(version, named, "update")}
        else:
            found = self._named(version, where)
        number, before = self._find(version, found)
        after = list(before)
        for changed, value in named.items():
            after[changed] = value
        given = set(named)
        for place, column in enumerate(version.table.columns):
            if column.on_update is not None and place not in given and tuple(after) != before:
                after[place] = self._read(version, place, self._clock.text(column.type.scale or 0))
                given.add(place)
        if tuple(after) == before:
            return
        key = tuple(after[part] for part in version.key)
        if key and self._numbers.get(key, number) != number:
            raise ConfigurationError(f"{self.name}: there is a row of the key {self._shown(version, key)} already")
        self._change(version, ChangeKind.UPDATE, [(number, before, tuple(after))], given)

    def delete(self, where: Values | None = None, /, **values: object) -> None:
        """Delete the row of this key, or the one that has these values.

        Raises:
            ConfigurationError: there is no such row.
        """
        version = self._current()
        number, before = self._find(version, self._named(version, {**(where or {}), **values}))
        self._change(version, ChangeKind.DELETE, [(number, before, None)], set())

    # What its primary does ----------------------------------------------------------------------

    def keep(self, number: int, row: KeptRow | None) -> None:
        """Have a row under a number, or none."""
        version = self._current()
        old = self._kept.get(number)
        if old is not None and version.key:
            self._numbers.pop(self._key(version, self._values(version, old)), None)
        if row is None:
            self._kept.pop(number, None)
        else:
            self._kept[number] = row
            if version.key:
                self._numbers[self._key(version, self._values(version, row))] = number

    def become(self, table: TableVersion, table_id: int) -> None:
        """Be another version of the table: rows keep what both have, and lose all where the table is a new one.

        Raises:
            ConfigurationError: columns of such types cannot be written, or hold the values that are there.
        """
        old = self._version
        self.name = table.full_name
        version = _version_of(table, table_id)
        if old is None or old.table.generation != table.generation:
            self._kept.clear()
            self._last_increment = 0
        else:
            types = {column.id: column.type for column in old.table.columns}
            changed = [
                (number, column)
                for number, column in enumerate(table.columns)
                if column.id in types and types[column.id] != column.type
            ]
            self._kept = {number: self._converted(version, kept, changed) for number, kept in self._kept.items()}
        self._version = version
        self._numbers = {}
        if version.key:
            self._numbers = {self._key(version, self._values(version, row)): n for n, row in self._kept.items()}

    def end(self, reason: str) -> None:
        """Be no table any longer."""
        self._version, self._why_not = None, reason

    # Its rows -----------------------------------------------------------------------------------

    def expect_known(self) -> None:
        """See that there is such a table.

        Raises:
            ConfigurationError: there is none, or its rows cannot be written.
        """
        self._current()

    def _current(self) -> _Version:
        if self._version is None:
            raise ConfigurationError(self._why_not)
        return self._version

    def _change(
        self,
        version: _Version,
        kind: ChangeKind,
        changes: Sequence[tuple[int | None, Row | None, Row | None]],
        given: set[int],
    ) -> None:
        steps = []
        for number, before, after in changes:
            if number is None:
                self._last_number += 1
                number = self._last_number
            steps.append(RowStep(self, number, self._to_keep(version, before), self._to_keep(version, after)))
        with self._taking() as transaction:
            rows = [(before, after) for _, before, after in changes]
            transaction.take(self._events(version, kind, rows, given, transaction), steps)
            for step in steps:
                step.redo()

    def _events(
        self,
        version: _Version,
        kind: ChangeKind,
        changes: Sequence[tuple[Row | None, Row | None]],
        given: set[int],
        transaction: StatementWriter,
    ) -> Iterator[bytes]:
        written, way = version.written, transaction.format
        header = {"server_id": transaction.server_id, "timestamp": self._clock.timestamp}
        blank = (None,) * len(written.columns)
        first = changes[0]
        columns = image_columns(written, way.image, kind, first[0] or blank, first[1] or blank, given)
        images = [
            (self._image(written, row[0], columns[0]), self._image(written, row[1], columns[1])) for row in changes
        ]
        yield encode_table_map(written, metadata=way.metadata, **header)
        yield from encode_rows(
            written,
            kind,
            images,
            size_max=way.event_bytes,
            columns=columns,
            is_compressed=way.is_compressed,
            **header,
        )

    @staticmethod
    def _image(written: WrittenTable, row: Row | None, columns: Columns) -> bytes | None:
        return None if row is None else written.image(row, columns)

    def _named(self, version: _Version, values: Values) -> dict[int, Value]:
        """Values by the numbers of their columns, as they will be read."""
        numbers = {column.name.lower(): number for number, column in enumerate(version.table.columns)}
        found = {}
        for name, value in values.items():
            number = numbers.get(name.lower())
            if number is None:
                names = ", ".join(column.name for column in version.table.columns)
                raise ConfigurationError(f"{self.name} has no column {name!r}; it has {names}")
            found[number] = self._read(version, number, value)
        return found

    def _read(self, version: _Version, number: int, value: object) -> Value:
        """A value as a reader of the log will have it."""
        column = version.written.columns[number]
        if value is None:
            if not column.is_nullable:
                raise ConfigurationError(f"{self.name} column {column.name} ({column.declared}): NULL")
            return None
        try:
            return version.readers[number](column.encode(value), 0)[0]
        except (ValueError, TypeError) as error:
            problem = f"{value!r}: {error}"
            raise ConfigurationError(f"{self.name} column {column.name} ({column.declared}): {problem}") from None

    def _completed(self, version: _Version, row: dict[int, Value]) -> tuple[Row, set[int]]:
        """A row with its defaults, and the columns that a replica could not complete by itself."""
        values: list[Value] = []
        computed = set()
        for number, column in enumerate(version.table.columns):
            if number not in row:
                is_now = column.default is not None and _NOW.fullmatch(column.default) is not None
                if column.is_auto_increment or is_now:
                    computed.add(number)
                values.append(self._default(version, number, column))
            else:
                values.append(row[number])
            if column.is_auto_increment and isinstance(values[-1], int):
                self._last_increment = max(self._last_increment, values[-1])
        return tuple(values), computed

    def _default(self, version: _Version, number: int, column: TableColumn) -> Value:
        if column.is_auto_increment:
            self._last_increment += 1
            return self._last_increment
        if column.default is None:
            raise ConfigurationError(f"{self.name}: column {column.name} has no default: give its value")
        now = _NOW.fullmatch(column.default)
        if now is not None:
            return self._read(version, number, self._clock.text(int(now[1] or 0)))
        return self._constant(version, number, column.default)

    def _constant(self, version: _Version, number: int, expression: str) -> Value:
        try:
            return self._read(version, number, constant_of(expression))
        except VariableValueError:
            name = version.table.columns[number].name
            raise ConfigurationError(
                f"{self.name} column {name}: what {expression} comes to is not known here: give its value"
            ) from None

    def _converted(self, version: _Version, row: KeptRow, changed: Iterable[tuple[int, TableColumn]]) -> KeptRow:
        """A row behind an ALTER TABLE, as far as columns have other types."""
        values = dict(row)
        for number, column in changed:
            value = values.get(column.id)
            try:
                values[column.id] = self._read(version, number, value)
            except ConfigurationError:
                values[column.id] = self._read(version, number, str(value))
        return values

    @staticmethod
    def _to_keep(version: _Version, row: Row | None) -> KeptRow | None:
        if row is None:
            return None
        return {column.id: value for column, value in zip(version.table.columns, row, strict=True)}

    def _values(self, version: _Version, kept: KeptRow) -> tuple[Value, ...]:
        """The values of a row; those of before an ALTER TABLE have in a new column what it gave them."""
        return tuple(
            kept[column.id] if column.id in kept else self._constant(version, number, column.first_value or "NULL")
            for number, column in enumerate(version.table.columns)
        )

    @staticmethod
    def _key(version: _Version, row: Row) -> tuple[Value, ...]:
        return tuple(row[number] for number in version.key)

    def _key_among(self, version: _Version, named: Mapping[int, Value], verb: str) -> tuple[int, ...]:
        if not version.key:
            raise ConfigurationError(f"{self.name} has no key: {verb} it with the row's values first, in a dict")
        missing = next((number for number in version.key if number not in named), None)
        if missing is not None:
            name = version.table.columns[missing].name
            raise ConfigurationError(f"{self.name}: {name}, of its key, is missing: which row is it?")
        return version.key

    def _find(self, version: _Version, wanted: Mapping[int, Value]) -> tuple[int, tuple[Value, ...]]:
        """The number and the values of the first row that has these values."""
        if version.key and all(number in wanted for number in version.key):
            number = self._numbers.get(tuple(wanted[part] for part in version.key))
            candidates = [] if number is None else [number]
        else:
            candidates = list(self._kept)
        for candidate in candidates:
            values = self._values(version, self._kept[candidate])
            if all(values[number] == value for number, value in wanted.items()):
                return candidate, values
        names = [column.name for column in version.table.columns]
        shown = ", ".join(f"{names[number]}={value!r}" for number, value in wanted.items())
        raise ConfigurationError(f"{self.name} has no row with {shown}; it has {len(self._kept)} rows")

    def _shown(self, version: _Version, key: Sequence[Value]) -> str:
        names = [version.table.columns[number].name for number in version.key]
        return ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True))


def _version_of(table: TableVersion, table_id: int) -> _Version:
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
    return _Version(
        table=table,
        written=written,
        readers=[value_reader(column) for column in schema.columns],
        key=() if key is None else tuple(numbers[part.column_id] for part in key.parts),
    )


def _declared(column: TableColumn) -> str:
    charset = f" CHARACTER SET {column.type.charset}" if column.type.charset is not None else ""
    return type_text(column.type) + charset + ("" if column.is_nullable else " NOT NULL")
