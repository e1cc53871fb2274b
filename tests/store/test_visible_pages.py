"""Readers of a store see what is durable, and nothing of what is on its way into the files."""

from __future__ import annotations

import pytest

from ibbmaster.ibb.appender import PageChange
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.position import LogPosition
from ibbmaster.store.page_fifo import PageFifo
from ibbmaster.store.visible_pages import VisiblePages
from ibbmaster.testing.disk import MemoryDisk

FILE = b"h" * PAGE_SIZE + b"a" * PAGE_SIZE + b"b" * (PAGE_SIZE // 2) + bytes(PAGE_SIZE // 2)  # page 2: half of it


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
    disk = visible(LogPosition.on_page(1, 1, 3), fifo)
    data = disk.read("binlog-000001.ibb", 0, len(FILE))
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
