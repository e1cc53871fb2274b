"""Binlog files as servers without checksums and GTIDs wrote them: no such server runs today."""

from collections.abc import Iterable

from ibbmaster.classic.series import MAGIC
from ibbmaster.event.format_description import describe_format, encode_format_description
from ibbmaster.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.event.query import Query, encode_query
from ibbmaster.event.types import EventType

COMMIT = "COMMIT"
TYPE_COUNT = 27  # of MySQL 5.1
TRAILER_SIZE = 5  # of what servers with checksums have behind the types


def old_log(version: str, statements: Iterable[str], *, database: str, timestamp: int = 1_200_000_000) -> bytes:
    """A file that its server has closed; COMMIT is that of a transactional table."""
    description = describe_format(version, type_count=TYPE_COUNT, created=timestamp)
    body = encode_format_description(description, server_id=1)[EVENT_HEADER_SIZE:-TRAILER_SIZE]
    parts: list[tuple[EventType, bytes]] = [(EventType.FORMAT_DESCRIPTION, body)]
    for number, text in enumerate(statements):
        if text == COMMIT:
            parts.append((EventType.XID, number.to_bytes(8, "little")))
            continue
        query = Query(thread_id=5, seconds=0, error_code=0, status=b"", database=database.encode(), text=text.encode())
        parts.append((EventType.QUERY, encode_query(query, server_id=1)[EVENT_HEADER_SIZE:]))
    data = MAGIC
    for event_type, body in (*parts, (EventType.STOP, b"")):
        log_pos = len(data) + EVENT_HEADER_SIZE + len(body)
        data += encode_event(event_type=event_type, body=body, server_id=1, timestamp=timestamp, log_pos=log_pos)
    return data
