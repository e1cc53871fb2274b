"""The `.ibb` engine: a log that does not lose an acknowledged group, without a sync of its files at commit.

How it is durable: protocol/store/redo-log.md. Locks, in the order in which they are taken:
the flusher's, the writer's (`_ordered`), the redo log's, the mark's.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from types import TracebackType
from typing import NamedTuple

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import BusyError, ConfigurationError, DiskFullError, FailedError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.ibb.appender import Appender, FileShape, PageChange, References
from ibbmaster.ibb.chunk import RecordType
from ibbmaster.ibb.commit import CommitHeader, OobStream, encode_commit_header
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.ibb.record import RecordRef
from ibbmaster.ibb.xa import XaComplete, XaPrepare, Xid, encode_xa_complete, encode_xa_prepare
from ibbmaster.store.cleaning import Cleaning
from ibbmaster.store.directory import BinlogDirectory
from ibbmaster.store.disk import Disk
from ibbmaster.store.engine import BinlogFile, Place, TransactionEngine, WritableBinlogEngine
from ibbmaster.store.flusher import Flusher
from ibbmaster.store.group_writer import GroupWriter, Ticket, write_whole_group
from ibbmaster.store.log_shape import MAX_FILE_BYTES, OOB_PIECE_BYTES, PAIR_SIZE_MAX, STATE_INTERVAL_BYTES, LogShape
from ibbmaster.store.page_fifo import PageFifo
from ibbmaster.store.pages import PageReader
from ibbmaster.store.purge import PurgeRequest, PurgeResult, choose_files
from ibbmaster.store.recovery import recover
from ibbmaster.store.redo_log import FIRST_LSN, SEGMENT_BYTES_MIN, RedoLog
from ibbmaster.store.redo_record import Cut, Item, LogEnd, Purge, Reset, XaEntry, XaState
from ibbmaster.store.seek import SeekPlan, seek
from ibbmaster.store.store_reader import StoreReader
from ibbmaster.store.visible_disk import VisibleDisk
from ibbmaster.store.xa_table import XaTable

REDO_BYTES = 32 << 20
FIFO_PAGES_MAX = 1024  # 16 MiB of pages that are not in their files
WAKE_PAGES = 64  # of them wake the background up
PENDING_MAX = 20_000  # groups that are not durable yet
STEP_ROOM = 1024  # bytes of a redo record besides pages, states and notes
PLACE_SIZE_MAX = 40  # bytes of the place of one change


class Durability(IntEnum):
    """When a commit returns, as `innodb_flush_log_at_trx_commit` has it. Readers see durable groups only, always."""

    LATER = 0  # at once; durable within a second
    SYNC = 1  # when it is durable
    WRITE = 2  # when the operating system has it; durable within a second


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Sizes are in bytes.

    `is_sparse`: new files take no room on the disk until they are filled. With
    `full_disk_retry_s` 0 a full disk is an error at once; else a writer waits for room.
    Files are purged automatically when they are older than `expire_s`, or all of them
    larger than `max_total_bytes`, and at least `replicas_needed_for_purge` replicas are
    connected.
    """

    durability: Durability = Durability.SYNC
    max_file_bytes: int = MAX_FILE_BYTES
    state_interval_bytes: int = STATE_INTERVAL_BYTES
    oob_piece_bytes: int = OOB_PIECE_BYTES
    spill_bytes: int = OOB_PIECE_BYTES
    redo_bytes: int = REDO_BYTES
    fifo_pages_max: int = FIFO_PAGES_MAX
    is_sparse: bool = False
    full_disk_retry_s: float = 0.5
    expire_s: float | None = None
    max_total_bytes: int | None = None
    replicas_needed_for_purge: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """What a store says about itself. LSNs count bytes of the redo log."""

    state: str  # "running", "failed" or "closed"
    failure: str | None
    active_file: str
    end_offset: int  # in the active file, durable or not
    durable_file: str
    durable_offset: int
    lsn: int
    durable_lsn: int
    checkpoint_lsn: int
    pages_in_memory: int
    open_groups: int
    prepared: int
    in_cleaning: int


class _Step(NamedTuple):
    """One step of the log that is not durable yet."""

    lsn: int
    end: LogEnd
    gtid: Gtid | None
    dropped: tuple[int, ...]  # domains


class BinlogStore(WritableBinlogEngine):
    """A directory of `.ibb` files that is written and read. Thread-safe.

    Opening it recovers it. `initial_state` is what was logged before the first group of a
    new log; `engines` are those that take part in transactions in two phases. `replay_from`
    is for a copy whose files are older than its redo log.

    Raises:
        BusyError: another process has the directory.
        ConfigurationError: a size the format does not allow.
        DamageError, FormatError: what is in the directory is not what a crash leaves behind.
        StoreError: the directory cannot be read or written.
    """

    def __init__(
        self,
        disk: Disk,
        options: StoreOptions = StoreOptions(),
        *,
        initial_state: GtidState | None = None,
        engines: Iterable[TransactionEngine] = (),
        replay_from: int | None = None,
    ) -> None:
        self.options = options
        self.shape = LogShape(
            max_file_bytes=options.max_file_bytes,
            state_interval_bytes=options.state_interval_bytes,
            oob_piece_bytes=options.oob_piece_bytes,
            spill_bytes=options.spill_bytes,
        )
        if options.redo_bytes < 2 * SEGMENT_BYTES_MIN:
            raise ConfigurationError(f"a redo log of {options.redo_bytes} bytes: at least {2 * SEGMENT_BYTES_MIN}")
        self._disk = disk
        self._ordered = threading.RLock()
        self._growth = threading.Condition()
        self._pending: deque[_Step] = deque()
        self._space = threading.Event()
        self._open_groups: dict[GroupWriter, int] = {}  # the file of its first piece
        self._ready: tuple[int, int] | None = None  # the file after the active one, and its pages
        self._is_closed = False
        self._reset_count = 0
        self._readers: weakref.WeakSet[StoreReader] = weakref.WeakSet()
        self.connected_replicas: Callable[[], int] = lambda: 0
        self.wake = threading.Event()  # set when there is work for the background
        disk.lock()
        try:
            self._open(initial_state or GtidState(), tuple(engines), replay_from)
        except BaseException:
            disk.close()
            raise

    def _open(self, initial_state: GtidState, engines: tuple[TransactionEngine, ...], replay_from: int | None) -> None:
        found = recover(self._disk, replay_from=replay_from)
        self.replayed_records = found.replayed_records
        end = found.end
        self._xa = XaTable(found.xa)
        state = initial_state if end is None else end.state
        self.shape.count_pairs(state)
        self._fifo = PageFifo()
        first_lsn = FIRST_LSN if end is None else end.header.start_lsn + end.size_pages * PAGE_SIZE
        self._redo = RedoLog(
            self._disk, segment_bytes=self.options.redo_bytes // 2, scan=found.scan, first_lsn=first_lsn
        )
        self._flusher = Flusher(
            self._disk,
            redo=self._redo,
            fifo=self._fifo,
            ordered=self._ordered,
            snapshot=lambda: (self._end() if self._appender.page_no else None, self._xa.snapshot()),
            sync=self._sync,
            is_sparse=self.options.is_sparse,
        )
        self._durable_state = state.copy()
        if end is None:
            self._appender = self._new_appender(state)
            self._mark = LogEnd(0, 0, 0)
            self._begin_log()
        else:
            size_pages = max(end.size_pages, end.header.size_pages)
            if end.size_pages < size_pages:  # cut by a flush whose next file was lost
                self._disk.allocate(format_file_name(end.header.file_no), size_pages * PAGE_SIZE)
            self._appender = Appender(
                file_no=end.header.file_no,
                next_shape=self._next_shape,
                references=self._references,
                state=state,
                page_no=end.page_no,
                page_offset=end.page_offset,
                shape=FileShape(
                    size_pages=size_pages,
                    state_interval_pages=end.header.state_interval_pages,
                    start_lsn=end.header.start_lsn,
                ),
                differential=end.differential,
            )
            self._mark = self._end()
            if end.page_offset:
                name = format_file_name(end.header.file_no)
                data = self._disk.read(name, end.page_no * PAGE_SIZE, PAGE_SIZE)
                self._fifo.load_last(end.header.file_no, end.page_no, data, end.page_offset)
        self._seen_mark = self._mark
        self._visible = VisibleDisk(self._disk, self._fifo, lambda: self._mark)
        self._directory = BinlogDirectory(self._visible)
        self._cleaning = Cleaning(self._visible, self._next_to_clean, self._note_finished)
        self._decide(engines, was_replayed=found.was_replayed)
        self.rolled_back = len(self._xa.entries(XaState.ROLLED_BACK))

    # Writing: the engine interface ----------------------------------------------------------

    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
        """Append one group, after all groups appended before; it need not be durable yet.

        The pieces of `body` must not change until this returns. Without `gtid`, the event is
        the FORMAT_DESCRIPTION a server logs when it starts.

        Raises:
            DiskFullError: there is no room, and nobody waits for it; nothing was appended.
            FailedError: the disk failed before.
            StoreError: the disk fails.
        """
        return write_whole_group(self, gtid, gtid_event, body)

    def group_commit_ordered(self, last: Ticket) -> None:
        """Make a batch of groups as durable as was asked for, given the last of them: one sync serves all."""
        self.settle(last)

    def write_direct(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> RecordRef:
        """Append one group and make it as durable as was asked for. Returns where its commit record is."""
        ticket = self.write_direct_ordered(gtid, gtid_event, body)
        self.settle(ticket)
        return ticket.ref

    def open_group(self) -> GroupWriter:
        """Begin a group whose size is not known yet; any number may be open at once."""
        return GroupWriter(self)

    def xa_commit(self, xid: Xid, gtid: Gtid, gtid_event: Buffer) -> RecordRef:
        """Commit a prepared transaction, perhaps one that was prepared before a restart.

        Raises:
            StoreError: there is no such transaction, or as `write_direct`.
        """
        entry = self._prepared(xid)
        assert entry.stream is not None
        record = encode_commit_header(CommitHeader(streams=(entry.stream,))) + gtid_event
        ticket = self._append_commit(record, gtid, entry=entry)
        self.settle(ticket)
        return ticket.ref

    def xa_rollback(self, xid: Xid) -> None:
        """Roll a prepared transaction back.

        Raises:
            StoreError: there is no such transaction, or as `write_direct`.
        """
        entry = self._prepared(xid)
        self.settle(self._append_rollback(entry, XaState.GONE))

    def xa_recover(self) -> list[Xid]:
        """The prepared transactions that wait for their end."""
        with self._ordered:
            return [entry.xid for entry in self._xa.entries(XaState.PREPARED) if entry.engine_count]

    def xa_forget(self, xid: Xid) -> None:
        """The other engines have made a committed transaction durable: its file is not held any longer."""
        with self._ordered:
            entry = self._xa.get(xid)
        if entry is not None and entry.state is XaState.COMMITTED:
            self._append([], notes=[replace(entry, state=XaState.GONE)])

    def sync(self) -> None:
        """Make everything durable that was appended."""
        self._sync(self._redo.end_lsn)

    # For GroupWriter ------------------------------------------------------------------------

    def append_piece(self, group: GroupWriter, record: Buffer) -> RecordRef:
        refs, _ = self._append([(RecordType.OOB_DATA, record, None)], holder=group)
        return refs[0]

    def append_commit(self, group: GroupWriter | None, record: Buffer, gtid: Gtid | None) -> Ticket:
        entry = None
        if group is not None and group.xid is not None:
            with self._ordered:
                entry = self._xa.get(group.xid)
        return self._append_commit(record, gtid, entry=entry, group=group)

    def append_prepare(self, group: GroupWriter, xid: Xid, engine_count: int, stream: OobStream | None) -> None:
        with self._ordered:
            self._xa.check_room(xid)
            first_file_no = self._open_groups.get(group, self._appender.file_no)
        entry = XaEntry(
            xid=xid, state=XaState.PREPARED, engine_count=engine_count, first_file_no=first_file_no, stream=stream
        )
        records: list[tuple[RecordType, Buffer, Gtid | None]] = []
        if engine_count:
            assert stream is not None
            prepare = XaPrepare(engine_count=engine_count, xid=xid, stream=stream)
            records = [(RecordType.XA_PREPARE, encode_xa_prepare(prepare), None)]
        _, lsn = self._append(records, notes=[entry], group=group if engine_count else None)
        self.settle(Ticket(RecordRef(0, 0), lsn))

    def release(self, group: GroupWriter) -> None:
        with self._ordered:
            self._open_groups.pop(group, None)
            entry = None if group.xid is None else self._xa.get(group.xid)
        if entry is not None and not self._is_closed:
            self._append([], notes=[replace(entry, state=XaState.GONE)])

    def settle(self, ticket: Ticket) -> None:
        match self.options.durability:
            case Durability.SYNC:
                self._sync(ticket.lsn)
            case Durability.WRITE:
                self._retrying(self._redo.write)
            case Durability.LATER:
                pass
        if len(self._pending) > PENDING_MAX:
            self.sync()

    # Reading --------------------------------------------------------------------------------

    def files(self) -> list[BinlogFile]:
        return self._directory.files()

    def end(self) -> tuple[str, int]:
        mark = self._mark
        return format_file_name(mark.file_no), mark.page_no * PAGE_SIZE + mark.page_offset

    def binlog_state(self) -> GtidState:
        with self._growth:
            return self._durable_state.copy()

    def initial_state(self) -> GtidState:
        return self.plan_of_file(format_file_name(self._directory.file_numbers()[0])).state

    def seek(self, position: GtidPosition) -> SeekPlan:
        with self._growth:
            active, state = self._mark.file_no, self._durable_state.copy()
        pages = PageReader(self._visible, readahead_pages_max=1)
        oldest = self._directory.file_numbers()[0]
        return seek(pages, position, oldest_file_no=oldest, active_file_no=active, current_state=state)

    def event_groups(self, place: Place) -> StoreReader:
        reader = StoreReader(
            self._directory.event_groups(place),
            resets=lambda: self._reset_count,
        )
        self._readers.add(reader)
        return reader

    def plan_of_file(self, name: str) -> SeekPlan:
        return self._directory.plan_of_file(name)

    def wait_for_growth(self, timeout_s: float) -> bool:
        with self._growth:
            self._growth.wait_for(self._may_grow, timeout_s)
        if self._pending and self._redo.failure is None:
            with contextlib.suppress(DiskFullError):
                self.sync()
        with self._growth:
            has_grown = self._mark != self._seen_mark
            self._seen_mark = self._mark
            return has_grown

    def _may_grow(self) -> bool:
        return self._mark != self._seen_mark or (bool(self._pending) and self._redo.failure is None)

    def status(self) -> StoreStatus:
        with self._ordered:
            end, mark = self._end(), self._mark
            failure = self._redo.failure
            return StoreStatus(
                state="closed" if self._is_closed else "failed" if failure else "running",
                failure=None if failure is None else str(failure),
                active_file=format_file_name(end.file_no),
                end_offset=end.page_no * PAGE_SIZE + end.page_offset,
                durable_file=format_file_name(mark.file_no),
                durable_offset=mark.page_no * PAGE_SIZE + mark.page_offset,
                lsn=self._redo.end_lsn,
                durable_lsn=self._redo.durable_lsn,
                checkpoint_lsn=self._redo.checkpoint.lsn,
                pages_in_memory=len(self._fifo),
                open_groups=len(self._open_groups),
                prepared=len(self._xa.entries(XaState.PREPARED)),
                in_cleaning=len(self._xa.entries(XaState.ROLLED_BACK)),
            )

    # Files' life ----------------------------------------------------------------------------

    def flush(self, *, delete_domain_ids: Iterable[int] = ()) -> None:
        """End the active file where it is, and begin the next; domains no file holds any more can be forgotten.

        Raises:
            BusyError: a file still holds groups of a domain that is to be forgotten.
        """
        dropped = tuple(delete_domain_ids)
        earliest = self.initial_state() if dropped else GtidState()
        with self._room(lambda: PAGE_SIZE + STEP_ROOM + 3 * self.shape.state_size_max):
            for domain_id in dropped:
                _check_unused(domain_id, earliest, self._appender.state)
            lsn = self._flush_now(dropped)
        self._sync(lsn)
        self._retrying(self.checkpoint)

    def reset(self, state: GtidState | None = None) -> None:
        """Remove every file and begin again with number 0, and with `state` as what was logged before.

        Raises:
            BusyError: a group that wrote out of band is open, or a transaction prepared.
        """
        with self._flusher.lock, self._room(lambda: PAGE_SIZE + STEP_ROOM + 2 * len(state or ()) * PAIR_SIZE_MAX):
            if self._open_groups or len(self._xa):
                raise BusyError("RESET: the log is in use by a group that is open, or by a prepared transaction")
            with self._failing(full_disk_too=True):
                self._retrying(self._flusher.checkpoint)
                self._reset_now(state or GtidState())
        self._retrying(self.checkpoint)

    def purge(self, request: PurgeRequest) -> PurgeResult:
        """Remove the oldest files, up to what was asked for or what somebody still needs."""
        with self._flusher.lock:
            self._retrying(self.checkpoint)
            self.sync()
            result = choose_files(
                [
                    (number, self._disk.size(name := format_file_name(number)), self._disk.modified_at(name))
                    for number in self._directory.file_numbers()
                ],
                request,
                needed=self._needed_file_no(),
                oob_file_no=self._oob_file_no,
            )
            if result.file_nos:
                _, lsn = self._append([], notes=[Purge(first_file_no=result.file_nos[-1] + 1)])
                self._sync(lsn)  # from here on the next start finishes it
                for file_no in result.file_nos:
                    self._disk.unlink(format_file_name(file_no))
                with self._failing():
                    self._disk.sync_dir()
            return result

    def purge_automatically(self, *, now: float) -> PurgeResult | None:
        """Purge by age and size, if that was asked for; `now` is in seconds since 1970."""
        options = self.options
        if options.expire_s is None and options.max_total_bytes is None:
            return None
        if self.connected_replicas() < options.replicas_needed_for_purge:
            return None
        before = None if options.expire_s is None else now - options.expire_s
        return self.purge(PurgeRequest(before=before, total_bytes=options.max_total_bytes))

    # In the background ----------------------------------------------------------------------

    def write_pages(self) -> None:
        """Write the full pages whose redo is durable to their files."""
        with self._failing():
            self._flusher.write_pages()

    def checkpoint(self) -> None:
        """Make the files hold everything that is in the log now; recovery then has nothing to do."""
        with self._failing():
            self._flusher.checkpoint()

    def needs_checkpoint(self) -> bool:
        return self._redo.used_since_checkpoint > self.options.redo_bytes // 4

    def prepare_next_file(self) -> bool:
        """Have the file after the active one ready; whether one was made."""
        with self._ordered:
            file_no, (size_pages, _) = self._appender.file_no + 1, self.shape.next_file()
        if self._ready is not None and self._ready[0] == file_no and self._ready[1] >= size_pages:
            return False
        with self._failing():
            made = self._flusher.make_file(file_no, size_pages)
        self._ready = file_no, made
        return True

    def clean_step(self) -> bool:
        """Forget a little of what recovery rolled back; whether there is more."""
        return self._cleaning.step()

    def stop_waiting(self) -> None:
        """Whoever waits for room on the disk gets a DiskFullError now."""
        self._space.set()

    def close(self) -> None:
        """Make everything durable in the files; a second call does nothing. Open groups are given up."""
        if self._is_closed:
            return
        self.stop_waiting()
        self.wake.set()
        try:
            if self._redo.failure is None:
                self.checkpoint()
                self.sync()
        finally:
            self._is_closed = True
            self._disk.close()

    def __enter__(self) -> BinlogStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # One step of the log --------------------------------------------------------------------

    def _append_commit(
        self, record: Buffer, gtid: Gtid | None, *, entry: XaEntry | None = None, group: GroupWriter | None = None
    ) -> Ticket:
        records: list[tuple[RecordType, Buffer, Gtid | None]] = [(RecordType.COMMIT, record, gtid)]
        notes = []
        if entry is not None:
            complete = encode_xa_complete(XaComplete(xid=entry.xid, is_rollback=False))
            records.insert(0, (RecordType.XA_COMPLETE, complete, None))
            notes = [replace(entry, state=XaState.GONE if entry.engine_count == 1 else XaState.COMMITTED)]
        refs, lsn = self._append(records, notes=notes, group=group)
        return Ticket(refs[-1], lsn)

    def _append_rollback(self, entry: XaEntry, state: XaState) -> Ticket:
        complete = encode_xa_complete(XaComplete(xid=entry.xid, is_rollback=True))
        refs, lsn = self._append([(RecordType.XA_COMPLETE, complete, None)], notes=[replace(entry, state=state)])
        return Ticket(refs[-1], lsn)

    def _append(
        self,
        records: list[tuple[RecordType, Buffer, Gtid | None]],
        *,
        notes: Iterable[XaEntry | Purge] = (),
        group: GroupWriter | None = None,
        holder: GroupWriter | None = None,
    ) -> tuple[list[RecordRef], int]:
        """Append records and notes in one step; returns where the records are and the LSN behind the step.

        `group` holds on to nothing any more afterwards; `holder` holds on to the file the
        first record lies in.
        """
        for _, data, _ in records:
            if len(data) > self.shape.record_size_max:
                size_max = self.shape.record_size_max
                raise StoreError(f"a record of {len(data)} bytes: with this file size it can have {size_max}")
        size = sum(len(data) for _, data, _ in records)
        with self._room(lambda: self._step_size(size)), self._failing():
            return self._append_now(records, tuple(notes), group, holder)

    def _append_now(
        self,
        records: list[tuple[RecordType, Buffer, Gtid | None]],
        notes: tuple[XaEntry | Purge, ...],
        group: GroupWriter | None,
        holder: GroupWriter | None,
    ) -> tuple[list[RecordRef], int]:
        gtid = None
        for _, _, logged in records:
            if logged is not None:
                gtid = logged
                if self._appender.state.seq_no(logged.domain_id, logged.server_id) is None:
                    self.shape.add_pair()
        if holder is not None:  # before the record: if it reaches into the next file, that file's header counts it
            self._open_groups.setdefault(holder, self._appender.next_record_file_no)
        refs, changes = [], []
        for record_type, data, logged in records:
            ref, placed = self._appender.append(record_type, data, logged)
            refs.append(ref)
            changes += placed
        for note in notes:
            if isinstance(note, XaEntry):
                self._xa.apply(note)
        if group is not None:
            self._open_groups.pop(group, None)
        return refs, self._log(changes, notes, gtid=gtid)

    def _flush_now(self, dropped: tuple[int, ...]) -> int:
        with self._failing():
            for domain_id in dropped:
                self._appender.drop_domain(domain_id)
            file_no = self._appender.file_no
            kept, changes = self._appender.flush()
            cut = Cut(file_no=file_no, size_pages=kept)
            lsn = self._log(changes, (cut,), dropped=dropped)
            self._flusher.cut(cut)
            return lsn

    def _log(
        self,
        changes: list[PageChange],
        others: Iterable[Item],
        *,
        gtid: Gtid | None = None,
        dropped: tuple[int, ...] = (),
    ) -> int:
        """Put one step into redo log and page FIFO; returns the LSN behind it."""
        lsn = self._redo.append([*self._fifo.whole_changes(changes), *others])
        self._fifo.place(changes, lsn)
        if len(self._fifo) >= WAKE_PAGES or (self._ready is not None and self._ready[0] <= self._appender.file_no):
            self.wake.set()
        with self._growth:
            self._pending.append(_Step(lsn, self._end(), gtid, dropped))
            self._growth.notify_all()
        return lsn

    def _reset_now(self, state: GtidState) -> None:
        self._appender = self._new_appender(state)
        _, changes = self._appender.flush()
        lsn = self._redo.append([Reset(), *changes])
        self._retrying(lambda: self._redo.sync(lsn))
        self._reset_count += 1
        self._flusher.forget_files()
        for file_no in self._directory.file_numbers():
            self._disk.unlink(format_file_name(file_no))
        self._disk.sync_dir()
        size_pages = self._appender.shape.size_pages
        self._retrying(lambda: self._flusher.make_file(0, size_pages))
        self._ready = None
        self._fifo.clear()
        self._fifo.place(changes, lsn)
        with self._growth:
            self._durable_state, self._mark = state.copy(), self._end()
            self._growth.notify_all()
        self._directory = BinlogDirectory(self._visible)

    def _begin_log(self) -> None:
        """Make the first file, with header and state, so that the directory holds a log from now on."""
        self._flusher.begin()
        self._flusher.make_file(0, self._appender.shape.size_pages)
        _, changes = self._appender.flush()
        size = PAGE_SIZE + STEP_ROOM + self.shape.state_size_max
        if not self._redo.make_room(size, reserve=self._reserve, xa=self._xa.snapshot):
            raise StoreError("the redo log is too small for the GTID state")
        self._log(changes, ())
        self._flusher.checkpoint()
        self.sync()

    def _new_appender(self, state: GtidState) -> Appender:
        return Appender(file_no=0, next_shape=self._next_shape, references=self._references, state=state)

    def _next_shape(self, file_no: int) -> FileShape:
        size_pages, interval_pages = self.shape.next_file()
        if self._ready is not None and self._ready[0] == file_no:
            size_pages = self._ready[1]
        return FileShape(size_pages=size_pages, state_interval_pages=interval_pages, start_lsn=self._redo.end_lsn)

    def _references(self) -> References:
        held = [file_no for file_no in (*self._open_groups.values(), self._xa.oldest_file_no) if file_no is not None]
        return References(oob_file_no=min(held, default=None), xa_file_no=self._xa.oldest_file_no)

    def _end(self) -> LogEnd:
        return LogEnd(self._appender.file_no, self._appender.page_no, self._appender.page_offset)

    # Room and durability --------------------------------------------------------------------

    def _is_ready(self, size: int) -> bool:
        """Whether a step of so many bytes of redo can be made without waiting; under the writer's lock."""
        self._check_usable()
        return (
            self._redo.is_begun
            and self._ready is not None
            and self._ready[0] == self._appender.file_no + 1
            and self._ready[1] >= self.shape.next_file()[0]
            and len(self._fifo) < self.options.fifo_pages_max
            and self._redo.make_room(size, reserve=self._reserve, xa=self._xa.snapshot)
        )

    @contextlib.contextmanager
    def _room(self, size: Callable[[], int]) -> Iterator[None]:
        """Hold the writer's lock while there is room for a step of so many bytes of redo; wait for it before."""
        while True:
            full: DiskFullError | None = None
            with self._ordered:
                try:
                    is_ready = self._is_ready(size())
                except DiskFullError as error:
                    full = error
                else:
                    if is_ready:
                        yield
                        return
            if full is not None:
                self._wait_for_room(full)
            else:
                self._gain_room()

    def _gain_room(self) -> None:
        """Do what `_is_ready` misses; wait for room on the disk if that was asked for."""

        def work() -> None:
            with self._failing():
                self._flusher.begin()
            self.prepare_next_file()
            if len(self._fifo) >= self.options.fifo_pages_max:
                self.sync()
                self.write_pages()
            else:
                self.checkpoint()
                self.sync()

        self._retrying(work)

    def _step_size(self, data_size: int) -> int:
        """Bytes of redo that records of so many bytes can need."""
        pages = data_size // DATA_SIZE + 3
        interval = self._appender.shape.state_interval_pages
        states = 2 + (pages // interval if interval else 0)
        return data_size + PAGE_SIZE + STEP_ROOM + pages * PLACE_SIZE_MAX + states * (self.shape.state_size_max + 100)

    @property
    def _reserve(self) -> int:
        return 2 * (self._xa.size_max + 128)

    def _sync(self, lsn: int) -> None:
        self._retrying(lambda: self._redo.sync(lsn))
        self._advance()

    def _advance(self) -> None:
        """Move the durable mark to what the redo log has made durable."""
        durable = self._redo.durable_lsn
        with self._growth:
            while self._pending and self._pending[0].lsn <= durable:
                step = self._pending.popleft()
                self._mark = step.end
                for domain_id in step.dropped:
                    self._durable_state.drop_domain(domain_id)
                if step.gtid is not None:
                    self._durable_state.log(step.gtid)
            self._growth.notify_all()

    def _retrying(self, action: Callable[[], object]) -> None:
        while True:
            try:
                action()
                return
            except DiskFullError as error:
                self._wait_for_room(error)

    def _wait_for_room(self, error: DiskFullError) -> None:
        """Wait a little, or raise the error if nobody wants to wait."""
        if not self.options.full_disk_retry_s or self._space.is_set():
            raise error
        self._space.wait(self.options.full_disk_retry_s)

    def _check_usable(self) -> None:
        if self._is_closed:
            raise StoreError("the store was closed")
        if self._redo.failure is not None:
            raise FailedError(f"the log is not written any further after an error: {self._redo.failure}")

    @contextlib.contextmanager
    def _failing(self, *, full_disk_too: bool = False) -> Iterator[None]:
        """After an error in here memory and disk may differ, so nothing is written any more.

        A full disk is no error, unless it breaks off what cannot be made again.
        """
        try:
            yield
        except BaseException as error:
            if isinstance(error, BusyError) or (isinstance(error, DiskFullError) and not full_disk_too):
                raise
            if self._redo.failure is None:
                self._redo.failure = error if isinstance(error, StoreError) else StoreError(f"interrupted by {error!r}")
            raise

    # Two phases -----------------------------------------------------------------------------

    def _prepared(self, xid: Xid) -> XaEntry:
        with self._ordered:
            entry = self._xa.prepared(xid)
        if not entry.engine_count:
            raise StoreError("the transaction is prepared internally: commit its group")
        return entry

    def _decide(self, engines: tuple[TransactionEngine, ...], *, was_replayed: bool) -> None:
        """One small decision for each transaction in doubt; what it wrote is not looked at.

        Decisions are durable before an engine hears of them, all by one sync: the table that
        this life begins with holds them.

        Source of the rules: MariaDB 12.3, handler.cc, ha_recover_engine_binlog().
        """
        held: dict[Xid, list[TransactionEngine]] = {}
        for engine in engines:
            for xid in engine.prepared():
                held.setdefault(xid, []).append(engine)
        doubtful = self._xa.snapshot()
        incomplete = [
            entry
            for entry in doubtful
            if entry.state is XaState.PREPARED and entry.engine_count > 1 + len(held.get(entry.xid, ()))
        ]
        internal = [entry for entry in doubtful if entry.state is XaState.PREPARED and not entry.engine_count]
        for entry in internal:
            self._xa.apply(replace(entry, state=XaState.ROLLED_BACK))
        if was_replayed or internal:
            self._flusher.begin()
        for entry in incomplete:
            self._append_rollback(entry, XaState.ROLLED_BACK)
        if incomplete:
            self.sync()
        for xid, holders in held.items():
            found = self._xa.get(xid)
            for engine in holders:
                if found is None or found.state is XaState.ROLLED_BACK:
                    engine.rollback_by_xid(xid)
                elif found.state is XaState.COMMITTED:
                    engine.commit_by_xid(xid)
        committed = self._xa.entries(XaState.COMMITTED)
        for entry in committed:
            self.xa_forget(entry.xid)
        if incomplete or committed:
            self.checkpoint()  # so that the next start finds nothing to do
            self.sync()

    def _next_to_clean(self) -> XaEntry | None:
        with self._ordered:
            return next(iter(self._xa.entries(XaState.ROLLED_BACK)), None)

    def _note_finished(self, entry: XaEntry) -> None:
        self._append([], notes=[replace(entry, state=XaState.GONE)])

    # Purge ----------------------------------------------------------------------------------

    def _needed_file_no(self) -> int:
        """The oldest file that somebody needs."""
        with self._ordered:
            needed = [self._appender.file_no, *self._open_groups.values()]
            if self._xa.oldest_file_no is not None:
                needed.append(self._xa.oldest_file_no)
        needed += [min(reader.file_no, self._oob_file_no(reader.file_no)) for reader in list(self._readers)]
        return min(needed)

    def _oob_file_no(self, file_no: int) -> int:
        """The oldest file that the groups of a file may need; the file itself if it was not begun."""
        header = PageReader(self._visible, readahead_pages_max=1).header(file_no)
        return file_no if header is None else header.oob_file_no


def _check_unused(domain_id: int, earliest: GtidState, current: GtidState) -> None:
    before = [gtid for gtid in earliest if gtid.domain_id == domain_id]
    now = [gtid for gtid in current if gtid.domain_id == domain_id]
    if before != now:
        raise BusyError(f"domain {domain_id} cannot be deleted: binlog files still hold groups of it; purge them first")
