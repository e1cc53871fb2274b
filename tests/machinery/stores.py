"""Logs of tests: a store in a directory or on a disk, and the files of one that nobody writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import make_event, new_group

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


def feed(
    log: BinlogStore | BinlogWriter, numbers: int | Iterable[int], size: int = 700, *, fill: int = 0, **origin: int
) -> None:
    write = log.write_group if isinstance(log, BinlogWriter) else log.write_direct
    for seq_no in [numbers] if isinstance(numbers, int) else numbers:
        write(*new_group(seq_no, make_event(160, 1, bytes([(seq_no + fill) % 256]) * size), **origin))


def bytes_at(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
