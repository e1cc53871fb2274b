import zlib

import pytest

from ibbmaster.dump import artificial
from ibbmaster.event.control import FLAG_UNTIL_REACHED, GtidList, encode_gtid_list
from ibbmaster.event.format_description import ChecksumAlgorithm
from ibbmaster.event.header import HEADER, EventHeader, decode_event_header
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import GtidState
from tests.dump.conftest import RECORDED, recorded

DUMMIES = RECORDED["dummies"]  # type, size and log_pos of an event, and the replacement


def header_of(event_type: int, size: int, log_pos: int = 0, flags: int = 0) -> EventHeader:
    return EventHeader(0x6B00BC42, event_type, 1, size, log_pos, flags)


def with_checksum_size(event: bytes) -> bytes:
    """The sizes in the recorded bytes count a checksum that was cut off here."""
    header = decode_event_header(event)
    return HEADER.pack(*header._replace(size=header.size + 4)) + event[19:]


def test_an_engine_primary_opens_with_this_format_description() -> None:
    event = artificial.opening_format_description(
        "12.3.2-MariaDB-log", server_id=1, type_count=172, algorithm=ChecksumAlgorithm.NONE, flags=EventFlag.ARTIFICIAL
    )
    assert event == recorded("opening")
    assert zlib.crc32(event[:-4]).to_bytes(4, "little") == event[-4:]


def test_an_artificial_rotate_has_a_checksum_on_demand() -> None:
    def rotate(with_checksum: bool) -> bytes:
        return artificial.artificial_rotate("master-bin.000001", 4, server_id=1, with_checksum=with_checksum)

    assert rotate(True) == recorded("rotate")
    assert rotate(False) == recorded("rotate")[:9] + b"\x2c" + recorded("rotate")[10:-4]


@pytest.mark.parametrize(
    ("state", "is_until_reached", "log_pos", "expected"),
    [
        ("0-1-5", False, 0, recorded("gtid list")),
        ("0-1-9", True, 0, recorded("until list")),
        ("", False, 0, recorded("empty list")),
        ("0-1-5", False, 1142, recorded("classic list")),
    ],
)
def test_a_gtid_list_tells_the_state(state: str, is_until_reached: bool, log_pos: int, expected: bytes) -> None:
    listed = GtidList(gtids=tuple(GtidState.parse(state)), flags=FLAG_UNTIL_REACHED if is_until_reached else 0)
    event = encode_gtid_list(
        listed, server_id=1, log_pos=log_pos, flags=EventFlag.ARTIFICIAL, with_checksum=log_pos > 0
    )
    assert event == expected


def test_a_heartbeat_has_a_long_form_for_positions_beyond_4_gib() -> None:
    def beat(position: int) -> bytes:
        return artificial.heartbeat("binlog-000000.ibb", position, server_id=1, with_checksum=False)

    assert beat(16640) == recorded("heartbeat")
    assert beat(5 << 30) == recorded("long heartbeat")
    assert beat(0) == beat(4) == recorded("heartbeat").replace(b"\0\x41\0\0", b"\x04\0\0\0", 1)


@pytest.mark.parametrize(("event_type", "size", "log_pos", "expected"), DUMMIES.values(), ids=DUMMIES)
def test_a_dummy_has_the_size_of_what_it_replaces(event_type: int, size: int, log_pos: int, expected: str) -> None:
    dummy = artificial.dummy_for(header_of(event_type, size, log_pos))
    assert dummy is not None
    assert len(dummy) == size
    assert with_checksum_size(dummy) == bytes.fromhex(expected)


def test_the_smallest_query_is_a_dummy_of_40_bytes_in_the_specification() -> None:
    dummy = artificial.dummy_for(header_of(160, 40))
    assert dummy is not None
    assert dummy[19:] == bytes(14) + b"# Dummy"


def test_a_long_dummy_says_what_it_replaces_and_is_filled_by_the_caller() -> None:
    dummy = artificial.dummy_for(header_of(160, 1000))
    assert dummy is not None
    assert dummy[33:] == b"# Dummy event replacing event type 160 that slave cannot handle."
    assert decode_event_header(dummy).size == 1000


@pytest.mark.parametrize("size", range(25, 120))
def test_every_size_from_25_on_can_be_replaced(size: int) -> None:
    dummy = artificial.dummy_for(header_of(161, size))
    assert dummy is not None
    assert len(dummy) <= size
    assert decode_event_header(dummy).event_type == (EventType.USER_VAR if size < 34 else EventType.QUERY)


@pytest.mark.parametrize("size", range(19, 25))
def test_a_smaller_event_cannot_be_replaced(size: int) -> None:
    assert artificial.dummy_for(header_of(160, size)) is None


def test_the_gtid_of_a_transaction_becomes_begin() -> None:
    begin = artificial.begin_for(header_of(162, 38, 656, EventFlag.SUPPRESS_USE))
    assert begin is not None
    assert with_checksum_size(begin) == recorded("begin")


def test_a_longer_gtid_event_becomes_begin_with_padding_in_its_status() -> None:
    begin = artificial.begin_for(header_of(162, 40, 0, EventFlag.THREAD_SPECIFIC | EventFlag.SKIP_REPLICATION))
    assert begin is not None
    assert begin[19:] == bytes(11) + b"\x02\x00" + b"\xff\xff" + b"\0BEGIN"
    assert decode_event_header(begin).flags == EventFlag.SUPPRESS_USE | EventFlag.SKIP_REPLICATION
    assert decode_event_header(begin).size == len(begin) == 40


def test_an_event_without_room_for_begin_is_not_replaced() -> None:
    assert artificial.begin_for(header_of(162, 37)) is None
