"""The heads of TABLE_MAP and row events. Layout: protocol/event/others.md."""

from dataclasses import dataclass

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .fields import Fields
from .header import EVENT_HEADER_SIZE, decode_body, decode_event_header
from .types import EventType

NAME_SIZE_MAX = 192  # bytes of 64 characters
TABLE_ID_SIZE = 6
SAYS_OFFSET = EVENT_HEADER_SIZE + TABLE_ID_SIZE  # of a TABLE_MAP: behind the table's passing number
FLAG_STATEMENT_END = 0x0001
FLAG_NO_FOREIGN_KEY_CHECKS = 0x0002

_V1 = frozenset(range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1))
_V1_COMPRESSED = frozenset(range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1))
_V2 = frozenset(range(EventType.WRITE_ROWS, EventType.DELETE_ROWS + 1))
_V2_COMPRESSED = frozenset(range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1))
ROW_EVENT_TYPES = _V1 | _V1_COMPRESSED | _V2 | _V2_COMPRESSED
_UPDATES = frozenset(one for one in ROW_EVENT_TYPES if "UPDATE" in EventType(one).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMap:
    table_id: int
    flags: int
    database: bytes
    table: bytes
    column_types: bytes  # one type code a column
    types_end: int  # the offset in the event behind these


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsHeader:
    """The rows begin `rows_offset` bytes into the event."""

    table_id: int
    flags: int
    extra: bytes  # version 2 only
    column_count: int
    columns_present: bytes  # a bit a column, of the row or of the row before the change
    columns_after: bytes  # of the row after the change; updates only
    rows_offset: int
    is_compressed: bool

    @property
    def ends_statement(self) -> bool:
        return bool(self.flags & FLAG_STATEMENT_END)


def decode_table_map(event: Buffer) -> TableMap:
    """The head of a whole TABLE_MAP event without checksum. Raises EventError: another type, or it ends early."""
    _, body = decode_body(event, EventType.TABLE_MAP)
    fields = Fields(body, "TABLE_MAP")
    return TableMap(
        table_id=fields.take_int(TABLE_ID_SIZE),
        flags=fields.take_int(2),
        database=_taken_name(fields),
        table=_taken_name(fields),
        column_types=fields.take(fields.take_lenenc()),
        types_end=EVENT_HEADER_SIZE + fields.offset,
    )


def _taken_name(fields: Fields) -> bytes:
    name = fields.take(fields.take_int(1))
    if len(name) > NAME_SIZE_MAX:
        raise EventError(f"TABLE_MAP has a name of {len(name)} bytes, at most {NAME_SIZE_MAX}")
    if fields.take(1) != b"\0":
        raise EventError("TABLE_MAP has a name without its closing zero")
    return name


def decode_rows_header(event: Buffer) -> RowsHeader:
    """The head of a row event of any version, without checksum. Raises EventError: another type, or it ends early."""
    header = decode_event_header(event)
    if header.event_type not in ROW_EVENT_TYPES:
        raise EventError(f"event type {header.event_type}, expected a row event")
    _, body = decode_body(event, header.event_type)
    fields = Fields(body, "row event")
    table_id = fields.take_int(TABLE_ID_SIZE)
    flags = fields.take_int(2)
    extra = b""
    if header.event_type in _V2 | _V2_COMPRESSED:
        size = fields.take_int(2)
        if size < 2:
            raise EventError(f"row event with extra data of {size} bytes, expected at least 2")
        extra = fields.take(size - 2)
    column_count = fields.take_lenenc()
    bitmap_size = (column_count + 7) // 8
    present = fields.take(bitmap_size)
    after = fields.take(bitmap_size) if header.event_type in _UPDATES else b""
    return RowsHeader(
        table_id=table_id,
        flags=flags,
        extra=extra,
        column_count=column_count,
        columns_present=present,
        columns_after=after,
        rows_offset=EVENT_HEADER_SIZE + fields.offset,
        is_compressed=header.event_type in _V1_COMPRESSED | _V2_COMPRESSED,
    )
