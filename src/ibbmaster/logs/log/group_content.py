"""The content of a group: its events, and the changes of rows they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ibbmaster.errors import EventError
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.column_types.registry import value_reader
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE
from ibbmaster.replication.event.query import decode_query
from ibbmaster.replication.event.rows.changes import RowChange, RowDecoder
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.rows.declared import Declaration, declare
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.rows.value import Reader
from ibbmaster.replication.event.split import events_of
from ibbmaster.replication.event.table_map import decode_table_map
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.walk import walk
from ibbmaster.schema.model import SchemaPlace, TableVersion, UnknownTable
from ibbmaster.sqltext.table_name import TableName, parse_table_pattern
from .event_groups import EVENT_SIZE_MAX
from .large_rows import large_rows

if TYPE_CHECKING:
    from ibbmaster.schema.versions import TableState

DECODERS_MAX = 1000  # of tables by TABLE_MAP; the oldest is dropped first
MAY_HOLD_DDL = int(GtidFlag.DDL | GtidFlag.STANDALONE)
OF_XA = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
QUERIES = (EventType.QUERY, EventType.QUERY_COMPRESSED)
QUERY_TEXT_MAX = 4096
UNPLACED = SchemaPlace(NOWHERE, 0)


def group_events(group: EventGroup) -> Iterator[bytes]:
    """Every event of a group, the GTID event first; holds one. Raises EventError, FormatError: it is damaged."""
    yield group.gtid_event
    yield from events_of(group.body, size_max=EVENT_SIZE_MAX)


def table_name(event: bytes) -> TableName:
    """The name of the table of a TABLE_MAP event, as text shows it. Raises EventError: a part runs over the end."""
    head = decode_table_map(event)
    return TableName(head.database.decode("utf-8", "replace"), head.table.decode("utf-8", "replace"))


def own_name(event: bytes) -> TableName:
    head = decode_table_map(event)
    return TableName(head.database.decode("utf-8", "surrogateescape"), head.table.decode("utf-8", "surrogateescape"))


def query_texts(event: bytes) -> tuple[str, str]:
    """The beginning of a statement, and its database. Raises EventError: a part runs over the end."""
    query = decode_query(event)
    return query.text.decode("utf-8", "replace")[:QUERY_TEXT_MAX], query.database.decode("utf-8", "replace")


def xid_text(gtid_event: bytes) -> str | None:
    """The XA transaction that a group prepares or completes, as statements name it. Raises EventError."""
    if not gtid_event[GTID_FLAGS_OFFSET] & OF_XA:
        return None
    return str(decode_gtid_event(gtid_event).xid)


class TableFilter(NamedTuple):
    """Tables by patterns, as `parse_table_pattern` reads them; without patterns every table."""

    patterns: tuple[str, ...] = ()

    def takes(self, name: TableName) -> bool:
        return not self.patterns or any(parse_table_pattern(pattern).takes(name) for pattern in self.patterns)


FindVersion: TypeAlias = "Callable[[str, str, SchemaPlace], TableState | None]"
"""The version of a table, by database and name, at a place of the log."""


MakeReaders = Callable[[TableSchema, TableVersion | None], Callable[[Column], Reader]]


class TableDecoder(RowDecoder):
    """Reads the row events of one version of a table; None where it is unknown."""

    def __init__(
        self,
        schema: TableSchema,
        version: TableState | None,
        *,
        keeps_bytes: bool,
        reader_of: Callable[[Column], Reader],
        large: LargeRows,
    ) -> None:
        super().__init__(schema, keeps_bytes=keeps_bytes, reader_of=reader_of, large=large)
        self.version = version
        self.reader_of = reader_of

    @property
    def known_version(self) -> TableVersion | None:
        return self.version.shown if isinstance(self.version, TableVersion) else None

    def expect_names(self) -> None:
        """Raises EventError: the columns have no names, so they cannot be distinguished."""
        if self.schema.has_names:
            return
        if isinstance(self.version, UnknownTable):
            from ibbmaster.schema.names import unknown_names

            raise unknown_names(self.version)
        raise EventError(
            f"{self.schema.name}: its columns have no names here (binlog_row_metadata was not FULL); "
            "declare them with option schema"
        )


class RowReader:
    """Reads the changes of groups, and caches their tables.

    `find_version` returns the version of a table at a place, with `asks_seldom` only where a TABLE_MAP has no names;
    `declarations` complete the binlog, by table (`db.t`). `keeps_bytes` returns unreadable values as bytes.
    `make_readers` returns the readers of columns. `means` says whether a name at a place is the one wanted table,
    whatever `tables` are."""

    def __init__(
        self,
        tables: TableFilter | None = None,
        declarations: Mapping[str, Declaration] | None = None,
        *,
        keeps_bytes: bool = False,
        find_version: FindVersion | None = None,
        asks_seldom: bool = False,
        make_readers: MakeReaders | None = None,
        means: Callable[[str, str, SchemaPlace], bool] | None = None,
        large: LargeRows | None = None,
    ) -> None:
        self.large = large_rows() if large is None else large
        self._means = means
        self._make_readers = make_readers
        self._asks_seldom = asks_seldom
        self._have_names: dict[bytes, bool] = {}
        self._keeps_bytes = keeps_bytes
        self._tables = tables or TableFilter()
        self._declarations = declarations or {}
        self._find_version = find_version
        self._decoders: dict[tuple[bytes, SchemaPlace | None], TableDecoder] = {}

    def changes(self, events: Iterable[bytes], start: LogPosition = NOWHERE) -> Iterator[tuple[TableSchema, RowChange]]:
        """The changes of the events of the group at `start`, in order, with the table as the binlog has it. Raises
        EventError: an event is damaged, or belongs to no table, or a table contradicts its version; UndecodableError: a
        value cannot be read."""
        return ((decoder.schema, change) for decoder, change in self.decoded(events, start))

    def decoded(
        self, events: Iterable[bytes], start: LogPosition = NOWHERE
    ) -> Iterator[tuple[TableDecoder, RowChange]]:
        for event, decoder in self.walked(events, start):
            if decoder is not None:
                for change in decoder.changes(event):
                    yield decoder, change

    def walked(
        self, events: Iterable[bytes], start: LogPosition = NOWHERE
    ) -> Iterator[tuple[bytes, TableDecoder | None]]:
        """Every event of a group but TABLE_MAPs, fragments joined; a row event with its decoder. Raises EventError: as
        `changes`."""
        table_of = lambda event, number: self.decoder(event, SchemaPlace(start, number))  # noqa: E731 - as a callback
        for _, event, decoder in walk(events, self.large, table_of):
            yield event, decoder

    def decoder(self, event: bytes, place: SchemaPlace = UNPLACED) -> TableDecoder | None:
        """The decoder of the table that a TABLE_MAP event names; None if it is not wanted. Raises EventError: the event
        is damaged, or contradicts the known table at that place; ConfigurationError: a declaration is impossible."""
        if not (self._tables.takes(table_name(event)) if self._means is None else self._means(*own_name(event), place)):
            return None
        version: TableState | None = None
        if self._find_version is not None and place.position != NOWHERE and not self._is_told_enough(event):
            version = self._find_version(*own_name(event), place)
        key = event[EVENT_HEADER_SIZE:], None if version is None else version.since
        decoder = self._decoders.get(key)
        if decoder is None:
            schema, version = self._named(decode_table_schema(event), version)
            if len(self._decoders) >= DECODERS_MAX:
                del self._decoders[next(iter(self._decoders))]
            known = version.shown if isinstance(version, TableVersion) else None
            reader_of = value_reader if self._make_readers is None else self._make_readers(schema.shown, known)
            decoder = TableDecoder(
                schema, version, keeps_bytes=self._keeps_bytes, reader_of=reader_of, large=self.large
            )
            self._decoders[key] = decoder
        return decoder

    def _is_told_enough(self, event: bytes) -> bool:
        if not self._asks_seldom:
            return False
        data = event[EVENT_HEADER_SIZE:]
        if data not in self._have_names:
            if len(self._have_names) >= DECODERS_MAX:
                self._have_names.clear()
            self._have_names[data] = decode_table_schema(event).has_names
        return self._have_names[data]

    def _named(self, schema: TableSchema, version: TableState | None) -> tuple[TableSchema, TableState | None]:
        """A table completed beyond its TABLE_MAP, and the version, if that of the event."""
        declaration = self._declarations.get(schema.name)
        is_base = version is not None and version.since is None
        if isinstance(version, TableVersion) and not (is_base and declaration is not None):
            from ibbmaster.schema.names import named

            try:
                return named(schema, version), version
            except EventError:
                if declaration is None and not schema.has_names:
                    raise
                version = None
        if declaration is not None:
            schema = declare(schema, declaration)
            names = [one.name for one in schema.columns]
            if isinstance(version, TableVersion) and [one.name for one in version.columns] != names:
                version = None
        return schema, version
