from collections import Counter

import pytest

from ibbmaster.errors import MissingFileError, RecordError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.log import directory
from ibbmaster.logs.log.directory import BinlogDirectory, LenientDirectory, StrictDirectory, open_directory
from ibbmaster.logs.log.locating import locate
from ibbmaster.logs.log.log_range import WHOLE_FILE
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START
from ibbmaster.primary.streaming import shared
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import groups_behind, new_group

SHAPE = {"max_file_bytes": 1 << 20, "state_interval_bytes": 1 << 16}


class CountedDisk(MemoryDisk):
    """Counts calls and bytes; with `is_cold` nothing can be had without waiting."""

    def __init__(self, files=None):
        super().__init__(files)
        self.calls = Counter()
        self.bytes_read = 0
        self.is_cold = False
        self._names = []

    def list(self):
        self.calls["list"] += 1
        if list(self.files) != self._names:
            self._names = list(self.files)
        return self._names  # as a real one: the same while nothing was changed

    def read(self, name, offset, size):
        assert not self.is_cold, "it would wait"
        data = super().read(name, offset, size)
        self.calls["read"] += 1
        self.bytes_read += len(data)
        return data

    def read_into(self, name, offset, target, *, only_cached=False):
        return None if only_cached and self.is_cold else super().read_into(name, offset, target)


class Feeder:
    def __init__(self, disk, **shape):
        self.disk = disk
        self.writer = BinlogWriter(disk, **{**SHAPE, **shape})
        self.seq_no = 0

    def feed(self, count, size=1000):
        for _ in range(count):
            self.seq_no += 1
            self.writer.write_group(*new_group(self.seq_no, size))
        self.writer.flush()


@pytest.fixture
def disk():
    return CountedDisk()


@pytest.fixture
def feeder(disk):
    feeder = Feeder(disk)
    feeder.feed(100)
    return feeder


def count(disk, action):
    disk.calls.clear()
    disk.bytes_read = 0
    action()
    return disk.calls["read"], disk.bytes_read


def test_an_end_that_stands_still_is_known_and_not_looked_for(disk, feeder):
    log = BinlogDirectory(disk)
    end, state = log.end(), log.state()
    log.wait_for_growth(0)  # looks behind the end, once
    for ask in (log.end, log.state, lambda: log.wait_for_growth(0)):
        reads, size = count(disk, ask)
        assert reads <= 2  # at the end, and of the file that is ready
        assert size <= 2
    feeder.feed(1)
    assert str(log.state()) == f"0-1-{feeder.seq_no}" != str(state)
    assert log.end() > end
    feeder.feed(2000)  # into other files
    assert str(log.state()) == f"0-1-{feeder.seq_no}"
    assert log.end()[0] > end[0]


def test_what_must_not_wait_takes_the_end_that_is_known_or_nothing(disk, feeder):
    log = BinlogDirectory(disk)
    with pytest.raises(BlockingIOError):
        log.end(only_cached=True)  # nobody has looked for it yet
    expected = log.end()
    assert log.end(only_cached=True) == expected
    feeder.feed(1)
    with pytest.raises(BlockingIOError, match="has grown"):
        log.end(only_cached=True)
    log.end()
    disk.is_cold = True
    with pytest.raises(BlockingIOError, match="is not in memory"):
        log.end(only_cached=True)
    disk.is_cold = False
    with log._at_end(), pytest.raises(BlockingIOError, match="somebody else"):
        log.end(only_cached=True)


def test_the_state_that_must_not_wait_is_that_of_the_end_that_was_seen_last(disk, feeder):
    log = BinlogDirectory(disk)
    with pytest.raises(BlockingIOError, match="not looked for"):
        log.state(only_cached=True)
    for _ in range(3):
        with log._at_end(), pytest.raises(BlockingIOError, match="another thread"):
            log.state(only_cached=True)
        expected = log.state()
        found = log.state(only_cached=True)
        assert found == expected
        found.log(Gtid(domain_id=9, server_id=9, seq_no=9))  # it is the caller's
        feeder.feed(1)
        assert log.state(only_cached=True) == expected
        disk.is_cold = True
        assert log.state(only_cached=True) == expected
        disk.is_cold = False
        assert log.state() != expected


def test_a_search_that_must_not_wait_takes_the_end_that_was_seen_last(disk, feeder):
    log = BinlogDirectory(disk)
    position = GtidPosition.parse("0-1-50")
    with pytest.raises(BlockingIOError):
        log.seek(position, only_cached=True)  # nobody has looked for it yet
    expected = log.seek(position)
    for _ in range(3):
        found = log.seek(position, only_cached=True)
        assert (found.position, found.state) == (expected.position, expected.state)
        feeder.feed(40)
    newest = GtidPosition.parse(f"0-1-{feeder.seq_no - 1}")
    assert log.seek(newest, only_cached=True).position <= BinlogDirectory(disk).seek(newest).position
    other = BinlogDirectory(disk)
    other.state()
    disk.is_cold = True
    with pytest.raises(BlockingIOError, match="is not in memory"):
        other.seek(position, only_cached=True)
    disk.is_cold = False
    with log._at_end(), pytest.raises(BlockingIOError, match="another thread"):
        log.seek(position, only_cached=True)


def test_to_begin_reading_costs_the_same_in_one_file_as_in_a_thousand(disk, feeder, monkeypatch):
    def cost():
        log = BinlogDirectory(disk)
        log.state()
        first, last = (GtidPosition.parse(f"0-1-{number}") for number in (10, feeder.seq_no - 10))
        log.seek(first)
        parsed.clear()
        reads = [count(disk, lambda position=position: log.seek(position))[0] for position in (first, last)]
        return max(reads), len(parsed)

    parsed, parse = [], directory.parse_file_name
    monkeypatch.setattr(directory, "parse_file_name", lambda name: parsed.append(name) or parse(name))
    small = Feeder(CountedDisk(), max_file_bytes=1 << 16)
    disk, feeder = small.disk, small
    feeder.feed(60)
    reads_of_one, _ = cost()
    while len(disk.files) < 1000:
        feeder.feed(500)
    reads_of_many, parsed_of_many = cost()
    assert parsed_of_many == 0  # names are read when they change
    assert reads_of_many <= reads_of_one + 2 * 10  # two for each halving of a thousand files


def test_names_are_read_again_when_a_file_is_made_or_removed(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), **SHAPE) as writer:
        log = BinlogDirectory(RealDisk(tmp_path))
        for seq_no in range(1, 3000):
            writer.write_group(*new_group(seq_no, 1000))
            if seq_no % 200 == 0:
                assert len(log.file_numbers()) == len(list(tmp_path.glob("*.ibb")))
    (tmp_path / "binlog-000000.ibb").unlink()
    assert log.file_numbers()[0] == 1
    (tmp_path / "binlog-000002.ibb").unlink()
    with pytest.raises(StoreError, match=r"binlog-000002\.ibb is missing"):
        log.file_numbers()


@pytest.mark.parametrize("count", [2, 3])
def test_at_most_two_empty_files_at_the_end_are_taken_for_ready_ones(new_log, event, count):
    log = new_log()
    for seq_no in range(1, 7):
        log.commit(f"0-1-{seq_no}", event(50))
        log.flush()
    for name in sorted(log.disk.files)[-count:]:
        log.disk.files[name] = bytearray(len(log.disk.files[name]))
    directory = BinlogDirectory(log.disk)
    if count == 2:
        assert directory.active_file_no() == directory.file_numbers()[-3]
        return
    with pytest.raises(StoreError, match="and those after it are empty: at most 2"):
        directory.state()


@pytest.fixture
def paged_log(new_paged_log):
    return new_paged_log(size_pages=80, interval_pages=16)


@pytest.fixture
def served(dumped):
    def read(directory):
        events, error = dumped(directory, GtidPosition())
        return [int.from_bytes(event[19:27], "little") for event in events if event[4] == EventType.GTID], error

    return read


@pytest.mark.parametrize("has_kernels", [True, False], ids=["with kernels", "without"])
@pytest.mark.parametrize(("wrong", "place"), [(3, 5), (20, 33), (62, 63), (63, 64), (64, 65), (70, 69)])
def test_no_group_goes_out_twice_where_a_page_is_in_the_wrong_place(
    served, paged_log, monkeypatch, has_kernels, wrong, place
):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda: None)
    paged_log.put(place, paged_log.page(wrong))
    numbers, error = served(BinlogDirectory(paged_log.disk))
    assert numbers == sorted(set(numbers))
    assert numbers[-1] < (max(wrong, place) - 1) * 4 + 1 + 8  # each page has four groups
    assert "once more: a page was written to the wrong place" in error


@pytest.mark.parametrize("has_kernels", [True, False], ids=["with kernels", "without"])
def test_numbers_that_rightly_go_back_are_served(served, new_log, event, monkeypatch, has_kernels):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda: None)
    log = new_log(size_pages=20, interval_pages=4)
    fed = [1, 2, 2, 1, 5, *range(1, 60), 3, 3, 7]
    log.commit_all(fed, event(3000))
    assert served(BinlogDirectory(log.disk)) == (fed, None)


def test_a_file_whose_numbers_rightly_go_back_is_verified_once(new_log, event):
    log = new_log(size_pages=20, interval_pages=4)
    log.commit_all((*range(1, 20), *range(1, 40)), event(6000))
    directory = BinlogDirectory(log.disk)

    def pages_read():
        before = log.disk.pages_read
        groups_behind(directory)
        return log.disk.pages_read - before

    first, second = pages_read(), pages_read()
    assert second <= first - 20


def test_the_error_names_both_places(paged_log):
    paged_log.put(5, paged_log.page(3))
    directory = BinlogDirectory(paged_log.disk)
    reader = directory.groups(directory.start_of_file())
    assert [reader.next_group().gtid.seq_no for _ in range(16)] == list(range(1, 17))
    message = r"page 5 offset 0: group 0-1-9 comes behind number 16 .* at binlog-000000\.ibb page 4 offset"
    for _ in range(2):  # and again when it is asked again
        with pytest.raises(RecordError, match=message):
            reader.next_group()


def test_a_sound_log_passed_over_group_by_group_is_never_verified(new_log, event, monkeypatch):
    log = new_log(size_pages=20, interval_pages=4)
    log.commit_all(range(1, 40), event(6000))
    monkeypatch.setattr(directory.MisplacementCheck, "check", lambda *place: pytest.fail(f"verified at {place}"))
    opened = BinlogDirectory(log.disk)
    careful, passing = (opened.groups(opened.start_of_file()) for _ in range(2))
    count = 0
    while (group := careful.next_group()) is not None:
        if group.end.file_no != passing.position.file_no:
            break
        passing.continue_at(group.end, (group.gtid,), is_inside_record=False)
        count += 1
    assert count > 20


@pytest.fixture
def many_files(new_log, event):
    log, seq_no = new_log(size_pages=4), 0
    while (log.appender.file_no, log.appender.page_no) < (4, 3):
        seq_no += 1
        log.commit(f"0-1-{seq_no}", event(5000))
    return log.disk


def gtids_in(log, *, is_strict):
    on_fault = directory.damage_handler(is_strict=is_strict)
    ranges = log.ranges(LOG_START, log.end(), size=WHOLE_FILE)
    return [(group.start.file_no, group.gtid) for one in ranges for group in log.groups_in(one, on_fault=on_fault)]


def test_a_log_without_one_of_its_files_is_refused_or_read_without_its_groups(many_files):
    whole = gtids_in(StrictDirectory(many_files), is_strict=True)
    del many_files.files["binlog-000001.ibb"]

    strict, lenient = StrictDirectory(many_files), LenientDirectory(many_files)

    for question in (strict.end, strict.state, strict.files, strict.start_of_file):
        with pytest.raises(MissingFileError, match=r"binlog-000001\.ibb is missing"):
            question()
    assert [file.file_no for file in lenient.files()] == [0, 2, 3, 4]
    left = gtids_in(lenient, is_strict=False)
    assert {file_no for file_no, _ in left} == {0, 2, 3, 4}
    assert [one for one in left if one[0] > 0] == [one for one in whole if one[0] > 1]
    assert str(lenient.state()) == str(whole[-1][1])
    file_no, gtid = left[-2]
    on_fault = directory.damage_handler(is_strict=False)
    assert locate(lenient, GtidPosition([gtid]), on_fault=on_fault)[0].file_no == file_no


def test_a_directory_without_files_is_no_log_in_either_way(tmp_path):
    for is_strict in (True, False):
        with pytest.raises(StoreError, match="no binlog files"):
            open_directory(tmp_path, is_strict=is_strict).end()
