"""The steps of a log, whether each of them becomes durable, or all of them at the end."""

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypedDict

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.group_writer import GroupSink, GroupWriter, Ticket
from ibbmaster.logs.log.gtid_order import check_order
from ibbmaster.logs.log.limits import LogLimits
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.appender import Appender, PageChange, References
from ibbmaster.storage.ibb.chunk import RecordType
from .failure_latch import FailureLatch
from .redo_record import Purge, XaEntry
from .xa_table import XaTable

Note = XaEntry | Purge
Placer = Callable[[memoryview, int, int], tuple[int, tuple[Gtid, ...]]]
"""Places commit records of known pairs, each at most `inline_size_max` long, in pages from one place to another, and
changes nothing before; returns where they end, after the last byte or at the start of the page after a full one,
and the last GTID of each pair."""


class LogSizes(TypedDict, total=False):
    max_file_bytes: int
    state_interval_bytes: int
    oob_piece_bytes: int
    spill_bytes: int


class NewRecord(NamedTuple):
    """A commit record logs `gtid`."""

    type: RecordType
    data: Buffer
    gtid: Gtid | None = None


class StepWriter(GroupSink):
    """Appends records to a log, a step at a time. A subclass has the `appender`, waits for room (`_take_room`) and
    stores changes (`_log`). With `gtid_strict` a GTID must be newer than all of its domain. An error in `changing` ends
    writing."""

    appender: Appender

    def __init__(self, limits: LogLimits, *, gtid_strict: bool) -> None:
        self.limits = limits
        self.ordered = threading.RLock()
        self.open_groups: dict[GroupWriter, int] = {}
        self.xa = XaTable()
        self.latch = FailureLatch()
        self.changing = self.latch.step
        self.is_closed = False
        self._gtid_strict = gtid_strict

    @property
    def end(self) -> LogPosition:
        """The first byte after the last record, durable or not."""
        return self.appender.end

    def append_piece(self, group: GroupWriter, record: Buffer) -> LogPosition:
        refs, _ = self.append([NewRecord(RecordType.OOB_DATA, record)], holder=group)
        return refs[0]

    def append_commit(self, group: GroupWriter | None, record: Buffer, gtid: Gtid | None) -> Ticket:
        refs, lsn = self.append([NewRecord(RecordType.COMMIT, record, gtid)], group=group)
        return Ticket(refs[-1], lsn)

    def release(self, group: GroupWriter) -> None:
        with self.ordered:
            self.open_groups.pop(group, None)

    def append(
        self,
        records: list[NewRecord],
        *,
        notes: Callable[[], tuple[Note, ...]] | None = None,
        group: GroupWriter | None = None,
        holder: GroupWriter | None = None,
    ) -> tuple[list[LogPosition], int]:
        """Append records and notes in one step; returns the places of the records and the LSN after the step. Calls
        `notes` once no other thread can append; it may refuse the step. After it `group` holds no file; `holder` holds
        that of the first record. Raises DiskFullError: there is no room, and no wish to wait; FailedError: the disk
        failed before; GtidOrderError: a GTID is not newer than those of its domain; with these three nothing was
        appended; StoreError: the disk fails, or a record is too large."""
        size, size_max = 0, self.limits.record_size_max
        for _, data, _ in records:
            if len(data) > size_max:
                raise StoreError(f"a record of {len(data)} bytes: with this file size it can have {size_max}")
            size += len(data)
        self._take_room(size)
        try:
            if self._gtid_strict:
                for _, _, gtid in records:
                    if gtid is not None:
                        check_order(self.appender.state, gtid)
            found = () if notes is None else notes()
            with self.changing:
                return self._append_now(records, found, group, holder)
        finally:
            self.ordered.release()

    def _append_now(
        self, records: list[NewRecord], notes: tuple[Note, ...], group: GroupWriter | None, holder: GroupWriter | None
    ) -> tuple[list[LogPosition], int]:
        if holder is not None:  # first: the header of the next file counts a record that reaches into it
            self.open_groups.setdefault(holder, self.appender.next_record_file_no)
        gtids = tuple(logged for _, _, logged in records if logged is not None)
        refs, changes = [], []
        for kind, data, logged in records:
            if logged is not None and self.appender.state.seq_no(logged.domain_id, logged.server_id) is None:
                self.limits.add_pair()
            ref, placed = self.appender.append(kind, data, logged)
            refs.append(ref)
            changes += placed
        for note in notes:
            if isinstance(note, XaEntry):
                self.xa.apply(note)
        if group is not None:
            self.open_groups.pop(group, None)
        return refs, self._log(changes, notes, gtids)

    def _take_room(self, size: int) -> None:
        """Take the lock `ordered` once records of that size can be appended; the caller releases it."""
        self.ordered.acquire()
        try:
            self._check_usable()
        except BaseException:
            self.ordered.release()
            raise

    @abstractmethod
    def _log(self, changes: list[PageChange], notes: tuple[Note, ...], gtids: tuple[Gtid, ...]) -> int:
        """Returns the LSN after it."""

    def _check_usable(self) -> None:
        if self.is_closed:
            raise StoreError("the log was closed")
        self.latch.check()

    def _references(self) -> References:
        held = [file_no for file_no in (*self.open_groups.values(), self.xa.oldest_file_no) if file_no is not None]
        return References(oob_file_no=min(held, default=None), xa_file_no=self.xa.oldest_file_no)
