"""The stream as a replica sees it. Expected bytes are those of the specification, or of recorded primaries."""

import dataclasses
import itertools
import math
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ibbmaster.errors import ChecksumError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.rewriting import LogPositions
from ibbmaster.replication.dump.session import CALLS, SessionState
from ibbmaster.replication.event.control import FLAG_UNTIL_REACHED, decode_gtid_list
from ibbmaster.replication.event.format_description import ChecksumAlgorithm, decode_format_description
from ibbmaster.replication.event.header import decode_event_header, has_valid_checksum
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.replication.wire.packet import frame_packets, frame_payloads
from tests.machinery.client_wire import decode_heartbeat
from tests.replication.dump.conftest import HOLE, NOT_THERE, RECORDED, recorded

Converse = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Framed:
    framed_bytes: int
    sequence_after: int
    begin: LogPosition
    end: LogPosition
    begins_inside_group: bool = False
    ends_inside_group: bool = False
    is_inside_event: bool = False
    gtids: tuple[Gtid, ...] = ()
    log_positions: LogPositions | None = None


EOF = bytes.fromhex("fe 00 00 02 00")

# What a 12.3 primary and traditional ones sent, in packets
OPENING = bytes.fromhex("fe 00 00 01 00") + recorded("opening")
HEARTBEAT = bytes.fromhex("25 00 00 07 00") + recorded("heartbeat")
GTID_LIST = bytes.fromhex("28 00 00 02 00") + recorded("gtid list")
ROTATE = bytes.fromhex("31 00 00 01 00") + recorded("rotate")


def types(events: list[bytes]) -> list[str]:
    return ["EOF" if event == EOF else EventType(event[4]).name for event in events]


def error_of(payload: bytes) -> tuple[int, str]:
    assert payload[:1] == b"\xff"
    assert payload[3:9] == b"#HY000"
    return int.from_bytes(payload[1:3], "little"), payload[9:].decode()


def gtids(events: list[bytes]) -> list[int]:
    return [
        int.from_bytes(event[19:27], "little")
        for event in events
        if event != EOF and event[4] == EventType.GTID and event[0] != 0xFF
    ]


def lists(events: list[bytes], *, checksum: bool = False) -> list[tuple[str, bool]]:
    found = []
    for event in events:
        if event != EOF and event[4] == EventType.GTID_LIST:
            size = len(event) - (4 if checksum else 0)
            value = decode_gtid_list(event[:9] + size.to_bytes(4, "little") + event[13:size])
            found.append((",".join(map(str, value.gtids)), bool(value.flags & FLAG_UNTIL_REACHED)))
    return found


def test_the_recorded_dump_of_a_12_3_replica_byte_by_byte(make, converse) -> None:
    packets = [bytes.fromhex(packet) for packet in RECORDED["transaction"]]
    request = make.request("0-1-5", capability=5, heartbeat_period_s=30.000001024)
    dump = converse(request, start_state="0-1-5")
    group = make.group("0-1-6", pieces=[b"".join(packet[5:] for packet in packets[1:])], end_offset=16640)
    dump.send(dataclasses.replace(group, gtid_event=packets[0][5:]))
    assert dump.stream == OPENING + b"".join(packets)
    dump.reach_end(now=100.0)
    assert dump.session.heartbeat_due == 130.000001024
    dump.advance_clock(now=130.0)
    assert dump.stream.endswith(packets[-1])
    dump.advance_clock(now=130.000002)
    assert dump.stream == OPENING + b"".join(packets) + HEARTBEAT


def test_the_recorded_list_follows_the_groups_that_were_skipped(make, converse) -> None:
    dump = converse(make.request("0-1-5"), start_state="0-1-2", current_state="0-1-6")
    dump.send(*(make.group(f"0-1-{number}") for number in (3, 4, 5)))
    assert dump.stream == OPENING + GTID_LIST
    dump.send(make.group("0-1-6"))
    assert dump.stream[len(OPENING + GTID_LIST) :][:5] == bytes.fromhex("27 00 00 03 00")


def test_the_recorded_rotate_of_a_traditional_primary(make, converse) -> None:
    for wants, expected in ((True, ROTATE), (False, b"\x2d" + ROTATE[1:14] + b"\x2c" + ROTATE[15:-4])):
        request = make.request("0-1-5", wants_rotate_checksum=wants)
        dump = converse(request, profile="classic-11.8", start_state="0-1-5", file_name="master-bin.000001")
        assert dump.stream.startswith(expected)


@pytest.mark.parametrize("profile", ["compat", "classic-10.11", "classic-11.8"])
@pytest.mark.parametrize("wants", [True, False])
def test_a_rotate_with_a_checksum_if_wanted_is_followed_by_the_format_description(
    make, converse, profile, wants
) -> None:
    dump = converse(make.request("0-1-5", wants_rotate_checksum=wants), profile=profile, start_state="0-1-5")
    events = dump.events()
    assert types(events)[:3] == ["ROTATE", "FORMAT_DESCRIPTION", "GTID_LIST"]
    assert has_valid_checksum(events[0]) == wants
    assert decode_event_header(events[0]).flags == EventFlag.ARTIFICIAL
    assert events[0][19 : -4 if wants else None] == (4).to_bytes(8, "little") + b"binlog-000000.ibb"


@pytest.mark.parametrize("profile", ["engine", "compat"])
def test_the_format_description_of_an_engine_is_artificial_and_has_its_checksum_all_the_same(make, converse, profile):
    dump = converse(make.request("0-1-5"), profile=profile, start_state="0-1-5")
    event = next(event for event in dump.events() if event[4] == EventType.FORMAT_DESCRIPTION)
    header = decode_event_header(event)
    assert (header.timestamp, header.log_pos, header.flags) == (0, 0, 0x20)
    value = decode_format_description(event)
    assert (value.created, value.checksum_algorithm, len(value.post_header_sizes)) == (0, 0, 172)
    assert has_valid_checksum(event)


def test_no_other_event_of_an_engine_has_a_checksum_whatever_the_client_asked_for(make, converse) -> None:
    dump = converse(make.request("0-1-1", wants_rotate_checksum=True, heartbeat_period_s=1.0), current_state="0-1-2")
    dump.send(make.group("0-1-1"), make.group("0-1-2"))
    dump.reach_end(now=0.0)
    dump.advance_clock(now=1.0)
    events = dump.events()
    assert types(events) == ["FORMAT_DESCRIPTION", "GTID_LIST", "GTID", *ROW_CHANGE, "HEARTBEAT"]
    assert not any(has_valid_checksum(event) for event in events[1:])


ROW_CHANGE = ["ANNOTATE_ROWS", "TABLE_MAP", "WRITE_ROWS_V1", "XID"]


def test_no_rotate_comes_later_on_an_engine(make, converse) -> None:
    dump = converse(make.request(""), profile="compat")
    dump.send(make.group("0-1-1", file_name="binlog-000000.ibb"), make.group("0-1-2", file_name="binlog-000001.ibb"))
    assert types(dump.events()).count("ROTATE") == 1


def test_compat_lists_the_state_at_the_start_and_again_when_skipping_ends(make, converse) -> None:
    dump = converse(make.request("0-1-2"), profile="compat", start_state="0-1-1", current_state="0-1-3")
    dump.send(make.group("0-1-2"), make.group("0-1-3"))
    events = dump.events()
    assert lists(events) == [("0-1-1", False), ("0-1-2", False)]
    assert gtids(events) == [3]


def test_a_server_start_is_passed_on_if_the_profile_says_so_but_not_while_groups_are_skipped(make, converse) -> None:
    restart = dataclasses.replace(make.group("0-1-1", pieces=[]), gtid=None, gtid_event=OPENING[5:])
    for name in PROFILES:
        dump = converse(make.request(""), profile=name)
        dump.payloads()
        dump.send(restart)
        assert dump.payloads() == []
    profile = dataclasses.replace(PROFILES["engine"], sends_restarts=True)
    dump = converse(make.request("0-1-1"), profile=profile, current_state="0-1-1")
    dump.send(restart, make.group("0-1-1"), restart)
    assert types(dump.events()) == ["FORMAT_DESCRIPTION", "GTID_LIST", "FORMAT_DESCRIPTION"]


@pytest.mark.parametrize("name", ["", "../x", "binlog-000007.ibb"])
def test_file_and_offset_of_the_command_mean_nothing_in_a_dump_by_gtid(make, converse, name) -> None:
    plain, other = (
        converse(make.request("0-1-1", **changes), profile="compat", start_state="0-1-1", current_state="0-1-2")
        for changes in ({}, {"file_name": name, "file_position": 1868})
    )
    for dump in (plain, other):
        dump.send(make.group("0-1-2"))
    assert plain.stream == other.stream


def test_an_unknown_domain_that_turns_up_without_the_gtid_ends_the_dump(make, converse) -> None:
    dump = converse(make.request("0-1-1,9-9-9"), start_state="0-1-1")
    dump.send(make.group("0-1-2"))
    dump.current_state.log(make.group("9-1-1").gtid)
    dump.send(make.group("9-1-1"))
    *events, last = dump.events()
    assert gtids(events) == [2]
    assert error_of(last) == (1236, NOT_THERE.format("9-9-9"))
    assert dump.session.is_finished
    assert "the log ends at 9-1-1" in dump.session.error.explanation


def test_strict_mode_and_a_hole_end_the_dump_when_the_hole_is_met(make, converse) -> None:
    for profile in PROFILES:
        dump = converse(make.request("0-1-150", is_strict=True), profile=profile, current_state="0-1-200")
        dump.send(make.group("0-1-100"), make.group("0-1-200"))
        *events, last = dump.events()
        assert gtids(events) == []
        assert error_of(last) == (1236, HOLE.format("0-1-150"))  # as 10.11.19 and 11.8.6: with no place here


def test_skipped_groups_are_dropped_whole_and_unread_and_sending_begins_at_a_gtid_event(make, converse) -> None:
    def unread() -> Iterator[bytes]:
        raise AssertionError("a skipped group was read")
        yield b""

    dump = converse(make.request("0-1-2"), current_state="0-1-3")
    dump.send(make.group("0-1-1", pieces=unread()), make.group("0-1-2", pieces=unread()), make.group("0-1-3"))
    assert types(dump.events()) == ["FORMAT_DESCRIPTION", "GTID_LIST", "GTID", *ROW_CHANGE]


@pytest.mark.parametrize("until", ["0-1-5", "0-1-1", ""])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_an_until_that_is_met_already_is_answered_without_waiting(make, converse, profile, until) -> None:
    dump = converse(make.request("0-1-5", until=until), profile=profile, start_state="0-1-5", current_state="0-1-9")
    events = dump.events()
    assert lists(events, checksum=profile.startswith("classic"))[-1] == ("0-1-5", True)
    assert types(events)[-1] == "EOF"
    assert dump.session.is_finished


def test_an_until_that_is_not_logged_yet_waits_at_the_end(make, converse) -> None:
    dump = converse(make.request("0-1-1", until="0-1-3", heartbeat_period_s=1.0), start_state="0-1-1")
    dump.send(make.group("0-1-2"))
    dump.reach_end()
    assert not dump.session.is_finished
    dump.send(make.group("0-1-3"))
    assert types(dump.events())[-1] == "EOF"


@pytest.mark.parametrize("has_semi_sync", [False, True])
def test_a_client_that_does_not_wait_gets_eof_at_the_end_with_no_header(make, converse, has_semi_sync) -> None:
    dump = converse(make.request("", waits_at_end=False, has_semi_sync=has_semi_sync))
    dump.send(make.group("0-1-1"))
    dump.reach_end()
    assert dump.payloads()[-1] == EOF
    assert dump.session.is_finished
    dump.send(make.group("0-1-2"))
    dump.reach_end()
    dump.advance_clock(now=1e9)
    assert dump.payloads() == []


def test_there_are_no_heartbeats_without_a_period(make, converse) -> None:
    dump = converse(make.request(""))
    dump.reach_end(now=5.0)
    assert dump.session.heartbeat_due == math.inf
    dump.advance_clock(now=1e9)
    assert types(dump.events()) == ["FORMAT_DESCRIPTION"]


def test_one_heartbeat_a_period_of_silence_and_none_while_events_flow(make, converse) -> None:
    dump = converse(make.request("", heartbeat_period_s=1.0))
    beats: list[float] = []
    dump.payloads()
    now = 0.0
    for number in range(1, 200):
        if number % 50 == 0:  # silence for 3.3 s
            silence_end = now + 3.3
            while True:
                dump.session.reached_end(now=now)
                now = min(dump.session.heartbeat_due, silence_end)
                dump.advance_clock(now=now)
                if not dump.payloads():
                    break
                beats.append(round(now, 3))
                dump.session.sent()
        dump.send(make.group(f"0-1-{number}"))
        dump.session.sent()
        assert types(dump.events()) == ["GTID", *ROW_CHANGE]
        now += 0.1
        dump.session.reached_end(now=now)
        now += 0.3
        dump.advance_clock(now=now)
        assert dump.payloads() == []
    assert len(beats) == 9
    between = [round(later - earlier, 3) for earlier, later in itertools.pairwise(beats)]
    assert [one for one in between if one < 2] == [1.0] * 6


# As mysql-test/suite/binlog_in_engine/binlog_file_pos.test
@pytest.mark.parametrize(
    ("position", "file_no", "offset"),
    [("", 3, 98765), ("0-1-9", 3, 77777), ("", 0, 4)],
    ids=["after a group", "after one that was skipped", "before the first one, the smallest valid position"],
)
def test_a_heartbeat_names_file_and_offset_behind_the_last_group(make, converse, position, file_no, offset) -> None:
    dump = converse(make.request(position, heartbeat_period_s=1.0), current_state=position)
    if file_no:
        dump.send(make.group("0-1-1", file_name="binlog-000003.ibb", end_offset=offset))
    dump.reach_end(now=0.0)
    dump.advance_clock(now=1.0)
    event = dump.events()[-1]
    header = decode_event_header(event)
    assert (header.event_type, header.timestamp, header.flags, header.log_pos) == (27, 0, 0, offset)
    assert decode_heartbeat(event)[0] == f"binlog-00000{file_no}.ibb"


@pytest.mark.parametrize("profile", ["compat", "classic-10.11", "classic-11.8"])
def test_with_an_opening_rotate_the_position_is_never_below_the_replicas_count(make, converse, profile) -> None:
    dump = converse(make.request("", heartbeat_period_s=1.0), profile=profile)
    count, name, now = 0, "", 0.0
    for number in range(1, 60):
        dump.send(make.group(f"0-1-{number}", file_name=f"binlog-{number // 20:06d}.ibb"))
        dump.session.sent()
        dump.reach_end(now=now)
        now += 1.0
        dump.advance_clock(now=now)
        dump.session.sent()
        for event in dump.events():
            header = decode_event_header(event)
            if header.event_type == EventType.ROTATE:
                body = event[19 : -4 if has_valid_checksum(event) else None]
                name, count = body[8:].decode(), int.from_bytes(body[:8], "little")
            elif header.event_type == EventType.HEARTBEAT:
                assert event[19 : -4 if has_valid_checksum(event) else None].decode() == name
                assert header.log_pos >= count
            elif header.event_type != EventType.FORMAT_DESCRIPTION or header.log_pos:
                count = max(count + header.size, header.log_pos)


def test_a_long_stretch_of_skipped_groups_is_no_silence(make, converse) -> None:
    dump = converse(make.request("0-1-99", heartbeat_period_s=2.0, waits_at_end=False), current_state="0-1-99")
    for second in range(7):
        dump.send(make.group(f"0-1-{second + 1}"))
        dump.session.sent_nothing(now=float(second))
        dump.advance_clock(now=float(second))
    assert types(dump.events()) == ["FORMAT_DESCRIPTION", *["HEARTBEAT"] * 3]


# As mysql-test/suite/binlog_in_engine/rpl_semi_sync.test
@pytest.mark.parametrize("profile", list(PROFILES))
def test_with_semi_sync_every_event_packet_has_its_header(make, converse, profile) -> None:
    dump = converse(make.request("0-1-1", has_semi_sync=True, heartbeat_period_s=1.0), profile=profile)
    plain = converse(make.request("0-1-1", heartbeat_period_s=1.0), profile=profile)
    for conversation in (dump, plain):
        conversation.current_state.log(make.group("0-1-1").gtid)
        conversation.send(make.group("0-1-1"), make.group("0-1-2"), make.group("0-1-3", file_name="binlog-000001.ibb"))
        conversation.reach_end(now=0.0)
        conversation.advance_clock(now=1.0)
    payloads = dump.payloads()
    assert {payload[:3] for payload in payloads} == {b"\x00\xef\x00"}
    assert types([payload[3:] for payload in payloads])[-1] == "HEARTBEAT"
    expected = plain.events()
    if profile == "compat":  # its heartbeat counts the bytes sent
        payloads.pop(), expected.pop()
    assert [payload[3:] for payload in payloads] == expected


def test_a_newer_dump_of_the_same_id_ends_this_one(make, converse) -> None:
    dump = converse(make.request(""))
    dump.send(make.group("0-1-1"))
    dump.session.terminated_by_newer()
    assert error_of(dump.events()[-1]) == (4052, "A slave with the same server_id is already connected")
    assert dump.session.is_finished


def test_a_traditional_primary_says_where_it_was_when_it_ended_a_dump(make, converse) -> None:
    dump = converse(make.request(""), profile="classic-10.11", file_name="binlog.000001")
    # the sizes of the recorded group, so that the places of the recorded error follow
    events = make.event(EventType.QUERY, bytes(446)), make.event(EventType.XID, bytes(8))
    dump.send(make.group("0-1-1", *events, file_name="binlog.000001"))
    dump.session.terminated_by_newer()
    dump.session.terminated_by_newer()
    assert error_of(dump.events()[-1]) == (
        4052,
        "A slave with the same server_uuid/server_id is already connected; the first event '.' at 4, the last event "
        "read from 'binlog.000001' at 836, the last byte read from 'binlog.000001' at 867.",
    )


def test_a_shutdown_ends_a_dump_with_eof_once(make, converse) -> None:
    dump = converse(make.request(""))
    dump.session.end_of_service()
    dump.session.end_of_service()
    dump.session.terminated_by_newer()
    dump.session.fail(DumpError("text", "why"))
    assert types(dump.events()) == ["FORMAT_DESCRIPTION", "EOF"]


def test_what_cannot_be_read_ends_the_dump_with_error_1236_in_its_place(make, converse) -> None:
    def damaged(error: Exception) -> Iterator[bytes]:
        yield make.event(EventType.TABLE_MAP, bytes(21))
        raise error

    place = LogPosition.on_page(1, 2)
    for error, text in (
        (ChecksumError(place, "x"), f"event read from binlog did not pass crc check ({place})"),
        (StoreError("disk"), "I/O error reading log event (group 0-1-2 at binlog-000000.ibb offset 16384)"),
    ):
        dump = converse(make.request(""))
        dump.send(make.group("0-1-1"), make.group("0-1-2", pieces=damaged(error)), make.group("0-1-3"))
        *events, last = dump.events()
        assert error_of(last) == (1236, text)
        assert gtids(events) == [1]
        assert dump.session.error.explanation == str(error)


UNDIVIDED = {
    "zeros": [bytes(19)],
    "a cut header": [bytes(18)],
    "less than a header": [b"\1" * 9 + (18).to_bytes(4, "little") + bytes(6)],
    "an event that is cut": [b"\1" * 9 + (20).to_bytes(4, "little") + bytes(6)],
    "a byte too many": [b"\1" * 9 + (20).to_bytes(4, "little") + bytes(7), b"x"],
    "more than 1 GiB": [b"\1" * 9 + ((1 << 30) + 1).to_bytes(4, "little") + bytes(6)],
}


@pytest.mark.parametrize("what", UNDIVIDED)
def test_bytes_that_do_not_divide_into_events_and_too_large_ones_end_the_dump(make, converse, what) -> None:
    text = "bogus data in log event (group 0-1-1 at binlog-000000.ibb offset 16384)"
    if what == "more than 1 GiB":
        text = "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master"
    for filler in ([], [make.event(EventType.ANNOTATE_ROWS, bytes(100_000))]):
        dump = converse(make.request(""))
        dump.send(make.group("0-1-1", pieces=[*filler, *UNDIVIDED[what]]))
        assert error_of(dump.events()[-1]) == (1236, text)


def test_inside_an_event_nothing_can_be_said(make, converse) -> None:
    def damaged() -> Iterator[bytes]:
        yield make.event(EventType.WRITE_ROWS_V1, bytes(200_000))[:100_000]
        raise StoreError("disk")

    dump = converse(make.request(""))
    pieces = [len(piece) for piece in dump.session.receive_group(make.group("0-1-1", pieces=damaged()))]
    assert dump.session.is_finished
    assert dump.session.error.text.startswith("I/O error reading log event (group 0-1-")
    assert dump.session.data_to_send() == b""
    assert sum(pieces) == 4 + 1 + 38 + 4 + 1 + 100_000


def test_a_last_word_waits_for_the_event_under_way(make, converse) -> None:
    large = make.event(EventType.WRITE_ROWS_V1, bytes(200_000))
    dump = converse(make.request(""))
    group = make.group("0-1-1", pieces=[*make.cut(large, 10_000), make.event(EventType.TABLE_MAP, bytes(981)) * 500])
    pieces = dump.session.receive_group(group)
    dump.receive(itertools.islice(pieces, 8))
    dump.session.end_of_service()
    assert not dump.session.is_finished
    assert dump.session.data_to_send() == b""
    dump.receive(pieces)
    events = dump.events()
    assert events[2] == large
    assert events[-1] == EOF
    assert len(events) < 100  # not the whole group
    assert dump.session.is_finished


def test_a_failure_inside_an_event_ends_a_dump_that_had_a_last_word_to_say(make, converse) -> None:
    def damaged() -> Iterator[bytes]:
        yield from make.cut(make.event(EventType.WRITE_ROWS_V1, bytes(200_000))[:150_000], 10_000)
        raise StoreError("disk")

    for say in ("terminated_by_newer", "end_of_service"):
        dump = converse(make.request(""))
        pieces = dump.session.receive_group(make.group("0-1-1", pieces=damaged()))
        dump.receive(itertools.islice(pieces, 8))
        getattr(dump.session, say)()
        assert not dump.session.is_finished
        dump.receive(pieces)
        assert dump.session.is_finished
        assert dump.session.data_to_send() == b""


def test_a_last_word_between_events_stops_the_group_at_once(make, converse) -> None:
    events = b"".join(make.event(EventType.WRITE_ROWS_V1, bytes(981)) for _ in range(500))
    dump = converse(make.request(""))
    pieces = dump.session.receive_group(make.group("0-1-1", pieces=make.cut(events, 16_000)))
    dump.receive(itertools.islice(pieces, 1))
    dump.session.end_of_service()
    assert list(pieces) == []
    assert dump.events()[-1] == EOF


def test_packet_numbers_run_over_everything(make, converse) -> None:
    dump = converse(make.request("0-1-1"), current_state="0-1-400")
    dump.send(*(make.group(f"0-1-{number}") for number in range(1, 401)))
    dump.session.end_of_service()
    assert len(dump.payloads()) == 1 + 1 + 399 * 5 + 1  # the client checks the numbers


def test_a_group_is_delivered_with_the_same_events_after_a_reconnect(make, converse) -> None:
    for changes in ({}, {"wants_annotate_rows": False}, {"capability": 0}, {"leaves_out_marked": True}):
        first = converse(make.request("0-1-1", **changes), start_state="0-1-1")
        again = converse(make.request("0-1-1", **changes), current_state="0-1-3")
        first.send(make.group("0-1-2"), make.group("0-1-3"))
        again.send(make.group("0-1-1"), make.group("0-1-2"), make.group("0-1-3"))
        events = again.events()
        assert types(events)[1] == "GTID_LIST"
        assert first.events()[1:] == events[2:]


def test_memory_does_not_grow_with_a_group_or_an_event(make, converse) -> None:
    piece = bytes(64 << 10)

    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):  # small events
            yield make.event(EventType.WRITE_ROWS_V1, piece)
        yield make.event(EventType.WRITE_ROWS_V1)[:9] + struct.pack("<I", 19 + count * len(piece)) + bytes(6)
        for _ in range(count):  # and a large one
            yield piece
        yield make.event(EventType.XID, bytes(8))

    peaks = []
    for count in (40, 400):
        dump = converse(make.request())
        tracemalloc.start()
        size = sum(len(part) for part in dump.session.receive_group(make.group("0-1-1", pieces=pieces(count))))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert size > 2 * count * len(piece)
    assert peaks[1] < peaks[0] + (1 << 20), peaks


ENDINGS = ("end_of_service", "terminated_by_newer", "fail")


class Walk:
    def __init__(self, seed: int, make: SimpleNamespace, converse: Converse) -> None:
        self.rng = rng = random.Random(seed)
        self.make = make
        self.count = rng.randrange(1, 12)
        self.begin = rng.randrange(self.count) if rng.random() < 0.5 else 0
        self.until = rng.randrange(self.begin, self.count) + 1 if rng.random() < 0.3 else None
        self.wants_annotate = rng.random() < 0.5
        self.profile = rng.choice(list(PROFILES))
        self.dump = converse(
            make.request(
                f"0-1-{self.begin}" if self.begin else "",
                until=None if self.until is None else f"0-1-{self.until}",
                heartbeat_period_s=rng.choice([0.0, 0.001, 1.0]),
                wants_annotate_rows=self.wants_annotate,
                has_semi_sync=rng.random() < 0.3,
            ),
            profile=self.profile,
            current_state=f"0-1-{self.count}",
        )
        self.session = self.dump.session
        self.now = 0.0
        self.heartbeats = 0
        self.was_ended = self.is_speechless = False
        self.expected: list[tuple[int, bytes]] = []

    def events_of(self, number: int) -> list[bytes]:
        rng, make = self.rng, self.make
        events = [make.gtid_event(f"0-1-{number}")]
        for _ in range(rng.randrange(5)):
            kind = rng.choice([EventType.ANNOTATE_ROWS, EventType.WRITE_ROWS_V1])
            events.append(make.event(kind, rng.randbytes(rng.choice([10, 300, 3000, 70_000]))))
        return [*events, make.event(EventType.XID, bytes(8))]

    def run(self) -> None:
        for number in range(1, self.count + 1):
            events = self.events_of(number)
            if self.begin < number <= (self.until or self.count):
                self.expected += [
                    (event[4], event[19:])
                    for event in events
                    if event[4] != EventType.ANNOTATE_ROWS or self.wants_annotate
                ]
            self.between_groups()
            self.deliver(number, events)
            self.interrupt()
        self.between_groups()
        self.dump.take_queued()

    def deliver(self, number: int, events: list[bytes]) -> None:
        session, rng = self.session, self.rng
        group = self.make.group(
            f"0-1-{number}",
            pieces=self.make.cut(b"".join(events[1:]), rng.choice([100, 5000, 10**6])),
            file_name=f"binlog-{number // 4:06}.ibb",
            end_offset=number * 1000,
        )
        group = dataclasses.replace(group, gtid_event=events[0])
        selection = session.selection
        if selection is None or selection.log_positions is not None or rng.random() < 0.4:
            for piece in session.receive_group(group):
                self.dump._take(bytes(piece))
                self.interrupt(inside=True)
            return
        kept = [e for e in events if not (selection.leaves_out_annotate and e[4] == EventType.ANNOTATE_ROWS)]
        packets = [selection.prefix + event for event in kept]
        if rng.random() < 0.5:
            data, sequence = frame_payloads(packets, session.sequence)
            session.receive_block(Framed(len(data), sequence, session._position, group.end))
            self.dump._take(data)
            return
        session.begin_group()
        for index, packet in enumerate(packets):
            self.interrupt(inside=True)
            if session.is_finished:
                return
            data, sequence = frame_packets(packet, session.sequence)
            cuts = rng.choice([[], [rng.randrange(1, len(data))]])
            is_last = index == len(packets) - 1
            for start, end in itertools.pairwise([0, *cuts, len(data)]):
                part, is_inside = data[start:end], end < len(data)
                is_part = not is_last or is_inside
                session.receive_block(Framed(len(part), sequence, group.start, group.end, True, is_part, is_inside))
                self.dump._take(part)
                if is_inside:
                    self.interrupt(inside=True)
                    if session.is_finished:
                        return

    def between_groups(self) -> None:
        self.interrupt()
        match self.rng.randrange(4):
            case 0:
                self.session.reached_end(now=self.now)
            case 1:
                self.session.sent_nothing(now=self.now)
            case 2:
                self.session.sent()
        self.interrupt()

    def interrupt(self, *, inside: bool = False) -> None:
        """Perhaps time passes, or somebody ends the dump; what is queued goes out before anything else."""
        session, rng = self.session, self.rng
        for _ in range(rng.choice([0, 0, 1, 2])):
            self.now += rng.choice([0.0, 0.0005, 0.5, 30.0])
            is_due = self.now >= session.heartbeat_due and not session.is_finished
            was_queued, is_inside_group = session.has_data_to_send, session.is_inside_group
            session.advance_clock(now=self.now)
            assert not inside or session.has_data_to_send == was_queued
            if is_due and not is_inside_group:
                assert session.has_data_to_send
                self.heartbeats += 1
        if rng.random() < 0.01:
            ending = rng.choice(ENDINGS)
            self.is_speechless |= ending == "fail" and session._framer.is_inside_event
            getattr(session, ending)(*(DumpError("no more", "planted"),) if ending == "fail" else ())
            self.was_ended = True
        self.dump.take_queued()

    def check(self) -> None:
        """Every group once, in order and in one piece; heartbeats between groups; and one last word."""
        payloads = list(iter(self.dump._reader.next_payload, None))
        is_cut = self.dump._reader.unread_size > 0
        has_last_word = bool(payloads) and (payloads[-1] == EOF or payloads[-1][0] == 0xFF)
        assert self.session.is_finished == (self.was_ended or self.until is not None)
        if self.is_speechless:  # nothing can be said there, be it that the event went out already
            assert not has_last_word
        else:
            assert has_last_word == self.session.is_finished
            assert not is_cut
        prefix = 3 if self.dump.session._request.has_semi_sync else 1
        trailer = 4 if PROFILES[self.profile].event_checksum is ChecksumAlgorithm.CRC32 else 0
        found, heartbeats, is_inside = [], 0, False
        for payload in payloads[: -1 if has_last_word else None]:
            event = payload[prefix:]
            kind = EventType(event[4])
            heartbeats += kind is EventType.HEARTBEAT
            is_of_group = kind in (EventType.GTID, EventType.WRITE_ROWS_V1, EventType.ANNOTATE_ROWS, EventType.XID)
            assert is_of_group or not is_inside, kind
            if is_of_group:
                assert is_inside == (kind is not EventType.GTID)
                is_inside = kind is not EventType.XID
                found.append((event[4], event[19 : len(event) - trailer]))
        assert found == self.expected[: len(found)]
        assert len(found) == len(self.expected) or self.was_ended
        assert heartbeats == self.heartbeats


def test_whatever_happens_between_two_calls_groups_come_whole_and_heartbeats_between_them(make, converse, stream_seeds):
    for seed in stream_seeds(400):
        walk = Walk(seed, make, converse)
        walk.run()
        walk.check()


def test_nothing_of_a_group_follows_a_last_word_said_before_its_first_event(make, converse) -> None:
    dump = converse(make.request(""), profile="classic-11.8", file_name="binlog-000000.ibb")
    pieces = dump.session.receive_group(make.group("0-1-1", file_name="binlog-000001.ibb"))
    dump.receive(itertools.islice(pieces, 1))  # what announces the file
    dump.session.end_of_service()
    assert list(pieces) == []
    assert dump.payloads()[-1] == EOF


def test_a_group_that_begins_inside_another_one_is_a_mistake(make, converse) -> None:
    dump = converse(make.request(""))
    pieces = dump.session.receive_group(make.group("0-1-1"))
    next(pieces)
    for begin in (dump.session.begin_group, lambda: dump.session.receive_group(make.group("0-1-2"))):
        with pytest.raises(AssertionError, match="may not be called inside a group"):
            begin()


def test_what_does_not_begin_where_the_last_ended_is_refused(make, converse) -> None:
    dump = converse(make.request(""), offset=16384)
    dump.session.check_position(LogPosition(0, 16384))
    dump.send(make.group("0-1-1", end_offset=17000))
    dump.session.check_position(LogPosition(0, 17000))
    dump.session.receive_skipped((), LogPosition(1, 16500))
    for position in [LogPosition(1, 16501), LogPosition(0, 16500), LogPosition(0, 17000)]:
        with pytest.raises(DumpError) as failure:
            dump.session.check_position(position)
        assert failure.value.code == 1236
        begins = f"binlog-00000{position.file_no}.ibb offset {position.offset}"
        where = f"binlog-000001.ibb offset 16500, and {begins} would come next"
        assert where in failure.value.text
        assert where in failure.value.explanation
    dump.session.begin_group()
    end = LogPosition(1, 20000)
    dump.session.receive_block(Framed(10, 7, end, end, True, True))
    dump.session.check_position(LogPosition(1, 16500))  # a part moves nothing: the group has not ended
    dump.session.receive_block(Framed(10, 8, end, end, True))
    dump.session.check_position(end)
    with pytest.raises(DumpError, match=r"offset 20000, and binlog-000001\.ibb offset 20001 would come next"):
        dump.session.receive_block(Framed(10, 9, LogPosition(1, 20001), LogPosition(1, 30000)))
    with pytest.raises(AssertionError, match="goes on in none"):
        dump.session.receive_block(Framed(10, 9, end, end, True))


@pytest.mark.parametrize("state", SessionState, ids=lambda state: state.value)
def test_a_call_that_the_table_does_not_have_is_a_mistake(make, converse, state) -> None:
    session = converse(make.request("")).session
    match state:
        case SessionState.NEW:
            session._is_started = False
        case SessionState.INSIDE:
            session.begin_group()
        case SessionState.FINISHED:
            session.end_of_service()
    assert session.state is state
    for name in set().union(*CALLS.values()) - CALLS[state]:
        with pytest.raises(AssertionError, match=f"{name} may not be called {state.value}"):
            getattr(session, name)()
