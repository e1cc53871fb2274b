"""From memory and redo log to the files: pages, checkpoints, and the files to write next.

Nothing reaches a file before its redo is durable, so a file never holds what a crash may take back. Everything here is
for one thread at a time, and never holds the writer's lock while the disk works.
"""

import contextlib
import threading
from collections.abc import Callable

from ibbmaster.disk.interface import Disk
from ibbmaster.errors import MissingFileError
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.position import LogPosition
from ibbmaster.store.failure_latch import FailureLatch
from ibbmaster.store.page_fifo import PageFifo, PageRun
from ibbmaster.store.redo_log import RedoLog
from ibbmaster.store.redo_record import Checkpoint, Cut, Purge, XaEntry


class Flusher:
    """Writes pages and makes files.

    `ordered` is the writer's lock. `snapshot`, called under it, gives the end of the log, None
    if it was never begun, and the table of prepared transactions. `sync` makes the redo log
    durable up to an LSN. `latch` hears of an error before another thread may work here.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        redo: RedoLog,
        fifo: PageFifo,
        ordered: threading.RLock,
        latch: FailureLatch,
        snapshot: Callable[[], tuple[LogPosition | None, tuple[XaEntry, ...]]],
        sync: Callable[[int], None],
        is_sparse: bool,
    ) -> None:
        self._disk = disk
        self._redo = redo
        self._fifo = fifo
        self._ordered = ordered
        self._latch = latch
        self._snapshot = snapshot
        self._sync = sync
        self._is_sparse = is_sparse
        self.lock = threading.RLock()  # taken before the writer's
        self._dirty: set[int] = set()  # files that were written and not synced
        self._cuts: list[Cut] = []  # to be made once they are durable
        self.unfinished: Purge | None = None  # noted, and some of its files could not be removed yet
        self._covered_lsn = redo.end_lsn  # after the last checkpoint that was appended

    def begin(self) -> None:
        """Begin the life of the redo log; what the files hold is durable."""
        with self.lock, self._latch.work, self._ordered:
            if not self._redo.is_begun:
                end, xa = self._snapshot()
                if end is not None:
                    for file_no in {max(end.file_no - 1, 0), end.file_no}:  # they may only have been copied here
                        with contextlib.suppress(MissingFileError):
                            self._disk.sync(format_file_name(file_no))
                self._redo.begin(Checkpoint(lsn=self._redo.end_lsn, end=end, xa=xa))
                self._covered_lsn = self._redo.end_lsn

    def cut(self, cut: Cut) -> None:
        """Note, under the writer's lock, that a file is to be cut."""
        self._cuts.append(cut)

    def write_pages(self) -> None:
        """Write the full pages whose redo is durable."""
        with self.lock, self._latch.work:
            while (run := self._fifo.next_run(self._redo.durable_lsn)) is not None:
                self._write(run)
                self._fifo.drop(run)

    def checkpoint(self) -> None:
        """Make everything that is in the log now durable in its files, and note that in the redo log.
        The note counts, and frees room in the redo log, once it is durable itself. A purge that is not finished is
        noted again after it: it has left groups that need files that are gone."""
        with self.lock, self._latch.work:
            with self._ordered:
                lsn = self._redo.end_lsn
                if not self._redo.is_begun or lsn == self._covered_lsn:
                    return
                end, _ = self._snapshot()
                partial = self._fifo.last_partial()
                cuts = self._cuts[:]
                noted_lsn = lsn if self.unfinished is None else self._redo.append([self.unfinished])
            try:
                self._sync(lsn)
                self.write_pages()
                if partial is not None and self._fifo.holds(partial[0]):
                    self._write(partial[1])
                partial = None
            finally:
                if partial is not None:
                    self._fifo.unmark(partial[0])
            for cut in cuts:
                self._cut(cut)
            self._cuts = self._cuts[len(cuts) :]
            self._sync_files(self._dirty)
            with self._ordered:
                _, xa = self._snapshot()
                is_all = self._redo.end_lsn == noted_lsn  # nothing was appended meanwhile
                end_lsn = self._redo.append_checkpoint(Checkpoint(lsn=lsn, end=end, xa=xa))
                if is_all:
                    self._covered_lsn = end_lsn

    def make_file(self, file_no: int, size_pages: int) -> int:
        """Have an empty file of at least this size, durable itself; returns the pages it has.
        The file two before it is complete and durable before: so only two files can ever need the redo log."""
        with self.lock, self._latch.work:
            old = {number for number in self._dirty if number < file_no - 1}
            if old or self._fifo.oldest_file_no() < file_no - 1:
                self._sync(self._redo.end_lsn)
                self.write_pages()
                self._sync_files({number for number in self._dirty if number < file_no - 1})
            size_pages, _ = make_file(self._disk, file_no, size_pages, is_sparse=self._is_sparse)
            self._disk.sync(format_file_name(file_no))
            self._disk.sync_dir()
            return size_pages

    def forget_files(self) -> None:
        """Every file is about to be removed, and all of it was durable."""
        assert not self._cuts
        self._dirty.clear()

    def _write(self, run: PageRun) -> None:
        self._dirty.add(run.file_no)
        self._disk.write(format_file_name(run.file_no), run.first_page_no * PAGE_SIZE, run.data)

    def _cut(self, cut: Cut) -> None:
        name = format_file_name(cut.file_no)
        if self._disk.size(name) > cut.size_pages * PAGE_SIZE:
            self._dirty.add(cut.file_no)
            self._disk.truncate(name, cut.size_pages * PAGE_SIZE)

    def _sync_files(self, numbers: set[int]) -> None:
        for file_no in sorted(numbers):
            self._disk.sync(format_file_name(file_no))
        self._dirty = self._dirty - numbers


def make_file(disk: Disk, file_no: int, size_pages: int, *, is_sparse: bool) -> tuple[int, bool]:
    """Have an empty file of at least this size; returns the pages it has, and whether anything was changed for it.
    The caller makes it durable."""
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
