"""A binlog in memory: the simplest thing that a server can serve and a test can write."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import BusyError, LogResetError, PositionPurgedError, StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.ibb.chunk import RecordType
from ibbmaster.ibb.commit import OobStream
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.group_writer import GroupSink, GroupWriter, Ticket, write_whole_group
from ibbmaster.log.interface import LogFile, ReadPlan, WritableLogEngine
from ibbmaster.log.limits import LogLimits
from ibbmaster.log.purge import PurgeRequest, PurgeResult, choose_files
from ibbmaster.position import LogPosition

HEAD_SIZE = 16384  # of a file without groups, to look like one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    gtid: Gtid | None
    gtid_event: bytes
    body: bytes
    start: LogPosition
    end: LogPosition


class _Unlimited(LogLimits):
    """Nothing has to go out of band."""

    def _limit_records(self) -> None:
        super()._limit_records()
        self.inline_size_max = 2**62


class MemoryBinlog(GroupSink, WritableLogEngine):
    """A `WritableLogEngine` without a disk; every group is durable at once, and there are no prepared ones."""

    def __init__(self, initial_state: GtidState | None = None) -> None:
        self.limits = _Unlimited()
        self._lock = threading.RLock()
        self._growth = threading.Condition(self._lock)
        self.resets = 0
        self._begin(initial_state or GtidState())
        self._seen = 0

    def _begin(self, state: GtidState) -> None:
        self._state = state.copy()
        self._files: dict[int, tuple[GtidState, list[_Group]]] = {0: (state.copy(), [])}
        self._end = HEAD_SIZE  # of the last file
        self._count = 0  # changes since the beginning

    def close(self) -> None:
        """Nothing is held."""

    # Reading

    def files(self) -> list[LogFile]:
        with self._lock:
            return [
                LogFile(
                    file_no=number,
                    name=format_file_name(number),
                    size=groups[-1].end.offset if groups else HEAD_SIZE,
                )
                for number, (_, groups) in self._files.items()
            ]

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    def end(self, *, only_cached: bool = False) -> LogPosition:
        with self._lock:
            return LogPosition(max(self._files), self._end)

    def state(self, *, only_cached: bool = False) -> GtidState:
        with self._lock:
            return self._state.copy()

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        with self._lock:
            for number, (state, _) in reversed(self._files.items()):
                if state.is_before(position):
                    return self._plan(number)
        raise PositionPurgedError("could not find the GTID position: older files were purged")

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        with self._lock:
            return self._plan(min(self._files) if file_no is None else file_no)

    def groups(self, plan: ReadPlan) -> MemoryGroups:
        return MemoryGroups(self, plan)

    def wait_for_growth(self, timeout_s: float) -> bool:
        with self._growth:
            has_grown = self._growth.wait_for(lambda: self._count != self._seen, timeout_s)
            self._seen = self._count
            return has_grown

    def _plan(self, file_no: int) -> ReadPlan:
        state, _ = self._files[file_no]
        return ReadPlan(position=LogPosition(file_no, HEAD_SIZE), state=state.copy(), resets=self.resets)

    def group_at(self, file_no: int, index: int) -> EventGroup | None:
        """A group by its number in a file; None behind the last."""
        with self._lock:
            if file_no not in self._files:
                raise PositionPurgedError(f"{format_file_name(file_no)} was purged")
            groups = self._files[file_no][1]
            if index >= len(groups):
                return None
            group = groups[index]
        return EventGroup(
            gtid=group.gtid,
            gtid_event=group.gtid_event,
            body=iter((group.body,)),
            start=group.start,
            end=group.end,
        )

    def is_last(self, file_no: int) -> bool:
        return file_no == max(self._files)

    # Writing

    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
        return write_whole_group(self, gtid, gtid_event, body)

    def write_direct(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> LogPosition:
        return self.write_direct_ordered(gtid, gtid_event, body).ref

    def group_commit_ordered(self, last: Ticket) -> None:
        """Every group is durable already."""

    def open_group(self) -> GroupWriter:
        return GroupWriter(self)

    def flush(self, *, delete_domain_ids: Iterable[int] = ()) -> None:
        with self._growth:
            for domain_id in delete_domain_ids:
                if [g for g in self._state if g.domain_id == domain_id] != [
                    g for g in self.start_of_file().state if g.domain_id == domain_id
                ]:
                    raise BusyError(f"domain {domain_id} cannot be deleted: binlog files still hold groups of it")
                self._state.drop_domain(domain_id)
            self._files[max(self._files) + 1] = (self._state.copy(), [])
            self._end = HEAD_SIZE
            self._grow()

    def reset(self, state: GtidState | None = None) -> None:
        with self._growth:
            self.resets += 1
            self._begin(state or GtidState())
            self._grow()

    def purge(self, request: PurgeRequest) -> PurgeResult:
        with self._lock:
            result = choose_files(
                [(file.file_no, file.size, 0.0) for file in self.files()],
                request,
                needed=max(self._files),
                oob_file_no=lambda file_no: file_no,
            )
            for file_no in result.file_nos:
                del self._files[file_no]
            return result

    # For GroupWriter

    def append_piece(self, group: GroupWriter, record: Buffer) -> LogPosition:
        raise StoreError(f"nothing of {RecordType.OOB_DATA.name} is kept in memory")

    def append_commit(self, group: GroupWriter | None, record: Buffer, gtid: Gtid | None) -> Ticket:
        record = bytes(record)[1:]  # behind the header of a commit record without out-of-band data
        size = int.from_bytes(record[9:13], "little")
        with self._growth:
            file_no = max(self._files)
            start = LogPosition(file_no, self._end)
            self._end += len(record)
            end = LogPosition(file_no, self._end)
            self._files[file_no][1].append(
                _Group(gtid=gtid, gtid_event=record[:size], body=record[size:], start=start, end=end)
            )
            if gtid is not None:
                self._state.log(gtid)
            self._grow()
        return Ticket(start, 0)

    def append_prepare(self, group: GroupWriter, xid: Xid, engine_count: int, stream: OobStream | None) -> None:
        raise StoreError("a log in memory takes no prepared groups")

    def _grow(self) -> None:
        self._count += 1
        self._growth.notify_all()


class MemoryGroups:
    """The groups from the head of a file on, for one reader."""

    def __init__(self, binlog: MemoryBinlog, plan: ReadPlan) -> None:
        self._binlog = binlog
        self._file_no = plan.position.file_no
        self._index = 0
        self._resets = plan.resets
        self.position = plan.position

    def close(self) -> None:
        """Nothing is held."""

    def next_group(self) -> EventGroup | None:
        while True:
            if self._binlog.resets != self._resets:
                raise LogResetError("the log was reset while it was read")
            group = self._binlog.group_at(self._file_no, self._index)
            if group is not None:
                self._index += 1
                self.position = group.end
                return group
            if self._binlog.is_last(self._file_no):
                return None
            self._file_no, self._index = self._file_no + 1, 0
            self.position = LogPosition(self._file_no, HEAD_SIZE)
