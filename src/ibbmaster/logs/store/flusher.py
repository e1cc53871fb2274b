"""From memory and redo log to the files.

Nothing reaches a file before its redo is durable, so a file never holds what a crash may take back."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ibbmaster.errors import MissingFileError
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .failure_latch import FailureLatch
from .page_fifo import PageFifo, PageRun
from .redo_log import RedoLog
from .redo_record import Checkpoint, Cut, Purge, XaEntry


@dataclass(eq=False, kw_only=True)
class Flusher:
    """For one thread at a time; never holds the writer's lock while the disk works. `ordered` is that lock, under which
    `snapshot` gives the end of the log, None if it was never begun, and the prepared transactions. `sync` makes the
    redo log durable up to an LSN. `latch` hears of an error before another thread may work here."""

    disk: Disk
    redo: RedoLog
    fifo: PageFifo
    ordered: threading.RLock
    latch: FailureLatch
    snapshot: Callable[[], tuple[LogPosition | None, tuple[XaEntry, ...]]]
    sync: Callable[[int], None]
    is_sparse: bool

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._dirty: set[int] = set()
        self._cuts: list[Cut] = []
        self.unfinished: Purge | None = None  # noted, with files that could not be removed yet
        self._covered_lsn = self.redo.end_lsn  # after the last appended checkpoint

    def begin(self) -> None:
        """Begin the life of the redo log; what the files hold is durable."""
        with self.lock, self.latch.work, self.ordered:
            if not self.redo.is_begun:
                end, xa = self.snapshot()
                if end is not None:
                    for file_no in {max(end.file_no - 1, 0), end.file_no}:  # they may be unsynced copies
                        with contextlib.suppress(MissingFileError):
                            self.disk.sync(format_file_name(file_no))
                self.redo.begin(Checkpoint(lsn=self.redo.end_lsn, end=end, xa=xa))
                self._covered_lsn = self.redo.end_lsn

    def cut(self, cut: Cut) -> None:
        """Note, under the writer's lock, that a file is to be cut."""
        self._cuts.append(cut)

    def write_pages(self) -> None:
        """The full ones whose redo is durable."""
        with self.lock, self.latch.work:
            while (run := self.fifo.next_run(self.redo.durable_lsn)) is not None:
                self._write(run)
                self.fifo.drop(run)

    def checkpoint(self) -> None:
        """Make all that is in the log now durable in its files, and note that in the redo log: once durable, the note
        frees room there. An unfinished purge is noted again after it."""
        with self.lock, self.latch.work:
            with self.ordered:
                lsn = self.redo.end_lsn
                if not self.redo.is_begun or lsn == self._covered_lsn:
                    return
                end, _ = self.snapshot()
                partial = self.fifo.last_partial()
                cuts = self._cuts[:]
                noted_lsn = lsn if self.unfinished is None else self.redo.append([self.unfinished])
            try:
                self.sync(lsn)
                self.write_pages()
                if partial is not None and self.fifo.holds(partial[0]):
                    self._write(partial[1])
                partial = None
            finally:
                if partial is not None:
                    self.fifo.unmark(partial[0])
            for cut in cuts:
                self._cut(cut)
            self._cuts = self._cuts[len(cuts) :]
            self._sync_files(self._dirty)
            with self.ordered:
                _, xa = self.snapshot()
                is_all = self.redo.end_lsn == noted_lsn
                end_lsn = self.redo.append_checkpoint(Checkpoint(lsn=lsn, end=end, xa=xa))
                if is_all:
                    self._covered_lsn = end_lsn

    def make_file(self, file_no: int, size_pages: int) -> int:
        """Have an empty file of at least this size, durable itself; returns its pages. First makes the file two before
        it complete and durable, so only two files can ever need the redo log."""
        with self.lock, self.latch.work:
            old = {number for number in self._dirty if number < file_no - 1}
            if old or self.fifo.oldest_file_no() < file_no - 1:
                self.sync(self.redo.end_lsn)
                self.write_pages()
                self._sync_files({number for number in self._dirty if number < file_no - 1})
            size_pages, _ = make_file(self.disk, file_no, size_pages, is_sparse=self.is_sparse)
            self.disk.sync(format_file_name(file_no))
            self.disk.sync_dir()
            return size_pages

    def forget_files(self) -> None:
        """Every file is about to be removed, and all of it was durable."""
        assert not self._cuts
        self._dirty.clear()

    def _write(self, run: PageRun) -> None:
        self._dirty.add(run.file_no)
        self.disk.write(format_file_name(run.file_no), run.first_page_no * PAGE_SIZE, run.data)

    def _cut(self, cut: Cut) -> None:
        name = format_file_name(cut.file_no)
        if self.disk.size(name) > cut.size_pages * PAGE_SIZE:
            self._dirty.add(cut.file_no)
            self.disk.truncate(name, cut.size_pages * PAGE_SIZE)

    def _sync_files(self, numbers: set[int]) -> None:
        for file_no in sorted(numbers):
            self.disk.sync(format_file_name(file_no))
        self._dirty = self._dirty - numbers


def make_file(disk: Disk, file_no: int, size_pages: int, *, is_sparse: bool) -> tuple[int, bool]:
    name = format_file_name(file_no)
    try:
        found = disk.size(name)
    except MissingFileError:
        disk.create(name)
        found = 0
    size = max(size_pages * PAGE_SIZE, found // PAGE_SIZE * PAGE_SIZE)
    if found != size:
        if is_sparse:
            disk.truncate(name, size)
        else:
            disk.allocate(name, size)
    return size // PAGE_SIZE, found != size
