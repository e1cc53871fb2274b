"""Blocks of pages come in order, and what follows them is asked for in time."""

from contextlib import closing
from types import SimpleNamespace

from ibbmaster.disk.local import RealDisk
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.log import block_reading
from ibbmaster.log.block_reading import AHEAD_BYTES, BlockReader


def test_each_part_of_a_file_is_expected_once_and_well_before_it_is_read(tmp_path, monkeypatch):
    asked, read = [], []
    monkeypatch.setattr(block_reading, "expect", lambda descriptor, offset, size: asked.append((offset, offset + size)))

    def read_pages(file, offset, pages):
        read.append((offset, len(pages), asked[-1][1]))
        return len(pages) // PAGE_SIZE, len(pages) // PAGE_SIZE

    (tmp_path / "a").write_bytes(b"")
    reader = BlockReader(RealDisk(tmp_path), "a", SimpleNamespace(read_pages=read_pages), block_pages=4)
    with closing(reader):
        for page_no in (1, 5, 8, 12):
            found = reader.read(page_no)
            assert found.page_count == found.verified
    assert [offset // PAGE_SIZE for offset, _, _ in read] == [1, 5, 9, 13]
    assert all(expected == offset + size + AHEAD_BYTES for offset, size, expected in read)
    assert [begin for begin, _ in asked] == [PAGE_SIZE, *(end for _, end in asked[:-1])]
