"""One line about an event, in the words of SHOW BINLOG EVENTS."""

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .control import decode_binlog_checkpoint, decode_gtid_list, decode_rotate, decode_xid
from .format_description import decode_format_description
from .gtid_event import GtidFlag, decode_gtid_event
from .header import EVENT_HEADER_SIZE, decode_event_header
from .query import decode_query
from .table_map import ROW_EVENT_TYPES, decode_rows_header, decode_table_map
from .types import EventFlag, EventType, type_name

TEXT_MAX = 500  # letters of a statement

_NAMES = {  # where MariaDB's word differs from ours
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.QUERY_COMPRESSED: "Query_compressed",
    EventType.USER_VAR: "User var",
    EventType.INTVAR: "Intvar",
    EventType.RAND: "RAND",
}


def event_type_name(event_type: int) -> str:
    return _NAMES.get(EventType(event_type), "") if event_type in _NAMES else type_name(event_type).capitalize()


def describe_event(event: Buffer) -> str:
    """Empty for other types, or if it cannot be read."""
    header = decode_event_header(event)
    event_type = header.event_type
    try:
        match event_type:
            case EventType.GTID:
                gtid_event = decode_gtid_event(event)
                begin = "" if gtid_event.flags & GtidFlag.STANDALONE else "BEGIN "
                return f"{begin}GTID {gtid_event.gtid}"
            case EventType.QUERY | EventType.QUERY_COMPRESSED:
                query = decode_query(event)
                names_database = query.database and not header.flags & EventFlag.SUPPRESS_USE
                use = f"use `{_shown(query.database)}`; " if names_database else ""
                return use + _shown(query.text)
            case EventType.XID:
                return f"COMMIT /* xid={decode_xid(event)} */"
            case EventType.TABLE_MAP:
                table_map = decode_table_map(event)
                return f"table_id: {table_map.table_id} ({_shown(table_map.database)}.{_shown(table_map.table)})"
            case EventType.ANNOTATE_ROWS:
                return _shown(bytes(event[EVENT_HEADER_SIZE:]))
            case EventType.GTID_LIST:
                gtids = sorted(decode_gtid_list(event).gtids, key=lambda gtid: (gtid.domain_id, gtid.seq_no))
                return f"[{','.join(map(str, gtids))}]"
            case EventType.ROTATE:
                rotate = decode_rotate(event)
                return f"{rotate.file_name};pos={rotate.position}"
            case EventType.BINLOG_CHECKPOINT:
                return decode_binlog_checkpoint(event)
            case EventType.FORMAT_DESCRIPTION:
                return f"Server ver: {decode_format_description(event).server_version}, Binlog ver: 4"
            case _ if event_type in ROW_EVENT_TYPES:
                rows = decode_rows_header(event)
                return f"table_id: {rows.table_id}{' flags: STMT_END_F' if rows.ends_statement else ''}"
    except EventError:
        pass
    return ""


def _shown(text: bytes) -> str:
    return text[:TEXT_MAX].decode("utf-8", "replace")
