"""A file that is shorter than its header says was ended by FLUSH, or has lost its rest."""

import pytest

from ibbmaster.errors import ChunkError
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.log.cut_check import cut_error
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.event_groups import EventGroupReader
from ibbmaster.log.fault import Totals
from ibbmaster.log.verify import verify
from ibbmaster.store.writer import BinlogWriter

NAME = "binlog-000000.ibb"


def cut(log, pages, name=NAME):
    del log.disk.files[name][pages * PAGE_SIZE :]
    return log.disk


def read_on(reader):
    while reader.next_group() is not None:
        pass


def test_a_file_of_full_size_and_one_that_flush_has_ended_are_whole(long_log, new_log):
    assert [cut_error(long_log.disk, file_no) for file_no in range(3)] == [None] * 3
    assert len(long_log.disk.files["binlog-000001.ibb"]) == 2 * PAGE_SIZE
    assert cut_error(new_log().disk, 5) is None


def test_a_file_whose_log_ends_before_the_cut_has_lost_nothing(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(50))
    assert cut_error(cut(log, 2), 0) is None


@pytest.mark.parametrize("size", [3 * PAGE_SIZE, 3 * PAGE_SIZE + 100, PAGE_SIZE])
def test_a_file_that_was_cut_in_its_data_is_damaged_for_readers_writers_and_verify(new_paged_log, size):
    """Also where groups end with the page, so that nothing is broken off."""
    log = new_paged_log(size_pages=8)
    log.disk.files = {NAME: log.disk.files[NAME]}
    del log.disk.files[NAME][size:]
    said = rf"binlog-000000\.ibb page {size // PAGE_SIZE} offset 0: the file has {size} bytes"
    assert any(said.replace("\\", "")[:40] in str(fault) for fault in verify(log.disk, Totals()))
    if size == 3 * PAGE_SIZE:
        directory = BinlogDirectory(log.disk)
        reader = directory.groups(directory.start_of_file())
        with pytest.raises(ChunkError, match=said):
            read_on(reader)
        with pytest.raises(ChunkError, match=said):
            directory.check_end()
        with pytest.raises(ChunkError, match=said):
            BinlogWriter(log.disk)


def test_a_reader_that_began_inside_a_file_is_told_that_its_end_was_cut_off(new_paged_log):
    reader = EventGroupReader(cut(new_paged_log(size_pages=8), 5), file_no=0, page_no=2)
    with pytest.raises(ChunkError, match="page 5 offset 0: the file has 81920 bytes, its header says 131072"):
        read_on(reader)
