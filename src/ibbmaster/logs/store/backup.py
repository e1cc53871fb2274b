"""A copy of a store, taken while it is written.

Files only grow, and the redo log holds every change that a file may lack. So the copy notes the place of the redo log,
takes the files in whatever state, and then the redo log. If that still reaches back to the noted place, opening the
copy repairs its files; if not, what may have changed is copied again. Source of the idea: InnoDB's physical backup."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from ibbmaster.errors import DamageError, MissingFileError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.storage.disk.interface import Disk, ReadDisk
from ibbmaster.storage.ibb.file_header import SIZE_PAGES_MIN, decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .binlog_store import BinlogStore
from .redo_log import RedoScan, scan_redo
from .redo_names import SEGMENT_NAMES
from .store_options import StoreOptions

BLOCK_SIZE = 1 << 20
ATTEMPTS = 20
CHANGING_FILES = 3  # the ready one, the active one, and the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """The copy reaches to `lsn`, 0 without a redo log."""

    files: tuple[str, ...]
    copied_bytes: int
    lsn: int
    gtid_state: GtidState


def back_up(source: ReadDisk, target: Disk, *, progress: Callable[[int], object] = lambda size: None) -> BackupReport:
    """Copy a store into an empty directory and recover the copy; `progress` hears of copied bytes. Raises StoreError:
    the target is not empty, the source changes too fast, or a disk fails; DamageError, FormatError."""
    if target.list():
        raise StoreError(f"{target} is not empty: give a new directory")
    copier = _Copier(source, target, progress)
    for _ in range(ATTEMPTS):
        if (replay_from := copier.copy()) is not None:
            break
    else:
        raise StoreError(f"{source} is written faster than it can be copied")
    for name in target.list():
        target.sync(name)
    target.sync_dir()
    with BinlogStore(target, copier.options, replay_from=replay_from or None) as store:
        if store.files()[-1].size < PAGE_SIZE:
            store.prepare_next_file()  # it was copied amid its making
        report = BackupReport(
            files=tuple(file.name for file in store.files()),
            copied_bytes=copier.copied_bytes,
            lsn=copier.lsn,
            gtid_state=store.state(),
        )
    _check_sound(target)
    return report


def _check_sound(target: Disk) -> None:
    try:
        for fault in verify(target, Totals()):
            if fault.is_damage:
                raise DamageError(f"{fault}; what was copied is not sound, `ibbmaster verify` lists all that is wrong")
    finally:
        target.close()


class _Copier:
    def __init__(self, source: ReadDisk, target: Disk, progress: Callable[[int], object]) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._final: dict[str, tuple[int, int]] = {}  # start LSN, and bytes in the copy that are final, by name
        self._complete: dict[str, int] = {}  # start LSN of files that are final as a whole
        self.options = StoreOptions(is_sparse=True)  # the next file gets the size of those of the source
        self.copied_bytes = 0
        self.lsn = 0

    def copy(self) -> int | None:
        """Returns the LSN from which the redo log applies to the copy, 0 without one; None: copy what changed, too."""
        try:
            before = self._scan()
            numbers = sorted(number for name in self._source.list() if (number := parse_file_name(name)) is not None)
            if not numbers and before is not None:
                return None
            if not numbers:
                raise StoreError(f"{self._source}: no binlog files (binlog-000000.ibb and so on)")
            names = set(self._target.list())
            for number in numbers:
                self._copy_log_file(number, names, is_complete=number < numbers[-1] - CHANGING_FILES)
            self._copy_redo(names)
        except MissingFileError:  # purged, or reset, meanwhile
            self._forget_missing()
            return None
        self._forget_missing()
        if before is None:
            return None if scan_redo(self._target) is not None else 0
        try:
            after = scan_redo(self._target, replay_from=before.checkpoint.lsn)
        except DamageError:  # it has come round, or was copied amid a change
            return None
        if after is None:
            return None
        self.lsn = after.end_lsn
        return before.checkpoint.lsn

    def _scan(self) -> RedoScan | None:
        for _ in range(ATTEMPTS):
            with contextlib.suppress(DamageError):
                return scan_redo(self._source)
        return scan_redo(self._source)

    def _copy_log_file(self, file_no: int, names: set[str], *, is_complete: bool) -> None:
        """From the end of the copy on: pages are written once, but for the last."""
        name = format_file_name(file_no)
        header = decode_file_header(self._source.read(name, 0, PAGE_SIZE).ljust(512, b"\0"), file_no=file_no)
        start_lsn = 0 if header is None else header.start_lsn
        if header is not None:
            size_pages = max(header.size_pages, SIZE_PAGES_MIN)
            self.options = StoreOptions(max_file_bytes=size_pages * PAGE_SIZE, is_sparse=True)
        if self._complete.get(name) == start_lsn:
            return
        known_lsn, offset = self._final.get(name, (start_lsn, 0))
        if known_lsn != start_lsn:
            offset = 0
        self._final[name] = start_lsn, self._copy_from(name, offset, names)
        if is_complete:
            self._complete[name] = start_lsn

    def _copy_redo(self, names: set[str]) -> None:
        available = self._source.list()
        for name in SEGMENT_NAMES:
            if name in available:
                self._copy_from(name, 0, names)

    def _copy_from(self, name: str, offset: int, names: set[str]) -> int:
        if name not in names:
            self._target.create(name)
        self._target.truncate(name, offset)
        last = 0
        while data := self._source.read(name, offset, BLOCK_SIZE):
            if data.count(0) != len(data):  # the rest stays a hole
                self._target.write(name, offset, data)
                used = len(data.rstrip(b"\0"))
                last = (offset + used - 1) // PAGE_SIZE * PAGE_SIZE
            offset += len(data)
            self.copied_bytes += len(data)
            self._progress(len(data))
        if self._target.size(name) < offset:
            self._target.truncate(name, offset)
        return last

    def _forget_missing(self) -> None:
        names = self._source.list()
        for name in self._target.list():
            if name not in names:
                self._target.unlink(name)
                self._final.pop(name, None)
                self._complete.pop(name, None)
