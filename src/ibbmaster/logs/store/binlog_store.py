"""The `.ibb` engine: a log that keeps every acknowledged group, without a sync of its files at commit."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace

from ibbmaster.errors import BusyError, GtidOrderError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.end_check import check_unbroken
from ibbmaster.logs.log.group_writer import GroupWriter, Ticket, write_whole_group
from ibbmaster.logs.log.gtid_order import explain_order
from ibbmaster.logs.log.interface import LogFile, ReadPlan, WritableLogEngine
from ibbmaster.logs.log.out_of_band import OutOfBandReader
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.purge import PurgeRequest, PurgeResult, choose_files
from ibbmaster.logs.log.seek import SeekPlan, seek
from ibbmaster.logs.log.states import StateRecords
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import Disk, owning
from ibbmaster.storage.ibb.commit import CommitHeader, encode_commit_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.xa import Xid
from .log_writer import LogWriter
from .page_fifo import VisiblePages
from .recovery import recover
from .redo_record import Purge, XaEntry
from .store_options import DEFAULT_OPTIONS, StoreOptions, StoreStatus
from .store_reader import StoreReader


class BinlogStore(WritableLogEngine):
    """A directory of `.ibb` files to read and write. Thread-safe. Opening it recovers it. `initial_state` is the GTID
    state before the first group of a new log, `replay_from` is for a copy whose files are older than its redo log.
    Raises BusyError: another process has the directory; ConfigurationError: a size the format does not allow;
    DamageError, FormatError: no crash leaves the directory as it is; StoreError: it cannot be read or written."""

    def __init__(
        self,
        disk: Disk,
        options: StoreOptions = DEFAULT_OPTIONS,
        *,
        initial_state: GtidState | None = None,
        replay_from: int | None = None,
    ) -> None:
        self.options = options
        self.connected_replicas: Callable[[], int] = lambda: 0
        self._disk = disk
        self._reset_count = 0
        self._records = StateRecords()
        self._readers: weakref.WeakSet[StoreReader] = weakref.WeakSet()
        self._readers_lock = threading.Lock()
        self._purged_to = 0
        self.wanted_file_no: int | None = None
        """Files with lower numbers are to be removed, and something needs one of them."""
        with owning(disk):
            found = recover(disk, replay_from=replay_from)
            self._writer = LogWriter(disk, options, found, initial_state or GtidState())
            writer = self._writer  # with methods of its own
            self.wake, self.sync, self.stop_waiting = writer.wake, writer.sync, writer.stop_waiting
            self.place, self.limits = writer.place, writer.limits
            self.write_pages, self.prepare_next_file = writer.flusher.write_pages, writer.prepare_next_file
            self.checkpoint, self.needs_checkpoint = writer.checkpoint, writer.needs_checkpoint
            self._visible = VisiblePages(disk, self._writer.fifo, lambda: self._writer.durable.mark)
            self._directory = BinlogDirectory(self._visible, known_end=lambda: self._writer.durable.mark)
            self._writer.explain_order = self._explain_order
            self.replayed_records = found.replayed_records
            self.rolled_back = self._roll_back_incomplete()

    def _roll_back_incomplete(self) -> int:
        """Of what other engines lost. Source: MariaDB 12.3, handler.cc, ha_recover_engine_binlog()."""
        writer = self._writer
        incomplete = [entry for entry in writer.xa if entry.engine_count != 1]
        if self.replayed_records:
            writer.flusher.begin()
        for entry in incomplete:
            writer.append_completion(entry)
        if incomplete:
            writer.checkpoint()  # leaves the next start nothing to do
            writer.sync()
        return len(incomplete)

    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
        """The pieces of `body` must not change until this returns. Without `gtid`, the event is the FORMAT_DESCRIPTION
        of a server start. Raises DiskFullError: there is no room, and no wish to wait; nothing was appended;
        DuplicateGtidError: the log has this group, event for event; FailedError: the disk failed before;
        GtidOrderError: the GTID is not newer than those of its domain; StoreError: the disk fails."""
        return write_whole_group(self._writer, gtid, gtid_event, body)

    @property
    def current_state(self) -> GtidState:
        """What is logged, durable or not. It moves on with the log: for a `Placer`."""
        return self._writer.appender.state

    def group_commit_ordered(self, last: Ticket) -> None:
        self._writer.make_durable(last)

    def write_direct(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> LogPosition:
        """Returns the place of the commit record. Raises as `write_direct_ordered`."""
        ticket = write_whole_group(self._writer, gtid, gtid_event, body)
        self._writer.make_durable(ticket)
        return ticket.ref

    def open_group(self) -> GroupWriter:
        """Begin a group of unknown size; any number may be open at once."""
        return GroupWriter(self._writer)

    def xa_commit(self, xid: Xid, gtid: Gtid, gtid_event: Buffer) -> LogPosition:
        """Commit a prepared transaction. Raises StoreError: there is none, or as `write_direct`."""
        entry = self._prepared(xid)
        assert entry.stream is not None
        record = encode_commit_header(CommitHeader(streams=(entry.stream,))) + gtid_event
        ticket = self._writer.append_end(record, gtid, entry=entry)
        self._writer.make_durable(ticket)
        return ticket.ref

    def xa_rollback(self, xid: Xid) -> None:
        """Raises as `xa_commit`."""
        entry = self._prepared(xid)
        self._writer.make_durable(self._writer.append_completion(entry))

    def xa_recover(self) -> list[Xid]:
        with self._writer.ordered:
            return [entry.xid for entry in self._writer.xa]

    def _explain_order(self, error: GtidOrderError, gtid: Gtid, record: Buffer) -> GtidOrderError:
        self.sync()  # makes the last groups readable
        return explain_order(error, gtid, record, self, OutOfBandReader(self._visible))

    def _prepared(self, xid: Xid) -> XaEntry:
        with self._writer.ordered:
            return self._writer.xa.prepared(xid)

    def files(self) -> list[LogFile]:
        return self._directory.files()

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    @property
    def reset_count(self) -> int:
        return self._reset_count

    def end(self, *, only_cached: bool = False) -> LogPosition:
        return self._writer.durable.mark

    def state(self, *, only_cached: bool = False) -> GtidState:
        return self._writer.durable.snapshot()[1]

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> SeekPlan:
        resets = self._reset_count
        mark, state = self._writer.durable.snapshot()
        plan = seek(
            PageReader(self._visible, readahead_pages_max=1, only_cached=only_cached),
            position,
            oldest_file_no=self._directory.file_numbers()[0],
            end=mark,
            current_state=state,
            records=self._records,
        )
        return replace(plan, resets=resets)

    def groups(self, plan: ReadPlan) -> StoreReader:
        reader = StoreReader(
            self._directory.groups(plan),
            resets=lambda: self._reset_count,
            began_at=plan.resets,
            closed=self._forget_reader,
        )
        with self._readers_lock:
            reader.is_purged = reader.file_no < self._purged_to
            if not reader.is_purged:
                self._readers.add(reader)
        return reader

    def _forget_reader(self, reader: StoreReader) -> None:
        with self._readers_lock:
            self._readers.discard(reader)

    def start_of_file(self, file_no: int | None = None) -> SeekPlan:
        resets = self._reset_count
        return replace(self._directory.plan_of_file(file_no, self.state), resets=resets)

    def wait_for_growth(self, timeout_s: float) -> bool:
        durable, latch = self._writer.durable, self._writer.latch
        durable.wait(timeout_s, is_hopeless=lambda: latch.failure is not None)
        if durable.is_behind and latch.failure is None:
            with contextlib.suppress(StoreError):  # the latch has it; readers go on with what is durable
                self.sync()
        return durable.has_moved()

    def tell_growth(self, call: Callable[[], object]) -> Callable[[], None]:
        return self._writer.durable.tell(call)

    def status(self) -> StoreStatus:
        writer = self._writer
        with writer.ordered:
            end, mark, failure = writer.end, writer.durable.mark, writer.latch.failure
            return StoreStatus(
                state="closed" if writer.is_closed else "failed" if failure else "running",
                failure=None if failure is None else str(failure),
                active_file=format_file_name(end.file_no),
                end_offset=end.offset,
                durable_file=format_file_name(mark.file_no),
                durable_offset=mark.offset,
                lsn=writer.redo.end_lsn,
                durable_lsn=writer.redo.durable_lsn,
                checkpoint_lsn=writer.redo.checkpoint.lsn,
                pages_in_memory=len(writer.fifo),
                open_groups=len(writer.open_groups),
                prepared=len(writer.xa),
            )

    def flush(self, *, delete_domain_ids: Iterable[int] = ()) -> None:
        """End the active file, begin the next, and forget domains. Raises BusyError: a file has groups of one."""
        dropped = tuple(delete_domain_ids)
        earliest = self.start_of_file().state if dropped else GtidState()

        def check() -> None:
            for domain_id in dropped:
                before, now = (
                    [gtid for gtid in state if gtid.domain_id == domain_id]
                    for state in (earliest, self._writer.appender.state)
                )
                if before != now:
                    raise BusyError(
                        f"binlog files may contain gtids from the domain ('{domain_id}') being deleted. Make sure to "
                        "first purge those files"
                    )

        self._writer.flush(dropped, check)

    def reset(self, state: GtidState | None = None, *, if_empty: bool = False) -> None:
        """Remove every file and begin again with number 0, and `state` as what was logged before. Raises BusyError: a
        group that wrote out of band is open, or a transaction prepared; or with `if_empty` a GTID was logged."""
        self._writer.reset(state or GtidState(), self._remove_files, if_empty=if_empty)
        self._reset_count += 1  # a search meanwhile may have the old state and the new files

    def _remove_files(self) -> None:
        self._reset_count += 1
        self._purged_to = 0
        self._records = StateRecords()
        for file_no in self._directory.file_numbers():
            self._disk.unlink(format_file_name(file_no))
        self._records = StateRecords()  # a search meanwhile has read some of the old files
        self._disk.sync_dir()

    def purge(self, request: PurgeRequest) -> PurgeResult:
        writer = self._writer
        with writer.flusher.lock:
            self.finish_purge()
            writer.retrying(writer.checkpoint)
            writer.sync()
            sizes = [
                (number, self._disk.size(name := format_file_name(number)), self._disk.modified_at(name))
                for number in self._directory.file_numbers()
            ]
            with self._readers_lock:  # readers that begin from here on know what will be gone
                result = choose_files(sizes, request, needed=self._needed_file_no(), oob_file_no=self._oob_file_no)
                self.wanted_file_no = result.wanted_before if result.kept else None
                purged_before = self._purged_to
                if result.file_nos:
                    self._purged_to = result.file_nos[-1] + 1
            if result.file_nos:
                try:
                    _, lsn = writer.append([], notes=lambda: (Purge(first_file_no=result.file_nos[-1] + 1),))
                    writer.sync_to(lsn)
                except BaseException:
                    self._purged_to = purged_before
                    raise
                writer.flusher.unfinished = Purge(first_file_no=self._purged_to)
            self.finish_purge()
            return result

    def finish_purge(self) -> None:
        """Remove the files that a purge could not; so do later ones, `close` and the next start. Raises StoreError."""
        writer = self._writer
        with writer.flusher.lock:
            if writer.flusher.unfinished is None:
                return
            refused = None
            for name in sorted(self._disk.list()):
                file_no = parse_file_name(name)
                if file_no is not None and file_no < writer.flusher.unfinished.first_file_no:
                    try:
                        self._disk.unlink(name)
                    except StoreError as error:
                        refused = refused or error
            with writer.latch.step:
                self._disk.sync_dir()
            if refused is not None:
                raise refused
            writer.flusher.unfinished = None

    def purge_automatically(self, *, now: float) -> PurgeResult | None:
        """By age and size as the options say; `now` is in seconds since 1970."""
        options = self.options
        if options.expire_s is None and options.max_total_bytes is None:
            return None
        if self.connected_replicas() < options.replicas_needed_for_purge:
            return None
        before = None if options.expire_s is None else now - options.expire_s
        return self.purge(PurgeRequest(before=before, total_bytes=options.max_total_bytes))

    def _needed_file_no(self) -> int:
        with self._writer.ordered:
            needed = [self._writer.appender.file_no, *self._writer.open_groups.values()]
            if self._writer.xa.oldest_file_no is not None:
                needed.append(self._writer.xa.oldest_file_no)
        needed += [reader.file_no for reader in list(self._readers)]
        return min(needed)

    def _oob_file_no(self, file_no: int) -> int:
        """The oldest file that the groups of a file may need; the file itself if it was not begun. After a restart
        MariaDB leaves prepared XA transactions out of the first reference."""
        header = PageReader(self._visible, readahead_pages_max=1).header(file_no)
        if header is None:
            return file_no
        return header.oob_file_no if header.xa_file_no is None else min(header.oob_file_no, header.xa_file_no)

    def check_unbroken(self) -> None:
        """Read the active file to the end of the log, before more follows. Raises FormatError: it is damaged."""
        check_unbroken(self._visible, self._writer.durable.mark)

    def close(self) -> None:
        """Make everything durable in the files; a second call does nothing. Gives up open groups."""
        if self._writer.is_closed:
            return
        self.stop_waiting()
        self.wake.set()
        try:
            if self._writer.latch.failure is None:
                with contextlib.suppress(StoreError):
                    self.finish_purge()
                self.checkpoint()
                self.sync()
        finally:
            self._writer.is_closed = True
            self._disk.close()

    def __enter__(self) -> BinlogStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
