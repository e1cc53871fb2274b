"""What is in a group: its events, and the changes of rows they make."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ibbmaster.errors import EventError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag, decode_gtid_event
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.event.query import decode_query
from ibbmaster.event.rows.changes import RowChange, RowDecoder
from ibbmaster.event.rows.column import Column, TableSchema
from ibbmaster.event.rows.declared import Declaration, declare
from ibbmaster.event.rows.kinds.registry import value_reader
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.rows.value import Reader
from ibbmaster.event.split import EventSplitter
from ibbmaster.event.table_map import ROW_EVENT_TYPES, TABLE_ID_SIZE, decode_table_map
from ibbmaster.event.types import EventType

EVENT_SIZE_MAX = (1 << 30) + (1 << 20)  # a row of 1 GiB, the most MariaDB takes, and what is around it
DECODERS_MAX = 1000  # of tables as their TABLE_MAP events say; the oldest is dropped first
OF_XA = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
QUERY_TEXT_MAX = 4096  # characters of a statement
_TABLE_ID_END = EVENT_HEADER_SIZE + TABLE_ID_SIZE


def group_events(group: EventGroup) -> Iterator[bytes]:
    """Every event of a group, the GTID event first. Holds one event.

    Raises:
        EventError: the bytes do not divide into events, or one is too long.
        FormatError: what lies out of band is damaged.
    """
    yield group.gtid_event
    splitter = EventSplitter()
    parts: list[bytes] = []
    for piece in group.body:
        for header, data, is_last in splitter.feed(piece):
            if header is not None and header.size > EVENT_SIZE_MAX:
                raise EventError(f"an event of {header.size} bytes, at most {EVENT_SIZE_MAX}")
            parts.append(bytes(data))
            if is_last:
                yield parts[0] if len(parts) == 1 else b"".join(parts)
                parts.clear()
    splitter.finish()


def table_name(event: bytes) -> str:
    """`database.table` of a TABLE_MAP event.

    Raises:
        EventError: a part runs over the end.
    """
    head = decode_table_map(event)
    return f"{head.database.decode('utf-8', 'replace')}.{head.table.decode('utf-8', 'replace')}"


def query_texts(event: bytes) -> tuple[str, str]:
    """The beginning of a statement, and the database it ran in.

    Raises:
        EventError: a part runs over the end.
    """
    query = decode_query(event)
    return query.text.decode("utf-8", "replace")[:QUERY_TEXT_MAX], query.database.decode("utf-8", "replace")


def xid_text(gtid_event: bytes) -> str | None:
    """The XA transaction that a group prepares or completes, as statements name it.

    Raises:
        EventError: the flags promise fields that are not there.
    """
    if not gtid_event[GTID_FLAGS_OFFSET] & OF_XA:
        return None
    return str(decode_gtid_event(gtid_event).xid)


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Tables by name: `db.t`, also with * and ?. Without patterns every table."""

    patterns: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        return not self.patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)


class RowReader:
    """Reads the changes of groups; remembers the tables, which come again in every group.

    `declarations` say what the binlog does not, by table (`db.t`). With `keeps_bytes` a value that
    cannot be read is given as its bytes. `named` changes how the columns are called, `reader_of`
    what their values are read as.
    """

    def __init__(
        self,
        tables: TableFilter | None = None,
        declarations: Mapping[str, Declaration] | None = None,
        *,
        keeps_bytes: bool = False,
        named: Callable[[TableSchema], TableSchema] | None = None,
        reader_of: Callable[[Column], Reader] = value_reader,
    ) -> None:
        self._reader_of = reader_of
        self._named = named
        self._keeps_bytes = keeps_bytes
        self._tables = tables or TableFilter()
        self._declarations = declarations or {}
        self._decoders: dict[bytes, RowDecoder] = {}

    def changes(self, events: Iterable[bytes]) -> Iterator[tuple[TableSchema, RowChange]]:
        """The changes that the events of one group make, in order, with the table as the binlog has it.

        Raises:
            EventError: an event is damaged, or belongs to no table.
            UndecodableError: a value cannot be read.
        """
        mapped: dict[int, RowDecoder | None] = {}  # None: a table that is not wanted
        partial = PartialRows()
        for event in events:
            event_type = event[TYPE_OFFSET]
            if event_type == EventType.TABLE_MAP:
                table_id = int.from_bytes(event[EVENT_HEADER_SIZE:_TABLE_ID_END], "little")
                mapped[table_id] = self.decoder(event)
                continue
            if event_type == EventType.PARTIAL_ROW_DATA:
                whole = partial.take(event)
                if whole is None:
                    continue
                event, event_type = whole, whole[TYPE_OFFSET] if len(whole) > TYPE_OFFSET else 0
            if event_type in ROW_EVENT_TYPES:
                table_id = int.from_bytes(event[EVENT_HEADER_SIZE:_TABLE_ID_END], "little")
                if table_id not in mapped:
                    raise EventError(f"row event of table {table_id}, which no TABLE_MAP of its group names")
                decoder = mapped[table_id]
                for change in decoder.changes(event) if decoder is not None else ():
                    yield decoder.schema, change  # type: ignore[union-attr]
        if partial.is_open:
            raise EventError("the group ends inside the fragments of a row event")

    def schemas(self, events: Iterable[bytes]) -> Iterator[TableSchema]:
        """The tables that the events of a group name."""
        for event in events:
            if event[TYPE_OFFSET] == EventType.TABLE_MAP and (decoder := self.decoder(event)) is not None:
                yield decoder.schema

    def decoder(self, event: bytes) -> RowDecoder | None:
        """What reads the row events of the table that a TABLE_MAP event names; None if it is not wanted.

        Raises:
            EventError: the event is damaged.
            ConfigurationError: the table is declared as it cannot be.
        """
        if not self._tables.takes(table_name(event)):
            return None
        key = event[EVENT_HEADER_SIZE:]
        decoder = self._decoders.get(key)
        if decoder is None:
            schema = decode_table_schema(event)
            if schema.name in self._declarations:
                schema = declare(schema, self._declarations[schema.name])
            if len(self._decoders) >= DECODERS_MAX:
                del self._decoders[next(iter(self._decoders))]
            decoder = self._decoders[key] = RowDecoder(
                schema if self._named is None else self._named(schema),
                keeps_bytes=self._keeps_bytes,
                reader_of=self._reader_of,
            )
        return decoder
