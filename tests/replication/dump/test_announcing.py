import zlib

import pytest

from ibbmaster.gtid import GtidState
from ibbmaster.replication.dump import announcing
from ibbmaster.replication.event.control import FLAG_UNTIL_REACHED, GtidList, encode_gtid_list, encode_heartbeat
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.types import EventFlag
from tests.replication.dump.conftest import recorded


def test_an_engine_primary_opens_with_this_format_description() -> None:
    event = announcing.opening_format_description(
        "12.3.2-MariaDB-log", server_id=1, type_count=172, algorithm=ChecksumAlgorithm.NONE, flags=EventFlag.ARTIFICIAL
    )
    assert event == recorded("opening")
    assert zlib.crc32(event[:-4]).to_bytes(4, "little") == event[-4:]


def test_an_artificial_rotate_has_a_checksum_on_demand() -> None:
    def rotate(with_checksum: bool) -> bytes:
        return announcing.artificial_rotate("master-bin.000001", 4, server_id=1, with_checksum=with_checksum)

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
    one, long, *low = (encode_heartbeat("binlog-000000.ibb", at, server_id=1) for at in (16640, 5 << 30, 0, 4))
    assert (one, long) == (recorded("heartbeat"), recorded("long heartbeat"))
    assert low == [recorded("heartbeat").replace(b"\0\x41\0\0", b"\x04\0\0\0", 1)] * 2
