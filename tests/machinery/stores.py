"""Logs of tests: a store in a directory or on a disk, and the files of one that nobody writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ibbmaster.disk.interface import Disk
from ibbmaster.disk.local import RealDisk
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.fault import Fault, Totals
from ibbmaster.log.verify import verify
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.store.writer import BinlogWriter
from tests.machinery.events import new_group

SMALL_FILES = StoreOptions(
    max_file_bytes=8 * PAGE_SIZE, state_interval_bytes=2 * PAGE_SIZE, redo_bytes=1 << 20, full_disk_retry_s=0
)


def disk_at(place: Path | str | Disk) -> Disk:
    return RealDisk(place) if isinstance(place, (Path, str)) else place


def new_store(place: Path | str | Disk, options: StoreOptions | None = None, **changes: Any) -> BinlogStore:
    return BinlogStore(disk_at(place), replace(options or StoreOptions(), **changes))


def open_files(place: Path | str | Disk) -> BinlogDirectory:
    return BinlogDirectory(disk_at(place))


def faults_at(place: Path | str | Disk) -> list[Fault]:
    return list(verify(disk_at(place), Totals()))


def feed(log: BinlogStore | BinlogWriter, numbers: Iterable[int], size: int = 700) -> None:
    """Write a group of each sequence number, with an event of so many bytes."""
    write = log.write_group if isinstance(log, BinlogWriter) else log.write_direct
    for seq_no in numbers:
        write(*new_group(seq_no, size))
