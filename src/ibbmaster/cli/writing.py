"""Opening a directory that a command changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import StoreError

if TYPE_CHECKING:
    from ibbmaster.store.binlog_store import BinlogStore


def open_store(directory: Path) -> BinlogStore:
    """The store in a directory, recovered. A command that changes a log does not begin one.

    Raises:
        BusyError: another process has it.
        StoreError: there is no log.
    """
    from ibbmaster.ibb.file_name import parse_file_name
    from ibbmaster.store.binlog_store import BinlogStore
    from ibbmaster.store.disk import RealDisk
    from ibbmaster.store.store_options import StoreOptions

    disk = RealDisk(directory)
    if not any(parse_file_name(name) is not None for name in disk.list()):
        raise StoreError(f"{directory}: no binlog files (binlog-000000.ibb and so on)")
    return BinlogStore(disk, StoreOptions(is_sparse=True))
