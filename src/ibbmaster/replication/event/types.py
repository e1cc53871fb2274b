"""Event types, event flags, and the post-header sizes a FORMAT_DESCRIPTION announces."""

import enum
import functools

from ibbmaster.facts import rows_of


class EventType(enum.IntEnum):
    """Type codes of MariaDB; others pass through untouched."""

    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    XA_PREPARE = 38
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    GTID = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171
    PARTIAL_ROW_DATA = 172


class EventFlag(enum.IntFlag):
    IN_USE = 0x0001  # only on the FORMAT_DESCRIPTION of a binlog file that was not closed
    THREAD_SPECIFIC = 0x0004
    SUPPRESS_USE = 0x0008  # also on every GTID event
    ARTIFICIAL = 0x0020  # made up for the wire
    RELAY_LOG = 0x0040
    IGNORABLE = 0x0080
    SKIP_REPLICATION = 0x8000


TYPE_COUNT_CLASSIC = 171  # up to MariaDB 12.2
TYPE_COUNT_ENGINE = 172  # since 12.3

FORMAT_DESCRIPTION_FIXED_SIZE = 57  # version, server version, created, header size: before the post-header sizes


@functools.cache
def post_header_sizes(type_count: int) -> bytes:
    """Of each type from 1 to `type_count`, one byte each."""
    known = {int(code): int(size) for code, _, size in rows_of(__package__, "post_header_sizes")}
    sizes = bytearray(known.get(event_type, 0) for event_type in range(1, type_count + 1))
    sizes[EventType.FORMAT_DESCRIPTION - 1] = (FORMAT_DESCRIPTION_FIXED_SIZE + type_count) & 0xFF
    return bytes(sizes)


def type_name(event_type: int) -> str:
    """For people, also of an unknown type."""
    try:
        return EventType(event_type).name
    except ValueError:
        return f"type {event_type}"
