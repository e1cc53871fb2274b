"""Events about the log itself. Layouts: protocol/event/others.md. STOP reports an orderly shutdown, BINLOG_CHECKPOINT
names the file that crash recovery needs, GTID_LIST has the state at a place."""

import struct
from dataclasses import dataclass
from typing import Unpack

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.storage.codec.buffer import Buffer
from .header import HeaderFields, decode_body, encode_event
from .types import EventType

FILE_NAME_MAX = 511  # bytes
ROTATE_POSITION = struct.Struct("<Q")
XID_NUMBER = struct.Struct("<Q")
CHECKPOINT_NAME_SIZE = struct.Struct("<I")
LIST_COUNT = struct.Struct("<I")
LIST_COUNT_MASK = 0x0FFFFFFF
FLAG_UNTIL_REACHED = 0x10000000
LIST_ENTRY = struct.Struct("<IIQ")
EMPTY_LIST_PADDING = 2  # an empty list has two bytes after its count
LONG_POSITION = struct.Struct("<Q")
LOG_POS_MAX = 2**32 - 1
POSITION_MIN = 4  # replicas refuse 1 to 3, and 0 means the long form


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate:
    file_name: str
    position: int


def decode_rotate(event: Buffer) -> Rotate:
    """Without checksum. Raises EventError: another type, no room for the position, or too long a name."""
    _, body = decode_body(event, EventType.ROTATE)
    if len(body) < ROTATE_POSITION.size:
        raise EventError(f"ROTATE with a body of {len(body)} bytes, expected at least {ROTATE_POSITION.size}")
    if len(body) - ROTATE_POSITION.size > FILE_NAME_MAX:
        raise EventError(f"ROTATE to a file name of {len(body) - ROTATE_POSITION.size} bytes, at most {FILE_NAME_MAX}")
    return Rotate(
        position=ROTATE_POSITION.unpack_from(body)[0],
        file_name=bytes(body[ROTATE_POSITION.size :]).decode("utf-8", "surrogateescape"),
    )


def encode_rotate(value: Rotate, **header: Unpack[HeaderFields]) -> bytes:
    body = ROTATE_POSITION.pack(value.position) + value.file_name.encode("utf-8", "surrogateescape")
    return encode_event(event_type=EventType.ROTATE, body=body, **header)


def encode_stop(**header: Unpack[HeaderFields]) -> bytes:
    return encode_event(event_type=EventType.STOP, body=b"", **header)


def decode_xid(event: Buffer) -> int:
    """Of a whole event without checksum. Raises EventError: another type or size."""
    _, body = decode_body(event, EventType.XID)
    if len(body) != XID_NUMBER.size:
        raise EventError(f"XID with a body of {len(body)} bytes, expected {XID_NUMBER.size}")
    number: int = XID_NUMBER.unpack(body)[0]
    return number


def encode_xid(number: int, **header: Unpack[HeaderFields]) -> bytes:
    return encode_event(event_type=EventType.XID, body=XID_NUMBER.pack(number), **header)


def decode_binlog_checkpoint(event: Buffer) -> str:
    """The file name in a whole event without checksum. Raises EventError: another type, or it runs over the end."""
    _, body = decode_body(event, EventType.BINLOG_CHECKPOINT)
    name = bytes(body[CHECKPOINT_NAME_SIZE.size :])
    if len(body) < CHECKPOINT_NAME_SIZE.size or len(name) < (size := CHECKPOINT_NAME_SIZE.unpack_from(body)[0]):
        raise EventError(f"BINLOG_CHECKPOINT whose name does not fit into {len(body)} bytes")
    return name[:size].decode("utf-8", "surrogateescape")


def encode_binlog_checkpoint(file_name: str, **header: Unpack[HeaderFields]) -> bytes:
    name = file_name.encode("utf-8", "surrogateescape")
    body = CHECKPOINT_NAME_SIZE.pack(len(name)) + name
    return encode_event(event_type=EventType.BINLOG_CHECKPOINT, body=body, **header)


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidList:
    """The latest GTID of each domain comes last; `flags` are bits of the count."""

    gtids: tuple[Gtid, ...]
    flags: int = 0


def decode_gtid_list(event: Buffer) -> GtidList:
    """A whole event without checksum. Raises EventError: another type, or fewer entries than announced. Source: MariaDB
    12.3, log_event.cc, Gtid_list_log_event::Gtid_list_log_event(const uchar *, …)."""
    _, body = decode_body(event, EventType.GTID_LIST)
    if len(body) < LIST_COUNT.size:
        raise EventError(f"GTID_LIST with a body of {len(body)} bytes, expected at least {LIST_COUNT.size}")
    (word,) = LIST_COUNT.unpack_from(body)
    count = word & LIST_COUNT_MASK
    if LIST_COUNT.size + count * LIST_ENTRY.size > len(body):
        raise EventError(f"GTID_LIST of {count} entries with a body of {len(body)} bytes")
    entries = LIST_ENTRY.iter_unpack(body[LIST_COUNT.size :][: count * LIST_ENTRY.size])
    return GtidList(
        gtids=tuple(Gtid(domain_id=domain, server_id=server, seq_no=seq_no) for domain, server, seq_no in entries),
        flags=word & ~LIST_COUNT_MASK,
    )


def encode_gtid_list(value: GtidList, **header: Unpack[HeaderFields]) -> bytes:
    body = LIST_COUNT.pack(len(value.gtids) | value.flags) + b"".join(
        LIST_ENTRY.pack(gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in value.gtids
    )
    if not value.gtids:
        body += bytes(EMPTY_LIST_PADDING)
    return encode_event(event_type=EventType.GTID_LIST, body=body, **header)


def encode_heartbeat(file_name: str, position: int, *, server_id: int, with_checksum: bool = False) -> bytes:
    """Positions from 4 GiB up take the long form. Source: MariaDB 12.3, sql_repl.cc, send_heartbeat_event()."""
    body, log_pos = file_name.encode("utf-8", "surrogateescape"), max(position, POSITION_MIN)
    if log_pos > LOG_POS_MAX:
        log_pos, body = 0, LONG_POSITION.pack(position) + body
    return encode_event(
        event_type=EventType.HEARTBEAT, body=body, server_id=server_id, log_pos=log_pos, with_checksum=with_checksum
    )
