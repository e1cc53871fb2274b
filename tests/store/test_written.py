"""Readers of ranges see what a writer has made durable, also where it is not in the files yet."""

import shutil
from contextlib import closing

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.log.directory import open_directory
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.position import LOG_START
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.redo_names import has_redo_log
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.store.written import WrittenDirectory
from tests.machinery.events import XID_EVENT, make_event, new_group

OPTIONS = StoreOptions(max_file_bytes=256 << 10, state_interval_bytes=32 << 10, redo_bytes=1 << 20)


def write(store, first, count):
    for number in range(first, first + count):
        store.write_direct(*new_group(number, make_event(23, 1, bytes(500)), XID_EVENT))


def numbers(log, ranges):
    return [group.gtid.seq_no for one in ranges for group in log.groups_in(one) if group.gtid is not None]


def test_every_durable_group_is_read_range_by_range_while_it_is_written_and_after(tmp_path):
    with closing(BinlogStore(RealDisk(tmp_path), OPTIONS)) as store, closing(RealDisk(tmp_path)) as disk:
        assert has_redo_log(disk)
        with closing(WrittenDirectory(disk)) as planner:
            begin, last, late = LOG_START, 0, 0
            for count in (1, 10, 300, 900):
                write(store, last + 1, count)
                end = planner.end()
                ranges = planner.ranges(begin, end, size=32 << 10)
                with closing(WrittenDirectory(RealDisk(tmp_path))) as worker:
                    assert numbers(worker, ranges) == list(range(last + 1, last + count + 1))
                begin, last = end, last + count
                late += not len(open_directory(tmp_path, is_strict=True).state())
            assert late >= 2  # those who look at the files alone
    with closing(WrittenDirectory(RealDisk(tmp_path))) as worker:
        ranges = worker.ranges(LOG_START, worker.end(), size=WHOLE_FILE)
        assert len(ranges) > 1
        assert numbers(worker, ranges) == list(range(1, last + 1))


def test_a_directory_without_a_writer_has_no_redo_log(fixtures):
    assert not has_redo_log(RealDisk(fixtures / "ibb/xa-and-ddl"))


@pytest.mark.parametrize("read", ["ranges", "state"])
def test_a_log_that_is_only_in_the_redo_log_of_a_killed_writer_is_read(tmp_path, read):
    (tmp_path / "log").mkdir()
    with closing(BinlogStore(RealDisk(tmp_path / "log"), OPTIONS)) as store:
        write(store, 1, 5)
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with closing(WrittenDirectory(RealDisk(tmp_path / "copy"))) as log:
        if read == "state":
            assert str(log.state()) == "0-1-5"
        else:
            assert numbers(log, log.ranges(LOG_START, log.end(), size=1)) == [1, 2, 3, 4, 5]
