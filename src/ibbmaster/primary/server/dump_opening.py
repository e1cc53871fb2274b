"""From the request for a dump to its first event: its refusal, or the begin of its stream."""

import contextlib
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError, LogResetError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.interface import EventGroups, LogEngine, ReadPlan, has_files
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import OpeningTimestamp
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.dump.start import (
    StartCheck,
    check_start,
    choose_file,
    impossible_position,
    opening_file_name,
)
from ibbmaster.replication.event.header import decode_event_header
from .facts import LOOKS_MAX, PrimaryFacts
from .options import PrimaryOptions


class DumpStart(NamedTuple):
    """`start` is the replica's `position`, or None if it asked by file."""

    dump: DumpSession
    groups: EventGroups
    position: GtidPosition
    start: GtidPosition | None
    file_name: str


class DumpOpening:
    def __init__(self, engine: LogEngine, options: PrimaryOptions, facts: PrimaryFacts) -> None:
        self._engine = engine
        self._options = options
        self._facts = facts

    def open(self, request: DumpRequest, *, only_cached: bool = False) -> DumpStart:
        """Check a request, and read all that is needed before the first event.

        Raises:
            BlockingIOError: with `only_cached`, something is not in memory.
            DumpError: it is refused.
            IbbMasterError: the log cannot be read there.
        """
        for _ in range(LOOKS_MAX):
            reset_count = self._engine.reset_count
            with contextlib.suppress(LogResetError):
                opened = self._open(request, only_cached=only_cached)
                if self._engine.reset_count == reset_count:
                    return opened
                opened.groups.close()
        raise LogResetError("the log was reset again and again")

    def _open(self, request: DumpRequest, *, only_cached: bool) -> DumpStart:
        engine, options = self._engine, self._options
        is_of_file = request.position is None
        if only_cached and (is_of_file or options.profile.opening_timestamp is not OpeningTimestamp.ZERO):
            raise BlockingIOError("groups have to be read")
        check = self._check_start(request, only_cached=only_cached)
        if is_of_file:
            plan = self._plan_of_file(request)
        else:
            plan = engine.seek(check.position, only_cached=only_cached)
        file_name = engine.file_name(plan.position.file_no)
        dump = DumpSession(
            request,
            check,
            profile=options.profile,
            server_id=options.server_id,
            start_state=plan.state,
            current_state=engine.state,
            position=plan.position,
            file_name=engine.file_name,
            announced_file_name=opening_file_name(
                request,
                options.profile,
                start_file_name=file_name,
                newest_file_name=lambda: engine.file_name(engine.end(only_cached=only_cached).file_no),
            ),
            started_at=self._facts.started_at,
            opening_timestamp=self._opening_timestamp(plan),
        )
        start = None if is_of_file else check.position
        return DumpStart(dump, self._groups(request, plan), check.position, start, file_name)

    def _check_start(self, request: DumpRequest, *, only_cached: bool) -> StartCheck:
        """A refusal, or an end before the begin, needs a look at the end of the log."""
        state = self._engine.state(only_cached=only_cached)
        try:
            check = check_start(request, state)
        except DumpError:
            if not only_cached:
                raise
            check = None
        if check is None or (only_cached and check.until != request.until):
            raise BlockingIOError("the log may have grown since its end was seen")
        return check

    def _plan_of_file(self, request: DumpRequest) -> ReadPlan:
        files = self._facts.files()
        file = files[choose_file(request, [file.name for file in files])]
        if self._options.profile.sends_files and request.file_position > file.size and not file.is_packed:
            raise impossible_position(request)
        return self._engine.start_of_file(file.file_no)

    def _groups(self, request: DumpRequest, plan: ReadPlan) -> EventGroups:
        engine = self._engine
        if not self._options.profile.sends_files:
            return engine.groups(plan)
        assert has_files(engine)
        if request.position is not None:
            return engine.stored_groups(plan)
        return engine.stored_groups(plan, request.file_position)

    def _opening_timestamp(self, plan: ReadPlan) -> int:
        """In seconds since 1970: that of the first group, or of this primary's start."""
        if self._options.profile.opening_timestamp is OpeningTimestamp.ZERO:
            return 0
        try:
            with contextlib.closing(self._engine.groups(plan)) as groups:
                group = groups.next_group()
        except IbbMasterError:
            group = None  # the dump will report it
        if group is None:
            return self._facts.started_at
        return decode_event_header(group.gtid_event).timestamp
