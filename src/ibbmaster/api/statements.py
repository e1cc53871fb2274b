"""Groups out of what users have: SQL texts, or events as bytes."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import (
    GtidEvent,
    GtidFlag,
    decode_gtid_event,
    encode_gtid_event,
    is_event_of,
)
from ibbmaster.replication.event.header import (
    EVENT_HEADER_SIZE,
    SIZE,
    SIZE_OFFSET,
    TYPE_OFFSET,
    EventHeader,
    decode_event_header,
)
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.statement.logged import STATUS_CHARSET
from ibbmaster.replication.event.types import EventType
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import tokens
from ibbmaster.storage.codec.buffer import Buffer

TRANSACTION = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
DDL = GtidFlag.STANDALONE | GtidFlag.DDL
#: What a text begins with that is part of a transaction.
IN_TRANSACTIONS = ("INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT", "DO", "LOAD", "WITH")
GTID_TYPE = int(EventType.GTID)
THREAD = 1  # of the server that ran it
UTF8MB4_GENERAL_CI = 45
#: Those of client, connection and server: texts are UTF-8.
CHARSETS = struct.pack("<BHHH", STATUS_CHARSET, *3 * [UTF8MB4_GENERAL_CI])


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """That events name."""

    server_id: int
    timestamp: int  # in seconds since 1970
    database: str = ""

    def query(self, text: str, *, status: bytes = CHARSETS, error_code: int = 0, flags: int = 0) -> bytes:
        """With its status variables. Raises EventError: no replica could run the statement."""
        query = Query(
            thread_id=THREAD,
            seconds=0,
            error_code=error_code,
            status=status,
            database=self.database.encode(),
            text=_encoded(text),
        )
        return encode_query(query, server_id=self.server_id, timestamp=self.timestamp, flags=flags)

    def xid(self, number: int) -> bytes:
        return encode_xid(number, server_id=self.server_id, timestamp=self.timestamp)

    def gtid_event(self, gtid: Gtid, flags: GtidFlag) -> bytes:
        return encode_gtid_event(GtidEvent(gtid=gtid, flags=flags), timestamp=self.timestamp)


def _encoded(text: str) -> bytes:
    if not text.strip(" \t\r\n;"):
        raise EventError(f"{text!r} is no statement")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        problem = f"{text[error.start : error.end]!a} at {error.start} is no character"
        raise EventError(f"a statement cannot be written as UTF-8: {problem}") from None


def is_of_transaction(text: str) -> bool:
    """Whether a statement changes rows as part of a transaction; others are groups by themselves."""
    return Cursor(tokens(text)).peek().is_word(*IN_TRANSACTIONS)


def whole_group(gtid: Gtid, events: Sequence[str | Buffer]) -> tuple[bytes, list[bytes]] | None:
    """A shortcut of `group_of` for whole events as `bytes` that begin with the GTID event of this GTID; None for
    anything else or doubtful."""
    found = []
    for event in events:
        if type(event) is not bytes or len(event) < EVENT_HEADER_SIZE:
            return None
        if SIZE.unpack_from(event, SIZE_OFFSET)[0] != len(event):
            return None
        found.append(event)
    if not found or found[0][TYPE_OFFSET] != GTID_TYPE or not is_event_of(found[0], gtid):
        return None
    return found[0], found[1:]


def group_of(gtid: Gtid, parts: Sequence[str | Buffer], origin: Origin) -> tuple[bytes, list[bytes]]:
    """A GTID event and the events after it. Texts that change rows form a transaction, any other text is a group by
    itself. Events stay as they are; a leading GTID event determines the flags, otherwise the last event does. Raises
    EventError: the events do not make one group, or a text is no statement."""
    if not parts:
        raise EventError(f"group {gtid} has nothing in it: expected at least one statement or event")
    body = [origin.query(part) if isinstance(part, str) else bytes(memoryview(part)) for part in parts]
    headers = [decode_event_header(event) for event in body]
    for number, (header, event) in enumerate(zip(headers, body, strict=True)):
        if header.size != len(event):
            raise EventError(f"event {number} of group {gtid} has {len(event)} bytes and says it has {header.size}")
    if headers[0].event_type == EventType.GTID:
        return _named_so(headers[0], body[0], gtid), body[1:]
    texts = [part for part in parts if isinstance(part, str)]
    ddl = next((text for text in texts if not is_of_transaction(text)), None)
    if ddl is not None and len(parts) > 1:
        raise EventError(f"group {gtid}: {ddl[:60]!r} is a group by itself, as it is in MariaDB: append it alone")
    if ddl is not None:
        return origin.gtid_event(gtid, DDL), body
    if isinstance(parts[-1], str):
        body.append(origin.xid(gtid.seq_no))
        headers.append(decode_event_header(body[-1]))
    flags = TRANSACTION if GroupBoundary(0).ends_with(headers[-1], body[-1]) else GtidFlag.STANDALONE
    _check_end(gtid, flags, headers, body)
    return origin.gtid_event(gtid, flags), body


def _named_so(header: EventHeader, gtid_event: bytes, gtid: Gtid) -> bytes:
    value = decode_gtid_event(gtid_event)
    if value.gtid == gtid:
        return gtid_event
    return encode_gtid_event(replace(value, gtid=gtid), timestamp=header.timestamp)


def _check_end(gtid: Gtid, flags: GtidFlag, headers: Iterable[EventHeader], body: Iterable[bytes]) -> None:
    boundary = GroupBoundary(flags)
    ends = [boundary.ends_with(header, event) for header, event in zip(headers, body, strict=True)]
    if not ends[-1]:
        raise EventError(f"group {gtid} has no end: expected an XID, COMMIT or a statement as the last event")
    if any(ends[:-1]):
        raise EventError(f"group {gtid} ends at event {ends.index(True)}, and {len(ends)} were given")
