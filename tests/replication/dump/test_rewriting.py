"""What becomes of single events: left out, replaced, stamped; and streams that must equal captured files."""

import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.series import find_series
from ibbmaster.replication.dump.framing import divide_events
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.rewriting import begin_for, dummy_for
from ibbmaster.replication.event.control import decode_gtid_list
from ibbmaster.replication.event.format_description import decode_format_description
from ibbmaster.replication.event.header import HEADER, EventHeader, decode_event_header, has_valid_checksum
from ibbmaster.replication.event.types import EventFlag, EventType
from tests.case_table import data_beside
from tests.replication.dump.conftest import RECORDED, recorded

DATA = data_beside(__file__)

DUMMIES = RECORDED["dummies"]  # type, size and log_pos of an event, and the replacement
CAPTURES = Path(__file__).parents[3] / "fixtures" / "classic"
QUERY_BODY = bytes(13) + b"\0"


def without_checksum(event: bytes) -> bytes:
    assert has_valid_checksum(event)
    return event[:9] + (len(event) - 4).to_bytes(4, "little") + event[13:-4]


def sent(dump: Any, *groups: Any) -> list[bytes]:
    dump.payloads()
    dump.send(*groups)
    return dump.events()


def kinds(events: list[bytes]) -> list[str]:
    return [EventType(event[4]).name for event in events]


@pytest.mark.parametrize(("capability", "wanted", "expected"), DATA["annotations"])
@pytest.mark.parametrize("size", [30, 1000, 100_000])
def test_annotations_go_out_if_wanted_or_are_left_out_or_replaced(
    make, converse, capability, wanted, expected, size
) -> None:
    annotation = make.event(EventType.ANNOTATE_ROWS, b"x" * size)
    rest = [make.event(EventType.TABLE_MAP, bytes(21)), make.event(EventType.XID, bytes(8))]
    request = make.request("", capability=capability, wants_annotate_rows=wanted)
    _, *events = sent(converse(request), make.group("0-1-1", annotation, *rest))
    assert events[-2:] == rest
    if expected is None:
        assert len(events) == 2
        return
    (event,) = events[:-2]
    assert EventType(event[4]).name == expected
    assert len(event) == decode_event_header(event).size == len(annotation)
    if expected == "QUERY":
        assert event[33:].rstrip() == b"# Dummy event replacing event type 160 that slave cannot handle."[: size - 14]
        assert event[:4] == annotation[:4]


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
def test_a_large_annotation_is_replaced_with_its_checksum_computed_anew(make, converse, profile) -> None:
    annotation = make.event(EventType.ANNOTATE_ROWS, b"x" * 300_000)
    request = make.request("", capability=0, wants_annotate_rows=False)
    group = make.group("0-1-1", pieces=[*make.cut(annotation, 16_380), make.event(EventType.XID, bytes(8))])
    _, event, _ = sent(converse(request, profile=profile), group)
    assert len(event) == len(annotation) + 4
    assert without_checksum(event)[33:].endswith(b"that slave cannot handle." + b" " * (300_000 - 14 - 64))


def test_marked_events_are_left_out_after_skip_replication(make, converse) -> None:
    marked = make.event(EventType.WRITE_ROWS_V1, bytes(20), flags=EventFlag.SKIP_REPLICATION)
    large = make.event(EventType.WRITE_ROWS_V1, bytes(200_000), flags=EventFlag.SKIP_REPLICATION)
    rest = make.event(EventType.XID, bytes(8))

    whole = ["GTID", "WRITE_ROWS_V1", "WRITE_ROWS_V1", "XID"]
    for leaves_out, flags, expected in ((True, 0x8008, ["XID"]), (True, 0x8, ["GTID", "XID"]), (False, 0x8008, whole)):
        for profile in ("engine", "classic-11.8"):
            dump = converse(make.request("", leaves_out_marked=leaves_out), profile=profile)
            assert kinds(sent(dump, make.group("0-1-1", marked, large, rest, flags=flags))) == expected


@pytest.mark.parametrize(("capability", "expected"), [(0, "QUERY"), (1, "QUERY"), (2, None), (3, None), (4, "GTID")])
def test_the_gtid_of_a_stand_alone_group_for_old_replicas(make, converse, capability, expected) -> None:
    query = make.event(EventType.QUERY, QUERY_BODY + b"CREATE TABLE t (a INT)")
    group = make.group("0-1-1", query, group_flags=make.STANDALONE)
    events = sent(converse(make.request("", capability=capability)), group)
    assert events[-1] == query
    assert kinds(events[:-1]) == ([] if expected is None else [expected])
    if expected == "QUERY":
        assert events[0][33:] == b"# Dum"
        assert len(events[0]) == 38


@pytest.mark.parametrize("capability", [0, 1, 2, 3])
def test_the_gtid_of_a_transaction_is_begin_for_old_replicas(make, converse, capability) -> None:
    group = make.group("0-1-1")
    event, *_ = sent(converse(make.request("", capability=capability)), group)
    assert event[19:] == bytes(14) + b"BEGIN"
    assert len(event) == len(group.gtid_event)


# the recorded packet: 11.8.6 to a client of capability 0, group 0-1-3, ending at offset 656
RECORDED_BEGIN = bytes.fromhex("42bc006b02010000002a0000009002000008000000000000000000000000000000424547494ee87c48e9")


def test_begin_has_position_and_checksum_as_recorded(make, converse) -> None:
    dump = converse(make.request("", capability=0), profile="classic-11.8", file_name="binlog.000001")
    dump.session._rewriter.position = 656 - 42
    dump.send(make.group("0-1-3", make.event(EventType.XID, bytes(8)), file_name="binlog.000001"))
    event = next(event for event in dump.events() if b"BEGIN" in event)
    assert event[4:-4] == RECORDED_BEGIN[4:-4]
    assert zlib.crc32(RECORDED_BEGIN[:-4]).to_bytes(4, "little") == RECORDED_BEGIN[-4:]


@pytest.mark.parametrize(
    ("capability", "expected"),
    [(0, ["USER_VAR", "QUERY"]), (1, ["USER_VAR", "QUERY"]), (2, []), (3, ["BINLOG_CHECKPOINT"])],
)
def test_the_head_of_a_traditional_file_for_old_replicas(make, converse, capability, expected) -> None:
    dump = converse(make.request("", capability=capability), profile="classic-11.8", file_name="binlog.000001")
    events = dump.events()
    assert kinds(events) == ["ROTATE", "FORMAT_DESCRIPTION", *expected]
    if capability == 0:  # the sizes, positions and bodies recorded
        user_var, query = events[2:]
        assert user_var[9:17] + user_var[19:25] == bytes.fromhex("1d000000 1d010000 010000002101")
        assert query[9:17] + query[-7:-4] == bytes.fromhex("28000000 45010000 232044")


def test_the_artificial_list_goes_to_old_replicas_too_as_recorded(make, converse) -> None:
    events = sent(converse(make.request("0-1-1", capability=1), current_state="0-1-1"), make.group("0-1-1"))
    assert kinds(events) == ["GTID_LIST"]


def events_of_file(path: Path) -> list[bytes]:
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    return divide_events(data[4:])


SAME_HEAD = DATA["same_head"]  # files whose head is as long as ours, so that all positions must be equal too
HEAD_AND_TAIL = {
    EventType.FORMAT_DESCRIPTION,
    EventType.GTID_LIST,
    EventType.BINLOG_CHECKPOINT,
    EventType.ROTATE,
    EventType.STOP,
}


@pytest.mark.parametrize("name", SAME_HEAD)
def test_the_stream_of_a_captured_file_has_its_events_with_positions_and_checksums(name, make, converse) -> None:
    path = CAPTURES / name
    reader = ClassicReader(find_series([path]))
    dump = converse(
        make.request(None),
        profile="classic-" + name.split("/")[0],
        start_state=str(reader.initial_state),
        file_name=lambda file_no: path.name,
    )
    for group in reader.groups():
        dump.send(group)
    ours = [event for event in dump.events() if event[4] not in HEAD_AND_TAIL]
    assert ours == [event for event in events_of_file(path) if event[4] not in HEAD_AND_TAIL]


@pytest.mark.parametrize("release", ["10.11", "11.8"])
def test_the_head_of_a_file_is_that_of_a_captured_one(release, make, converse) -> None:
    path = CAPTURES / release / "types-full-crc32" / "binlog.000001"
    theirs = events_of_file(path)[:3]
    started_at = decode_event_header(theirs[0]).timestamp
    dump = converse(
        make.request(None),
        profile=PROFILES["classic-" + release].with_version(decode_format_description(theirs[0]).server_version),
        file_name=path.name,
        started_at=started_at,
    )
    rotate, first, *rest = dump.events()
    assert rest == theirs[1:]
    # as on disk, but for `created`: a replica shall keep its temporary tables
    assert first[:71] + first[75:-4] == theirs[0][:71] + theirs[0][75:-4]
    assert decode_format_description(first).created == 0
    assert not has_valid_checksum(rotate)


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
def test_a_file_ends_with_its_rotate_and_the_next_begins_with_a_head(make, converse, profile) -> None:
    dump = converse(make.request("0-1-1"), profile=profile, start_state="0-1-1", file_name="b.000001")
    events = sent(dump, make.group("0-1-2", file_name="b.000001"), make.group("0-1-3", file_name="b.000002"))
    change = events[5:10]
    assert kinds(change) == ["ROTATE", "ROTATE", "FORMAT_DESCRIPTION", "GTID_LIST", "BINLOG_CHECKPOINT"]
    real, artificial, first, listed, checkpoint = map(decode_event_header, change)
    assert (real.flags, artificial.flags, artificial.timestamp, artificial.log_pos) == (0, EventFlag.ARTIFICIAL, 0, 0)
    assert real.timestamp == 0x6A000000
    assert real.log_pos == decode_event_header(events[4]).log_pos + real.size
    assert all(has_valid_checksum(event) for event in change)
    assert change[0][19:-4] == change[1][19:-4] == (4).to_bytes(8, "little") + b"b.000002"
    assert [first.log_pos, listed.log_pos, checkpoint.log_pos] == [256, 256 + 43, 256 + 43 + 35]
    assert [str(gtid) for gtid in decode_gtid_list(without_checksum(change[3])).gtids] == ["0-1-2"]
    assert kinds(events[10:11]) == ["GTID"]


def test_a_client_that_never_set_the_checksum_variable_gets_the_rotate_and_an_error(make, converse) -> None:
    request = make.request(None, knows_checksums=False, file_name="binlog.000001")
    dump = converse(request, profile="classic-11.8", file_name="binlog.000001")
    dump.send(make.group("0-1-1"))
    rotate, error = dump.payloads()
    assert rotate[5] == EventType.ROTATE
    assert error[9:].decode() == (  # as recorded
        "Slave can not handle replication events with the checksum that master is configured to log; the first event "
        "'binlog.000001' at 4, the last event read from 'binlog.000001' at 4, the last byte read from 'binlog.000001' "
        "at 256."
    )


@pytest.fixture
def file_dump(make, converse) -> Callable[..., Any]:
    def dump_from(position: int, count: int = 3, file_name: str = "binlog.000001") -> Any:
        request = make.request(None, file_name=file_name, file_position=position)
        dump = converse(request, profile="classic-11.8", file_name=file_name)
        events = make.event(EventType.WRITE_ROWS_V1, bytes(150_000)), make.event(EventType.XID, bytes(8))
        groups = (
            make.group("0-1-1", file_name=file_name),
            make.group("0-1-2", *events, file_name="binlog.000001"),
            make.group("0-1-3", file_name="binlog.000002"),
        )
        dump.send(*groups[:count])
        return dump

    return dump_from


def test_an_offset_begins_the_stream_at_any_event_of_the_file(file_dump) -> None:
    events = file_dump(4).events()
    offset, offsets = 4, []
    for event in events[1:]:
        offsets.append(offset)
        offset += len(event)
        if event[4] == EventType.ROTATE:
            break
    assert len(offsets) == 3 + 5 + 3 + 1
    for index, start in enumerate(offsets[1:], 2):
        rotate, first, *rest = file_dump(start).events()
        assert int.from_bytes(rotate[19:27], "little") == start
        assert decode_event_header(first).log_pos == 0  # as recorded: the head of another place
        assert rest == events[index:]


@pytest.mark.parametrize("position", [5, 255, 300, 330, 368, 700, 100_000])
def test_an_offset_inside_an_event_is_refused(file_dump, position) -> None:
    dump = file_dump(position)
    text = dump.payloads()[-1][9:].decode()
    assert text.startswith(
        "binlog truncated in the middle of event; consider out of disk space on master; the first event "
        f"'binlog.000001' at {position}, the last event read from 'binlog.000001' at "
    )
    assert "lies inside the event" in dump.session.error.explanation


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_an_offset_behind_the_end_of_the_file_is_refused(file_dump, groups) -> None:
    dump = file_dump(10_000_000, groups)
    dump.reach_end()
    assert dump.payloads()[-1][9:].decode() == (
        "Client requested master to start replication from impossible position; the first event 'binlog.000001' at "
        "10000000, the last event read from 'binlog.000001' at 4, the last byte read from 'binlog.000001' at 4."
    )


@pytest.mark.parametrize("position", [300, 10_000_000])
def test_who_asks_for_an_offset_as_show_gives_it_for_ibb_files_is_told_what_to_do(file_dump, position) -> None:
    dump = file_dump(position, 1, "binlog-000000.ibb")
    dump.reach_end()
    assert dump.payloads()[-1].endswith(
        b". (SHOW gives offsets in .ibb files, which the stream does not count: "
        b"begin at 4, at a position it gave, or by GTID)"
    )


def test_an_offset_at_the_very_end_waits_for_what_comes(file_dump) -> None:
    dump = file_dump(file_dump(4, 2).session._rewriter.position, 2)
    dump.reach_end()
    assert not dump.session.is_finished
    assert kinds(dump.events()) == ["ROTATE", "FORMAT_DESCRIPTION"]


def header_of(event_type: int, size: int, log_pos: int = 0, flags: int = 0) -> EventHeader:
    return EventHeader(0x6B00BC42, event_type, 1, size, log_pos, flags)


def with_checksum_size(event: bytes) -> bytes:
    """The sizes in the recorded bytes count a checksum that was cut off here."""
    header = decode_event_header(event)
    return HEADER.pack(*header._replace(size=header.size + 4)) + event[19:]


@pytest.mark.parametrize(("event_type", "size", "log_pos", "expected"), DUMMIES.values(), ids=DUMMIES)
def test_a_dummy_has_the_size_of_what_it_replaces(event_type: int, size: int, log_pos: int, expected: str) -> None:
    dummy = dummy_for(header_of(event_type, size, log_pos))
    assert len(dummy) == size
    assert with_checksum_size(dummy) == bytes.fromhex(expected)


@pytest.mark.parametrize("size", range(19, 120))
def test_every_size_from_25_on_can_be_replaced(size: int) -> None:
    dummy = dummy_for(header_of(161, size))
    assert (dummy is None) == (size < 25)
    if dummy is not None:
        assert len(dummy) <= size
        assert decode_event_header(dummy).event_type == (EventType.USER_VAR if size < 34 else EventType.QUERY)


@pytest.mark.parametrize(
    ("size", "text"), [(40, b"# Dummy"), (1000, b"# Dummy event replacing event type 160 that slave cannot handle.")]
)
def test_a_dummy_says_what_it_replaces_if_it_has_room_and_is_filled_by_the_caller(size: int, text: bytes) -> None:
    dummy = dummy_for(header_of(160, size))
    assert dummy[19:] == bytes(14) + text
    assert decode_event_header(dummy).size == size


def test_the_gtid_of_a_transaction_becomes_begin_if_it_has_room_with_padding_in_its_status() -> None:
    assert with_checksum_size(begin_for(header_of(162, 38, 656, EventFlag.SUPPRESS_USE))) == recorded("begin")
    begin = begin_for(header_of(162, 40, 0, EventFlag.THREAD_SPECIFIC | EventFlag.SKIP_REPLICATION))
    assert begin[19:] == bytes(11) + b"\x02\x00" + b"\xff\xff" + b"\0BEGIN"
    assert decode_event_header(begin).flags == EventFlag.SUPPRESS_USE | EventFlag.SKIP_REPLICATION
    assert decode_event_header(begin).size == len(begin) == 40
    assert begin_for(header_of(162, 37)) is None  # no room
