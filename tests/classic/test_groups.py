"""One traditional binlog file: what is delivered of it, byte by byte, and what is refused."""

import random
import struct
import tracemalloc
import zlib
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from ibbmaster.classic import groups as classic_file
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.series import find_series
from ibbmaster.errors import ClassicFormatError
from ibbmaster.gtid import GtidState

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"
FILES = sorted(
    path.relative_to(CLASSIC).as_posix()
    for path in CLASSIC.glob("*/*/binlog.[0-9]*[0-9]")
    if path.parent.name != "encrypted"
)
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
    with_checksums = data[4 + struct.unpack_from("<I", data, 4 + 9)[0] - 5]
    groups: list[bytes] = []
    position = 4
    while position < len(data):
        (size,) = struct.unpack_from("<I", data, position + 9)
        event_type = data[position + 4]
        if event_type == GTID:
            groups.append(b"")
        if event_type not in (FORMAT_DESCRIPTION, STOP, ROTATE, GTID_LIST, 161):
            end = position + size - 4 * with_checksums
            groups[-1] += (
                data[position : position + 9] + struct.pack("<II", end - position, 0) + data[position + 17 : end]
            )
        position += size
    return groups


def read(path):
    """The groups the package finds, and its notice."""
    with closing(ClassicFileReader(find_series([path])[0])) as reader:
        return [b"".join(map(bytes, (group.gtid_event, *group.body))) for group in reader.groups()], reader.notice


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "binlog.000001"


class Maker:
    """Writes a traditional binlog file event by event; its head is that of a captured file."""

    def __init__(self, path, *, with_checksums=True, in_use=False):
        source = CLASSIC / SMALL["with checksums" if with_checksums else "without checksums"]
        head = bytearray(source.read_bytes()[: 4 + 19 + 2 + 50 + 4 + 1 + 171 + 1 + 4])
        assert zlib.crc32(head[4:]) == 0x2144DF1C
        head[4 + 17] |= in_use
        self.path, self.with_checksums = path, with_checksums
        path.write_bytes(head)

    def add(self, event_type, body, *, size=None, log_pos=None):
        offset = self.path.stat().st_size
        size = 19 + len(body) + 4 * self.with_checksums if size is None else size
        end = (offset + size) & 0xFFFFFFFF if log_pos is None else log_pos
        event = struct.pack("<IBIIIH", 1700000000, event_type, 1, size, end, 0) + body
        with self.path.open("ab") as stream:
            stream.write(event + (struct.pack("<I", zlib.crc32(event)) if self.with_checksums else b""))

    def add_list(self):
        self.add(GTID_LIST, bytes(6))

    def add_gtid(self, seq_no, *, standalone=False):
        self.add(GTID, struct.pack("<QIB", seq_no, 0, 1 if standalone else 0) + bytes(6))

    def add_xid(self):
        self.add(XID, bytes(8))


@pytest.mark.parametrize("name", FILES)
def test_events_are_unchanged_but_for_checksum_size_and_log_pos(name):
    groups, notice = read(CLASSIC / name)
    assert groups == groups_by_hand((CLASSIC / name).read_bytes())
    assert notice is None


@pytest.mark.parametrize("block_size", [1, 18, 19, 20, 23, 100, 4096])
@pytest.mark.parametrize("name", SMALL.values(), ids=SMALL)
def test_it_makes_no_difference_how_much_is_read_at_once(name, block_size):
    with closing(ClassicFileReader(find_series([CLASSIC / name])[0], block_size=block_size)) as reader:
        groups = [b"".join(map(bytes, (group.gtid_event, *group.body))) for group in reader.groups()]
        assert reader.bytes_read == (CLASSIC / name).stat().st_size
    assert groups == groups_by_hand((CLASSIC / name).read_bytes())


def test_the_head_tells_state_use_and_restart():
    with closing(ClassicFileReader(find_series([CLASSIC / LEFT_BY_A_CRASH])[0])) as reader:
        assert reader.head.state == GtidState.parse("0-1-83")
        assert reader.head.state_offset == 256
        assert reader.is_in_use
        assert not reader.head.is_restart
    with closing(ClassicFileReader(find_series([CLASSIC / "11.8/vectors/binlog.000001"])[0])) as reader:
        assert reader.head.state == GtidState()
        assert not reader.is_in_use
        assert reader.head.is_restart


def test_a_group_knows_where_it_stands():
    with closing(ClassicFileReader(find_series([CLASSIC / SMALL["without checksums"]])[0])) as reader:
        groups = list(reader.groups())
    assert all(before.end == after.start for before, after in pairwise(groups))
    assert {group.start.file_no for group in groups} == {0}


def test_bodies_that_nobody_takes_are_passed_over():
    path = CLASSIC / "11.8/large-commit/binlog.000002.xz"
    with closing(ClassicFileReader(find_series([path])[0])) as reader:
        assert [str(group.gtid) for group in reader.groups()] == ["0-1-4", "0-1-5", "0-1-6"]


# Files cut short -----------------------------------------------------------------------------


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
    with closing(ClassicFileReader(find_series([CLASSIC / LEFT_BY_A_CRASH])[0])) as reader:
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


def test_zeros_and_then_something_are_damage_also_in_a_file_in_use(copy):
    copy.write_bytes((CLASSIC / LEFT_BY_A_CRASH).read_bytes() + bytes(2_000_000) + b"\1")
    with pytest.raises(ClassicFormatError, match="type 0 event of 0 bytes"):
        read(copy)


def test_bytes_behind_the_last_event_are_damage(copy):
    for name in (SMALL["with checksums"], SMALL["without checksums"]):  # STOP and ROTATE
        copy.write_bytes((CLASSIC / name).read_bytes() + b"\0")
        with pytest.raises(ClassicFormatError, match=r"bytes after the (STOP|ROTATE) event that ends the file"):
            read(copy)


# Damage --------------------------------------------------------------------------------------


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
            with pytest.raises(ClassicFormatError):
                read(copy)


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


def test_a_wrong_checksum_is_shown_beside_the_right_one(copy):
    whole = bytearray((CLASSIC / SMALL["with checksums"]).read_bytes())
    whole[-1] ^= 0xFF
    copy.write_bytes(whole)
    stored, computed = struct.unpack("<I", whole[-4:])[0], zlib.crc32(whole[-23:-4])
    with pytest.raises(ClassicFormatError) as caught:
        read(copy)
    problem = f"event checksum is {stored:08x}, its bytes give {computed:08x}"
    assert str(caught.value) == f"binlog.000001 offset {len(whole) - 23}: {problem}"


def test_an_event_that_ends_elsewhere_than_it_says_is_damage(copy):
    Maker(copy).add(GTID_LIST, bytes(6), log_pos=1000)
    with pytest.raises(ClassicFormatError, match="this event ends at offset 285, but says 1000"):
        read(copy)


# What must stand where -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file ends inside its head"),
        (b"\xfebi", "the file ends inside its head"),
        (b"\xfd7zXZ\0", r"its name must end in \.xz"),
        (b"\xfe\xfe\x0d\x01", r"an \.ibb file already"),
        (b"\xfdbin", "encrypted by MySQL"),
        (b"text", "begins with 74 65 78 74, expected fe 62 69 6e"),
        (b"\xfebin" + struct.pack("<IBIIIH", 0, 15, 1, 4000, 0, 0), "the file ends inside its head"),
        (b"\xfebin" + struct.pack("<IBIIIH", 0, 15, 1, 1 << 20, 0, 0), "FORMAT_DESCRIPTION event of 1048576 bytes"),
        (b"\xfebin" + struct.pack("<IBIIIH", 0, 1, 1, 75, 0, 0) + bytes(56), "START_V3 event of 75 bytes where"),
        (b"\xfebin" + struct.pack("<IBIIIH", 0, 15, 1, 18, 0, 0), "FORMAT_DESCRIPTION event of 18 bytes"),
    ],
)
def test_a_file_that_does_not_begin_as_a_binlog_is_refused(copy, data, problem):
    copy.write_bytes(data)
    with pytest.raises(ClassicFormatError, match=f"^binlog.000001 offset [04]: .*{problem}"):
        read(copy)


def test_a_group_needs_a_gtid_list_before_it(copy):
    Maker(copy).add_gtid(1)
    with pytest.raises(ClassicFormatError, match="no GTID_LIST event before it"):
        read(copy)


@pytest.mark.parametrize(
    ("event_type", "problem"),
    [
        (2, "QUERY event outside of an event group"),
        (15, "FORMAT_DESCRIPTION event outside of an event group"),
        (26, "INCIDENT event: the server may have lost events here"),
        (33, "a GTID of MySQL"),
        (99, "type 99 event outside of an event group"),
    ],
)
def test_an_event_that_belongs_to_no_group_is_refused(copy, event_type, problem):
    maker = Maker(copy)
    maker.add_list()
    maker.add(event_type, bytes(20))
    with pytest.raises(ClassicFormatError, match=f"^binlog.000001 offset 285: .*{problem}"):
        read(copy)


@pytest.mark.parametrize("event_type", [GTID, STOP, ROTATE, GTID_LIST, FORMAT_DESCRIPTION, 33, 161])
def test_a_group_that_another_one_interrupts_is_refused(copy, event_type):
    maker = Maker(copy)
    maker.add_list()
    maker.add_gtid(1)
    maker.add(event_type, bytes(20))
    with pytest.raises(ClassicFormatError, match=r"event where the event group before it has not ended|is unknown"):
        read(copy)


def test_an_unknown_event_inside_a_group_is_refused(copy):
    maker = Maker(copy)
    maker.add_list()
    maker.add_gtid(1)
    maker.add(99, b"")
    with pytest.raises(ClassicFormatError, match="type 99 event is unknown"):
        read(copy)


@pytest.mark.parametrize(
    ("flags", "rest"),
    [(0x02, bytes(6)), (0x40, struct.pack("<IBB", 1, 64, 64)), (0x40, struct.pack("<IBB", 1, 65, 0) + bytes(80))],
)
def test_a_gtid_event_whose_flags_promise_fields_that_are_not_there_is_refused(copy, flags, rest):
    maker = Maker(copy)
    maker.add_list()
    maker.add(GTID, struct.pack("<QIB", 1, 0, flags) + rest)
    with pytest.raises(ClassicFormatError, match="GTID event"):
        read(copy)


def test_an_event_of_an_impossible_size_is_refused(copy):
    for in_use in (False, True):
        maker = Maker(copy, in_use=in_use)
        maker.add_list()
        maker.add_gtid(1)
        maker.add(TABLE_MAP, bytes(20), size=0xFFFFFF00, log_pos=0)
        with pytest.raises(ClassicFormatError, match="TABLE_MAP event of 4294967040 bytes"):
            read(copy)


def test_a_large_event_around_groups_is_refused_before_it_is_read(copy):
    maker = Maker(copy)
    maker.add_list()
    maker.add(GTID, b"", size=1 << 30, log_pos=0)
    with pytest.raises(ClassicFormatError, match="GTID event of 1073741824 bytes outside"):
        read(copy)


# Large events --------------------------------------------------------------------------------

LARGE = 3 * classic_file.LARGE_EVENT_SIZE + 17


def make_large(path, *, with_checksums, in_use):
    """Groups 1 and 3 are small, 2 has three events, the second of them large."""
    maker = Maker(path, with_checksums=with_checksums, in_use=in_use)
    maker.add_list()
    maker.add_gtid(1)
    maker.add_xid()
    maker.add_gtid(2)
    maker.add(TABLE_MAP, b"table")
    maker.add(23, random.Random(1).randbytes(LARGE), log_pos=0)
    maker.add_xid()
    maker.add_gtid(3, standalone=True)
    maker.add(2, bytes(40))
    return path.read_bytes()


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
    with closing(ClassicFileReader(find_series([copy])[0])) as reader:
        groups = reader.groups()
        next(groups)
        second = next(groups)
        with pytest.raises(ClassicFormatError, match="the file ends inside what begins here"):
            for _ in second.body:
                pass


@pytest.mark.usefixtures("alone")
def test_memory_does_not_grow_with_an_event(copy):
    def blocks():
        yield from (bytes(1 << 20) for _ in range(40))

    maker = Maker(copy, with_checksums=False)
    maker.add_list()
    maker.add_gtid(1)
    size = 19 + 40 * (1 << 20)
    with copy.open("ab") as stream:
        stream.write(struct.pack("<IBIIIH", 0, 23, 1, size, 0, 0))
        stream.writelines(blocks())
    maker.add_xid()
    tracemalloc.start()
    with closing(ClassicFileReader(find_series([copy])[0])) as reader:
        read_bytes = sum(len(piece) for group in reader.groups() for piece in group.body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read_bytes == size + 27
    assert peak < 8 << 20
