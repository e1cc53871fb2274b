import random
from decimal import Decimal

import pytest

from ibbmaster.gtid import GtidPosition
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest, UserValue, dump_request
from ibbmaster.replication.wire.command import BinlogDump, decode_command
from tests.case_table import data_beside

DATA = data_beside(__file__)

ENGINE, CLASSIC = PROFILES["engine"], PROFILES["classic-11.8"]
REPLICA = BinlogDump(position=4, flags=0, server_id=2, file_name="")

# dump-protocol: the command of a 12.3 replica, and of python-mysql-replication without its stray last byte
REPLICA_COMMAND = bytes.fromhex("12 04 00 00 00 02 00 02 00 00 00")
PYTHON_COMMAND = bytes.fromhex("12 04 00 00 00 03 00 4d 00 00 00 00 00 00")


def request_with(**variables: UserValue) -> DumpRequest:
    return dump_request(REPLICA, {"slave_connect_state": "0-1-5", **variables}, ENGINE)


def code_of(*, is_registered: bool = False, **variables: UserValue) -> tuple[int, str]:
    with pytest.raises(DumpError) as caught:
        dump_request(REPLICA, variables, ENGINE, is_registered=is_registered)
    assert caught.value.sqlstate == "HY000"
    return caught.value.code, caught.value.text


NO_POSITION = "GTID starting position is required on master with --binlog-storage-engine enabled"


@pytest.mark.parametrize(("capability", "code"), [(None, 1236), (0, 1236), (4, 1236), (5, 4246), (6, 4246)])
def test_a_dump_without_a_gtid_position_is_refused_with_a_code_the_client_knows(capability, code) -> None:
    assert code_of(**{} if capability is None else {"mariadb_slave_capability": capability}) == (code, NO_POSITION)


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({}, 4246),
        ({"slave_gtid_ignore_duplicates": 0}, 4246),
        ({"mariadb_slave_capability": 4, "slave_gtid_strict_mode": 0}, 4246),
        ({"mariadb_slave_capability": 4, "master_heartbeat_period": 10**9}, 1236),
    ],
)
def test_a_replica_that_has_forgotten_its_position_may_connect_again(variables, code) -> None:
    assert code_of(is_registered=True, **variables) == (code, NO_POSITION)


def test_null_counts_as_unset_and_an_empty_position_or_until_as_set() -> None:
    assert code_of(slave_connect_state=None) == (1236, NO_POSITION)
    assert request_with(slave_connect_state="").position == GtidPosition()
    assert (request_with(slave_until_gtid="").until, request_with(slave_until_gtid=None).until) == (
        GtidPosition(),
        None,
    )


def test_the_refusal_tells_our_log_what_to_do() -> None:
    with pytest.raises(DumpError, match="MASTER_USE_GTID=slave_pos there, or a classic profile here"):
        dump_request(BinlogDump(position=1868, flags=0, server_id=7, file_name="x.000001"), {}, ENGINE)


def test_a_traditional_primary_takes_a_dump_by_file_and_offset() -> None:
    command = BinlogDump(position=325, flags=0, server_id=2, file_name="binlog.000001")
    request = dump_request(command, {"slave_until_gtid": "0-1-4"}, CLASSIC)
    assert (request.position, request.file_name, request.file_position) == (None, "binlog.000001", 325)
    assert request.until is None  # UNTIL belongs to GTIDs


def test_file_and_offset_do_no_harm_beside_a_gtid_position() -> None:
    command = BinlogDump(position=0, flags=0, server_id=2, file_name="../../etc/passwd")
    assert dump_request(command, {"slave_connect_state": "0-1-5"}, ENGINE).position == GtidPosition.parse("0-1-5")


def test_a_name_of_nul_bytes_is_an_empty_name() -> None:
    request = dump_request(decode_command(PYTHON_COMMAND), {"slave_connect_state": "0-1-5"}, ENGINE)
    assert (request.file_name, request.replica_server_id) == ("", 77)
    assert request.wants_annotate_rows
    assert not request.waits_at_end


def test_a_replica_waits_at_the_end_and_may_ask_for_annotations() -> None:
    request = dump_request(decode_command(REPLICA_COMMAND), {"slave_connect_state": "0-1-5"}, ENGINE)
    assert request.waits_at_end
    assert request.wants_annotate_rows
    assert not dump_request(REPLICA, {"slave_connect_state": ""}, ENGINE).wants_annotate_rows


@pytest.mark.parametrize(("flags", "server_id"), [(1, 2), (0, 0), (1, 0), (0xFFFF, 3)])
def test_a_client_that_does_not_block_or_has_no_server_id_does_not_wait(flags, server_id) -> None:
    command = BinlogDump(position=4, flags=flags, server_id=server_id, file_name="")
    assert not dump_request(command, {"slave_connect_state": ""}, ENGINE).waits_at_end


# as MariaDB 10.11.19 and 11.8.6 answered them
@pytest.mark.parametrize("text", DATA["unreadable"])
def test_a_list_that_cannot_be_read_is_error_1941(text) -> None:
    assert code_of(slave_connect_state=text) == (1941, "Could not parse GTID list")
    assert code_of(slave_connect_state="0-1-5", slave_until_gtid=text) == (1941, "Could not parse GTID list")


@pytest.mark.parametrize("text", ["0-1-2,3-1-1", " 0-1-2, 3-1-1", b"0-1-2,3-1-1", "00-01-002,3-1-1"])
def test_blanks_before_a_number_are_passed_over(text) -> None:
    assert request_with(slave_connect_state=text).position == GtidPosition.parse("0-1-2,3-1-1")


def test_two_gtids_of_one_domain_are_error_1943_with_the_later_one_first() -> None:
    expected = (1943, "GTID 0-1-3 and 0-1-2 conflict (duplicate domain id 0)")
    assert code_of(slave_connect_state="0-1-2,0-1-3") == expected
    assert code_of(slave_connect_state="", slave_until_gtid="0-1-2,0-1-3") == expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *((30000001024, 30.000001024), (3 * 10**9, 3.0), (1.5e9, 1.5), (1, 0.001)),
        *((value, 1.0) for value in (10**9, "1000000000", Decimal("999999999.5"))),
        *((value, 0.0) for value in (0, None, -1, "x", float("nan"), Decimal("NaN"))),
        *((value, 4294967.0) for value in (10**18, float("inf"), Decimal("Infinity"))),
    ],
)
def test_the_heartbeat_period_is_in_nanoseconds_and_within_limits(value, seconds) -> None:
    assert request_with(master_heartbeat_period=value).heartbeat_period_s == seconds


@pytest.mark.parametrize(
    ("value", "capability"),
    [(4, 4), (5, 5), ("4", 4), (b" 4x", 4), ("4.9", 4), (3.9, 3), (Decimal("3.5"), 4), (None, 0), ("", 0), (-7, 0)],
)
def test_a_number_is_read_as_mariadb_reads_it(value, capability) -> None:
    assert request_with(mariadb_slave_capability=value).capability == capability


def test_what_was_never_set_has_its_default() -> None:
    assert request_with() == DumpRequest(replica_server_id=2, position=GtidPosition.parse("0-1-5"))


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("slave_gtid_strict_mode", "is_strict"),
        ("slave_gtid_ignore_duplicates", "ignores_duplicates"),
        ("slave_gtid_until_before_gtids", "until_is_before"),
        ("rpl_semi_sync_slave", "has_semi_sync"),
    ],
)
def test_a_switch_is_on_if_its_number_is_not_zero(name, field) -> None:
    for value in (1, "1", 2.0, -1, True, b"7"):
        assert getattr(request_with(**{name: value}), field) is True
    for value in (0, "0", None, "on", 0.4, False):
        assert getattr(request_with(**{name: value}), field) is False


def test_skip_replication_comes_from_the_system_variable() -> None:
    assert dump_request(REPLICA, {"slave_connect_state": ""}, ENGINE, skip_replication=True).leaves_out_marked


# (value, whether the ROTATE has a checksum at a primary with CRC32, and at one without); the latter not measured
@pytest.mark.parametrize(
    ("value", "at_crc32", "at_none"),
    [("CRC32", True, True), ("crc32", True, True), ("NONE", False, False), ("what", True, False), (None, True, False)],
)
def test_the_first_rotate_has_a_checksum_as_the_client_said(value, at_crc32, at_none) -> None:
    variables = {"slave_connect_state": "", "master_binlog_checksum": value}
    for profile, expected in ((CLASSIC, at_crc32), (ENGINE, at_none)):
        request = dump_request(REPLICA, variables, profile)
        assert request.knows_checksums
        assert request.wants_rotate_checksum == expected


def test_a_client_that_never_set_the_checksum_variable_knows_no_checksums() -> None:
    request = dump_request(REPLICA, {"slave_connect_state": "0-1-5"}, CLASSIC)
    assert request == request_with()
    assert not request.knows_checksums


def test_a_very_long_position_is_read() -> None:
    text = ",".join(f"{domain}-1-{2**64 - 1}" for domain in range(10_000))
    assert len(request_with(slave_connect_state=text).position) == 10_000
    assert code_of(slave_connect_state="1" * 1_000_000)[0] == 1941
    assert code_of(slave_connect_state="0-1-1," * 100_000)[0] == 1941


NAMES = DATA["names"]
ALPHABET = "0123456789-, .xe+\0\n٣é\U0001f600'"


def random_value(rng: random.Random) -> UserValue:
    match rng.randrange(7):
        case 0:
            return None
        case 1:
            return rng.choice((-1, 1)) * rng.getrandbits(rng.randrange(1, 200))
        case 2:
            return rng.choice([rng.uniform(-1e300, 1e300), float("inf"), float("-inf"), float("nan"), 5e-324])
        case 3:
            return Decimal(rng.choice(["NaN", "sNaN", "Infinity", "-Infinity", "1e500", "-1e-500", "9" * 65]))
        case 4:
            return rng.randbytes(rng.randrange(12))
        case _:
            return "".join(rng.choices(ALPHABET, k=rng.randrange(24)))


@pytest.mark.parametrize("seed", range(300))
def test_hostile_values_give_a_request_or_a_dump_error(seed) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        variables = {name: random_value(rng) for name in NAMES if rng.random() < 0.8}
        command = BinlogDump(
            position=rng.getrandbits(32), flags=rng.getrandbits(16), server_id=rng.getrandbits(32), file_name="\ufffd"
        )
        try:
            request = dump_request(command, variables, rng.choice((ENGINE, CLASSIC)))
        except DumpError as refused:
            error = refused
        else:
            error = None
            assert 0 <= request.heartbeat_period_s <= 4294967
            assert 0 <= request.capability <= 255
        assert error is None or (error.code in (1236, 1941, 1943, 4246) and str(error))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", {1}), ("1,2, 4294967295", {1, 2, 4294967295}), ("(3,4)", {3, 4}), ("", None), (" ", None), (5, {5})],
)
def test_domains_that_a_replica_leaves_out_or_wants_are_numbers(text, expected):
    found = request_with(slave_connect_state_domain_ids_do=text, slave_connect_state_domain_ids_ignore=text)
    assert found.wanted_domain_ids == expected
    assert found.ignored_domain_ids == (expected or set())


@pytest.mark.parametrize("text", ["x", "1,,2", "1-1-1", "4294967296", "1;2", "-1"])
def test_domains_that_are_no_numbers_are_refused(text):
    for name in ("slave_connect_state_domain_ids_do", "slave_connect_state_domain_ids_ignore"):
        with pytest.raises(DumpError, match=f"Failed to read the domain ids in @{name}"):
            request_with(**{name: text})
