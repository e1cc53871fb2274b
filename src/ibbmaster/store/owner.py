"""Who writes a directory: one process at a time, and through the redo log where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ibbmaster.disk.interface import Disk, ReadDisk
from ibbmaster.ibb.file_name import parse_file_name
from ibbmaster.store.redo_log import has_redo_log


@contextmanager
def owning(disk: Disk) -> Iterator[None]:
    """Lock a directory to open the log in it; the lock is given back at once if that fails.

    Raises:
        BusyError: another process has it.
    """
    disk.lock()
    try:
        yield
    except BaseException:
        disk.close()
        raise


def holds_log(disk: ReadDisk) -> bool:
    """Whether there is a log, in files or in a redo log alone."""
    return has_redo_log(disk) or any(parse_file_name(name) is not None for name in disk.list())
