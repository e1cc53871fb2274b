import lzma
import random
import shutil
import struct
import zlib
from contextlib import closing
from itertools import pairwise

import pytest

import ibbmaster
from ibbmaster.errors import ClassicFormatError, GapError, MissingEventError, PositionPurgedError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.replication.event.types import EventType
from tests.built_logs import CLASSIC
from tests.machinery.events import event_offsets

CAPTURES = sorted(
    path.parent
    for path in CLASSIC.glob("*/*/expected.json")
    if path.parent.name != "encrypted" and "big" not in path.parts[-2]
)
FLAGS_AT = 4 + 17  # of the first event
BORDERS_MAX = 40  # of one file


def files_of(directory):
    return sorted(path for path in directory.iterdir() if path.name.removesuffix(".xz")[-6:].isdigit())


def bytes_of(path):
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def as_sent(path):
    """The bytes of a file; no primary says that a file is in use."""
    data = bytearray(bytes_of(path))
    data[FLAGS_AT] &= 0xFE
    return bytes(data)


def stored_from(engine, file_no=0, offset=4):
    return closing(engine.stored_groups(engine.start_of_file(file_no), offset))


def read_on(groups, found):
    while (group := groups.next_group()) is not None:
        found.setdefault(group.start.file_no, bytearray(b"\xfebin"))
        found[group.start.file_no] += group.gtid_event + b"".join(group.body)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_event_of_every_file_is_given_as_it_is(capture):
    found = {}
    with stored_from(ClassicBinlog([capture])) as groups:
        read_on(groups, found)
    assert [bytes(data) for data in found.values()] == [as_sent(path) for path in files_of(capture)]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_event_is_a_place_to_begin_at(capture):
    rng = random.Random(1)
    engine = ClassicBinlog([capture])
    for file_no, path in enumerate(files_of(capture)):
        data = bytes_of(path)
        borders = event_offsets(data)
        for offset in {*rng.sample(borders, min(len(borders), BORDERS_MAX)), *borders[:6], *borders[-4:]}:
            with stored_from(engine, file_no, offset) as groups:
                head = groups.next_group()
                assert head.gtid_event == as_sent(path)[4 : 4 + len(head.gtid_event)]
                group = groups.next_group()
            begin = max(offset, 4 + len(head.gtid_event))
            assert group.start == (file_no, begin)
            assert data[begin:].startswith(group.gtid_event)


@pytest.mark.parametrize("name", ["10.11/domains", "10.11/domains-none", "11.8/domains"])
def test_no_other_offset_is(name):
    engine = ClassicBinlog([CLASSIC / name])
    data = files_of(CLASSIC / name)[-1].read_bytes()
    borders = {*event_offsets(data), len(data)}
    last = engine.end().file_no
    for offset in range(5, len(data) + 1):
        with stored_from(engine, last, offset) as groups:
            groups.next_group()
            if offset in borders:
                groups.next_group()
                continue
            with pytest.raises((MissingEventError, ClassicFormatError), match=rf"binlog\.000009 offset {offset}: "):
                groups.next_group()


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/domains", "10.11/checksum-switch", "10.11/crashed"])
@pytest.mark.parametrize("begins_by_position", [True, False])
def test_what_a_copier_appends_and_the_files_that_follow_come_when_they_are_there(tmp_path, name, begins_by_position):
    """However the copies are cut: what is not there as a whole has not come yet."""
    rng = random.Random(name)
    sources = files_of(CLASSIC / name)
    (tmp_path / sources[0].name).write_bytes(sources[0].read_bytes()[:700])
    engine = ClassicBinlog([tmp_path])
    plan = engine.start_of_file(0) if begins_by_position else engine.seek(GtidPosition())
    found, states = {}, set()
    with closing(engine.stored_groups(plan)) as groups:
        for path in sources:
            data = path.read_bytes()
            target = tmp_path / path.name
            with target.open("ab", buffering=0) as file:
                while (size := target.stat().st_size) < len(data):
                    file.write(data[size : size + rng.choice((3, 40, 900, 100_000))])
                    engine.files()
                    read_on(groups, found)
                    states.add(str(engine.state()))
                    assert engine.end() <= (engine.files()[-1].file_no, engine.files()[-1].size)
    assert [bytes(data) for data in found.values()] == [as_sent(path) for path in sources]
    assert engine.state() == ClassicBinlog([CLASSIC / name]).state()
    assert len(states) > 3


def test_a_long_group_comes_once_all_of_it_is_there(tmp_path, new_classic_file):
    file = new_classic_file()
    file.data[FLAGS_AT] |= 1
    file.add(163, bytes(6))
    begin = len(file.data)
    file.begin_group(1)
    for _ in range(40):
        file.add(23, bytes(30_000))
    file.add(16, bytes(8))
    path = tmp_path / "binlog.000001"
    path.write_bytes(file.data[: begin + 50])
    engine = ClassicBinlog([tmp_path])
    engine.state()
    with stored_from(engine) as groups:
        found = {}
        for end in (begin + 60, begin + 400_000, len(file.data) - 1):
            with path.open("ab") as target:
                target.write(file.data[path.stat().st_size : end])
            engine.files()
            read_on(groups, found)
            assert len(found[0]) == begin
            assert engine.end() == (0, begin)
        with path.open("ab") as target:
            target.write(file.data[end:])
        engine.files()
        read_on(groups, found)
        assert len(found[0]) == len(file.data)
        assert groups.position == engine.end() == (0, len(file.data))


def test_a_file_that_is_missing_is_named_wherever_reading_begins(tmp_path):
    for path in files_of(CLASSIC / "10.11/domains"):
        if path.name != "binlog.000003":
            shutil.copy(path, tmp_path)
    engine = ClassicBinlog([tmp_path])
    for file_no, offset in ((0, 4), (1, 4), (1, 563)):
        with (
            stored_from(engine, file_no, offset) as groups,
            pytest.raises(GapError, match=r"files between binlog\.000002 and binlog\.000004 are missing"),
        ):
            read_on(groups, {})


BEGUN = {  # sizes of the events behind the GTID event that begins a group
    "zeros": None,
    "a part of an event": (),
    "a group without its end": (50, 60),
    "a long group without its end": (90_000,) * 12,
}


def begun_at(offset, sizes, gtid_event):
    """What a crash leaves of a group; the last event of it is cut."""
    if sizes is None:
        return bytes(300)
    found = bytearray()
    for event in (gtid_event, *(gtid_event[:4] + b"\xa0" + bytes(size) for size in sizes)):
        at, event = len(found), bytearray(event)
        struct.pack_into("<II", event, 9, len(event), offset + at + len(event))
        struct.pack_into("<H", event, 17, 0)
        struct.pack_into("<I", event, len(event) - 4, zlib.crc32(event[:-4]))
        found += event
    return bytes(found[:-9])


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
@pytest.mark.parametrize("is_marked", [True, False], ids=["marked in use", "closed"])
@pytest.mark.parametrize("was_last", [False, True], ids=["", "of the last file at first"])
def test_what_a_server_had_begun_in_a_middle_file_when_it_crashed_is_passed_over(tmp_path, was_last, is_marked, begun):
    """It leaves the mark in that file for ever; without it the same bytes are damage."""
    shutil.copytree(CLASSIC / "10.11/domains", tmp_path, dirs_exist_ok=True)
    with ibbmaster.open(tmp_path) as log:
        whole = [group.gtid for group in log.groups()]
    first, path, *others = files_of(tmp_path)
    data, found = path.read_bytes(), {}
    *_, last = borders = event_offsets(data)  # a ROTATE
    start, end = next((at, behind) for at, behind in pairwise(borders) if data[at + 4] == EventType.GTID)
    data = bytearray(data[:last] + begun_at(last, begun, data[start:end]))
    data[FLAGS_AT] |= 1
    path.write_bytes(data)
    later = {one: one.read_bytes() for one in others}
    for one in others if was_last else ():
        one.unlink()
    engine = ClassicBinlog([tmp_path])
    with stored_from(engine) as groups:
        if was_last:
            read_on(groups, found)
            for one, content in later.items():
                one.write_bytes(content)
        if not is_marked:
            data[FLAGS_AT] &= 0xFE
            path.write_bytes(data)
        engine.files()
        with ibbmaster.open(tmp_path) as log:
            if is_marked:
                read_on(groups, found)
                files = [as_sent(first), as_sent(path)[:last], *map(as_sent, others)]
                assert [bytes(found[number]) for number in sorted(found)] == files
                assert [group.gtid for group in log.groups()] == whole
            else:
                for read in (lambda: read_on(groups, found), lambda: list(log.groups())):
                    with pytest.raises(ClassicFormatError, match=r"binlog\.000002 offset "):
                        read()
            assert [fault.is_damage for fault in log.verify()] == [not is_marked]


def test_files_that_were_purged_are_listed_no_longer_and_others_keep_their_numbers(tmp_path):
    shutil.copytree(CLASSIC / "10.11/domains", tmp_path, dirs_exist_ok=True)
    engine = ClassicBinlog([tmp_path])
    (tmp_path / "binlog.000001").unlink()
    assert [(file.file_no, file.name) for file in engine.files()][:1] == [(1, "binlog.000002")]
    assert engine.file_name(8) == "binlog.000009"
    with pytest.raises(PositionPurgedError, match=r"binlog\.000002 begins after"):
        engine.seek(GtidPosition())


def test_who_reads_a_log_that_is_reset_is_told(tmp_path):
    shutil.copytree(CLASSIC / "10.11/domains", tmp_path, dirs_exist_ok=True)
    engine = ClassicBinlog([tmp_path])
    with stored_from(engine) as groups:
        groups.next_group()
        for path in files_of(tmp_path):
            path.unlink()
        shutil.copy(CLASSIC / "10.11/chained/binlog.000001", tmp_path)
        assert [file.name for file in engine.files()] == ["binlog.000001"]
        with pytest.raises(PositionPurgedError, match="the log was reset"):
            groups.next_group()
    assert str(engine.state().latest(50)) == "50-50-22"


@pytest.mark.parametrize(("flag", "cause"), [(1, "its server crashed"), (0, "was cut short")])
def test_what_the_last_file_ends_with_is_told_while_it_is_not_whole(tmp_path, flag, cause):
    path = tmp_path / "binlog.000001"
    source = CLASSIC / "10.11/domains/binlog.000001"
    data = bytearray(source.read_bytes())
    data[FLAGS_AT] = data[FLAGS_AT] & 0xFE | flag
    with stored_from(ClassicBinlog([source])) as groups:
        starts = [group.start.offset for group in iter(groups.next_group, None) if group.gtid]
    for size in (starts[-1] + 3, starts[-1] + 25, starts[-1] + 60):
        path.write_bytes(data[:size])
        engine = ClassicBinlog([tmp_path])
        assert engine.unfinished is None  # nobody has read so far
        with stored_from(engine) as groups:
            read_on(groups, {})
            told = engine.unfinished
            assert told.startswith(
                f"binlog.000001 offset {starts[-1]}: the file ends inside what begins here, after {size - starts[-1]} "
            )
            assert cause in told
            path.write_bytes(data)
            engine.files()
            assert engine.unfinished is None  # what was said is about another size
            read_on(groups, {})
            assert engine.unfinished is None
