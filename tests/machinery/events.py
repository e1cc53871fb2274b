"""Events of tests: made, of any type, as short as they can be; and cut out of what has several."""

import itertools
import struct
from collections.abc import Iterator

from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.log.interface import EventGroups, LogEngine


def make_event(event_type: int, server_id: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1, event_type, server_id, 19 + len(body), 0, 0) + body


def gtid_of(seq_no: int, domain_id: int = 0, server_id: int = 1) -> Gtid:
    return Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no)


def make_gtid_event(gtid: Gtid) -> bytes:
    return make_event(162, gtid.server_id, struct.pack("<QIB", gtid.seq_no, gtid.domain_id, 0) + bytes(6))


AROUND_GROUPS = {15: "FORMAT_DESCRIPTION", 163: "GTID_LIST", 161: "BINLOG_CHECKPOINT", 4: "ROTATE", 3: "STOP"}
XID_EVENT = make_event(16, 1, bytes(8))


def new_group(
    seq_no: int, *events: bytes | int, domain_id: int = 0, server_id: int = 1
) -> tuple[Gtid, bytes, list[bytes]]:
    gtid = gtid_of(seq_no, domain_id, server_id)
    bodies = [make_event(160, 1, bytes(event)) if isinstance(event, int) else event for event in events]
    return gtid, make_gtid_event(gtid), bodies


def split_events(data: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(data):
        size = int.from_bytes(data[offset + 9 : offset + 13], "little")
        yield data[offset : offset + size]
        offset += size


def event_offsets(data: bytes) -> list[int]:
    return list(itertools.accumulate(map(len, split_events(data[4:])), initial=4))[:-1]


def group_events(data: bytes) -> Iterator[bytes]:
    """The events of a traditional file that belong to groups, found by hand, as an engine's binlog has them."""
    checksum_size = None
    for event in split_events(data[4:]):
        if checksum_size is None:
            checksum_size = 4 * event[-5]
        if event[4] not in AROUND_GROUPS:
            end = len(event) - checksum_size
            yield event[:9] + struct.pack("<II", end, 0) + event[17:end]


def groups_of(reader: EventGroups) -> list[tuple[Gtid | None, bytes]]:
    groups = iter(reader.next_group, None)
    return [(group.gtid, b"".join(map(bytes, (group.gtid_event, *group.body)))) for group in groups]


def groups_behind(engine: LogEngine, position: str = "") -> list[tuple[Gtid | None, bytes]]:
    return groups_of(engine.groups(engine.seek(GtidPosition.parse(position))))


def numbers_of(reader: EventGroups) -> list[int]:
    return [group.gtid.seq_no for group in iter(reader.next_group, None) if group.gtid is not None]


def numbers_in(engine: LogEngine) -> list[int]:
    return numbers_of(engine.groups(engine.start_of_file()))
