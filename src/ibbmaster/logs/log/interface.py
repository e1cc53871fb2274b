"""A binlog to read and to write, whatever the format of its files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeGuard, TypeVar, Unpack, runtime_checkable

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.interface import ReadDisk
from .group_writer import GroupWriter, Ticket
from .log_range import WHOLE_FILE, GroupSelection, LogRange
from .purge import PurgeRequest, PurgeResult

OnFault = Callable[[LogPosition, str], object]  # where, and what is wrong there
Kind = TypeVar("Kind")


class LogFile(NamedTuple):
    """One file as SHOW BINARY LOGS lists it."""

    file_no: int
    name: str
    size: int  # in bytes, on disk
    is_packed: bool = False  # offsets in it are others than those on disk


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """Where reading begins, at the head of a file or on a page of it, and what was logged before. `resets` counts
    earlier resets: the position belongs to that log only. `is_restart`: a server start began a traditional file. Unless
    it `is_begun`, the file is unused, and more may be logged before it begins."""

    position: LogPosition
    state: GtidState
    resets: int = 0
    is_restart: bool = False
    is_begun: bool = True


class ReadPart(TypedDict, total=False):
    """What a parallel reader knows of a part of a file: its first bytes, and where it ends."""

    head: Buffer | None
    is_inside_record: bool
    record_type: int  # of the record that continues there


class EventGroups(Protocol):
    """For one reader."""

    @property
    def position(self) -> LogPosition: ...

    def close(self) -> None:
        """A second call does nothing."""

    def next_group(self) -> EventGroup | None:
        """The next durable group, or None at the durable end; then call again later."""


@runtime_checkable
class FarEventGroups(EventGroups, Protocol):
    """Groups of files that must be fetched whole, which may take long."""

    def fetch_ahead(self) -> Future[None] | None:
        """Begin to fetch what comes next, for another call to find; None: it is here. A reader hears of errors."""


@runtime_checkable
class FramedEventGroups(EventGroups, Protocol):
    """A kernel may read them by itself."""

    def check_log(self) -> None:
        """Raises PositionPurgedError: this is no longer the log that the reader began with."""

    def continue_at(self, position: LogPosition, gtids: Iterable[Gtid], **known: Unpack[ReadPart]) -> None:
        """Continue in the same file. `gtids`: the last of each pair on the way, `head`: its first bytes, if known."""


@runtime_checkable
class CachedEventGroups(FramedEventGroups, Protocol):
    def next_group_at_once(self) -> EventGroup:
        """The next group, all of it in memory. Raises BlockingIOError: no group was read."""


@runtime_checkable
class PagedEventGroups(CachedEventGroups, Protocol):
    @property
    def disk(self) -> ReadDisk: ...

    @property
    def log_identity(self) -> Hashable:
        """Distinguishes the files from others of the same names; None while they are not readable."""

    @property
    def expects_more(self) -> bool:
        """After None: whether more is known to come; if it does not, `next_group` raises later."""

    @property
    def may_begin_inside(self) -> bool:
        """Whether no group was read, so the rest of an earlier record may come next."""


class PassedGroups(EventGroups):
    """Groups that pass from a reader of files to a dump, unchanged or changed on the way."""

    def __init__(self, groups: EventGroups) -> None:
        self._groups = groups

    @property
    def position(self) -> LogPosition:
        return self._groups.position

    @property
    def files(self) -> FramedEventGroups | None:
        """The reader of their files, up to the same position; None where a kernel may take nothing from there."""
        return files_of(self._groups)

    @property
    def files_end(self) -> LogPosition | None:
        """Each group of the files that begins before this place comes; None: all do."""
        return files_end_of(self._groups)

    @property
    def changes(self) -> tuple[Any, ...]:
        """The stages that change each group of the files, in order."""
        return changes_of(self._groups)

    def fetch_ahead(self) -> Future[None] | None:
        return self._groups.fetch_ahead() if are_far(self._groups) else None

    def close(self) -> None:
        self._groups.close()


@runtime_checkable
class StagedSource(Protocol):
    @property
    def inner(self) -> LogEngine: ...

    @property
    def choice(self) -> GroupSelection | None:
        """The groups that are left unchanged; None if a choice cannot describe them."""


def files_of(groups: EventGroups) -> FramedEventGroups | None:
    """The reader of files from which kernels may take groups, up to `files_end_of`."""
    return groups if are_framed(groups) else groups.files if are_passed(groups) else None


def files_end_of(groups: EventGroups) -> LogPosition | None:
    return groups.files_end if are_passed(groups) else None


def changes_of(groups: EventGroups) -> tuple[Any, ...]:
    return groups.changes if are_passed(groups) else ()


class GroupSource(Protocol):
    """Many readers may read ranges at once."""

    def close(self) -> None: ...

    def file_name(self, file_no: int) -> str: ...

    def opened_to(self, log_range: LogRange) -> GroupSource:
        """This source once it has a range, which another process may still have to make visible."""
        return self

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        """The groups of a range in order; each body must be read, or dropped, before the next. Reports damage to
        `on_fault`, and continues as far as possible. Raises FormatError, ClassicFormatError: without it."""


class LogEngine(GroupSource, Protocol):
    """A binlog to read. Thread-safe, except the groups it returns, which have one reader each. With `only_cached` a
    call uses memory only. Raises BlockingIOError: with `only_cached`, it would wait for another thread or the disk."""

    def files(self) -> list[LogFile]:
        """Every file, the oldest first, including one that is ready for later use."""

    def end(self, *, only_cached: bool = False) -> LogPosition:
        """The first byte after the durable end, in the active file."""

    def state(self, *, only_cached: bool = False) -> GtidState:
        """What is logged up to the durable end, with `only_cached` up to its last look. The caller owns it."""

    def server_version_of(self, file_no: int) -> str:
        """The version of the server that wrote a file; empty where files do not say it."""
        return ""

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        """Where a replica begins to read; with `only_cached` perhaps too early. Raises PositionPurgedError."""

    def around(self, time: int) -> tuple[LogEngine, int | None]:
        """A part of this log in which it passes a time, in seconds since 1970, and the time of an earlier group."""
        return self, None

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        """A plan to read a file from its head, the oldest by default. Raises KeyError: no such file."""

    def groups(self, plan: ReadPlan) -> EventGroups: ...

    @property
    def reset_count(self) -> int:
        """How often other files replaced the former ones, at the last look."""
        return 0

    @property
    def unfinished(self) -> str | None:
        """A remark on an unfinished event or group at the end, where readers wait for the rest; quick."""
        return None

    @property
    def with_past(self) -> LogEngine:
        """This log with what was logged before it, as far as available: tables come from there."""
        return self

    @property
    def with_left_out(self) -> LogEngine:
        """This log with the groups that its stages leave out: their GTIDs have places, too."""
        return self

    @property
    def is_over(self) -> bool:
        """Whether nothing can follow: this is a part of a log, or a recording, up to its end."""
        return False

    def wait_for_growth(self, timeout_s: float) -> bool:
        """Wait until the durable end has moved since the last call; returns whether it has, False at first."""

    def tell_growth(self, call: Callable[[], object]) -> Callable[[], None] | None:
        """Call this, which must be quick, each time the durable end has moved, in the thread that moved it, until the
        returned function is called. None: this log does not know before it looks."""
        return None

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        """Ranges that hold every group between two positions, each of at least `size` bytes if possible."""
        ranges: list[LogRange] = []
        for file in self.files():
            first = start.offset if file.file_no == start.file_no else 0
            last = end.offset if file.file_no == end.file_no else WHOLE_FILE
            if start.file_no <= file.file_no <= end.file_no and first < last:
                ranges.append(LogRange(file_no=file.file_no, start_offset=first, end_offset=last))
        return ranges

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        end = LogPosition(log_range.file_no, log_range.end_offset)
        with closing(self.groups(self.start_of_file(log_range.file_no))) as groups:
            try:
                while (group := groups.next_group()) is not None and group.start < end:
                    if log_range.holds(group.start):
                        yield group
            except IbbMasterError as error:
                if on_fault is None:
                    raise
                on_fault(groups.position, str(error))


@runtime_checkable
class FileEngine(LogEngine, Protocol):
    """A binlog of files that are streams themselves: a traditional primary sends them as they are."""

    @property
    def checksum_algorithm(self) -> ChecksumAlgorithm:
        """That of the events of the last file."""

    def stored_groups(self, plan: ReadPlan, offset: int = 4) -> FramedEventGroups:
        """Everything from the head of a file on, as it is stored, also what comes later; groups, and other events
        without GTID. The first is the FORMAT_DESCRIPTION, what follows begins at `offset`."""


class _IsOf(Generic[Kind]):
    """`isinstance` for a protocol, which takes 20 us, asked once for each type."""

    def __init__(self, protocol: type) -> None:
        self._protocol = protocol
        self._known: dict[type, bool] = {}

    def __call__(self, one: object) -> TypeGuard[Kind]:
        if type(one) not in self._known:
            self._known[type(one)] = isinstance(one, self._protocol)
        return self._known[type(one)]


are_far: _IsOf[FarEventGroups] = _IsOf(FarEventGroups)
are_framed: _IsOf[FramedEventGroups] = _IsOf(FramedEventGroups)
are_paged: _IsOf[PagedEventGroups] = _IsOf(PagedEventGroups)
are_cached: _IsOf[CachedEventGroups] = _IsOf(CachedEventGroups)
are_passed: _IsOf[PassedGroups] = _IsOf(PassedGroups)
is_staged: _IsOf[StagedSource] = _IsOf(StagedSource)
has_files: _IsOf[FileEngine] = _IsOf(FileEngine)


def groups_from(log: LogEngine, plan: ReadPlan) -> Generator[EventGroup]:
    with closing(log.groups(plan)) as groups:
        while (group := groups.next_group()) is not None:
            yield group


class WritableLogEngine(LogEngine, Protocol):
    """A binlog to read and write. Thread-safe. Source: protocol/store/engine.md, by MariaDB 12.3, handler.h."""

    def write_direct_ordered(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> Ticket:
        """Append one group after all before; it need not be durable yet."""

    def write_direct(self, gtid: Gtid | None, gtid_event: Buffer, body: Iterable[Buffer]) -> LogPosition:
        """Append one group, and return once it is as durable as the options say."""

    def group_commit_ordered(self, last: Ticket) -> None:
        """Make a batch of groups as durable as the options say, given the last of them."""

    def open_group(self) -> GroupWriter: ...

    def flush(self, *, delete_domain_ids: Iterable[int] = ()) -> None: ...

    def reset(self, state: GtidState | None = None) -> None:
        """Remove every file, and begin again with `state`."""

    def purge(self, request: PurgeRequest) -> PurgeResult: ...
