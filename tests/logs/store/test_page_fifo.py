import pytest

from ibbmaster.logs.store.page_fifo import RUN_PAGES_MAX, PageFifo, VisiblePages
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.page import BLANK, DATA_SIZE, PAGE_SIZE
from tests.built_logs import sealed_page
from tests.machinery.disk import MemoryDisk

FILE = b"h" * PAGE_SIZE + b"a" * PAGE_SIZE + b"b" * (PAGE_SIZE // 2) + bytes(PAGE_SIZE // 2)  # page 2: half of it


def full(page_no, fill=1):
    return PageChange(0, page_no, 0, bytes([fill]) * DATA_SIZE)


def test_only_full_pages_whose_redo_is_durable_go_to_their_file():
    fifo = PageFifo()
    fifo.place([full(1)], 100)
    fifo.place([full(2, 2)], 200)
    fifo.place([PageChange(0, 3, 0, b"begun")], 300)
    assert fifo.next_run(99) is None
    assert list(fifo.next_run(100).page_nos) == [1]
    run = fifo.next_run(300)
    assert (list(run.page_nos), run.data) == (
        [1, 2],
        sealed_page(bytes([1]) * DATA_SIZE) + sealed_page(bytes([2]) * DATA_SIZE),
    )
    fifo.drop(run)
    assert (len(fifo), fifo.next_run(300)) == (1, None)


def test_of_changes_to_a_page_that_was_written_partly_filled_the_first_alone_brings_the_whole_page():
    fifo = PageFifo()
    fifo.load_last(0, 3, b"begun".ljust(PAGE_SIZE, b"\xff"), 5)
    assert fifo.last_partial() is None
    one, two, other = PageChange(0, 3, 5, b"+one"), PageChange(0, 3, 9, b"+two"), PageChange(0, 4, 0, b"next")
    assert fifo.whole_changes([one, two, other]) == [PageChange(0, 3, 0, b"begun+one"), two, other]
    fifo.place([one], 100)
    assert fifo.whole_changes([two]) == [two]


def test_one_write_is_of_one_file_and_bounded():
    fifo = PageFifo()
    fifo.place([full(page_no) for page_no in range(1, RUN_PAGES_MAX + 5)], 100)
    assert len(fifo.next_run(100).page_nos) == RUN_PAGES_MAX
    other = PageFifo()
    other.place([full(8), PageChange(1, 1, 0, bytes(DATA_SIZE))], 100)
    assert list(other.next_run(100).page_nos) == [8]


def test_readers_see_nothing_behind_the_mark():
    fifo = PageFifo()
    fifo.place([full(1), PageChange(0, 2, 0, b"one")], 100)
    pages = range(1, 4)
    seen = fifo.visible(0, pages, LogPosition.on_page(0, 2, 3))[2]
    fifo.place([PageChange(0, 2, 3, b"two")], 200)
    assert seen == sealed_page(b"one"), "a reader keeps what it was given"
    assert fifo.visible(0, pages, LogPosition.on_page(0, 1)) == {1: BLANK, 2: BLANK}
    assert fifo.visible(0, pages, LogPosition.on_page(0, 2, 3)) == {
        1: sealed_page(bytes([1]) * DATA_SIZE),
        2: sealed_page(b"one"),
    }
    assert fifo.visible(0, pages, LogPosition.on_page(0, 2, 6))[2] == sealed_page(b"onetwo")
    assert fifo.visible(0, pages, LogPosition.on_page(1, 1))[2] == sealed_page(b"onetwo")


def test_after_a_page_was_written_partly_filled_its_next_change_is_the_whole_page():
    fifo = PageFifo()
    fifo.place([PageChange(0, 1, 0, b"one")], 100)
    change = PageChange(0, 1, 3, b"two")
    assert fifo.whole_changes([change]) == [change]
    key, _ = fifo.last_partial()
    fifo.unmark(key)  # it was not written after all
    assert fifo.whole_changes([change]) == [change]
    key, run = fifo.last_partial()
    assert (key, run.data) == ((0, 1), sealed_page(b"one"))
    assert fifo.whole_changes([change]) == [PageChange(0, 1, 0, b"onetwo")]
    fifo.place([change], 200)
    assert fifo.whole_changes([PageChange(0, 1, 6, b"x")]) == [PageChange(0, 1, 6, b"x")]


def test_a_change_that_extends_the_open_page_is_one_of_that_page():
    fifo, other = PageFifo(), PageFifo()
    for each in (fifo, other):
        each.place([full(1), PageChange(0, 2, 0, b"one")], 100)
    fifo.extend(b"two", 200)
    assert other.place([PageChange(0, 2, 3, b"two")], 200) == 2
    assert fifo.visible(0, range(3), LogPosition(1, 0)) == other.visible(0, range(3), LogPosition(1, 0))
    assert fifo.open_page.lsn == 200


def test_no_page_is_open_that_is_full_or_has_to_come_whole():
    fifo = PageFifo()
    assert fifo.open_page is None
    fifo.load_last(0, 7, bytes(PAGE_SIZE), 13)
    assert fifo.open_page is None
    fifo.place([PageChange(0, 7, 0, bytes(14))], 100)
    assert fifo.open_page.end == 14
    fifo.last_partial()
    assert fifo.open_page is None
    fifo.place([PageChange(0, 7, 0, bytes(DATA_SIZE))], 200)
    assert fifo.open_page is None
    fifo.place([PageChange(0, 8, 0, b"begun")], 300)
    assert fifo.open_page is not None
    fifo.clear()
    assert fifo.open_page is None


@pytest.fixture
def visible():
    def at(end, fifo=None):
        disk = MemoryDisk({"binlog-000000.ibb": FILE, "binlog-000001.ibb": FILE})
        return VisiblePages(disk, fifo or PageFifo(), lambda: end)

    return at


@pytest.mark.parametrize(
    ("end", "pages_seen"),
    [
        (LogPosition.on_page(1, 2), 2),
        (LogPosition.on_page(1, 1), 1),
        (LogPosition.on_page(0, 2), 0),
        (LogPosition.on_page(2, 1), 3),
    ],
    ids=["behind its page 1", "behind its header", "in the file before", "in the file behind"],
)
def test_behind_the_durable_end_there_are_zeros_whatever_is_in_the_file(visible, end, pages_seen):
    disk = visible(end)
    expected = FILE[: pages_seen * PAGE_SIZE].ljust(len(FILE), b"\0")
    assert disk.read("binlog-000001.ibb", 0, len(FILE)) == expected
    assert disk.read("binlog-000001.ibb", PAGE_SIZE + 5, 2 * PAGE_SIZE) == expected[PAGE_SIZE + 5 :]
    target = bytearray(len(FILE))
    assert disk.read_into("binlog-000001.ibb", 0, memoryview(target)) == len(FILE)
    assert bytes(target) == expected


def test_a_page_in_memory_is_seen_up_to_the_durable_end_in_place_of_that_of_the_file(visible):
    fifo = PageFifo()
    fifo.place([PageChange(1, 1, 0, b"new" * 10)], 100)
    data = visible(LogPosition.on_page(1, 1, 3), fifo).read("binlog-000001.ibb", 0, len(FILE))
    assert data[PAGE_SIZE : PAGE_SIZE + 20] == b"new" + bytes(17)
    assert data[:PAGE_SIZE] == FILE[:PAGE_SIZE]
    assert not any(data[2 * PAGE_SIZE :])


def test_a_page_that_goes_into_its_file_while_it_is_read_is_not_lost():
    fifo = PageFifo()
    fifo.place([PageChange(1, 1, 0, b"n" * DATA_SIZE)], 100)

    class FlushedMeanwhile(MemoryDisk):
        def read(self, name, offset, size):
            data = super().read(name, offset, size)
            run = fifo.next_run(100)
            self.write(name, PAGE_SIZE, run.data)
            fifo.drop(run)
            return data

    disk = VisiblePages(
        FlushedMeanwhile({"binlog-000001.ibb": bytes(len(FILE))}), fifo, lambda: LogPosition.on_page(1, 2)
    )
    assert disk.read("binlog-000001.ibb", PAGE_SIZE, DATA_SIZE) == b"n" * DATA_SIZE
