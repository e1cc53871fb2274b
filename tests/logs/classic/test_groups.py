import random
import struct
import tracemalloc
import zlib
from contextlib import closing
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest

from ibbmaster.errors import ClassicFormatError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic import groups as classic_file
from ibbmaster.logs.classic.groups import ClassicFileReader
from ibbmaster.logs.classic.series import find_series
from ibbmaster.logs.classic.window import EventWindow
from tests.built_logs import CLASSIC, ClassicFileBuilder
from tests.case_table import rows_of
from tests.machinery.events import group_events

SMALL = {
    "with checksums": "11.8/checksum-switch/binlog.000005",
    "without checksums": "11.8/checksum-switch/binlog.000004",
    "a transaction in its next file": "11.8/large-commit/binlog.000001",
    "left by a crash": "11.8/crashed/binlog.000002",
}
LEFT_BY_A_CRASH = SMALL["left by a crash"]
FORMAT_DESCRIPTION, STOP, ROTATE, XID, TABLE_MAP, GTID, GTID_LIST = 15, 3, 4, 16, 19, 162, 163


def groups_by_hand(data):
    """The groups of a file, found without the package: what an engine binlog holds of it."""
    groups: list[bytes] = []
    for event in group_events(data):
        if event[4] == GTID:
            groups.append(b"")
        groups[-1] += event
    return groups


def opened(path):
    return closing(ClassicFileReader(find_series([path])[0]))


def read(path):
    with opened(path) as reader:
        return [b"".join(map(bytes, (group.gtid_event, *group.body))) for group in reader.groups()], reader.notice


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "binlog.000001"


def make(path, *events, with_checksums=True, in_use=False):
    """A traditional file with these events: type, body, and what is wrong in their headers."""
    file = ClassicFileBuilder(with_checksums=with_checksums)
    file.data[4 + 17] |= in_use
    for event_type, body, *said in events:
        file.add(event_type, body, **dict(*said))
    path.write_bytes(file.data)
    return bytes(file.data)


def gtid(seq_no, flags=0, rest=bytes(6)):
    return GTID, struct.pack("<QIB", seq_no, 0, flags) + rest


BEGINS = rows_of(__file__, "begins")
LIST, END = (GTID_LIST, bytes(6)), (XID, bytes(8))


@pytest.mark.parametrize("block_size", [1, 18, 19, 20, 23, 100, 4096])
@pytest.mark.parametrize("name", SMALL.values(), ids=SMALL)
def test_it_makes_no_difference_how_much_is_read_at_once(monkeypatch, name, block_size):
    monkeypatch.setattr(classic_file, "EventWindow", partial(EventWindow, block_size=block_size))
    with opened(CLASSIC / name) as reader:
        groups = [b"".join(map(bytes, (group.gtid_event, *group.body))) for group in reader.groups()]
        assert reader.window.source.bytes_read == (CLASSIC / name).stat().st_size
    assert groups == groups_by_hand((CLASSIC / name).read_bytes())


def test_the_head_tells_state_use_and_restart():
    with opened(CLASSIC / LEFT_BY_A_CRASH) as reader:
        assert reader.head.state == GtidState.parse("0-1-83")
        assert reader.head.state_offset == 256
        assert reader.window.is_in_use
        assert not reader.head.is_restart
    with opened(CLASSIC / "11.8/vectors/binlog.000001") as reader:
        assert reader.head.state == GtidState()
        assert not reader.window.is_in_use
        assert reader.head.is_restart


def test_a_group_knows_where_it_stands_and_its_body_may_be_passed_over():
    with opened(CLASSIC / SMALL["without checksums"]) as reader:
        groups = list(reader.groups())
    assert all(before.end == after.start for before, after in pairwise(groups))
    assert {group.start.file_no for group in groups} == {0}
    path = CLASSIC / "11.8/large-commit/binlog.000002.xz"
    with opened(path) as reader:
        assert [str(group.gtid) for group in reader.groups()] == ["0-1-4", "0-1-5", "0-1-6"]


@pytest.mark.parametrize("name", SMALL.values(), ids=SMALL)
def test_a_file_cut_at_any_byte_gives_a_prefix_or_an_error(copy, name):
    whole = (CLASSIC / name).read_bytes()
    groups, _ = read(CLASSIC / name)
    head_size, prefix_count = 4 + struct.unpack_from("<I", whole, 4 + 9)[0], 0
    errors: dict[int, ClassicFormatError] = {}
    for size in range(len(whole)):
        copy.write_bytes(whole[:size])
        try:
            found, notice = read(copy)
        except ClassicFormatError as error:
            errors[size] = error
            continue
        prefix_count += 1
        assert found == groups[: len(found)]
        assert notice is None or name == LEFT_BY_A_CRASH
    assert prefix_count >= len(groups)
    assert {error.file_name for error in errors.values()} == {copy.name}
    if name == LEFT_BY_A_CRASH:
        assert max(errors) < head_size + 100, "only the head of a file in use must be whole"


def test_of_a_file_in_use_an_unfinished_group_is_left_out_with_a_notice(copy):
    whole = (CLASSIC / LEFT_BY_A_CRASH).read_bytes()
    groups, _ = read(CLASSIC / LEFT_BY_A_CRASH)
    copy.write_bytes(whole[:-1])
    found, notice = read(copy)
    assert found == groups[:-1]
    with opened(CLASSIC / LEFT_BY_A_CRASH) as reader:
        *_, last = reader.groups()
    assert notice.startswith(f"binlog.000001 offset {last.start.offset}: ")
    assert "left out" in notice


@pytest.mark.parametrize("zeros", [1, 18, 19, 4096, 3_000_000])
def test_zeros_at_the_end_of_a_file_in_use_are_no_damage(copy, zeros):
    whole = (CLASSIC / LEFT_BY_A_CRASH).read_bytes()
    copy.write_bytes(whole + bytes(zeros))
    found, notice = read(copy)
    assert found == groups_by_hand(whole)
    assert notice.startswith(f"binlog.000001 offset {len(whole)}: ")


def test_bytes_behind_the_last_event_are_damage(copy):
    for name in (SMALL["with checksums"], SMALL["without checksums"]):  # STOP and ROTATE
        copy.write_bytes((CLASSIC / name).read_bytes() + b"\0")
        with pytest.raises(ClassicFormatError, match=r"bytes after the (STOP|ROTATE) event that ends the file"):
            read(copy)
    copy.write_bytes((CLASSIC / LEFT_BY_A_CRASH).read_bytes() + bytes(2_000_000) + b"\1")
    with pytest.raises(ClassicFormatError, match="type 0 event of 0 bytes"):
        read(copy)


def test_each_flipped_bit_of_a_file_with_checksums_is_found(copy):
    whole = (CLASSIC / SMALL["with checksums"]).read_bytes()
    expected = groups_by_hand(whole)
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            copy.write_bytes(damaged)
            if (position, bit) == (4 + 17, 0):  # the flag "in use" is not covered by the checksum
                assert read(copy) == (expected, None)
                continue
            with pytest.raises(ClassicFormatError) as caught:
                read(copy)
    stored, computed = struct.unpack("<I", damaged[-4:])[0], zlib.crc32(whole[-23:-4])  # of the last byte
    problem = f"event checksum is {stored:08x}, its bytes give {computed:08x}"
    assert str(caught.value) == f"binlog.000001 offset {len(whole) - 23}: {problem}"


def test_a_flipped_bit_of_a_file_in_use_is_found_or_leaves_out_a_tail_with_a_notice(copy):
    whole = (CLASSIC / LEFT_BY_A_CRASH).read_bytes()
    expected = groups_by_hand(whole)
    rng = random.Random(random.randrange(2**32))
    for position in range(len(whole)):
        damaged = bytearray(whole)
        bit = rng.randrange(8)
        damaged[position] ^= 1 << bit
        copy.write_bytes(damaged)
        try:
            found, notice = read(copy)
        except ClassicFormatError:
            continue
        if (position, bit) == (4 + 17, 0):
            assert (found, notice) == (expected, None)
        else:
            assert found == expected[: len(found)]
            assert notice is not None, (position, bit)


def test_damage_of_a_file_without_checksums_never_gives_another_error(copy):
    whole = (CLASSIC / SMALL["without checksums"]).read_bytes()
    rng = random.Random(random.randrange(2**32))
    texts: list[str] = []
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 3])):
            damaged[rng.randrange(len(whole))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        copy.write_bytes(damaged)
        try:
            read(copy)
        except ClassicFormatError as error:
            texts.append(str(error))
    assert len(texts) > 1000
    assert all(text.startswith("binlog.000001 offset ") for text in texts)


@pytest.mark.parametrize(("name", "data", "problem"), BEGINS, ids=[row[0] for row in BEGINS])
def test_a_file_that_does_not_begin_as_a_binlog_is_refused(copy, name, data, problem):
    copy.write_bytes(bytes.fromhex(data))
    with pytest.raises(ClassicFormatError, match=f"^binlog.000001 offset [04]: .*{problem}"):
        read(copy)


UNENDED = "event where the event group before it has not ended"
TOO_LARGE = (TABLE_MAP, bytes(20), {"size": 0xFFFFFF00, "log_pos": 0})
CUT = [(0x02, bytes(6)), (0x40, struct.pack("<IBB", 1, 64, 64)), (0x40, struct.pack("<IBB", 1, 65, 0) + bytes(80))]
MISPLACED = {
    "an event that ends elsewhere than it says": (
        [(GTID_LIST, bytes(6), {"log_pos": 1000})],
        "this event ends at offset 285, but says 1000",
    ),
    "a group without a list before it": ([gtid(1)], "no GTID_LIST event before it"),
    **{
        f"an event of type {event_type} in no group": (
            [LIST, (event_type, bytes(20))],
            rf"^binlog\.000001 offset 285: .*{problem}",
        )
        for event_type, problem in {
            2: "QUERY event outside of an event group",
            15: "FORMAT_DESCRIPTION event outside of an event group",
            26: "INCIDENT event: the server may have lost events here",
            33: "a GTID of MySQL",
            99: "type 99 event outside of an event group",
        }.items()
    },
    **{
        f"a group that an event of type {event_type} interrupts": (
            [LIST, gtid(1), (event_type, bytes(20))],
            rf"{UNENDED}|is unknown",
        )
        for event_type in (GTID, STOP, ROTATE, GTID_LIST, FORMAT_DESCRIPTION, 33, 161)
    },
    "an unknown event in a group": ([LIST, gtid(1), (99, b"")], "type 99 event is unknown"),
    **{
        f"a GTID event whose flags promise what is not there, {number}": ([LIST, gtid(1, flags, rest)], "GTID event")
        for number, (flags, rest) in enumerate(CUT)
    },
    "an event of an impossible size": ([LIST, gtid(1), TOO_LARGE], "TABLE_MAP event of 4294967040 bytes"),
    "a large event around groups": (
        [LIST, (GTID, b"", {"size": 1 << 30, "log_pos": 0})],
        "GTID event of 1073741824 bytes outside",
    ),
}


@pytest.mark.parametrize(("events", "problem"), MISPLACED.values(), ids=MISPLACED)
def test_an_event_that_cannot_stand_where_it_does_is_refused(copy, events, problem):
    for in_use in (False, True) if TOO_LARGE in events else (False,):
        make(copy, *events, in_use=in_use)
        with pytest.raises(ClassicFormatError, match=problem):
            read(copy)


LARGE = 3 * classic_file.LARGE_EVENT_SIZE + 17


def make_large(path, *, with_checksums, in_use):
    """Groups 1 and 3 are small, 2 has three events, the second of them large."""
    large = (23, random.Random(1).randbytes(LARGE), {"log_pos": 0})
    second = gtid(2), (TABLE_MAP, b"table"), large, END
    events = [LIST, gtid(1), END, *second, gtid(3, 1), (2, bytes(40))]
    return make(path, *events, with_checksums=with_checksums, in_use=in_use)


@pytest.mark.parametrize("with_checksums", [False, True])
@pytest.mark.parametrize("in_use", [False, True])
def test_a_large_event_comes_in_pieces(copy, with_checksums, in_use):
    whole = make_large(copy, with_checksums=with_checksums, in_use=in_use)
    assert read(copy) == (groups_by_hand(whole), None)


def test_of_a_large_event_without_a_checksum_none_is_computed(copy, monkeypatch):
    make_large(copy, with_checksums=False, in_use=False)
    sizes: list[int] = []

    def crc32(data, value=0):
        sizes.append(len(data))
        return zlib.crc32(data, value)

    monkeypatch.setattr(classic_file, "zlib", SimpleNamespace(crc32=crc32))
    assert len(read(copy)[0]) == 3
    assert max(sizes, default=0) < 100


@pytest.mark.parametrize("in_use", [False, True])
def test_a_damaged_large_event_is_found_when_its_group_is_read(copy, in_use):
    whole = bytearray(make_large(copy, with_checksums=True, in_use=in_use))
    whole[-1000] ^= 1
    copy.write_bytes(whole)
    with pytest.raises(ClassicFormatError, match="event checksum is"):
        read(copy)


def test_a_large_group_of_a_file_in_use_is_delivered_only_if_it_is_complete(copy):
    whole = make_large(copy, with_checksums=True, in_use=True)
    groups = groups_by_hand(whole)
    third = len(whole) - len(groups[2]) - 8
    for size in (third - 1, third - 31, third - 32, third - 2000, third - LARGE):
        copy.write_bytes(whole[:size])
        found, notice = read(copy)
        assert found == groups[:1]
        assert notice is not None
    copy.write_bytes(whole[:third])
    assert read(copy) == (groups[:2], None)


def test_a_large_group_cut_short_in_a_closed_file_is_an_error_from_its_body(copy):
    copy.write_bytes(make_large(copy, with_checksums=True, in_use=False)[:-2000])
    with opened(copy) as reader:
        groups = reader.groups()
        next(groups)
        second = next(groups)
        with pytest.raises(ClassicFormatError, match="the file ends inside what begins here"):
            list(second.body)


@pytest.mark.usefixtures("alone")
def test_memory_does_not_grow_with_an_event(copy):
    size = 19 + (40 << 20)
    make(copy, LIST, gtid(1), (23, bytes(size - 19)), END, with_checksums=False)
    tracemalloc.start()
    with opened(copy) as reader:
        read_bytes = sum(len(piece) for group in reader.groups() for piece in group.body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read_bytes == size + 27
    assert peak < 8 << 20
