"""What of an event counts when logs are compared: places never do, other things as it is wished."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from ibbmaster.codec import lenenc
from ibbmaster.errors import EventError
from ibbmaster.event.gtid_event import GtidExtraFlag, GtidFlag, decode_gtid_event, encode_gtid_event
from ibbmaster.event.header import EVENT_HEADER_SIZE, HEADER, decode_event_header
from ibbmaster.event.query import STATUS_XID, Query, decode_query, encode_query, status_variables
from ibbmaster.event.rows.large import ALL_ROWS, LargeRows
from ibbmaster.event.rows.plain import PlainRows
from ibbmaster.event.statement.logged import STATUS_MICROSECONDS
from ibbmaster.event.table_map import ROW_EVENT_TYPES, TABLE_ID_SIZE, decode_table_map
from ibbmaster.event.types import EventFlag, EventType

TABLE_ID = slice(EVENT_HEADER_SIZE, EVENT_HEADER_SIZE + TABLE_ID_SIZE)
PARALLEL = GtidFlag.GROUP_COMMIT | GtidFlag.ALLOW_PARALLEL | GtidFlag.WAITED
FLAGS_SIZE = 2
QUERIES = (EventType.QUERY, EventType.QUERY_COMPRESSED)


class Ignored(enum.StrEnum):
    """What may differ between logs that are taken for equal."""

    SERVER_ID = "server-id"  # of events, and in GTIDs
    TIME = "time"  # when events were written, and how long statements took
    THREAD_ID = "thread-id"
    XID = "xid"  # numbers of transactions in their engine
    COMMIT_ID = "commit-id"  # and what it says about running in parallel
    TABLE_ID = "table-id"  # numbers are compared by their order in a transaction
    ANNOTATIONS = "annotations"  # ANNOTATE_ROWS events
    METADATA = "metadata"  # names, signs, character sets that TABLE_MAP events have beside types
    PACKING = "packing"  # whether events are compressed or cut


OF_REPLICA = frozenset(Ignored) - {Ignored.SERVER_ID}
"""What the log of a replica has otherwise than that of its primary."""


class Essence:
    """Reduces events to what is compared."""

    def __init__(self, ignored: Collection[Ignored] = (), large: LargeRows = ALL_ROWS) -> None:
        self._ignored = frozenset(ignored)
        self._large = large

    def of_group(self, events: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Each event that counts, and what counts of it; the header is 19 bytes, too.

        Raises:
            EventError: an event is damaged.
        """
        plain = PlainRows(self._large) if Ignored.PACKING in self._ignored else None
        table_ids: dict[bytes, int] = {}
        for part in events:
            event = part if plain is None else plain.whole_event(part)
            if event is None:
                continue
            event_type = decode_event_header(event).event_type
            if event_type == EventType.ANNOTATE_ROWS and Ignored.ANNOTATIONS in self._ignored:
                continue
            yield event, self._of_event(event, event_type, table_ids)
        if plain is not None:
            plain.finish()

    def _of_event(self, event: bytes, event_type: int, table_ids: dict[bytes, int]) -> bytes:
        match event_type:
            case EventType.GTID:
                event = self._of_gtid(event)
            case kind if kind in QUERIES:
                event = self._of_query(event)
            case EventType.XID if Ignored.XID in self._ignored:
                event = event[:EVENT_HEADER_SIZE]
            case EventType.TABLE_MAP:
                event = self._of_table(event, table_ids)
            case kind if kind in ROW_EVENT_TYPES and Ignored.TABLE_ID in self._ignored:
                event = _with_table(event, table_ids.get(event[TABLE_ID], 0))
        return self._head(event) + event[EVENT_HEADER_SIZE:]

    def _head(self, event: bytes) -> bytes:
        header = decode_event_header(event)
        timestamp = 0 if Ignored.TIME in self._ignored else header.timestamp
        server_id = 0 if Ignored.SERVER_ID in self._ignored else header.server_id
        return HEADER.pack(timestamp, header.event_type, server_id, 0, 0, header.flags & ~EventFlag.IN_USE)

    def _of_gtid(self, event: bytes) -> bytes:
        value = replace(decode_gtid_event(event), padding=0)
        if Ignored.SERVER_ID in self._ignored:
            value = replace(value, gtid=replace(value.gtid, server_id=0))
        if Ignored.COMMIT_ID in self._ignored:
            value = replace(value, flags=value.flags & ~PARALLEL, commit_id=None)
        if Ignored.THREAD_ID in self._ignored and value.extra_flags is not None:
            extra = value.extra_flags & ~GtidExtraFlag.THREAD_ID
            value = replace(value, extra_flags=extra or None, thread_id=None)
        header = decode_event_header(event)
        return encode_gtid_event(value, timestamp=header.timestamp, flags=header.flags)

    def _of_query(self, event: bytes) -> bytes:
        header, query = decode_event_header(event), decode_query(event)
        if query.is_compressed and Ignored.PACKING not in self._ignored:
            return event
        dropped = {STATUS_MICROSECONDS} if Ignored.TIME in self._ignored else set()
        dropped |= {STATUS_XID} if Ignored.XID in self._ignored else set()
        kept: Query = replace(
            query,
            thread_id=0 if Ignored.THREAD_ID in self._ignored else query.thread_id,
            seconds=0 if Ignored.TIME in self._ignored else query.seconds,
            status=b"".join(
                bytes([code]) + value for code, value in status_variables(query.status) if code not in dropped
            ),
        )
        return encode_query(kept, server_id=header.server_id, timestamp=header.timestamp, flags=header.flags)

    def _of_table(self, event: bytes, table_ids: dict[bytes, int]) -> bytes:
        number = table_ids.setdefault(event[TABLE_ID], len(table_ids) + 1)
        if Ignored.METADATA in self._ignored:
            event = event[: _end_of_types(event)]
        return _with_table(event, number) if Ignored.TABLE_ID in self._ignored else event


def _with_table(event: bytes, number: int) -> bytes:
    return event[: TABLE_ID.start] + number.to_bytes(TABLE_ID_SIZE, "little") + event[TABLE_ID.stop :]


def _end_of_types(event: bytes) -> int:
    """Where a TABLE_MAP has said which columns may be NULL: what follows is metadata."""
    offset = EVENT_HEADER_SIZE + TABLE_ID_SIZE + FLAGS_SIZE
    count = len(decode_table_map(event).column_types)
    for _ in range(2):  # database and table, each with a length and a zero
        offset += 1 + event[offset] + 1
    try:
        offset = lenenc.decode_int(event, offset)[1] + count
        size, offset = lenenc.decode_int(event, offset)
    except ValueError as error:
        raise EventError(f"TABLE_MAP: {error}") from None
    end = offset + size + (count + 7) // 8  # a bit a column: whether it may be NULL
    if end > len(event):
        raise EventError(f"TABLE_MAP whose types end {end - len(event)} bytes after it")
    return end
