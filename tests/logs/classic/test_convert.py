import json
import lzma
import random
import re
import shutil
import struct
import zlib
from collections import Counter
from itertools import pairwise

import pytest

from ibbmaster.errors import ClassicFormatError, ConfigurationError, IbbMasterError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.kernel import loading
from ibbmaster.logs.classic import convert
from ibbmaster.storage.disk.local import RealDisk
from tests.built_logs import CLASSIC, FIXTURES, captures
from tests.damage import flip
from tests.machinery.events import AROUND_GROUPS, event_offsets, group_events, numbers_in
from tests.machinery.importing import import_classic
from tests.machinery.stores import bytes_at, faults_at, open_files

SIZES = {  # file size, state interval
    "large files": (8 << 20, 2 << 20),
    "the smallest files": (4 * 16384, 16384),
    "no states inside files": (5 * 16384, 8 * 16384),
}
CASES = {
    **{
        f"{name}, {what}": (name, *sizes)
        for what, sizes in SIZES.items()
        for name in captures("encrypted", "big", "big-none")  # the last are 222 MB each: two of them are enough
    },
    "11.8/big, one large file": ("11.8/big", 256 << 20, 2 << 20),
    "11.8/big-none, many files": ("11.8/big-none", 64 << 20, 64 << 10),
}
CAPTURES = sorted(path.parent for path in CLASSIC.glob("*/*/expected.json") if not list(path.parent.glob("*.xz")))


def classic_files(series):
    return sorted(path for path in series.glob("binlog.*") if path.suffix != ".idx")


def events_by_hand(series):
    for path in classic_files(series):
        yield from group_events(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes())


def stored_events(store, position):
    reader = store.groups(store.seek(position))
    while (group := reader.next_group()) is not None:
        yield group.gtid_event
        rest = bytearray()
        for piece in group.body:
            rest += piece
            while len(rest) >= 19 and len(rest) >= (size := struct.unpack_from("<I", rest, 9)[0]):
                yield bytes(rest[:size])
                del rest[:size]
        assert not rest


@pytest.fixture(autouse=True)
def _verify_what_is_left(memory_path):
    yield
    for directory in {path.parent for path in memory_path.rglob("*.ibb")}:
        assert faults_at(directory) == []


def sized(max_file_bytes, state_interval_bytes):
    return {"max_file_bytes": max_file_bytes, "state_interval_bytes": state_interval_bytes}


def run(memory_path, *paths, sizes=SIZES["the smallest files"], append=False):
    return import_classic(paths, RealDisk(memory_path), **sized(*sizes), append=append)


@pytest.mark.some_of(40)
@pytest.mark.parametrize(("name", "max_file_bytes", "state_interval_bytes"), CASES.values(), ids=CASES)
def test_every_captured_series_comes_out_event_by_event(memory_path, name, max_file_bytes, state_interval_bytes):
    expected = json.loads((CLASSIC / name / "expected.json").read_text())
    report = run(memory_path, CLASSIC / name, sizes=(max_file_bytes, state_interval_bytes))
    store = open_files(memory_path)
    counts: Counter[str] = Counter()
    for found, wanted in zip(stored_events(store, GtidPosition()), events_by_hand(CLASSIC / name), strict=True):
        assert found == wanted
        counts["groups"] += found[4] == 162
        counts["events"] += 1
        counts["bytes"] += len(found)
    around = sum(expected["events"].get(around_name, 0) for around_name in AROUND_GROUPS.values())
    assert counts["events"] == sum(expected["events"].values()) - around
    assert counts["groups"] == report.group_count == expected["event_groups"]
    assert report.event_bytes == counts["bytes"]
    assert str(report.gtid_state.position()) == expected["gtid_binlog_pos_after"]
    assert sorted(map(str, report.gtid_state)) == sorted(filter(None, expected["gtid_binlog_state_after"].split(",")))
    assert store.state() == report.gtid_state
    assert list(report.source_files) == [file["name"] for file in expected["files"]]
    assert report.skipped_count == 0
    assert report.notices == ()


@pytest.mark.parametrize("name", ["10.11/encrypted", "11.8/encrypted", "11.8/vectors"])
def test_an_encrypted_binlog_and_wrong_sizes_leave_nothing_behind(memory_path, name):
    is_encrypted = name.endswith("encrypted")
    sizes = SIZES["the smallest files"] if is_encrypted else (1000, 0)
    with pytest.raises(ClassicFormatError if is_encrypted else ConfigurationError, match=r"encrypted|1000 bytes"):
        run(memory_path, CLASSIC / name, sizes=sizes)
    assert not list(memory_path.iterdir())


def test_a_series_from_its_middle_begins_with_the_state_before_it(memory_path):
    run(memory_path, *classic_files(CLASSIC / "11.8" / "checksum-switch")[3:])
    store = open_files(memory_path)
    assert store.start_of_file().state == GtidState.parse("0-1-14")
    assert numbers_in(store)[0] == 15
    for position in ("0-1-13", ""):
        with pytest.raises(PositionPurgedError):
            store.seek(GtidPosition.parse(position))


def test_files_of_a_crashed_server_leave_out_the_unfinished_group_with_a_notice(memory_path):
    source = memory_path / "classic"
    shutil.copytree(CLASSIC / "11.8" / "crashed", source)
    last = source / "binlog.000002"
    last.write_bytes(last.read_bytes()[:-10])
    (memory_path / "ibb").mkdir()
    report = run(memory_path / "ibb", source)
    assert (report.group_count, str(report.gtid_state)) == (92, "0-1-92")
    (notice,) = report.notices
    assert notice.startswith("binlog.000002 offset ")


def test_damage_keeps_the_groups_before_it(memory_path):
    source = memory_path / "classic"
    shutil.copytree(CLASSIC / "11.8" / "checksum-switch", source)
    damaged = source / "binlog.000003"
    flip(damaged, damaged.stat().st_size - 60)
    (memory_path / "ibb").mkdir()
    with pytest.raises(ClassicFormatError, match=r"^binlog\.000003 offset "):
        run(memory_path / "ibb", source)
    store = open_files(memory_path / "ibb")
    state = store.state()
    assert 10 <= (state.seq_no(0, 1) or 0) <= 14
    wanted = list(events_by_hand(CLASSIC / "11.8" / "checksum-switch"))
    found = list(stored_events(store, GtidPosition()))
    assert found == wanted[: len(found)]
    damaged.write_bytes((CLASSIC / "11.8" / "checksum-switch" / "binlog.000003").read_bytes())
    assert run(memory_path / "ibb", source, append=True).skipped_count == state.seq_no(0, 1)
    assert list(stored_events(open_files(memory_path / "ibb"), GtidPosition())) == wanted


def test_progress_ends_at_the_size_of_all_files(memory_path):
    calls: list[tuple[int, int]] = []
    series = CLASSIC / "11.8" / "large-commit"
    import_classic([series], RealDisk(memory_path), max_file_bytes=16 << 20, progress=lambda *done: calls.append(done))
    size = sum(path.stat().st_size for path in classic_files(series))
    assert calls[-1] == (size, size)
    assert calls == sorted(calls)


def test_a_log_that_is_there_is_not_touched_without_append(memory_path):
    run(memory_path, CLASSIC / "11.8" / "vectors")
    before = bytes_at(memory_path)
    with pytest.raises(StoreError, match="holds a binlog already"):
        run(memory_path, CLASSIC / "11.8" / "vectors")
    assert bytes_at(memory_path) == before


@pytest.mark.parametrize("name", ["11.8/domains", "10.11/domains-none", "11.8/checksum-switch", "10.11/crashed"])
def test_files_may_come_one_by_one(memory_path, name):
    files = classic_files(CLASSIC / name)
    one, many = memory_path / "one", memory_path / "many"
    for directory in (one, many):
        directory.mkdir()
    run(one, *files)
    for file in files:
        assert run(many, file, append=True).skipped_count == 0
    assert bytes_at(many) == bytes_at(one)


@pytest.mark.parametrize("name", ["11.8/domains", "11.8/checksum-switch"])
def test_files_that_grew_are_taken_from_where_the_log_ends(memory_path, name):
    files = classic_files(CLASSIC / name)
    run(memory_path, *files[:3])
    report = run(memory_path, *files, append=True)
    assert report.skipped_count > 0
    assert list(stored_events(open_files(memory_path), GtidPosition())) == list(events_by_hand(CLASSIC / name))
    report = run(memory_path, *files, append=True)
    assert (report.group_count, report.event_bytes) == (0, 0)


def test_files_that_begin_behind_the_end_of_the_log_are_refused(memory_path):
    files = classic_files(CLASSIC / "11.8" / "checksum-switch")
    run(memory_path, *files[:2])
    state = open_files(memory_path).state()
    with pytest.raises(StoreError, match=r"the log ends at GTID state \[0-1-\d+\] in domain 0, but before 0-1-15"):
        run(memory_path, *files[3:], append=True)
    assert open_files(memory_path).state() == state


def test_files_of_another_history_are_refused(memory_path):
    run(memory_path, CLASSIC / "11.8" / "alter-two-phase")  # 0-1-32,6-1-1
    with pytest.raises(StoreError, match="they do not continue it"):
        run(memory_path, CLASSIC / "11.8" / "domains", append=True)


def test_another_domain_from_its_beginning_may_be_added(memory_path):
    run(memory_path, CLASSIC / "11.8" / "vectors")  # domain 0
    report = run(memory_path, CLASSIC / "11.8" / "chained", append=True)  # domains 11, 12, 50
    assert str(report.gtid_state.position()) == "0-1-37,11-11-22,12-12-22,50-50-22"


SAMPLE_ROW = re.compile(
    r"\| `(?P<name>[\w-]+)` \| `(?P<source>classic/[^`]+)` \| (?P<size>\d+)K \| (?P<interval>\d+)K \|"
)
SAMPLES = {match["name"]: match for match in SAMPLE_ROW.finditer((FIXTURES / "README.md").read_text())}


def test_every_sample_has_its_row():
    assert set(SAMPLES) == {path.name for path in (FIXTURES / "ibb").iterdir()}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_made_again_as_its_row_says_is_the_same(memory_path, name):
    row = SAMPLES[name]
    report = run(memory_path, FIXTURES / row["source"], sizes=(int(row["size"]) << 10, int(row["interval"]) << 10))
    assert bytes_at(memory_path) == bytes_at(FIXTURES / "ibb" / name)
    assert f"| {report.gtid_state.position()} |" in (FIXTURES / "README.md").read_text()


@pytest.fixture
def imported(tmp_path, monkeypatch):
    count = 0

    def imported(files, *, is_fast, **options):
        nonlocal count
        count += 1
        target = tmp_path / f"target-{count}"
        target.mkdir()
        monkeypatch.setattr(convert, "kernels", loading.load if is_fast else lambda: None)
        options.setdefault("max_file_bytes", 1 << 24)  # what is compared is read whole
        try:
            said = import_classic(files, RealDisk(target), **options)
        except IbbMasterError as error:
            said = str(error).replace(target.name, "target")
        return bytes_at(target), said

    return imported


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("sizes", [(1 << 24, 1 << 21), (1 << 18, 1 << 15), (1 << 16, 1 << 17)], ids=str)
def test_a_capture_becomes_the_same_bytes(imported, capture, sizes):
    fast = imported(classic_files(capture), is_fast=True, **sized(*sizes))
    assert fast == imported(classic_files(capture), is_fast=False, **sized(*sizes))


def renumbered(path, numbers):
    """A traditional file whose groups have other sequence numbers; what is behind the list counts on."""
    data = bytearray(path.read_bytes())
    numbers, latest = iter(numbers), 0
    for start, end in pairwise([*event_offsets(data), len(data)]):
        if data[start + 4] == 162:
            latest = next(numbers, latest + 1)
            struct.pack_into("<Q", data, start + 19, latest)
            struct.pack_into("<I", data, end - 4, zlib.crc32(data[start : end - 4]))
    return bytes(data)


@pytest.mark.parametrize("start", [1, 2**63 - 12, 2**64 - 200], ids=["small", "over 2^63", "up to 2^64"])
def test_what_a_lenient_primary_wrote_is_kept_and_told(imported, tmp_path, start):
    offsets = [0, 1, 1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 3, 18, 19, 25]
    path = tmp_path / "binlog.000001"
    path.write_bytes(renumbered(CLASSIC / "10.11" / "types-full-crc32" / "binlog.000001", [start + o for o in offsets]))
    fast = imported([path], is_fast=True)
    assert fast == imported([path], is_fast=False)
    report = fast[1]
    assert report.out_of_order_count == 3
    assert report.notices[-1].startswith(
        f"3 groups are not newer than what their domain had, the first is 0-1-{start + 1} at binlog.000001 "
    )
    numbers = numbers_in(open_files(tmp_path / "target-1"))
    assert [number - start for number in numbers[: len(offsets)]] == offsets


@pytest.mark.parametrize("name", ["10.11/types-full-crc32", "11.8/statement", "10.11/domains", "11.8/chained"])
def test_a_flipped_bit_is_met_at_the_same_place(imported, tmp_path, name):
    rng, files = random.Random(random.randrange(2**32)), []
    for path in classic_files(CLASSIC / name):
        files.append(tmp_path / path.name)
        files[-1].write_bytes(path.read_bytes())
    for _ in range(25):
        path = rng.choice(files)
        data = path.read_bytes()
        changed = bytearray(data)
        place = rng.randrange(len(data))
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed[: rng.choice([len(data), len(data), place])])
        sizes = sized(1 << 18, 1 << 15)
        assert imported(files, is_fast=True, **sizes) == imported(files, is_fast=False, **sizes)
        path.write_bytes(data)


def test_the_kernel_is_used_where_it_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "kernels", loading.load)
    converters = []

    class Watched(convert.GroupConverter):
        def __init__(self, *args):
            super().__init__(*args)
            converters.append(self)

    monkeypatch.setattr(convert, "GroupConverter", Watched)
    report = import_classic(classic_files(CLASSIC / "11.8" / "types-full-crc32"), RealDisk(tmp_path))
    assert converters[0].group_count > report.group_count / 2
