"""GTID: the first event of every group. Layout: protocol/event/gtid.md."""

import enum
import struct
from dataclasses import dataclass

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.storage.codec.buffer import Buffer
from .fields import Fields
from .header import EVENT_HEADER_SIZE, SERVER_ID, SERVER_ID_OFFSET, EventHeader, decode_body, encode_event
from .types import EventFlag, EventType

FIXED = struct.Struct("<QIB")  # sequence number, domain, flags
SEQ_NO_OFFSET, DOMAIN_ID_OFFSET, GTID_FLAGS_OFFSET = EVENT_HEADER_SIZE, EVENT_HEADER_SIZE + 8, EVENT_HEADER_SIZE + 12
GTID_EVENT_SIZE_MIN = 2 * EVENT_HEADER_SIZE  # without checksum; the bodies of shorter ones are padded with zeros
FIELDS_OFFSET = EVENT_HEADER_SIZE + FIXED.size
COMMIT_ID = struct.Struct("<Q")
XID = struct.Struct("<IBB")  # format id, sizes of gtrid and bqual
XID_PART_SIZE_MAX = 64
ALTER_SEQ_NO = struct.Struct("<Q")
THREAD_ID = struct.Struct("<I")


class GtidFlag(enum.IntFlag):
    STANDALONE = 0x01  # no event ends the group: DDL and the like
    GROUP_COMMIT = 0x02  # a commit id follows
    TRANSACTIONAL = 0x04
    ALLOW_PARALLEL = 0x08
    WAITED = 0x10
    DDL = 0x20
    PREPARED_XA = 0x40
    COMPLETED_XA = 0x80


HAS_COMMIT_ID = int(GtidFlag.GROUP_COMMIT)
HAS_XID = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)


class GtidExtraFlag(enum.IntFlag):
    """Of the second flag byte, which is there only if one is set."""

    MULTI_ENGINE = 0x01
    START_ALTER = 0x02
    COMMIT_ALTER = 0x04
    ROLLBACK_ALTER = 0x08
    THREAD_ID = 0x10


HAS_THREAD_ID = int(GtidExtraFlag.THREAD_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidXid:
    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidEvent:
    """None: the flags do not announce the field. `padding` counts the zero bytes after the last one."""

    gtid: Gtid
    flags: GtidFlag
    commit_id: int | None = None
    xid: GtidXid | None = None
    extra_flags: GtidExtraFlag | None = None
    engine_count: int | None = None  # engines that take part, less one; 255: read-only
    alter_seq_no: int | None = None  # of the group that began this ALTER
    thread_id: int | None = None
    padding: int = 0


def decode_gtid_event(event: Buffer) -> GtidEvent:
    """A whole GTID event without checksum. Raises EventError: another type, or the flags promise fields that are
    missing. Source: MariaDB 12.3, log_event.cc, Gtid_log_event::Gtid_log_event(const uchar *, …)."""
    header, body = decode_body(event, EventType.GTID)
    if len(event) < GTID_EVENT_SIZE_MIN:
        least = GTID_EVENT_SIZE_MIN - EVENT_HEADER_SIZE
        raise EventError(f"GTID event with a body of {len(body)} bytes, expected at least {least}")
    seq_no, domain_id, flags = FIXED.unpack_from(body)
    fields = Fields(body, "GTID event", FIXED.size, "before a field its flags announce")
    commit_id = fields.take_int(COMMIT_ID.size) if flags & HAS_COMMIT_ID else None
    xid = None
    if flags & HAS_XID:
        format_id, gtrid_size, bqual_size = XID.unpack(fields.take(XID.size))
        if gtrid_size > XID_PART_SIZE_MAX or bqual_size > XID_PART_SIZE_MAX:
            raise EventError(f"GTID event with XID parts of {gtrid_size} and {bqual_size} bytes, at most 64 each")
        xid = GtidXid(format_id=format_id, gtrid=fields.take(gtrid_size), bqual=fields.take(bqual_size))
    extra_flags = engine_count = alter_seq_no = thread_id = None
    if fields.left and body[fields.offset]:
        extra_flags = GtidExtraFlag(fields.take_int(1))
        if extra_flags & GtidExtraFlag.MULTI_ENGINE:
            engine_count = fields.take_int(1)
        if extra_flags & (GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER):
            alter_seq_no = fields.take_int(ALTER_SEQ_NO.size)
        if extra_flags & GtidExtraFlag.THREAD_ID:
            thread_id = fields.take_int(THREAD_ID.size)
    return GtidEvent(
        gtid=Gtid(domain_id=domain_id, server_id=header.server_id, seq_no=seq_no),
        flags=GtidFlag(flags),
        commit_id=commit_id,
        xid=xid,
        extra_flags=extra_flags,
        engine_count=engine_count,
        alter_seq_no=alter_seq_no,
        thread_id=thread_id,
        padding=fields.left,
    )


def decode_gtid(header: EventHeader, event: Buffer) -> tuple[Gtid, int]:
    """GTID and flags alone, for paths that look at every group. Raises EventError: the body is too short."""
    if len(event) < GTID_EVENT_SIZE_MIN:
        raise EventError(f"GTID event of {len(event)} bytes, expected at least {GTID_EVENT_SIZE_MIN}")
    seq_no, domain_id, flags = FIXED.unpack_from(event, EVENT_HEADER_SIZE)
    return Gtid(domain_id=domain_id, server_id=header.server_id, seq_no=seq_no), flags


def has_plain_fields(event: Buffer) -> bool:
    """Whether a GTID event has only the fixed fields, the commit id and the thread id."""
    if len(event) < GTID_EVENT_SIZE_MIN:
        return False
    flags = event[GTID_FLAGS_OFFSET]
    end = FIELDS_OFFSET + COMMIT_ID.size if flags & HAS_COMMIT_ID else FIELDS_OFFSET
    extra_flags = event[end] if end < len(event) else 0
    size = end + 1 + THREAD_ID.size if extra_flags == HAS_THREAD_ID else end
    return not flags & HAS_XID and extra_flags in (0, HAS_THREAD_ID) and size <= len(event)


def is_event_of(event: bytes, gtid: Gtid) -> bool:
    """Whether a GTID event has this GTID and every announced field. False also where only `decode_gtid_event` can
    decide: XA transactions, the second flag byte."""
    if len(event) < GTID_EVENT_SIZE_MIN:
        return False
    seq_no, domain_id, flags = FIXED.unpack_from(event, SEQ_NO_OFFSET)
    end = FIELDS_OFFSET + COMMIT_ID.size if flags & HAS_COMMIT_ID else FIELDS_OFFSET
    return (
        (domain_id, SERVER_ID.unpack_from(event, SERVER_ID_OFFSET)[0], seq_no)
        == (gtid.domain_id, gtid.server_id, gtid.seq_no)
        and not flags & HAS_XID
        and (len(event) == end or (len(event) > end and not event[end]))
    )


def encode_gtid_event(
    value: GtidEvent, *, timestamp: int = 0, log_pos: int = 0, flags: int = EventFlag.SUPPRESS_USE
) -> bytes:
    """The GTID has the server id."""
    gtid = value.gtid
    parts = [FIXED.pack(gtid.seq_no, gtid.domain_id, value.flags)]
    if value.commit_id is not None:
        parts.append(COMMIT_ID.pack(value.commit_id))
    if value.xid is not None:
        xid = value.xid
        parts.append(XID.pack(xid.format_id, len(xid.gtrid), len(xid.bqual)) + xid.gtrid + xid.bqual)
    if value.extra_flags:
        parts.append(bytes([value.extra_flags]))
        if value.engine_count is not None:
            parts.append(bytes([value.engine_count]))
        if value.alter_seq_no is not None:
            parts.append(ALTER_SEQ_NO.pack(value.alter_seq_no))
        if value.thread_id is not None:
            parts.append(THREAD_ID.pack(value.thread_id))
    body = b"".join(parts)
    padded = max(len(body) + value.padding, GTID_EVENT_SIZE_MIN - EVENT_HEADER_SIZE)
    return encode_event(
        event_type=EventType.GTID,
        body=body.ljust(padded, b"\0"),
        server_id=gtid.server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
    )
