"""Tables as tests change them: rows by name, of which the contents are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.changes import ChangeKind
from ibbmaster.event.rows.encoding import (
    ROW_EVENT_BYTES,
    Row,
    RowMetadata,
    encode_rows,
    encode_table_map,
)
from ibbmaster.event.rows.row_image import RowImage, image_columns
from ibbmaster.event.rows.value import Value
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.testkit.clock import FixtureClock
from ibbmaster.testkit.table_version import KeptRow, Values, WritableVersion, writable_version

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
        self._version: WritableVersion | None = None
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
        return [dict(zip(names, version.values(kept), strict=True)) for kept in self._kept.values()]

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
        named = [version.named(row) for row in (rows or (values,))]
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
            key = version.key_of(row)
            if key and (key in self._numbers or key in keys):
                raise ConfigurationError(f"{self.name}: there is a row of the key {version.shown(key)} already")
            keys.add(key)
        self._change(version, ChangeKind.INSERT, [(None, None, row) for row, _ in complete], given[0])

    def update(self, where: Values | None = None, /, **values: object) -> None:
        """Change the row that has the key among `values`, or the one that `where` tells, which may change its key.

        As on a server, what changes nothing is not logged.

        Raises:
            ConfigurationError: as `insert`, or there is no such row.
        """
        version = self._current()
        named = version.named(values)
        if where is None:
            found = {number: named.pop(number) for number in self._key_among(version, named, "update")}
        else:
            found = version.named(where)
        number, before = self._find(version, found)
        after = list(before)
        for changed, value in named.items():
            after[changed] = value
        given = set(named)
        for place, column in enumerate(version.table.columns):
            if column.on_update is not None and place not in given and tuple(after) != before:
                after[place] = version.read(place, self._clock.text(column.type.scale or 0))
                given.add(place)
        if tuple(after) == before:
            return
        key = version.key_of(after)
        if key and self._numbers.get(key, number) != number:
            raise ConfigurationError(f"{self.name}: there is a row of the key {version.shown(key)} already")
        self._change(version, ChangeKind.UPDATE, [(number, before, tuple(after))], given)

    def delete(self, where: Values | None = None, /, **values: object) -> None:
        """Delete the row of this key, or the one that has these values.

        Raises:
            ConfigurationError: there is no such row.
        """
        version = self._current()
        number, before = self._find(version, version.named({**(where or {}), **values}))
        self._change(version, ChangeKind.DELETE, [(number, before, None)], set())

    # What its primary does ----------------------------------------------------------------------

    def keep(self, number: int, row: KeptRow | None) -> None:
        """Have a row under a number, or none."""
        version, old = self._version, self._kept.get(number)
        if version is None:
            return  # DDL has dropped the table meanwhile
        if old is not None and version.key:
            self._numbers.pop(version.key_of(version.values(old)), None)
        if row is None:
            self._kept.pop(number, None)
        else:
            self._kept[number] = row
            if version.key:
                self._numbers[version.key_of(version.values(row))] = number

    def become(self, table: TableVersion, table_id: int) -> None:
        """Be another version of the table: rows keep what both have, and lose all where the table is a new one.

        Raises:
            ConfigurationError: columns of such types cannot be written, or hold the values that are there.
        """
        old = self._version
        self.name = table.full_name
        version = writable_version(table, table_id)
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
            self._kept = {number: version.converted(kept, changed) for number, kept in self._kept.items()}
        self._version = version
        self._numbers = {}
        if version.key:
            self._numbers = {version.key_of(version.values(row)): n for n, row in self._kept.items()}

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

    def _current(self) -> WritableVersion:
        if self._version is None:
            raise ConfigurationError(self._why_not)
        return self._version

    def _change(
        self,
        version: WritableVersion,
        kind: ChangeKind,
        changes: Sequence[tuple[int | None, Row | None, Row | None]],
        given: set[int],
    ) -> None:
        steps = []
        for number, before, after in changes:
            if number is None:
                self._last_number += 1
                number = self._last_number
            steps.append(RowStep(self, number, version.to_keep(before), version.to_keep(after)))
        with self._taking() as transaction:
            rows = [(before, after) for _, before, after in changes]
            transaction.take(self._events(version, kind, rows, given, transaction), steps)
            for step in steps:
                step.redo()

    def _events(
        self,
        version: WritableVersion,
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
        images = [(version.image(before, columns[0]), version.image(after, columns[1])) for before, after in changes]
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

    def _completed(self, version: WritableVersion, row: dict[int, Value]) -> tuple[Row, set[int]]:
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

    def _default(self, version: WritableVersion, number: int, column: TableColumn) -> Value:
        if column.is_auto_increment:
            self._last_increment += 1
            return self._last_increment
        if column.default is None:
            raise ConfigurationError(f"{self.name}: column {column.name} has no default: give its value")
        now = _NOW.fullmatch(column.default)
        if now is not None:
            return version.read(number, self._clock.text(int(now[1] or 0)))
        return version.constant(number, column.default)

    def _key_among(self, version: WritableVersion, named: Mapping[int, Value], verb: str) -> tuple[int, ...]:
        if not version.key:
            raise ConfigurationError(f"{self.name} has no key: {verb} it with the row's values first, in a dict")
        missing = next((number for number in version.key if number not in named), None)
        if missing is not None:
            name = version.table.columns[missing].name
            raise ConfigurationError(f"{self.name}: {name}, of its key, is missing: which row is it?")
        return version.key

    def _find(self, version: WritableVersion, wanted: Mapping[int, Value]) -> tuple[int, tuple[Value, ...]]:
        """The number and the values of the first row that has these values."""
        if version.key and all(number in wanted for number in version.key):
            number = self._numbers.get(tuple(wanted[part] for part in version.key))
            candidates = [] if number is None else [number]
        else:
            candidates = list(self._kept)
        for candidate in candidates:
            values = version.values(self._kept[candidate])
            if all(values[number] == value for number, value in wanted.items()):
                return candidate, values
        names = [column.name for column in version.table.columns]
        shown = ", ".join(f"{names[number]}={value!r}" for number, value in wanted.items())
        raise ConfigurationError(f"{self.name} has no row with {shown}; it has {len(self._kept)} rows")
