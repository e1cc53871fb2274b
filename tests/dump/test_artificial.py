import zlib

import pytest

from ibbmaster.dump import artificial
from ibbmaster.event.format_description import ChecksumAlgorithm
from ibbmaster.event.header import HEADER, EventHeader, decode_event_header
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import GtidState

# dump-protocol: what a 12.3 primary opens with
FORMAT_DESCRIPTION = bytes.fromhex(
    "00 00 00 00 0f 01 00 00 00 fd 00 00 00 00 00 00 00 20 00"
    "04 00 31 32 2e 33 2e 32 2d 4d 61 72 69 61 44 42 2d 6c 6f 67" + "00" * 32 + "00 00 00 00 13"
    "38 0d 00 08 00 12 00 04 04 04 04 12 00 00 e5 00 04 1a 08 00"
    "00 00 08 08 08 02 00 00 00 0a 0a 0a 00 00 00 00 00 00 0a 0a 0a"
    + "00"
    * 119
    + "04 13 04 00 0d 08 08 08 0a 0a 0a 09"
    "00 27 b6 f8 c3"
)
ROTATE = bytes.fromhex(
    "00 00 00 00 04 01 00 00 00 30 00 00 00 00 00 00 00 20 00  04 00 00 00 00 00 00 00"
    "6d 61 73 74 65 72 2d 62 69 6e 2e 30 30 30 30 30 31 b8 a9 f1 8e"
)
GTID_LIST = bytes.fromhex(
    "00 00 00 00 a3 01 00 00 00 27 00 00 00 00 00 00 00 20 00 01 00 00 00 00 00 00 00 01 00 00 00"
    "05 00 00 00 00 00 00 00"
)
UNTIL_LIST = bytes.fromhex(
    "00 00 00 00 a3 01 00 00 00 27 00 00 00 00 00 00 00 20 00 01 00 00 10 00 00 00 00 01 00 00 00"
    "09 00 00 00 00 00 00 00"
)
CLASSIC_LIST = bytes.fromhex(
    "00 00 00 00 a3 01 00 00 00 2b 00 00 00 76 04 00 00 20 00 01 00 00 00 00 00 00 00 01 00 00 00"
    "05 00 00 00 00 00 00 00 31 88 9a 24"
)
EMPTY_LIST = bytes.fromhex("00 00 00 00 a3 01 00 00 00 19 00 00 00 00 00 00 00 20 00 00 00 00 00 00 00")
HEARTBEAT = bytes.fromhex(
    "00 00 00 00 1b 01 00 00 00 24 00 00 00 00 41 00 00 00 00 62 69 6e 6c 6f 67 2d 30 30 30 30 30 30 2e 69 62 62"
)
LONG_HEARTBEAT = bytes.fromhex(
    "00 00 00 00 1b 01 00 00 00 2c 00 00 00 00 00 00 00 00 00  00 00 00 40 01 00 00 00"
    "62 69 6e 6c 6f 67 2d 30 30 30 30 30 30 2e 69 62 62"
)

# (type, size, log_pos, the replacement), as MariaDB 11.8.6 sent them to a client of capability 0, without checksums
DUMMIES = {
    "too small for a query": (163, 25, 285, "42bc006b 0e 01000000 1d000000 1d010000 0800 01000000 21 01"),
    "a little text": (161, 36, 325, "42bc006b 02 01000000 28000000 45010000 0800" + "00" * 14 + "23 20 44"),
    "a stand-alone gtid": (162, 38, 367, "42bc006b 02 01000000 2a000000 6f010000 0800" + "00" * 14 + "23 20 44 75 6d"),
    "more text": (
        160,
        55,
        0,
        "42bc006b 02 01000000 3b000000 00000000 0800"
        + "00" * 14
        + "23 20 44 75 6d 6d 79 20 65 76 65 6e 74 20 72 65 70 6c 61 63 69 6e",
    ),
}
BEGIN = "42bc006b 02 01000000 2a000000 90020000 0800" + "00" * 14 + "42 45 47 49 4e"


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
    assert event == FORMAT_DESCRIPTION
    assert zlib.crc32(event[:-4]).to_bytes(4, "little") == event[-4:]


def test_an_artificial_rotate_has_a_checksum_on_demand() -> None:
    def rotate(with_checksum: bool) -> bytes:
        return artificial.artificial_rotate("master-bin.000001", 4, server_id=1, with_checksum=with_checksum)

    assert rotate(True) == ROTATE
    assert rotate(False) == ROTATE[:9] + b"\x2c" + ROTATE[10:-4]


@pytest.mark.parametrize(
    ("state", "is_until_reached", "log_pos", "expected"),
    [
        ("0-1-5", False, 0, GTID_LIST),
        ("0-1-9", True, 0, UNTIL_LIST),
        ("", False, 0, EMPTY_LIST),
        ("0-1-5", False, 1142, CLASSIC_LIST),
    ],
)
def test_a_gtid_list_tells_the_state(state: str, is_until_reached: bool, log_pos: int, expected: bytes) -> None:
    event = artificial.artificial_gtid_list(
        GtidState.parse(state),
        server_id=1,
        is_until_reached=is_until_reached,
        log_pos=log_pos,
        with_checksum=log_pos > 0,
    )
    assert event == expected


def test_a_heartbeat_has_a_long_form_for_positions_beyond_4_gib() -> None:
    def beat(position: int) -> bytes:
        return artificial.heartbeat("binlog-000000.ibb", position, server_id=1, with_checksum=False)

    assert beat(16640) == HEARTBEAT
    assert beat(5 << 30) == LONG_HEARTBEAT
    assert beat(0) == beat(4) == HEARTBEAT.replace(b"\0\x41\0\0", b"\x04\0\0\0", 1)


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
    assert with_checksum_size(begin) == bytes.fromhex(BEGIN)


def test_a_longer_gtid_event_becomes_begin_with_padding_in_its_status() -> None:
    begin = artificial.begin_for(header_of(162, 40, 0, EventFlag.THREAD_SPECIFIC | EventFlag.SKIP_REPLICATION))
    assert begin is not None
    assert begin[19:] == bytes(11) + b"\x02\x00" + b"\xff\xff" + b"\0BEGIN"
    assert decode_event_header(begin).flags == EventFlag.SUPPRESS_USE | EventFlag.SKIP_REPLICATION
    assert decode_event_header(begin).size == len(begin) == 40


def test_an_event_without_room_for_begin_is_not_replaced() -> None:
    assert artificial.begin_for(header_of(162, 37)) is None
