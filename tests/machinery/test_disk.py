from contextlib import closing

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.disk import MemoryDisk


def steps(disk):
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
