"""Where a log grows: redo log first, pages in memory, files later: protocol/store/redo-log.md. Order of locks: the
flusher's, the writer's (`ordered`), the redo log's, the durable end's."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVarTuple

from ibbmaster.errors import BusyError, DiskFullError, GtidOrderError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.group_writer import GroupWriter, Ticket
from ibbmaster.logs.log.limits import PAIR_SIZE_MAX
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.appender import Appender, FileShape, PageChange
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.storage.ibb.xa import XaComplete, XaPrepare, Xid, encode_xa_complete, encode_xa_prepare
from .durable_end import DurableEnd, LogStep
from .flusher import Flusher
from .page_fifo import PageFifo
from .recovery import Recovered
from .redo_log import FIRST_LSN, RedoLog
from .redo_record import Cut, Reset, XaEntry, XaState
from .step_writer import NewRecord, Note, Placer, StepWriter
from .store_options import Durability, StoreOptions
from .xa_table import XaTable

Arguments = TypeVarTuple("Arguments")

BULK_BYTES = 1 << 20  # of pages in one step
WAKE_PAGES = 64  # in memory wake the background
STEP_ROOM = 1024  # bytes of a redo record besides pages, states and notes
NOTE_ROOM = 64
PLACE_SIZE_MAX = 40


class LogWriter(StepWriter):
    """Appends steps, each whole or not at all after a crash. Thread-safe."""

    def __init__(self, disk: Disk, options: StoreOptions, found: Recovered, initial_state: GtidState) -> None:
        super().__init__(options.log_limits(), gtid_strict=options.gtid_strict)
        self.options = options
        self._syncs = options.durability is Durability.SYNC  # at hand for each commit
        self._writes = options.durability is Durability.WRITE
        self.wake = threading.Event()
        self.xa = XaTable(found.xa)
        self.fifo = PageFifo()
        self._bulk = page_memory(min(BULK_BYTES, options.redo_bytes // 8 // PAGE_SIZE * PAGE_SIZE))
        self.explain_order: Callable[[GtidOrderError, Gtid, Buffer], GtidOrderError] = lambda error, gtid, record: error
        self._disk = disk
        self._space = threading.Event()
        self._ready: tuple[int, int] | None = None
        end = found.end
        state = initial_state if end is None else end.state
        self.limits.count_pairs(state)
        self.durable = DurableEnd(LOG_START if end is None else end.position, state)
        first_lsn = FIRST_LSN if end is None else end.header.start_lsn + end.size_pages * PAGE_SIZE
        self.redo = RedoLog(
            disk,
            segment_bytes=options.redo_bytes // 2,
            scan=found.scan,
            first_lsn=first_lsn,
            latch=self.latch,
            synced=self.durable.advance,
        )
        self.flusher = Flusher(
            disk=disk,
            redo=self.redo,
            fifo=self.fifo,
            ordered=self.ordered,
            latch=self.latch,
            snapshot=lambda: (self.end if self.appender.page_no else None, self.xa.snapshot()),
            sync=self.sync_to,
            is_sparse=options.is_sparse,
        )
        self.checkpoint = self.flusher.checkpoint
        if end is None:
            self.appender = self._new_appender(state)
            self._begin_log()
            return
        self.appender = end.appender(disk, next_shape=self._next_shape, references=self._references)
        if end.position.page_offset:
            file_no, page_no = end.position.file_no, end.position.page_no
            data = disk.read(format_file_name(file_no), page_no * PAGE_SIZE, PAGE_SIZE)
            self.fifo.load_last(file_no, page_no, data, end.position.page_offset)

    def append_commit(self, group: GroupWriter | None, record: Buffer, gtid: Gtid | None) -> Ticket:
        ticket = None if gtid is None else self._append_inside(record, gtid, group)
        return self.append_end(record, gtid, group=group) if ticket is None else ticket

    def append_prepare(self, group: GroupWriter, xid: Xid, engine_count: int, stream: OobStream | None) -> None:
        def entry() -> tuple[XaEntry]:
            self.xa.check_room(xid)
            first_file_no = self.open_groups[group]
            state = XaState.PREPARED
            return (
                XaEntry(xid=xid, state=state, engine_count=engine_count, first_file_no=first_file_no, stream=stream),
            )

        assert stream is not None
        prepare = XaPrepare(engine_count=engine_count, xid=xid, stream=stream)
        record = NewRecord(RecordType.XA_PREPARE, encode_xa_prepare(prepare))
        _, lsn = self.append([record], notes=entry, group=group)
        self.make_durable(Ticket(LogPosition(0, 0), lsn))

    def make_durable(self, ticket: Ticket) -> None:
        if self._syncs:
            self.retrying(self.redo.sync, ticket.lsn)
            return
        if self._writes:
            self.retrying(self.redo.write)
        if self.durable.is_far_behind:
            self.sync()

    def append_end(
        self, record: Buffer, gtid: Gtid | None, *, entry: XaEntry | None = None, group: GroupWriter | None = None
    ) -> Ticket:
        """Append a commit record, and before it the completion of `entry` if it ends a prepared transaction. Raises
        GtidOrderError: nothing was appended, the GTID is not newer; StoreError: as `append`."""
        commit = NewRecord(RecordType.COMMIT, record, gtid)
        try:
            if entry is not None:
                return self.append_completion(entry, commit)
            refs, lsn = self.append([commit], group=group)
        except GtidOrderError as error:
            assert gtid is not None
            raise self.explain_order(error, gtid, record) from None
        return Ticket(refs[-1], lsn)

    def _append_inside(self, record: Buffer, gtid: Gtid, group: GroupWriter | None) -> Ticket | None:
        """As `append_end` for a record that ends inside the current page; None, with nothing done, for others.

        Nearly every commit is such a record. It takes few calls: while one commit waits for the disk, others use the
        caches of the CPU, and each first call of a function after that costs a microsecond or more."""
        size = len(record)
        self._wait_until_ready(self._step_size, size)
        try:
            appender, open_page = self.appender, self.fifo.open_page
            if open_page is None or size > self.limits.record_size_max or not appender.state.is_continued_by(gtid):
                return None
            file_no, page_no, page_offset = appender.file_no, appender.page_no, appender.page_offset
            assert open_page.end == page_offset
            try:
                chunk = appender.append_inside(RecordType.COMMIT, record, gtid)
                if chunk is None:
                    return None
                lsn = self.redo.append_change(file_no, page_no, page_offset, chunk)
                self.fifo.extend(chunk, lsn)
                if group is not None:
                    self.open_groups.pop(group, None)
                ref = LogPosition(file_no, page_no * PAGE_SIZE + page_offset)
                self.durable.add(LogStep(lsn, LogPosition(file_no, ref.offset + len(chunk)), (gtid,), ()))
            except BaseException as error:
                self.changing.hear(error)
                raise
            return Ticket(ref, lsn)
        finally:
            self.ordered.release()

    def place(self, placer: Placer) -> Ticket | None:
        """Append what a kernel places, in one step; None if that is nothing. Raises as `append`."""
        self._take_room(len(self._bulk))
        try:
            appender, begin = self.appender, self.appender.page_offset
            pages = self._bulk
            end, gtids = placer(pages, begin, min(len(pages), (appender.plain_end - appender.page_no) * PAGE_SIZE))
            if not gtids:
                return None
            file_no, page_no = appender.file_no, appender.page_no
            changes = []
            for start in range(0, end, PAGE_SIZE):
                piece = bytes(pages[start + begin : min(end, start + DATA_SIZE)])
                changes.append(PageChange(file_no, page_no + start // PAGE_SIZE, begin, piece))
                begin = 0
            with self.changing:
                appender.continue_at(page_no + end // PAGE_SIZE, end % PAGE_SIZE, gtids)
                return Ticket(LogPosition(file_no, 0), self._log(changes, (), gtids))
        finally:
            self.ordered.release()

    def append_completion(self, entry: XaEntry, *commit: NewRecord) -> Ticket:
        """By a commit record or, without one, a rollback."""

        def note() -> tuple[XaEntry]:
            if self.xa.get(entry.xid) is not entry:
                raise StoreError("the transaction was finished meanwhile, by another thread")
            return (replace(entry, state=XaState.FINISHED),)

        complete = encode_xa_complete(XaComplete(xid=entry.xid, is_rollback=not commit))
        refs, lsn = self.append([NewRecord(RecordType.XA_COMPLETE, complete), *commit], notes=note)
        return Ticket(refs[-1], lsn)

    def flush(self, dropped_domain_ids: tuple[int, ...], check: Callable[[], None]) -> None:
        """End the active file and begin the next; `check` may refuse it once no other thread can append."""
        with self._room(lambda: PAGE_SIZE + STEP_ROOM + 3 * self.limits.state_size_max):
            check()
            with self.latch.step:
                for domain_id in dropped_domain_ids:
                    self.appender.drop_domain(domain_id)
                file_no = self.appender.file_no
                kept, changes = self.appender.flush()
                cut = Cut(file_no=file_no, size_pages=kept)
                lsn = self._log(changes, (cut,), dropped_domain_ids=dropped_domain_ids)
                self.flusher.cut(cut)
        self.sync_to(lsn)
        self.retrying(self.checkpoint)

    def _log(
        self,
        changes: list[PageChange],
        notes: tuple[Note | Cut, ...],
        gtids: tuple[Gtid, ...] = (),
        dropped_domain_ids: tuple[int, ...] = (),
    ) -> int:
        lsn = self.redo.append([*self.fifo.whole_changes(changes), *notes])
        held = self.fifo.place(changes, lsn)
        if held >= WAKE_PAGES or (self._ready is not None and self._ready[0] <= self.appender.file_no):
            self.wake.set()
        self.durable.add(LogStep(lsn, self.end, gtids, dropped_domain_ids))
        return lsn

    def reset(self, state: GtidState, remove_files: Callable[[], None], *, if_empty: bool) -> None:
        """Begin again with number 0; once that is decided durably, `remove_files` removes every file."""
        with self.flusher.lock, self._room(lambda: PAGE_SIZE + STEP_ROOM + 2 * len(state) * PAIR_SIZE_MAX):
            if self.open_groups or len(self.xa):
                raise BusyError("RESET: the log is in use by a group that is open, or by a prepared transaction")
            if if_empty and self.appender.state:
                raise BusyError("RESET: a GTID has been logged meanwhile")
            with self.latch.unrepeatable:
                self.retrying(self.checkpoint)
                self._reset_now(state, remove_files)
        self.retrying(self.checkpoint)

    def _reset_now(self, state: GtidState, remove_files: Callable[[], None]) -> None:
        self.appender = self._new_appender(state)
        _, changes = self.appender.flush()
        lsn = self.redo.append([Reset(), *changes])
        self.retrying(self.redo.sync, lsn)
        self.flusher.forget_files()
        remove_files()
        size_pages = self.appender.shape.size_pages
        self.retrying(self.flusher.make_file, 0, size_pages)
        self._ready = None
        self.fifo.clear()
        self.fifo.place(changes, lsn)
        self.durable.restart(self.end, state)

    def _begin_log(self) -> None:
        self.flusher.begin()
        self.flusher.make_file(0, self.appender.shape.size_pages)
        _, changes = self.appender.flush()
        size = PAGE_SIZE + STEP_ROOM + self.limits.state_size_max
        if not self.redo.make_room(size, reserve=self._reserve, xa=self.xa.snapshot):
            raise StoreError("the redo log is too small for the GTID state")
        self._log(changes, ())
        self.flusher.checkpoint()
        self.sync()

    def _new_appender(self, state: GtidState) -> Appender:
        return Appender(file_no=0, next_shape=self._next_shape, references=self._references, state=state)

    def _next_shape(self, file_no: int) -> FileShape:
        size_pages, interval_pages = self.limits.next_file
        if self._ready is not None and self._ready[0] == file_no:
            size_pages = self._ready[1]
        return FileShape(size_pages=size_pages, state_interval_pages=interval_pages, start_lsn=self.redo.end_lsn)

    @contextlib.contextmanager
    def _room(self, size: Callable[[], int]) -> Iterator[None]:
        """Hold `ordered` with room for that many bytes of redo."""
        self._wait_until_ready(lambda _: size())
        try:
            yield
        finally:
            self.ordered.release()

    def _take_room(self, size: int) -> None:
        self._wait_until_ready(self._step_size, size)

    def _wait_until_ready(self, step_size: Callable[[int], int], data_size: int = 0) -> None:
        while True:
            self.ordered.acquire()
            full = None
            try:
                if self._is_ready(step_size(data_size)):
                    return
            except DiskFullError as error:
                full = error
            except BaseException:
                self.ordered.release()
                raise
            self.ordered.release()
            if full is not None:
                self._wait_for_room(full)
            else:
                self.retrying(self._gain_room)

    def _is_ready(self, size: int) -> bool:
        if self.is_closed or self.latch.failure is not None:
            self._check_usable()
        ready, redo = self._ready, self.redo
        return (
            redo.is_begun
            and ready is not None
            and ready[0] == self.appender.file_no + 1
            and ready[1] >= self.limits.next_file[0]
            and len(self.fifo) < self.options.fifo_pages_max
            and redo.make_room(size, reserve=self._reserve, xa=self.xa.snapshot)
        )

    def _gain_room(self) -> None:
        self.flusher.begin()
        self.prepare_next_file()
        if len(self.fifo) >= self.options.fifo_pages_max:
            self.sync()
            self.flusher.write_pages()
        else:
            self.checkpoint()
            self.sync()

    def _step_size(self, data_size: int) -> int:
        pages = data_size // DATA_SIZE + 3
        interval = self.appender.shape.state_interval_pages
        states = 2 + (pages // interval if interval else 0)
        return data_size + PAGE_SIZE + STEP_ROOM + pages * PLACE_SIZE_MAX + states * (self.limits.state_size_max + 100)

    @property
    def _reserve(self) -> int:
        return 2 * (self.xa.size_max + 128 + NOTE_ROOM)

    def retrying(self, action: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
        while True:
            try:
                action(*arguments)
                return
            except DiskFullError as error:
                self._wait_for_room(error)

    def _wait_for_room(self, error: DiskFullError) -> None:
        if not self.options.full_disk_retry_s or self._space.is_set():
            raise error
        self._space.wait(self.options.full_disk_retry_s)

    def stop_waiting(self) -> None:
        """Those who wait for room get a DiskFullError."""
        self._space.set()

    def sync(self) -> None:
        self.sync_to(self.redo.end_lsn)

    def sync_to(self, lsn: int) -> None:
        """One sync serves all who wait for it."""
        self.retrying(self.redo.sync, lsn)

    def needs_checkpoint(self) -> bool:
        return self.redo.used_since_checkpoint > self.options.redo_bytes // 4

    def prepare_next_file(self) -> bool:
        if self._next_file() is None:
            return False
        with self.flusher.lock:  # again: after a wait the file may have been cut, or removed
            wanted = self._next_file()
            if wanted is None:
                return False
            self._ready = wanted[0], self.flusher.make_file(*wanted)
        return True

    def _next_file(self) -> tuple[int, int] | None:
        with self.ordered:
            file_no, (size_pages, _) = self.appender.file_no + 1, self.limits.next_file
            ready = self._ready
        return None if ready is not None and ready[0] == file_no and ready[1] >= size_pages else (file_no, size_pages)
