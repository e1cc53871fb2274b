"""Makes a directory of `.ibb` files in bulk: fast, and durable only after a flush.

`BinlogStore` serves logs that must keep what they acknowledge. Invariants:
- A group is wholly in its commit record, or all of it but the GTID event is out of band
  (test_a_small_group_is_one_record_as_in_vector_a, test_an_out_of_band_group_is_that_of_the_worked_example).
- No record reaches over more than two files, whatever the file size and the GTID state
  (test_files_and_intervals_grow_with_the_state_and_records_stay_within_two_files,
  test_pieces_are_at_most_half_a_file_and_as_large_as_was_asked).
- One file is ready ahead of the active one; the file after it is made only when the file before the active one is
  complete and synced (test_a_file_is_made_only_when_the_one_before_the_active_is_complete_and_synced).
- Each full page is written once; `flush` writes the partly filled last page, and writes it again as it grows
  (test_each_page_is_written_once_but_for_the_last_of_a_flush, test_it_makes_no_difference_when_the_pages_are_written).
- After an error of the disk it writes nothing (test_after_an_error_of_the_disk_nothing_is_written_any_more).
- From its making to its end a writer holds the lock of the directory. It never continues in one with a redo log, which
  knows where the files end: `BinlogStore` does (test_beside_a_bulk_writer_every_other_writer_is_told_that_it_is_busy,
  test_a_bulk_writer_leaves_a_log_with_a_redo_log_alone)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Unpack

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.continuation import find_continuation
from ibbmaster.logs.log.end_check import check_unbroken
from ibbmaster.logs.log.group_writer import GroupWriter, write_whole_group
from ibbmaster.logs.log.limits import LogLimits
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.disk.interface import Disk, owning
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.appender import Appender, FileShape, PageChange
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import CHECKSUM, DATA_SIZE, PAGE_SIZE
from ibbmaster.storage.ibb.xa import Xid
from .flusher import make_file
from .redo_names import has_redo_log
from .step_writer import LogSizes, Note, Placer, StepWriter
from .xa_table import XaTable, find_pending_xa

BATCH_PAGES = 64  # 1 MiB
ROOM_PAGES = 20  # for a kernel at least, unless the file ends
Seal = Callable[[memoryview, int], object]  # sets the checksums of that number of first pages


def seal_pages(pages: memoryview, count: int) -> None:
    for start in range(0, count * PAGE_SIZE, PAGE_SIZE):
        CHECKSUM.pack_into(pages, start + DATA_SIZE, crc32c(bytes(pages[start : start + DATA_SIZE])))


class PageWriter:
    """Takes the changes of one file's pages, and writes whole sealed pages: a full one once, and the partly filled last
    one by each `write_out` that finds more in it. To continue in a file with data, give the place after it."""

    def __init__(
        self, disk: Disk, file_no: int, *, page_no: int = 0, page_offset: int = 0, seal: Seal = seal_pages
    ) -> None:
        self.file_no = file_no
        self._disk = disk
        self._name = format_file_name(file_no)
        self._first_no = page_no
        self._batch = page_memory(BATCH_PAGES * PAGE_SIZE)
        self.seal = seal
        self._end = page_offset
        self._is_written = True
        self._is_synced = True
        if page_offset:  # the file has the page, partly filled
            self._batch[:page_offset] = disk.read(self._name, page_no * PAGE_SIZE, page_offset)

    def place(self, change: PageChange) -> None:
        _, page_no, page_offset, data = change
        if page_no - self._first_no >= BATCH_PAGES:
            self.write_out()
        start = (page_no - self._first_no) * PAGE_SIZE + page_offset
        self._end = start + len(data)
        self._batch[start : self._end] = data
        self._is_written = False

    def room(self, page_no: int, page_offset: int) -> tuple[memoryview, int]:
        """Whole pages in which a kernel may place bytes, which `placed` takes, from a position on; and the offset of
        that."""
        if page_no - self._first_no > BATCH_PAGES - ROOM_PAGES:
            self._write_full_pages(page_no, page_offset)
        return self._batch, (page_no - self._first_no) * PAGE_SIZE + page_offset

    def placed(self, end: int) -> tuple[int, int]:
        """Take what was placed up to `end`: the last byte, or the start of the next page. Returns that position."""
        self._end = end if end % PAGE_SIZE else end - (PAGE_SIZE - DATA_SIZE)
        self._is_written = False
        return self._first_no + end // PAGE_SIZE, end % PAGE_SIZE

    def write_out(self) -> None:
        """A partly filled last page stays in the batch, to be written again as it grows."""
        if self._is_written:
            return
        page_count = -(-self._end // PAGE_SIZE)
        last_start = (page_count - 1) * PAGE_SIZE
        batch = self._batch
        unused = last_start + DATA_SIZE - self._end
        if unused > 0:
            batch[self._end : last_start + DATA_SIZE] = bytes(unused)
        self._write(page_count)
        self._is_written = True
        if unused > 0:
            batch[:PAGE_SIZE] = batch[last_start : last_start + PAGE_SIZE]
            self._first_no += page_count - 1
            self._end -= last_start
        else:
            self._first_no += page_count
            self._end = 0

    def _write_full_pages(self, page_no: int, page_offset: int) -> None:
        count = page_no - self._first_no
        self._write(count)
        start = count * PAGE_SIZE
        self._batch[:page_offset] = self._batch[start : start + page_offset]
        self._first_no, self._end = page_no, page_offset
        self._is_written = not page_offset

    def _write(self, page_count: int) -> None:
        self.seal(self._batch, page_count)
        self._is_synced = False
        self._disk.write(self._name, self._first_no * PAGE_SIZE, self._batch[: page_count * PAGE_SIZE])

    def sync(self) -> None:
        if not self._is_synced:
            self._disk.sync(self._name)
            self._is_synced = True


class BinlogWriter(StepWriter):
    """Appends event groups to the log in a directory; begins it, or continues where it ends. Not thread-safe.
    `initial_state` is as in `BinlogStore`, `sizes` are those of `LogLimits`, the other options those of `StoreOptions`.
    What was written is durable after `flush` or `close`. Raises BusyError: another process has the directory;
    ConfigurationError: a size the format does not allow; FormatError: the directory is damaged where it must be read;
    StoreError: it cannot be written, its log cannot be continued, or has a redo log."""

    def __init__(
        self,
        disk: Disk,
        *,
        initial_state: GtidState | None = None,
        is_sparse: bool = False,
        gtid_strict: bool = True,
        **sizes: Unpack[LogSizes],
    ) -> None:
        super().__init__(LogLimits(**sizes), gtid_strict=gtid_strict)
        self.changing = self.latch.unrepeatable
        self._disk = disk
        self._is_sparse = is_sparse
        self._next_lsn = 0
        with owning(disk):
            self._open(initial_state)

    def _open(self, initial_state: GtidState | None) -> None:
        disk = self._disk
        if has_redo_log(disk):
            raise StoreError(f"{disk} has a redo log, which knows where its files end: a BinlogStore goes on with both")
        end = find_continuation(disk)
        if end is not None:
            check_unbroken(disk, end.position)
        self.is_new = end is None
        self.xa = XaTable(() if end is None else find_pending_xa(disk, end))
        state = end.state if end is not None else initial_state or GtidState()
        self.limits.count_pairs(state)
        if end is None:
            self._pages = PageWriter(disk, 0)
            self.appender = Appender(file_no=0, next_shape=self._next_shape, references=self._references, state=state)
        else:
            self.appender = end.appender(disk, next_shape=self._next_shape, references=self._references)
            self._pages = PageWriter(
                disk, end.position.file_no, page_no=end.position.page_no, page_offset=end.position.page_offset
            )
            self._next_lsn = end.header.start_lsn + self.appender.shape.size_pages * PAGE_SIZE
        if end is None:
            _, changes = self.appender.flush()  # so that the directory holds a log
            self._log(changes, (), ())
            self.flush()
        self._make_file(self.appender.file_no + 1)

    @property
    def state(self) -> GtidState:
        """What is logged so far; a copy."""
        return self.appender.state.copy()

    @property
    def current_state(self) -> GtidState:
        """As `state`, but not to be kept: it moves on with the log."""
        return self.appender.state

    def write_group(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> LogPosition:
        """Append one group, as `BinlogStore.write_direct_ordered`. After an error of `body` itself the log lacks the
        group. Raises GtidOrderError: the GTID is not newer; the log is as it was; StoreError: the disk fails, or failed
        before."""
        return write_whole_group(self, gtid, gtid_event, body).ref

    def place(self, placer: Placer) -> None:
        """Append what a kernel places. Raises StoreError: as `flush`."""
        self._check_usable()
        appender = self.appender
        with self.changing:
            pages, start = self._pages.room(appender.page_no, appender.page_offset)
        first_no = appender.page_no - start // PAGE_SIZE
        end, gtids = placer(pages, start, min(len(pages), (appender.plain_end - first_no) * PAGE_SIZE))
        if gtids:
            appender.continue_at(*self._pages.placed(end), gtids)

    def seal_with(self, seal: Seal) -> None:
        self._pages.seal = seal

    def flush(self) -> None:
        """Make every committed group durable. Raises StoreError: the disk fails, or failed before."""
        self._check_usable()
        with self.changing:
            self._pages.write_out()
            self._pages.sync()

    def close(self) -> None:
        """Flush, give up open groups, and give the directory back; a second call does nothing."""
        if self.is_closed:
            return
        try:
            if self.latch.failure is None:
                self.flush()
        finally:
            self.is_closed = True
            self._disk.close()

    def __enter__(self) -> BinlogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append_prepare(self, group: GroupWriter, xid: Xid, engine_count: int, stream: OobStream | None) -> None:
        raise StoreError("a log that is written in bulk takes no prepared groups")

    def _log(self, changes: list[PageChange], notes: tuple[Note, ...], gtids: tuple[Gtid, ...]) -> int:
        for change in changes:
            if change.file_no != self._pages.file_no:
                self._pages.write_out()
                self._pages.sync()
                self._pages = PageWriter(self._disk, change.file_no, seal=self._pages.seal)
                self._make_file(change.file_no + 1)
            self._pages.place(change)
        return 0

    def _next_shape(self, file_no: int) -> FileShape:
        size_pages, interval_pages = self.limits.next_file
        size_pages = self._make_file(file_no, size_pages)
        shape = FileShape(size_pages=size_pages, state_interval_pages=interval_pages, start_lsn=self._next_lsn)
        self._next_lsn += size_pages * PAGE_SIZE
        return shape

    def _make_file(self, file_no: int, size_pages: int | None = None) -> int:
        size_pages, is_changed = make_file(
            self._disk, file_no, size_pages or self.limits.next_file[0], is_sparse=self._is_sparse
        )
        if is_changed:
            self._disk.sync_dir()
        return size_pages
