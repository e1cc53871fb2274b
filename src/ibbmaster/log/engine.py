"""What a server needs of a binlog, whoever keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ibbmaster.codec.buffer import Buffer
from ibbmaster.disk.interface import ReadDisk
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.group_writer import GroupWriter, Ticket
from ibbmaster.log.purge import PurgeRequest, PurgeResult
from ibbmaster.position import LogPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogFile:
    """One file as SHOW BINARY LOGS lists it."""

    name: str
    size: int  # in bytes, on disk


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Where reading begins, at the head of a file or on a page of it, and what was logged before."""

    position: LogPosition
    state: GtidState


class EventGroups(Protocol):
    """The groups from a place in the log on, for one reader."""

    @property
    def position(self) -> LogPosition:
        """Where `next_group` goes on: where the last one ended, or what was read further."""

    def close(self) -> None:
        """Nobody reads here any longer: give back what is held. A second call does nothing."""

    def next_group(self) -> EventGroup | None:
        """The next durable group, or None at the durable end; then ask again later."""


@runtime_checkable
class PagedEventGroups(EventGroups, Protocol):
    """Groups that lie in pages of `.ibb` files, so that somebody may read them there."""

    @property
    def disk(self) -> ReadDisk: ...

    def check_log(self) -> None:
        """Whether this is still the log that the reader began with.

        Raises:
            PositionPurgedError: it is not.
        """

    def pass_over(
        self,
        position: LogPosition,
        gtids: Iterable[Gtid],
        *,
        is_inside_record: bool,
        record_type: int = -1,
    ) -> None:
        """Go on at a position in the same file that was read up to; `gtids` are the last of each pair on the way."""


class TransactionEngine(Protocol):
    """Another engine that takes part in transactions in two phases."""

    def prepared(self) -> Iterable[Xid]:
        """What it holds prepared, neither committed nor rolled back."""

    def commit_by_xid(self, xid: Xid) -> None: ...

    def rollback_by_xid(self, xid: Xid) -> None: ...


class BinlogEngine(Protocol):
    """A binlog to read. Thread-safe, but for the groups it hands out: each has one reader."""

    def files(self) -> list[BinlogFile]:
        """Every file, the oldest first, one that is ready for later use included."""

    def file_name(self, file_no: int) -> str:
        """The name of a file of this binlog."""

    def end(self) -> LogPosition:
        """The first byte behind the durable end, in the active file."""

    def binlog_state(self) -> GtidState:
        """What is logged up to the durable end; the caller may keep it."""

    def seek(self, position: GtidPosition) -> ReadPlan:
        """Where a replica at `position` begins to read.

        Raises:
            PositionPurgedError: what it needs is no longer there.
        """

    def event_groups(self, plan: ReadPlan) -> EventGroups:
        """A reader of the groups from where a plan begins."""

    def plan_of_file(self, name: str) -> ReadPlan:
        """To read a file from its head, whatever a replica has.

        Raises:
            KeyError: there is no such file.
        """

    def wait_for_growth(self, timeout_s: float) -> bool:
        """Wait until the durable end has moved since the last call; False if it has not in time, and at first.

        For one who waits, what is logged and not durable is made durable at once.
        """

    def initial_state(self) -> GtidState:
        """What was logged before the oldest file that is there."""


class WritableBinlogEngine(BinlogEngine, Protocol):
    """A binlog to read and write. Thread-safe.

    Source: MariaDB 12.3, handler.h, the binlog methods of handlerton; protocol/store/engine.md says which is which.
    """

    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
        """Append one group behind all that were appended before; it need not be durable yet."""

    def write_direct(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> LogPosition:
        """Append one group, and return once it is as durable as was asked for."""

    def group_commit_ordered(self, last: Ticket) -> None:
        """Make a batch of groups as durable as was asked for, given the last of them."""

    def open_group(self) -> GroupWriter:
        """Begin a group that comes in pieces."""

    def flush(self, *, delete_domain_ids: Iterable[int] = ()) -> None:
        """End the active file, and begin the next."""

    def reset(self, state: GtidState | None = None) -> None:
        """Remove every file, and begin again with `state`."""

    def purge(self, request: PurgeRequest) -> PurgeResult:
        """Remove the oldest files, up to what was asked for or what somebody still needs."""
