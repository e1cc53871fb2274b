"""Opening a directory that a command changes, and making one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
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
    from ibbmaster.disk.local import RealDisk
    from ibbmaster.ibb.file_name import parse_file_name
    from ibbmaster.store.binlog_store import BinlogStore
    from ibbmaster.store.redo_log import has_redo_log
    from ibbmaster.store.store_options import StoreOptions

    disk = RealDisk(directory)
    if not has_redo_log(disk) and not any(parse_file_name(name) is not None for name in disk.list()):
        raise StoreError(f"{directory}: no binlog files (binlog-000000.ibb and so on)")
    return BinlogStore(disk, StoreOptions(is_sparse=True, full_disk_retry_s=0))  # a full disk is told, not waited for


@contextlib.contextmanager
def made_at_once(directory: Path) -> Iterator[Path]:
    """A new directory to fill, which takes its name once it is whole: who is killed leaves nothing under that name.

    A directory that is a file system of its own cannot be replaced, and is filled as it is.

    Raises:
        StoreError: there is something at that name.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise StoreError(f"{directory} is not empty: give a new directory")
    if directory.is_mount():
        yield directory
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    staging = directory.parent / f".{directory.name}.incomplete-{os.getpid()}"
    staging.mkdir()
    try:
        yield staging
        staging.rename(directory)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    parent = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
