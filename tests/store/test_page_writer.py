"""Pages on their way to a file."""

import random
import struct

from ibbmaster.codec.crc32c import crc32c_by_crcmod
from ibbmaster.disk.local import RealDisk
from ibbmaster.ibb.appender import PageChange
from ibbmaster.store.page_writer import BATCH_PAGES, ROOM_PAGES, PageWriter

PAGE_SIZE, DATA_SIZE = 16384, 16380
NAME = "binlog-000007.ibb"


class CountingDisk(RealDisk):
    """Notes first page and number of pages of each write, and each sync."""

    def __init__(self, directory):
        super().__init__(directory)
        self.writes: list[tuple[int, int]] = []
        self.sync_count = 0
        self.create(NAME)

    def write(self, name, offset, data):
        assert name == NAME
        assert offset % PAGE_SIZE == len(data) % PAGE_SIZE == 0
        self.writes.append((offset // PAGE_SIZE, len(data) // PAGE_SIZE))
        super().write(name, offset, data)

    def sync(self, name):
        self.sync_count += 1
        super().sync(name)


def sealed(data):
    data = data.ljust(DATA_SIZE, b"\0")
    return data + struct.pack("<I", crc32c_by_crcmod(data))


def change(page_no, page_offset, data):
    return PageChange(7, page_no, page_offset, data)


def test_a_partly_filled_page_is_sealed_and_written_again_as_it_grows(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    pages.place(change(0, 0, b"first"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed(b"first")
    pages.place(change(0, 5, b" and second"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed(b"first and second")
    pages.write_out()
    assert disk.writes == [(0, 1), (0, 1)]


def test_a_full_page_is_not_written_again(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    pages.place(change(0, 0, bytes([1]) * DATA_SIZE))
    pages.write_out()
    pages.place(change(1, 0, b"next"))
    pages.write_out()
    assert disk.writes == [(0, 1), (1, 1)]
    assert (tmp_path / NAME).read_bytes() == sealed(bytes([1]) * DATA_SIZE) + sealed(b"next")


def test_a_sealed_header_page_may_come_as_a_whole(tmp_path):
    pages = PageWriter(CountingDisk(tmp_path), 7)
    header = sealed(b"header")
    pages.place(change(0, 0, header))
    pages.place(change(1, 0, b"state"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == header + sealed(b"state")


def test_a_batch_is_written_when_a_page_does_not_fit_any_more(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    for page_no in range(2 * BATCH_PAGES + 1):
        pages.place(change(page_no, 0, bytes([page_no]) * DATA_SIZE))
    assert disk.writes == [(0, BATCH_PAGES), (BATCH_PAGES, BATCH_PAGES)]
    pages.write_out()
    expected = b"".join(sealed(bytes([page_no]) * DATA_SIZE) for page_no in range(2 * BATCH_PAGES + 1))
    assert (tmp_path / NAME).read_bytes() == expected


def test_nothing_of_an_earlier_batch_is_left_behind_the_data(tmp_path):
    pages = PageWriter(CountingDisk(tmp_path), 7)
    for page_no in range(BATCH_PAGES):
        pages.place(change(page_no, 0, b"\xee" * DATA_SIZE))
    pages.write_out()
    pages.place(change(BATCH_PAGES, 0, b"short"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes()[BATCH_PAGES * PAGE_SIZE :] == sealed(b"short")


def test_a_file_with_data_is_continued(tmp_path):
    disk = CountingDisk(tmp_path)
    (tmp_path / NAME).write_bytes(sealed(b"0") + sealed(b"begun") + bytes(PAGE_SIZE))
    pages = PageWriter(disk, 7, page_no=1, page_offset=5)
    pages.write_out()
    assert disk.writes == []
    pages.place(change(1, 5, b" before"))
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed(b"0") + sealed(b"begun before") + bytes(PAGE_SIZE)


def test_only_what_was_written_is_synced(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    pages.sync()
    assert disk.sync_count == 0
    pages.place(change(0, 0, b"x"))
    pages.write_out()
    pages.sync()
    pages.sync()
    assert disk.sync_count == 1


def test_it_makes_no_difference_when_the_pages_are_written(tmp_path):
    seed = random.randrange(2**32)
    rng, contents = random.Random(seed), []
    for share in (0, 0.1, 1):
        directory = tmp_path / str(share)
        directory.mkdir()
        pages = PageWriter(CountingDisk(directory), 7)
        pieces = random.Random(seed)
        page_no = page_offset = 0
        while page_no < 3 * BATCH_PAGES:
            data = pieces.randbytes(min(pieces.choice([3, 500, 9000, DATA_SIZE]), DATA_SIZE - page_offset))
            pages.place(change(page_no, page_offset, data))
            page_offset += len(data)
            if page_offset == DATA_SIZE:
                page_no, page_offset = page_no + 1, 0
            if rng.random() < share:
                pages.write_out()
        pages.write_out()
        contents.append((directory / NAME).read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_room_for_a_kernel_is_made_by_writing_full_pages_alone(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    data = bytes(range(1, 251)) * 70
    place = 0, 0
    for page_no in range(BATCH_PAGES + ROOM_PAGES):
        for offset, size in ((0, 100), (100, DATA_SIZE - 100)):
            memory, start = pages.room(page_no, offset)
            assert len(memory) - start >= (ROOM_PAGES - 1) * PAGE_SIZE
            memory[start : start + size] = data[offset : offset + size]
            end = start + size
            place = pages.placed(end if offset == 0 else start - offset + PAGE_SIZE)
    assert place == (BATCH_PAGES + ROOM_PAGES, 0)
    pages.place(change(BATCH_PAGES + ROOM_PAGES, 0, b"last"))
    pages.write_out()
    pages.write_out()
    assert (tmp_path / NAME).read_bytes() == sealed(data[:DATA_SIZE]) * (BATCH_PAGES + ROOM_PAGES) + sealed(b"last")
    written = [page for first, count in disk.writes for page in range(first, first + count)]
    assert written == list(range(BATCH_PAGES + ROOM_PAGES + 1))
    assert len(disk.writes) < 5


def test_a_page_that_stays_as_full_pages_are_written_is_written_as_it_has_grown(tmp_path):
    disk = CountingDisk(tmp_path)
    pages = PageWriter(disk, 7)
    full = BATCH_PAGES - ROOM_PAGES + 1
    for page_no in range(full):
        pages.place(change(page_no, 0, bytes([1]) * DATA_SIZE))
    pages.place(change(full, 0, b"begins"))
    memory, start = pages.room(full, 6)
    assert (start, bytes(memory[:6])) == (6, b"begins")
    assert disk.writes == [(0, full)]
    pages.write_out()
    assert (tmp_path / NAME).read_bytes()[full * PAGE_SIZE :] == sealed(b"begins")
