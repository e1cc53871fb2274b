"""FORMAT_DESCRIPTION: writer and format of the next events. Layout: protocol/event/others.md."""

import enum
import functools
import struct
from dataclasses import dataclass

from ibbmaster import versions
from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .header import CHECKSUM_SIZE, EVENT_HEADER_SIZE, decode_body, encode_event, has_valid_checksum
from .types import EventFlag, EventType, post_header_sizes

FIXED = struct.Struct("<H50sIB")
FLAGS = struct.Struct("<H")
FLAGS_OFFSET = EVENT_HEADER_SIZE - FLAGS.size
BINLOG_VERSION = 4
_IN_USE = int(EventFlag.IN_USE)
SERVER_VERSION_OFFSET = EVENT_HEADER_SIZE + 2
CREATED_OFFSET, CREATED_SIZE = EVENT_HEADER_SIZE + 52, 4
SERVER_VERSION_SIZE = 50
OLD_TYPE_COUNT_MAX = 29  # event types of servers without checksums


class ChecksumAlgorithm(enum.IntEnum):
    NONE = 0
    CRC32 = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDescription:
    """`created`: the start of the server, 0 if that does not matter to a replica."""

    server_version: str
    created: int
    post_header_sizes: bytes  # of type 1 and up, one byte each
    checksum_algorithm: ChecksumAlgorithm


def decode_format_description(event: Buffer) -> FormatDescription:
    """A whole event; it ends with algorithm byte and checksum under any algorithm, unless its server is older. Raises
    EventError: another type, version, header size or algorithm, or a wrong checksum. Source: MariaDB 12.3,
    log_event.cc, Format_description_log_event::Format_description_log_event(const uchar *, …)."""
    _, body = decode_body(event, EventType.FORMAT_DESCRIPTION)
    trailer_size = 1 + CHECKSUM_SIZE if knows_checksums(event) else 0
    if len(body) < FIXED.size + trailer_size:
        raise EventError(f"FORMAT_DESCRIPTION of {len(event)} bytes is too short")
    version, _, _, header_size = FIXED.unpack_from(body)
    if version != BINLOG_VERSION or header_size != EVENT_HEADER_SIZE:
        raise EventError(
            f"FORMAT_DESCRIPTION of version {version} with headers of {header_size} bytes: expected 4 and 19"
        )
    if not trailer_size:
        return _described(bytes(body) + bytes([ChecksumAlgorithm.NONE]))
    if not has_valid_checksum(_as_closed(event)):
        raise EventError("FORMAT_DESCRIPTION has a wrong checksum")
    return _described(bytes(body[:-CHECKSUM_SIZE]))


@functools.lru_cache(maxsize=16)
def _described(body: bytes) -> FormatDescription:
    """A server repeats it in each of its files."""
    _, server_version, created, _ = FIXED.unpack_from(body)
    algorithm = body[-1]
    if algorithm not in (ChecksumAlgorithm.NONE, ChecksumAlgorithm.CRC32):
        raise EventError(f"checksum algorithm {algorithm} is unknown")
    return FormatDescription(
        server_version=server_version.rstrip(b"\0").decode("utf-8", "replace"),
        created=created,
        post_header_sizes=body[FIXED.size : -1],
        checksum_algorithm=ChecksumAlgorithm(algorithm),
    )


def knows_checksums(event: Buffer) -> bool:
    """Whether the server of a FORMAT_DESCRIPTION knew checksums: then it ends with one. Source: MariaDB 12.3,
    log_event.cc, Format_description_log_event::is_version_before_checksum()."""
    if len(event) > EVENT_HEADER_SIZE + FIXED.size + OLD_TYPE_COUNT_MAX:
        return True  # else one flipped bit of the version would hide the checksum
    name = bytes(event[SERVER_VERSION_OFFSET : SERVER_VERSION_OFFSET + SERVER_VERSION_SIZE]).decode("latin-1")
    return versions.knows_checksums(name)


def has_checksums(event: Buffer) -> bool:
    """Whether the events after a FORMAT_DESCRIPTION end with one."""
    return event[-CHECKSUM_SIZE - 1] == ChecksumAlgorithm.CRC32 and knows_checksums(event)


def encode_format_description(
    value: FormatDescription, *, server_id: int, timestamp: int = 0, log_pos: int = 0, flags: int = 0
) -> bytes:
    """With its checksum, which ignores the flag IN_USE."""
    name = value.server_version.encode()[: SERVER_VERSION_SIZE - 1]
    body = FIXED.pack(BINLOG_VERSION, name, value.created, EVENT_HEADER_SIZE)
    body += value.post_header_sizes + bytes([value.checksum_algorithm])
    event = encode_event(
        event_type=EventType.FORMAT_DESCRIPTION,
        body=body,
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags & ~EventFlag.IN_USE,
        with_checksum=True,
    )
    return _with_flags(event, flags)


def _as_closed(event: Buffer) -> Buffer:
    """As at the time of its checksum: a server sets IN_USE in place later."""
    (flags,) = FLAGS.unpack_from(event, FLAGS_OFFSET)
    return _with_flags(bytes(event), flags & ~EventFlag.IN_USE) if flags & _IN_USE else event


def _with_flags(event: bytes, flags: int) -> bytes:
    return event[:FLAGS_OFFSET] + FLAGS.pack(flags) + event[FLAGS_OFFSET + FLAGS.size :]


def describe_format(
    server_version: str, *, type_count: int, algorithm: ChecksumAlgorithm = ChecksumAlgorithm.NONE, created: int = 0
) -> FormatDescription:
    return FormatDescription(
        server_version=server_version,
        created=created,
        post_header_sizes=post_header_sizes(type_count),
        checksum_algorithm=algorithm,
    )
