"""Tables as tests change them: rows by name, with their contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import (
    ROW_EVENT_BYTES,
    Columns,
    Row,
    RowImage,
    RowMetadata,
    encode_rows,
    encode_table_map,
    image_columns,
)
from ibbmaster.replication.event.rows.partial import encode_fragments
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.schema.view_text import sequence_options
from .clock import FixtureClock
from .table_version import KeptRow, Values, WritableVersion, writable_version

_NOW = re.compile(r"current_timestamp(?:\((\d?)\))?", re.IGNORECASE)
SEQUENCE_ROW = 1  # the number of the only row of a sequence
NEXT_AND_COUNT = (0, 7)  # columns of its smallest image


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """How changes of rows are written, in the words of the server's settings.

    Attributes:
        image: `binlog_row_image`.
        metadata: `binlog_row_metadata`.
        has_generated: images of UPDATE and DELETE have generated columns; those of MariaDB 11.8.9 have not.
        is_compressed: `log_bin_compress`, with no least size.
        event_bytes: `binlog_row_event_max_size`: more rows of a statement get several events.
        fragment_bytes: `binlog_row_event_fragment_threshold` of 12.3: longer row events become PARTIAL_ROW_DATA events;
            None: none do.
    """

    image: RowImage = RowImage.FULL
    metadata: RowMetadata = RowMetadata.FULL
    has_generated: bool = True
    is_compressed: bool = False
    event_bytes: int = ROW_EVENT_BYTES
    fragment_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.fragment_bytes is not None and self.fragment_bytes < 1:
            raise ConfigurationError(f"fragments of {self.fragment_bytes} bytes: expected at least 1")


class SequenceRow(NamedTuple):
    next_not_cached_value: int
    minimum_value: int
    maximum_value: int
    start_value: int
    increment: int
    cache_size: int
    cycle_option: int
    cycle_count: int

    @property
    def step(self) -> int:
        return self.increment or 1  # 0 stands for auto_increment_increment

    def has_cached(self, value: int) -> bool:
        """Whether a value needs no further row in the log."""
        end = self.next_not_cached_value
        return value < end if self.step > 0 else value > end

    def reserved(self, name: str) -> tuple[int, SequenceRow]:
        """The next value, and the row after the server's next reservation. Raises ConfigurationError: none is left.
        Source: MariaDB 12.3, sql_sequence.cc, SEQUENCE::next_value()."""
        first, count = self.next_not_cached_value, self.cycle_count
        if not self.minimum_value <= first <= self.maximum_value:
            if not self.cycle_option:
                raise ConfigurationError(f"{name}: the sequence has run out at {self.maximum_value}")
            first, count = (self.minimum_value if self.step > 0 else self.maximum_value), count + 1
        end = first + self.step * (self.cache_size or 1)
        end = min(end, self.maximum_value + 1) if self.step > 0 else max(end, self.minimum_value - 1)
        return first, self._replace(next_not_cached_value=end, cycle_count=count)


def first_row(table: TableVersion) -> SequenceRow:
    made = sequence_options(table)
    return SequenceRow(
        next_not_cached_value=made.start,
        minimum_value=made.minimum,
        maximum_value=made.maximum,
        start_value=made.start,
        increment=made.increment,
        cache_size=made.cache,
        cycle_option=int(made.is_cycling),
        cycle_count=0,
    )


class RowStep(NamedTuple):
    """A changed row, to be undone or redone; None: it does not exist."""

    table: FixtureTable
    number: int
    before: KeptRow | None
    after: KeptRow | None

    def undo(self) -> None:
        self.table.keep(self.number, self.before)

    def redo(self) -> None:
        self.table.keep(self.number, self.after)


class StatementWriter(Protocol):
    @property
    def server_id(self) -> int: ...

    @property
    def format(self) -> RowFormat: ...

    def take(self, events: Iterable[bytes], steps: Sequence[RowStep]) -> None:
        """Write events, and remember what they change."""


class FixtureTable:
    """A table whose rows a test changes. Made by `FixturePrimary.table`.

    It follows the DDL of its primary. Values are Python's, or texts as SQL has them (`"9.90"`, `"2026-01-01
    12:00:00"`), and read as `Log.groups` gives them. Statements logged as texts change no row here.
    """

    def __init__(self, name: str, clock: FixtureClock, taking: Callable[..., AbstractContextManager[StatementWriter]]):
        self.name = name
        self._clock = clock
        self._taking = taking
        self._version: WritableVersion | None = None
        self._why_not = f"there is no table {name}"
        self._kept: dict[int, KeptRow] = {}
        self._numbers: dict[tuple[Value, ...], int] = {}  # by key
        self._last_number = 0
        self._last_increment = 0
        self._next: int | None = None  # of a sequence, if it is reserved

    def __repr__(self) -> str:
        return f"<FixtureTable {self.name} of {len(self._kept)} rows>"

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def rows(self) -> list[dict[str, Value]]:
        """Its rows, in the order of their insertion."""
        version = self._current()
        names = [column.name for column in version.table.columns]
        return [dict(zip(names, version.values(kept), strict=True)) for kept in self._kept.values()]

    @property
    def known(self) -> TableVersion | None:
        """The present version of the table; None: its rows cannot be written."""
        return None if self._version is None else self._version.table

    # Changes

    def insert(self, *rows: Values, **values: object) -> None:
        """Insert one row by its values, or several as one statement; left-out columns get their default. For a
        sequence, set its only row, as SETVAL does. Raises ConfigurationError: a value cannot be that of its column,
        there is no such column, one without default is missing, or there is a row of that key already."""
        version = self._current()
        named = [version.named(row) for row in (rows or (values,))]
        if rows and values:
            raise ConfigurationError(f"{self.name}: give rows, or the values of one row, not both")
        if version.is_sequence:
            for row in named:
                self._set(version, row)
            return
        complete = [self._completed(version, row) for row in named]
        plain = [set(row) - set(version.computed) for row in named]
        given = [names | made for names, (_, made) in zip(plain, complete, strict=True)]
        if any(numbers != given[0] for numbers in given):
            raise ConfigurationError(f"{self.name}: the rows of one statement have different columns")
        keys: set[tuple[Value, ...]] = set()
        for inserted, _ in complete:
            key = version.key_of(inserted)
            if key and (key in self._numbers or key in keys):
                raise ConfigurationError(f"{self.name}: there is a row of the key {version.shown(key)} already")
            keys.add(key)
        self._change(version, ChangeKind.INSERT, [(None, None, row) for row, _ in complete], given[0])

    def update(self, where: Values | None = None, /, **values: object) -> None:
        """Change the row with the key among `values`, or the row that `where` names, whose key may change. As on a
        server, no change is not logged. Raises ConfigurationError: as `insert`, or there is no such row."""
        version = self._current()
        named = version.named(values)
        if where is None:
            found = {number: named.pop(number) for number in self._key_among(version, named, "update")}
        else:
            found = version.named(where)
        number, before = self._find(version, found)
        changing = list(before)
        for changed, value in named.items():
            changing[changed] = value
        given = set(named)
        for place, column in enumerate(version.table.columns):
            if column.on_update is not None and place not in given and tuple(changing) != before:
                changing[place] = version.read(place, self._clock.text(column.type.scale or 0))
                given.add(place)
        if tuple(changing) == before:
            return
        after = version.with_computed(changing, [number for number in version.computed if number not in named])
        given = {number for number in given if number not in version.computed} | version.stored
        key = version.key_of(after)
        if key and self._numbers.get(key, number) != number:
            raise ConfigurationError(f"{self.name}: there is a row of the key {version.shown(key)} already")
        self._change(version, ChangeKind.UPDATE, [(number, before, after)], given)

    def delete(self, where: Values | None = None, /, **values: object) -> None:
        """Delete the row of this key, or with these values. Raises ConfigurationError: there is no such row."""
        version = self._current()
        number, before = self._find(version, version.named({**(where or {}), **values}))
        self._change(version, ChangeKind.DELETE, [(number, before, None)], set())

    def next(self) -> int:
        """NEXT VALUE FOR a sequence. A further reservation is logged as a group by itself, as on a server, but in a
        transaction that is not transactional. Raises ConfigurationError: it is no sequence, or has run out."""
        version = self._current()
        if not version.is_sequence:
            raise ConfigurationError(f"{self.name} is no sequence")
        row = SequenceRow._make(version.values(self._kept[SEQUENCE_ROW]))
        value = self._next
        if value is None or not row.has_cached(value):
            value, row = row.reserved(self.name)
            self._set(version, dict(enumerate(row)), is_apart=True)
        self._next = value + row.step
        return value

    def _set(self, version: WritableVersion, named: Mapping[int, Value], *, is_apart: bool = False) -> None:
        before = version.values(self._kept[SEQUENCE_ROW])
        after = tuple(named.get(number, value) for number, value in enumerate(before))
        given = {number for number in range(len(after)) if after[number] != before[number]} | {*NEXT_AND_COUNT}
        self._change(version, ChangeKind.INSERT, [(SEQUENCE_ROW, before, after)], given, is_apart=is_apart)

    # What its primary does

    def keep(self, number: int, row: KeptRow | None) -> None:
        version, old = self._version, self._kept.get(number)
        if version is None:
            return  # DDL has dropped the table
        self._next = None
        if old is not None and version.key:
            self._numbers.pop(version.key_of(version.values(old)), None)
        if row is None:
            self._kept.pop(number, None)
        else:
            self._kept[number] = row
            if version.key:
                self._numbers[version.key_of(version.values(row))] = number

    def become(self, table: TableVersion, table_id: int) -> None:
        """Become another version of the table: rows keep the common columns; a new table begins empty. Raises
        ConfigurationError: columns of such types cannot be written, or hold the present values."""
        old = self._version
        self.name = table.full_name
        version = writable_version(table, table_id)
        if old is None or old.table.generation != table.generation:
            row = version.to_keep(first_row(table)) if version.is_sequence else None
            self._kept = {} if row is None else {SEQUENCE_ROW: row}
            self._last_increment = 0
            self._next = None
        else:
            types = {column.id: column.type for column in old.table.columns}
            changed = [
                (number, column)
                for number, column in enumerate(table.columns)
                if column.id in types and types[column.id] != column.type
            ]
            expressions = {column.id: column.expression for column in old.table.columns}
            remade = {
                column.id for column in table.columns if column.expression not in (None, expressions.get(column.id))
            }
            self._kept = {
                number: version.converted({id: value for id, value in kept.items() if id not in remade}, changed)
                for number, kept in self._kept.items()
            }
        self._version = version
        self._numbers = {}
        if version.key:
            self._numbers = {version.key_of(version.values(row)): n for n, row in self._kept.items()}

    def end(self, reason: str) -> None:
        self._version, self._why_not = None, reason

    # Its rows

    def expect_known(self) -> None:
        """Raises ConfigurationError: there is no such table, or its rows cannot be written."""
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
        *,
        is_apart: bool = False,
    ) -> None:
        steps = []
        for number, before, after in changes:
            if number is None:
                self._last_number += 1
                number = self._last_number
            steps.append(RowStep(self, number, version.to_keep(before), version.to_keep(after)))
        with self._taking(is_apart=is_apart) as transaction:
            rows = [(None if kind is ChangeKind.INSERT else before, after) for _, before, after in changes]
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
        if version.is_sequence and way.image is RowImage.MINIMAL:
            columns: tuple[Columns, Columns] = (), tuple(sorted(given))
        else:
            columns = image_columns(written, way.image, kind, given)
        if not way.has_generated and kind is not ChangeKind.INSERT:
            first, second = (tuple(one for one in image if one not in version.computed) for image in columns)
            columns = first, second
        images = [(version.image(before, columns[0]), version.image(after, columns[1])) for before, after in changes]
        yield encode_table_map(written, metadata=way.metadata, **header)
        for event in encode_rows(
            written, kind, images, size_max=way.event_bytes, columns=columns, is_compressed=way.is_compressed, **header
        ):
            yield from [event] if way.fragment_bytes is None else encode_fragments(event, way.fragment_bytes)

    def _completed(self, version: WritableVersion, row: dict[int, Value]) -> tuple[Row, set[int]]:
        """Also returns the columns that a replica could not complete by itself."""
        values: list[Value] = []
        made = set(version.stored)
        for number, column in enumerate(version.table.columns):
            if number not in row:
                is_now = column.default is not None and _NOW.fullmatch(column.default) is not None
                if column.is_auto_increment or is_now:
                    made.add(number)
                values.append(None if number in version.computed else self._default(version, number, column))
            else:
                values.append(row[number])
            if column.is_auto_increment and isinstance(values[-1], int):
                self._last_increment = max(self._last_increment, values[-1])
        return version.with_computed(values, [number for number in version.computed if number not in row]), made

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
        if version.is_sequence:
            raise ConfigurationError(f"{self.name} is a sequence: insert() sets its row, next() takes a value")
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
