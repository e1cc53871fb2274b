"""A log and its archive as one log: a reader that begins before the log gets groups from the archive up to where the
log begins, and the rest from the log.

Places in the archive have file numbers far below zero, so all places keep their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.interface import EventGroups, FramedEventGroups, LogEngine, PassedGroups, ReadPlan
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.skipping import GroupFilter
from ibbmaster.replication.dump.start import check_start
from ibbmaster.replication.event.group import EventGroup
from .archived import ArchivedBinlog

FIRST_FILE_NO = -(1 << 40)  # of the archive: segment 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePlan(ReadPlan):
    there: ReadPlan


class JoinedLog(StagedLog):
    """Thread-safe. `find` opens the archive when it is needed first; None: there is none yet."""

    def __init__(self, log: LogEngine, find: Callable[[], ArchivedBinlog | None]) -> None:
        super().__init__(log)
        self._find = find
        self._found: ArchivedBinlog | None = None
        self._lock = threading.Lock()

    def archive(self) -> ArchivedBinlog | None:
        with self._lock:
            if self._found is None:
                self._found = self._find()
            return self._found

    def file_name(self, file_no: int) -> str:
        if file_no >= 0:
            return super().file_name(file_no)
        assert self._found is not None
        return self._found.file_name(file_no - FIRST_FILE_NO)

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        try:
            return self.inner.seek(position, only_cached=only_cached)
        except PositionPurgedError as error:
            if only_cached:
                raise BlockingIOError("the archive has to be asked") from None
            archive, begin = self.archive(), self.inner.start_of_file()
            if archive is None:
                raise
            if not_reached(begin.state, archive.state()):
                raise PositionPurgedError(
                    f"{error}; the archive ends at '{archive.state()}', before that: groups between are in neither"
                ) from None
        plan = archive.seek(position)
        return ArchivePlan(position=_there(plan.position), state=plan.state, resets=begin.resets, there=plan)

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        return self.inner.start_of_file(file_no)

    def groups(self, plan: ReadPlan) -> EventGroups:
        if not isinstance(plan, ArchivePlan):
            return self.inner.groups(plan)
        archive = self.archive()
        assert archive is not None, "it made the plan"
        return JoinedGroups(self.inner, archive, plan)


class JoinedGroups(PassedGroups):
    """From the archive, and then from the log, once what it begins after has passed."""

    def __init__(self, log: LogEngine, archive: ArchivedBinlog, plan: ArchivePlan) -> None:
        super().__init__(archive.groups(plan.there))
        self._log = log
        self._resets = plan.resets
        self._state = plan.state.copy()
        self._judge: GroupFilter | None = None  # of what the log repeats; None: groups come from the archive
        self._is_begun = False  # what comes from the log
        self._position = plan.position
        self._missing = not_reached(log.start_of_file().state, self._state)

    @property
    def position(self) -> LogPosition:
        return super().position if self._is_begun else self._position

    @property
    def files(self) -> FramedEventGroups | None:
        return super().files if self._is_begun else None

    def next_group(self) -> EventGroup | None:
        """Raises PositionPurgedError: the log has purged what is not archived."""
        if self._judge is None and self._missing:
            group = self._groups.next_group()
            if group is not None:
                return self._of_archive(group)
        if self._judge is None:
            self._judge = self._join()
        while (group := self._groups.next_group()) is not None:
            if self._is_begun or (group.gtid is not None and self._judge.judge(group.gtid).is_wanted):
                self._is_begun = True
                return group
        return None

    def _of_archive(self, group: EventGroup) -> EventGroup:
        assert group.gtid is not None
        self._state.log(group.gtid)
        pair = group.gtid.domain_id, group.gtid.server_id
        if pair in self._missing and group.gtid.seq_no >= self._missing[pair]:
            del self._missing[pair]
        self._position = _there(group.end)
        return replace(group, start=_there(group.start), end=self._position)

    def _join(self) -> GroupFilter:
        """Go on in the log."""
        request = DumpRequest(replica_server_id=0, position=self._state.position())
        check, plan = check_start(request, self._log.state()), self._log.seek(self._state.position())
        if plan.resets != self._resets:
            raise PositionPurgedError("the log was reset while its archive was read")
        self._groups.close()
        self._groups = self._log.groups(plan)
        return GroupFilter(request, check, start_state=plan.state, current_state=self._log.state)


def not_reached(begin: GtidState, state: GtidState) -> dict[tuple[int, int], int]:
    """What a log begins after, by domain and server, and a reader at a state lacks."""
    pairs = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in begin}
    return {pair: seq_no for pair, seq_no in pairs.items() if (state.seq_no(*pair) or 0) < seq_no}


def _there(position: LogPosition) -> LogPosition:
    return position._replace(file_no=position.file_no + FIRST_FILE_NO)
