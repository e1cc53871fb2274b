"""Event groups and events as users hold them."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from ibbmaster.errors import EventError, PositionPurgedError, StoreError, UndecodableError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.group_content import DECODERS_MAX, RowReader, TableDecoder, group_events
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.describe import describe_event
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, EventHeader, decode_event_header
from ibbmaster.replication.event.rows.changes import ABSENT, Image, RawValue, RowChange
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.replication.event.types import type_name
from ibbmaster.rows.shape import ColumnOrigin, TableShape, has_every_value, version_shape
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.versions import TableState

KEPT_BYTES_MAX = 1 << 20  # of a group's events: so few are kept once they are read, more are read again

SHOWN_MAX = 80  # characters of an event in a list of events

Row = dict[str, Value]


@dataclass(frozen=True, slots=True)
class UndecodableValue:
    """Stands in a row for a value that cannot be read; using it as text or bytes raises its error.

    Attributes:
        error: names table, column, type, reason and group.
        data: the stored value.
    """

    error: UndecodableError
    data: bytes

    def __repr__(self) -> str:
        return f"<undecodable: {self.error}>"

    def __str__(self) -> str:
        raise self.error

    def __bytes__(self) -> bytes:
        raise self.error


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One binlog event: its bytes, header included, without a checksum."""

    data: bytes

    def __repr__(self) -> str:
        try:
            text = self.describe()
        except EventError as error:
            text = f"damaged: {error}"
        shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
        return f"<Event {self.type}, {len(self.data)} bytes{shown and f': {shown}'}>"

    @property
    def header(self) -> EventHeader:
        """Its first 19 bytes: timestamp, event type, server id, size, end position, flags."""
        return decode_event_header(self.data)

    @property
    def type(self) -> str:
        """The name of its type, as `TABLE_MAP`."""
        return type_name(self.header.event_type)

    @property
    def body(self) -> memoryview:
        """What follows the header."""
        return memoryview(self.data)[EVENT_HEADER_SIZE:]

    def describe(self) -> str:
        """One line for people, as SHOW BINLOG EVENTS has it; empty for types that are not looked into."""
        return describe_event(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed row: column name -> value, of the columns in the log.

    Columns are named `@1`, `@2`, … where the log lacks names (`binlog_row_metadata` below FULL) and none were declared.
    Inserts have no `before`, deletes no `after`. An `UndecodableValue` replaces only the value that cannot be read.
    """

    kind: str  # "insert", "update" or "delete"
    before: Row | None
    after: Row | None

    @classmethod
    def of(cls, table: TableSchema, change: RowChange, gtid: Gtid | None = None) -> "Change":
        before, after = _named(table, change.before, gtid), _named(table, change.after, gtid)
        return cls(kind=change.kind.value, before=before, after=after)


def _named(table: TableSchema, image: Image | None, gtid: Gtid | None) -> Row | None:
    if image is None:
        return None
    return {
        column.name: _undecodable(table, column, value, gtid) if isinstance(value, RawValue) else value
        for column, value in zip(table.columns, image, strict=True)
        if value is not ABSENT
    }


def _undecodable(table: TableSchema, column: Column, value: RawValue, gtid: Gtid | None) -> UndecodableValue:
    problem = f"{value.problem} (in group {gtid})"
    return UndecodableValue(UndecodableError(table.name, column.name, column.type_name, problem), bytes(value))


class RowShapes:
    """Gives rows the shape of their table at one place; `find_version` finds that by database and table."""

    def __init__(self, find_version: Callable[[str, str], TableState | None]) -> None:
        self._find_version = find_version
        self._shapes: dict[tuple[str, str], TableShape | None] = {}
        self._origins: dict[TableDecoder, tuple[ColumnOrigin, ...]] = {}

    def shaped(self, decoder: TableDecoder, change: RowChange) -> tuple[TableSchema, RowChange]:
        """A change in the shape of its table, or unchanged where no shape is known. Raises EventError: the type of a
        column cannot be converted to that of the shape."""
        shape = self._shape_of(decoder.schema.database, decoder.schema.table)
        if shape is None:
            return decoder.schema, change
        origins = self._origins.get(decoder)
        if origins is None:
            decoder.expect_names()
            origins = shape.origins(decoder.schema, decoder.known_version)
            for column, origin in zip(shape.columns, origins, strict=True):
                if origin.number is not None:
                    _expect_readable(decoder.schema, decoder.schema.columns[origin.number], column)
            if len(self._origins) >= DECODERS_MAX:
                self._origins.clear()
            self._origins[decoder] = origins
        before, after = (
            None if image is None else tuple(origin.value(image) for origin in origins)
            for image in (change.before, change.after)
        )
        return shape.schema, RowChange(kind=change.kind, before=before, after=after)

    def _shape_of(self, database: str, table: str) -> TableShape | None:
        key = (database, table)
        if key not in self._shapes:
            version = self._find_version(database, table)
            self._shapes[key] = None
            if isinstance(version, TableVersion):
                self._shapes[key] = version_shape(version.full_name, version)
        return self._shapes[key]


def _expect_readable(schema: TableSchema, found: Column, wanted: Column) -> None:
    if found.kind is not wanted.kind and not has_every_value(found, wanted):
        raise EventError(
            f"{schema.name} column {wanted.name} is {found.type_name} here, {wanted.type_name} where its shape is taken"
        )


class Group:
    """A GTID and everything it commits, read on demand, again if needed: only small groups stay in memory.

    Attributes:
        gtid: its name.
        start: the first byte of its commit record.
        end: the first byte after that record.
        timestamp: when it was committed, in seconds since 1970.
    """

    def __init__(
        self,
        group: EventGroup,
        *,
        rows: RowReader,
        shapes: RowShapes | None = None,
        find: Callable[[LogPosition], Generator[EventGroup]],
        place: Callable[[LogPosition], LogPosition],
    ) -> None:
        """`find` reads the group at a position once more; `place` converts positions for users; `shapes` gives rows
        a shape."""
        assert group.gtid is not None
        self.gtid: Gtid = group.gtid
        self.start: LogPosition = place(group.start)
        self.end: LogPosition = place(group.end)
        self._source: EventGroup | None = group
        self._find = find
        self._rows = rows
        self._shapes = shapes
        self._is_passed = False
        self._kept: list[bytes] | None = None
        self._count: int | None = None
        self.timestamp: int = decode_event_header(group.gtid_event).timestamp

    def __repr__(self) -> str:
        return f"<Group {self.gtid} at {self.start}>"

    def __len__(self) -> int:
        """How many events it has, the GTID event included."""
        if self._count is None:
            for _ in self._data():
                pass
        assert self._count is not None
        return self._count

    def events(self) -> Iterator[Event]:
        """Its events, the GTID event first. Holds one of them.

        Raises:
            EventError: the bytes do not divide into events.
            FormatError, ClassicFormatError: the log is damaged there.
            PositionPurgedError: the group was removed from the log since.
        """
        return map(Event, self._data())

    def rows(self) -> Iterator[tuple[TableSchema, Change]]:
        """The changed rows in order, each with its table as the log or the chosen schema describes it. Raises
        EventError: as `events`, or a row event belongs to no table; UndecodableError: the values of a column have no
        known length."""
        return (item for item in self.contents() if not isinstance(item, Event))

    def contents(self) -> Iterator[Event | tuple[TableSchema, Change]]:
        """Its contents in order: events, with what `rows` gives in place of row events and their TABLE_MAPs. Raises
        EventError, UndecodableError: as `rows`."""
        try:
            for event, decoder in self._rows.walked(self._data(), self.start):
                if decoder is None:
                    yield Event(event)
                    continue
                for change in decoder.changes(event):
                    table = decoder.schema
                    if self._shapes is not None:
                        table, change = self._shapes.shaped(decoder, change)
                    yield table, Change.of(table, change, self.gtid)
        except UndecodableError as error:
            problem = f"{error.problem} (in group {self.gtid})"
            raise UndecodableError(error.table, error.column, error.type_name, problem) from None
        except EventError as error:
            raise EventError(f"group {self.gtid}: {error}") from None

    def _data(self) -> Iterator[bytes]:
        return iter(self._kept) if self._kept is not None else self._read()

    def _read(self) -> Iterator[bytes]:
        if self._source is not None:
            source, self._source = self._source, None
            for event in self._remembered(source):
                yield event
                if self._is_passed:
                    raise StoreError(f"group {self.gtid}: the log was read on meanwhile; ask for its events again")
            return
        with closing(self._find(self.start)) as found:
            source = next(found, None)  # type: ignore[assignment]
            if source is None or source.gtid != self.gtid:
                raise PositionPurgedError(f"group {self.gtid} at {self.start} is no longer in the log")
            yield from self._remembered(source)

    def _remembered(self, source: EventGroup) -> Iterator[bytes]:
        kept: list[bytes] = []
        count = size = 0
        for count, event in enumerate(group_events(source), start=1):  # noqa: B007  # wanted below
            size += len(event)
            if size <= KEPT_BYTES_MAX:
                kept.append(event)
            yield event
        self._count = count
        self._kept = kept if size <= KEPT_BYTES_MAX else None

    def release(self) -> None:
        """The next request for its events reads them from the log again."""
        self._kept = None

    def detach(self) -> None:
        """The log is read on: events that were not read yet must be looked up again."""
        self._source = None
        self._is_passed = True
