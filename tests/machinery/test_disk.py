"""A directory in memory does what one on a disk does."""

from contextlib import closing

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.ibb.page import PAGE_SIZE, verify_page
from tests.machinery.disk import MemoryDisk


def steps(disk):
    """What each step gives or raises."""
    for name, *arguments in [
        ("create", "binlog-000000.ibb"),
        ("create", "binlog-000000.ibb"),
        ("write", "binlog-000000.ibb", 5, b"abc"),
        ("size", "binlog-000000.ibb"),
        ("read", "binlog-000000.ibb", 0, 100),
        ("read", "binlog-000000.ibb", 100, 10),
        ("truncate", "binlog-000000.ibb", 6),
        ("truncate", "binlog-000000.ibb", 9),
        ("read", "binlog-000000.ibb", 4, 100),
        ("allocate", "binlog-000000.ibb", 12),
        ("size", "binlog-000000.ibb"),
        ("create", "binlog-000001.ibb"),
        ("list",),
        ("size", "binlog-000000.ibb"),
        ("sync", "binlog-000001.ibb"),
        ("sync_dir",),
        ("unlink", "binlog-000001.ibb"),
        ("unlink", "binlog-000001.ibb"),
        ("read", "binlog-000001.ibb", 0, 1),
        ("list",),
    ]:
        try:
            found = getattr(disk, name)(*arguments)
            yield name, [one for one in found if one.startswith("binlog")] if name == "list" else found
        except StoreError as error:
            yield name, MissingFileError if isinstance(error, MissingFileError) else StoreError


def test_it_gives_what_a_real_disk_gives(tmp_path):
    with closing(RealDisk(tmp_path)) as real:
        real.lock()
        assert list(steps(MemoryDisk())) == list(steps(real))


def test_it_counts_what_is_read():
    disk = MemoryDisk({"a": bytes(3 * PAGE_SIZE)})
    disk.read("a", 0, 2 * PAGE_SIZE)
    disk.read_into("a", 0, memoryview(bytearray(10)))
    assert (disk.reads, disk.pages_read) == (2, 3)


def test_pages_of_an_appender_are_sealed(new_log, event):
    log = new_log()
    log.commit("0-1-1", event(100))
    for name in log.disk.list():
        for page_no in range(2):
            page = log.disk.read(name, page_no * PAGE_SIZE, PAGE_SIZE)
            verify_page(page, None)
    assert log.disk.modified_at(name) == 0.0
    with pytest.raises(MissingFileError):
        log.disk.modified_at("other")
