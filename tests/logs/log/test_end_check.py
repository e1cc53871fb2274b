import pytest

from ibbmaster.errors import ChunkError, FormatError
from ibbmaster.logs.log import directory as reading
from ibbmaster.logs.log.directory import StrictDirectory
from ibbmaster.logs.log.end_check import PATIENCE_S, STILL_S, EndWatch, check_unbroken, cut_error, page_behind
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.built_logs import sealed_page
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import numbers_in, numbers_of
from tests.machinery.stores import new_store, open_files

NAME = "binlog-000000.ibb"


def filled(log, event, page_no, file_no=0):
    """Write groups that reach over page borders until a page is begun."""
    while (log.appender.file_no, log.appender.page_no) < (file_no, page_no):
        seq_no = len(log.groups) + 1
        log.commit(f"0-1-{seq_no}", event(5000 + seq_no % 7, fill=seq_no % 2))
    return log


@pytest.fixture(params=[3, 5, 9], ids="page {} is lost".format)
def torn_log(request, new_log, event):
    """One file of 40 pages, groups that reach over page borders, ten pages full, one of them blank."""
    log = filled(new_log(size_pages=40, interval_pages=16), event, 11)
    log.put(request.param, bytes(PAGE_SIZE))
    log.lost_page = request.param
    return log


GAP = r"binlog-000000\.ibb page {0} offset 0: nothing was written here, but binlog-000000\.ibb page {1} has data"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def watch_of_a_written_log(disk, clock, **known):
    disk.modified_at = lambda name: clock.now
    return EndWatch(disk, clock=clock, now=clock, **known)


def watched(disk):
    directory, clock = open_files(disk), Clock()
    disk.modified_at = lambda name: clock.now
    directory._end_watch._clock = directory._end_watch._now = clock
    return directory, clock


def wait_at(watch, clock, end, seconds):
    for _ in range(round(seconds * 10)):
        clock.now += 0.1
        watch.check(end)


def poll(reader, clock, *, seconds):
    """Ask ten times a second for more, and get nothing."""
    for _ in range(seconds * 10):
        clock.now += 0.1
        assert reader.next_group() is None


@pytest.mark.parametrize("open_log", [BinlogWriter, new_store])
def test_no_writer_goes_on_in_a_file_with_a_blank_page_in_its_middle(torn_log, open_log):
    before = MemoryDisk(torn_log.disk.files).files
    with pytest.raises(FormatError, match="nothing was written here, but binlog-000000"):
        open_log(torn_log.disk, max_file_bytes=1 << 20)
    assert {name: torn_log.disk.files[name] for name in before} == before


def test_a_reader_waits_before_a_blank_page_and_is_told_of_damage_when_it_stays(torn_log):
    clock = Clock()
    watch = watch_of_a_written_log(torn_log.disk, clock)
    reader = EventGroupReader(torn_log.disk, file_no=0, page_no=1, end_watch=watch)
    numbers_of(reader)
    lost = torn_log.lost_page
    with pytest.raises(ChunkError, match=GAP.format(lost, lost + 1)):
        poll(reader, clock, seconds=10)
    assert PATIENCE_S <= clock.now - 100 <= PATIENCE_S + 2 * STILL_S


def test_pages_that_reach_the_disk_in_another_order_are_waited_for(new_log, event):
    log = new_log(size_pages=40, interval_pages=16)
    clock = Clock()
    reader = EventGroupReader(log.disk, file_no=0, page_no=1, end_watch=watch_of_a_written_log(log.disk, clock))
    log.commit("0-1-1", event(50))
    assert reader.next_group() is not None
    late = None
    for seq_no in range(2, 61):
        log.commit(f"0-1-{seq_no}", event(5000))
        page_no = log.appender.page_no - 1
        if late is not None and seq_no % 4 == 0:
            log.put(*late)
            late = None
        elif late is None and page_no > 1 and seq_no % 4 == 1:
            late = page_no, log.page(page_no)
            log.put(page_no, bytes(PAGE_SIZE))
        for _ in range(10):  # a second
            clock.now += 0.1
            numbers_of(reader)
    assert late is None
    assert reader.position == log.appender.end


def test_who_waits_in_a_file_that_has_not_begun_does_not_keep_others_from_being_told(torn_log):
    torn_log.disk.create("binlog-000001.ibb")
    torn_log.disk.allocate("binlog-000001.ibb", 40 * PAGE_SIZE)
    directory, clock = watched(torn_log.disk)
    ahead = directory.groups(directory.start_of_file(1))
    at_end = directory.groups(directory.start_of_file(0))
    poll(ahead, clock, seconds=1)
    numbers_of(at_end)

    def poll_both():
        for _ in range(20):
            poll(ahead, clock, seconds=1)
            assert at_end.next_group() is None

    with pytest.raises(ChunkError, match=GAP.format(torn_log.lost_page, torn_log.lost_page + 1)):
        poll_both()
    torn_log.disk.write("binlog-000001.ibb", 9 * PAGE_SIZE, b"x")
    with pytest.raises(ChunkError, match=r"binlog-000001\.ibb page 9 has data"):
        poll(ahead, clock, seconds=20)


def test_a_blank_page_inside_a_closed_file_is_damage_at_once(new_log, event):
    log = filled(new_log(size_pages=8), event, 0, file_no=2)
    log.put(4, bytes(PAGE_SIZE))
    reader = EventGroupReader(log.disk, file_no=0, page_no=1)
    with pytest.raises(ChunkError, match=GAP.format(4, 5)):
        numbers_of(reader)


def test_an_older_image_of_a_page_is_damage_where_more_lies_behind_it(new_log, event):
    """The page held less when it was written first: then there are zeros where groups were."""
    log = new_log(size_pages=40, interval_pages=16)
    image, page_no = None, 2
    for seq_no in range(1, 30):
        log.commit(f"0-1-{seq_no}", event(3000))
        if image is None and log.appender.page_no == page_no and log.appender.page_offset > 6000:
            image = log.page(page_no)
    log.put(page_no, image)
    with pytest.raises(ChunkError, match=r"page 2 offset \d+: nothing was written here, but .* page 3 has data"):
        BinlogWriter(log.disk)


def test_bytes_behind_the_end_on_the_same_page_are_damage(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(50))
    log.put(1, sealed_page(log.page(1)[:9000] + b"\1"))
    with pytest.raises(ChunkError, match="bytes behind it on the same page"):
        BinlogWriter(log.disk)


def test_data_in_the_next_file_without_its_header_is_behind_the_end(long_log):
    """Else an archive without a redo log would silently lose its newest file."""
    long_log.put(0, bytes(PAGE_SIZE), file_no=2)
    for read in (BinlogWriter, lambda disk: numbers_in(open_files(disk))):
        with pytest.raises(ChunkError, match=r"binlog-000002\.ibb page 1 has data"):
            read(long_log.disk)


def test_a_file_that_is_ready_costs_nothing_where_it_has_holes_and_is_read_once_where_it_has_zeros(
    tmp_path, new_log, event
):
    log = new_log(size_pages=2000)
    log.commit("0-1-1", event(50))
    holes, name = RealDisk(tmp_path), "binlog-000000.ibb"
    holes.create(name)
    holes.write(name, 0, log.disk.files[name][: 2 * PAGE_SIZE])
    holes.truncate(name, 100_000 * PAGE_SIZE)
    end = LogPosition.on_page(0, 1, log.appender.page_offset)
    reads = []
    holes.read = lambda *args: reads.append(args) or RealDisk.read(holes, *args)
    assert page_behind(holes, end) is None
    assert len(reads) <= 3
    clock = Clock()
    watch = watch_of_a_written_log(log.disk, clock)
    wait_at(watch, clock, end, 1)
    assert log.disk.pages_read <= 1024 + 256 + 2 * 64
    wait_at(watch, clock, end, 5)
    assert log.disk.pages_read >= 1998
    first = log.disk.pages_read
    for page_no in range(2, 12):  # a writer that rests now and then
        wait_at(watch, clock, LogPosition.on_page(0, page_no), 1)
    assert log.disk.pages_read - first <= 10 * 2 * 260


def test_data_far_behind_the_end_is_found_after_a_while(new_log, event):
    log = new_log(size_pages=5000)
    log.commit("0-1-1", event(50))
    log.disk.write("binlog-000000.ibb", 4500 * PAGE_SIZE, b"x")
    clock = Clock()
    end = LogPosition.on_page(0, 1, log.appender.page_offset)
    with pytest.raises(ChunkError, match="page 4500 has data"):
        wait_at(EndWatch(log.disk, clock=clock), clock, end, 30)


def test_a_directory_that_is_waited_for_wakes_its_readers_to_be_told(torn_log):
    directory, clock = watched(torn_log.disk)
    grown = []
    for _ in range(100):
        clock.now += 0.1
        grown.append(directory.wait_for_growth(0))
    assert grown == sorted(grown)
    assert (grown[0], grown[-1]) == (False, True)


def test_a_batch_does_not_end_before_data_that_was_lost(torn_log, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "PATIENCE_S", 0.0)
    for name, data in torn_log.disk.files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ChunkError, match="nothing was written here, but"):
        StrictDirectory(RealDisk(tmp_path)).end()


def test_a_hole_that_nobody_writes_is_named_at_once_and_by_verify_with_the_last_group_before_it(torn_log):
    with pytest.raises(ChunkError, match=GAP.format(torn_log.lost_page, torn_log.lost_page + 1)) as told:
        numbers_in(open_files(torn_log.disk))
    assert [gtid for gtid, _ in torn_log.groups if f"the last group before it is {gtid}" in str(told.value)]
    places = (f"binlog-000000.ibb page {torn_log.lost_page + more} offset 0" for more in (1, 0))
    assert ": data behind its end at ".join(places) in map(str, verify(torn_log.disk, Totals()))


def test_a_reader_that_stops_before_a_certain_end_is_told_at_once(torn_log):
    """Whoever owns the log knows its end, whatever is written elsewhere."""
    end = torn_log.appender.end
    watch = watch_of_a_written_log(torn_log.disk, Clock(), known_end=lambda: end, is_certain=True)
    reader = EventGroupReader(torn_log.disk, file_no=0, page_no=1, end_watch=watch)
    with pytest.raises(ChunkError, match=GAP.format(torn_log.lost_page, torn_log.lost_page + 1)):
        numbers_of(reader)


def test_a_reader_is_not_told_of_an_end_that_moved_while_it_read(new_log, event):
    """The end is asked for after nothing was found: what came meanwhile is looked for once more."""
    log = new_log(size_pages=40, interval_pages=16)
    log.commit("0-1-1", event(50))

    def moved_end():
        log.commit(f"0-1-{len(log.groups) + 1}", event(9000))
        return log.appender.end

    watch = EndWatch(log.disk, known_end=moved_end, is_certain=True)
    reader = EventGroupReader(log.disk, file_no=0, page_no=1, end_watch=watch)
    assert [reader.next_group().gtid for _ in range(20)] == [gtid for gtid, _ in log.groups][:20]


def test_a_reader_before_an_end_that_another_has_seen_waits_while_the_files_are_written(torn_log):
    clock = Clock()
    end = torn_log.appender.end
    watch = watch_of_a_written_log(torn_log.disk, clock, known_end=lambda: end)
    reader = EventGroupReader(torn_log.disk, file_no=0, page_no=1, end_watch=watch)
    numbers_of(reader)
    assert reader.expects_more
    assert not watch.is_due()
    begun = clock.now
    with pytest.raises(ChunkError, match="nothing was written here, but"):
        poll(reader, clock, seconds=10)
    assert clock.now - begun >= PATIENCE_S
    assert watch.is_due()


def test_a_range_that_is_not_read_to_its_end_is_damaged(torn_log):
    directory = open_files(torn_log.disk)
    [log_range] = directory.ranges(LOG_START, torn_log.appender.end, size=1 << 30)
    with pytest.raises(ChunkError, match=GAP.format(torn_log.lost_page, torn_log.lost_page + 1)):
        list(directory.groups_in(log_range))
    told = []
    list(directory.groups_in(log_range, on_fault=lambda place, problem: told.append(problem)))
    assert "nothing was written here, but" in told[0]


@pytest.fixture
def log(new_log, event):
    """One file, whose first twelve pages are full; some of them end with zeros of an event."""
    return filled(new_log(size_pages=40, interval_pages=4), event, 13)


DAMAGE = {
    "blank": lambda page: bytes(PAGE_SIZE),
    "older": lambda page: sealed_page(page[: 3 + int.from_bytes(page[1:3], "little")]),  # with its first chunk only
    "flipped": lambda page: page[:9000] + bytes([page[9000] ^ 4]) + page[9001:],
}
PLACES = [(page_no, change) for page_no in (1, 2, 4, 7, 12) for change in DAMAGE]


@pytest.mark.parametrize(("page_no", "change"), [(0, "flipped"), *PLACES])
def test_a_page_before_the_end_that_is_blank_older_or_damaged_is_named(log, page_no, change):
    log.put(page_no, DAMAGE[change](log.page(page_no)))
    with pytest.raises(FormatError, match=rf"binlog-000000\.ibb page {page_no} offset"):
        check_unbroken(log.disk, log.appender.end)


def test_a_file_that_ends_before_the_log_does_is_named(log):
    check_unbroken(log.disk, log.appender.end)
    with pytest.raises(FormatError, match="page 6 offset 0: nothing is written here, but the log reaches to"):
        check_unbroken(cut(log, 6), log.appender.end)


def cut(log, pages, name=NAME):
    del log.disk.files[name][pages * PAGE_SIZE :]
    return log.disk


def test_files_that_end_soundly_are_whole(long_log, new_log, event):
    assert [cut_error(long_log.disk, file_no) for file_no in range(3)] == [None] * 3
    assert len(long_log.disk.files["binlog-000001.ibb"]) == 2 * PAGE_SIZE
    assert cut_error(new_log().disk, 5) is None
    log = new_log()
    log.commit("0-1-1", event(50))
    assert cut_error(cut(log, 2), 0) is None, "its log ends before the cut"
    long_log.disk.create("binlog-000003.ibb")
    long_log.disk.allocate("binlog-000003.ibb", 4 * PAGE_SIZE)
    open_files(long_log.disk).check_end()


@pytest.mark.parametrize("size", [3 * PAGE_SIZE, 3 * PAGE_SIZE + 100, PAGE_SIZE])
def test_a_file_that_was_cut_in_its_data_is_damaged_for_readers_writers_and_verify(new_paged_log, size):
    """Also where groups end with the page, so that nothing is broken off."""
    log = new_paged_log(size_pages=8)
    log.disk.files = {NAME: log.disk.files[NAME]}
    del log.disk.files[NAME][size:]
    said = rf"binlog-000000\.ibb page {size // PAGE_SIZE} offset 0: the file has {size} bytes"
    assert any(said.replace("\\", "")[:40] in str(fault) for fault in verify(log.disk, Totals()))
    if size == 3 * PAGE_SIZE:
        directory = open_files(log.disk)
        for read in (lambda: numbers_in(directory), directory.check_end, lambda: BinlogWriter(log.disk)):
            with pytest.raises(ChunkError, match=said):
                read()


def test_a_reader_that_began_inside_a_file_is_told_that_its_end_was_cut_off(new_paged_log):
    reader = EventGroupReader(cut(new_paged_log(size_pages=8), 5), file_no=0, page_no=2)
    with pytest.raises(ChunkError, match="page 5 offset 0: the file has 81920 bytes, its header says 131072"):
        numbers_of(reader)
