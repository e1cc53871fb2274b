"""Events of a binlog file, taken apart by the few bytes every event begins with; no code of ours in it."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\xfebin"
EVENT_HEADER = struct.Struct("<IBIIIH")
QUERY = 2
FORMAT_DESCRIPTION = 15
GTID = 162
ABOUT_FILES = {3, 4, FORMAT_DESCRIPTION, 161, 163}  # STOP, ROTATE, BINLOG_CHECKPOINT, GTID_LIST


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEvent:
    """An event as its writer made it, without position and checksum."""

    timestamp: int
    event_type: int
    server_id: int
    flags: int
    body: bytes


def read_events(path: Path) -> Iterator[RawEvent]:
    """The events of a file that change something, in order; checksums are verified."""
    data = memoryview(path.read_bytes())
    assert data[:4] == MAGIC, f"{path} is no binlog file"
    offset, has_checksum = 4, False
    while offset < len(data):
        timestamp, event_type, server_id, size, _, flags = EVENT_HEADER.unpack_from(data, offset)
        event = data[offset : offset + size]
        assert len(event) == size, f"{path} ends inside an event at {offset}"
        offset += size
        if event_type == FORMAT_DESCRIPTION:
            has_checksum = event[-5] == 1
        if has_checksum and event_type != FORMAT_DESCRIPTION:
            assert zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"), f"{path}: checksum before {offset}"
            event = event[:-4]
        if event_type not in ABOUT_FILES:
            body = bytes(event[EVENT_HEADER.size :])
            yield RawEvent(timestamp=timestamp, event_type=event_type, server_id=server_id, flags=flags, body=body)
