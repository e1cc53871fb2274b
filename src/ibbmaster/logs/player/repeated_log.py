"""Repeats a recording as one log: endless load, each round with newer GTIDs and later times.

Files of later rounds have later numbers, and so have GTIDs: a position says in which round a replica is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Unpack

from ibbmaster.errors import ConfigurationError, StageError
from ibbmaster.gtid import SEQ_NO_MAX, Gtid, GtidPosition, GtidState
from ibbmaster.logs.log import interface
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.logs.stages.renumbering import Repetition
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header

_NUMBER = re.compile(r"\d+(?=\D*$)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan(interface.ReadPlan):
    there: interface.ReadPlan
    round_no: int


class RepeatedLog(interface.LogEngine):
    """A part of a log that is over, `rounds` times, or up to the last number of a domain; read once. Thread-safe as
    that is. Raises ConfigurationError: there is nothing to repeat, or too often; IbbMasterError."""

    def __init__(self, log: interface.LogEngine, rounds: int | None = None) -> None:
        self._log = log
        self._begin = log.start_of_file()
        self._finish = log.state()
        self._files = [
            file for file in log.files() if self._begin.position.file_no <= file.file_no <= log.end().file_no
        ]
        times: list[int] = []
        highest: dict[int, int] = {}
        self._pairs: set[tuple[int, int]] = set()  # of which the recording has groups
        with closing(log.groups(self._begin)) as groups:
            while (group := groups.next_group()) is not None:
                if group.gtid is not None:
                    times.append(decode_event_header(group.gtid_event).timestamp)
                    domain_id = group.gtid.domain_id
                    before = highest.get(domain_id) or self._begin.state.highest_seq_no(domain_id) or 0
                    highest[domain_id] = max(before, group.gtid.seq_no)
                    self._pairs.add((domain_id, group.gtid.server_id))
        if not times:
            raise ConfigurationError("there is no transaction to repeat")
        self._steps = highest
        domain_id = max(highest, key=lambda one: highest[one])
        possible = SEQ_NO_MAX // highest[domain_id]
        taken = f"a round takes {highest[domain_id]} of them"
        self._limit = f"the numbers of domain {domain_id} end after {possible} rounds, as {taken}"
        if rounds is not None and rounds > possible:
            raise ConfigurationError(f"{self._limit}: play fewer, or without that domain")
        self.last_round_no = (possible if rounds is None else rounds) - 1
        self.is_endless = rounds is None
        self._seconds = max(times) - min(times) + 1
        self._known = 0  # the last round of any reader
        self.round_count = len(times)

    def close(self) -> None:
        self._log.close()

    def repetition(self, round_no: int) -> Repetition:
        steps = {domain_id: step * round_no for domain_id, step in self._steps.items()}
        return Repetition(number=round_no, steps=steps, seconds=self._seconds * round_no)

    def _first_no(self) -> int:
        return self._files[0].file_no

    @property
    def last_file_no(self) -> int:
        return self._files[-1].file_no

    def _shift(self) -> int:
        return self.last_file_no - self._first_no() + 1

    def _round_of(self, file_no: int) -> tuple[int, int]:
        round_no, index = divmod(file_no - self._first_no(), self._shift())
        return round_no, self._first_no() + index

    def end_of_round(self, round_no: int) -> LogPosition:
        return self.place(self._log.end(), round_no)

    def state_after_round(self, round_no: int) -> GtidState:
        return self._state_after(round_no, self._finish)

    def place(self, position: LogPosition, round_no: int) -> LogPosition:
        return position._replace(file_no=position.file_no + round_no * self._shift())

    def _state_after(self, round_no: int, there: GtidState) -> GtidState:
        if not round_no:
            return there.copy()
        before = self.repetition(round_no - 1)
        now = self.repetition(round_no)
        found = GtidState(before.renamed(gtid) if self._repeats(gtid) else gtid for gtid in self._finish)
        begun = self._begin.state
        for gtid in there:
            if self._repeats(gtid) and begun.seq_no(gtid.domain_id, gtid.server_id) != gtid.seq_no:
                found.log(now.renamed(gtid))
        return found

    def _repeats(self, gtid: Gtid) -> bool:
        """Whether the recording has groups of this server and domain; otherwise both precede it."""
        return (gtid.domain_id, gtid.server_id) in self._pairs

    def note_round(self, round_no: int) -> None:
        self._known = max(self._known, round_no)

    def file_name(self, file_no: int) -> str:
        round_no, there = self._round_of(file_no)
        name = self._log.file_name(there)
        if not round_no:
            return name
        added = round_no * self._shift()
        return _NUMBER.sub(lambda match: f"{int(match[0]) + added:0{len(match[0])}}", name)

    def files(self) -> list[interface.LogFile]:
        return [
            file._replace(file_no=file_no, name=self.file_name(file_no))
            for round_no in range(self._known + 1)
            for file in self._files
            for file_no in (file.file_no + round_no * self._shift(),)
        ]

    def end(self, *, only_cached: bool = False) -> LogPosition:
        return self.place(self._log.end(), self._known)

    def state(self, *, only_cached: bool = False) -> GtidState:
        return self._state_after(self._known, self._finish)

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> interface.ReadPlan:
        reached = {domain_id: max(0, gtid.seq_no - 1) for domain_id, gtid in position.items()}
        rounds = {domain_id: reached.get(domain_id, 0) // step for domain_id, step in self._steps.items()}
        round_no = min(rounds.values(), default=0)
        there = dict(self._finish.position())
        for domain_id, gtid in position.items():
            if rounds.get(domain_id, round_no) == round_no:
                there[domain_id] = replace(gtid, seq_no=gtid.seq_no - round_no * self._steps.get(domain_id, 0))
        wanted = [gtid for domain_id, gtid in there.items() if domain_id in position]
        return self._as_here(self._log.seek(GtidPosition(wanted), only_cached=only_cached), round_no)

    def start_of_file(self, file_no: int | None = None) -> interface.ReadPlan:
        if file_no is None:
            return self._as_here(self._log.start_of_file(), 0)
        round_no, there = self._round_of(file_no)
        return self._as_here(self._log.start_of_file(there), round_no)

    def _as_here(self, plan: interface.ReadPlan, round_no: int) -> RoundPlan:
        return RoundPlan(
            position=self.place(plan.position, round_no),
            state=self._state_after(round_no, plan.state),
            there=plan,
            round_no=round_no,
        )

    def groups(self, plan: interface.ReadPlan) -> RepeatedGroups:
        if not isinstance(plan, RoundPlan):
            round_no, there = self._round_of(plan.position.file_no)
            there_at = plan.position._replace(file_no=there)
            plan = RoundPlan(
                position=plan.position, state=plan.state, there=replace(plan, position=there_at), round_no=round_no
            )
        return RepeatedGroups(self, self._log, plan)

    def groups_in(self, log_range: LogRange, *, on_fault: interface.OnFault | None = None) -> Iterator[EventGroup]:
        round_no, there = self._round_of(log_range.file_no)
        repetition = self.repetition(round_no)
        for group in self._log.groups_in(replace(log_range, file_no=there), on_fault=on_fault):
            yield self.repeated(group, repetition)

    def repeated(self, group: EventGroup, repetition: Repetition) -> EventGroup:
        there = replace(
            group, start=self.place(group.start, repetition.number), end=self.place(group.end, repetition.number)
        )
        return there if group.gtid is None or not repetition.number else repetition.pass_on(there)

    @property
    def end_error(self) -> StageError | None:
        """For readers at the end of the last round, where there should be more."""
        if not self.is_endless:
            return None
        return StageError(f"the loop has ended: {self._limit}; play it without that domain, or anew to new replicas")

    @property
    def is_over(self) -> bool:
        return self._known >= self.last_round_no

    def wait_for_growth(self, timeout_s: float) -> bool:
        return self._log.wait_for_growth(timeout_s)

    @property
    def checksum_algorithm(self) -> ChecksumAlgorithm | None:
        return getattr(self._log, "checksum_algorithm", None)


class RepeatedGroups(interface.PassedGroups):
    def __init__(self, log: RepeatedLog, recording: interface.LogEngine, plan: RoundPlan) -> None:
        super().__init__(recording.groups(plan.there))
        self._log = log
        self._recording = recording
        self.round_no = plan.round_no
        self._repetition = log.repetition(plan.round_no)
        log.note_round(plan.round_no)

    @property
    def files(self) -> RepeatedFiles | None:
        return None if self.recorded_files is None else RepeatedFiles(self)

    @property
    def position(self) -> LogPosition:
        return self.place(self._groups.position)

    @property
    def files_end(self) -> LogPosition | None:
        end = super().files_end
        return None if end is None else self.place(end)

    @property
    def changes(self) -> tuple[Any, ...]:
        return (*super().changes, self._repetition)

    @property
    def recorded_files(self) -> interface.FramedEventGroups | None:
        """The reader of the recording's files in this round, from where all of its groups come."""
        return super().files

    def place(self, position: LogPosition) -> LogPosition:
        return self._log.place(position, self.round_no)

    def there(self, position: LogPosition) -> LogPosition | None:
        """A place of this round in the recording; None if it is of a later one."""
        found = self._log.place(position, -self.round_no)
        return found if found.file_no <= self._log.last_file_no else None

    def next_group(self) -> EventGroup | None:
        """Raises StageError: numbers end before rounds."""
        while True:
            group = self._groups.next_group()
            if group is not None:
                return self._log.repeated(group, self._repetition)
            if self.round_no >= self._log.last_round_no:
                if (error := self._log.end_error) is not None:
                    raise error
                return None
            self._groups.close()
            self.round_no += 1
            self._repetition = self._log.repetition(self.round_no)
            self._groups = self._recording.groups(self._recording.start_of_file())
            self._log.note_round(self.round_no)


class RepeatedFiles(interface.FramedEventGroups):
    def __init__(self, groups: RepeatedGroups) -> None:
        self.groups = groups

    @property
    def position(self) -> LogPosition:
        return self.groups.position

    def check_log(self) -> None:
        files = self.groups.recorded_files
        if files is not None:
            files.check_log()

    def continue_at(self, position: LogPosition, gtids: Iterable[Gtid], **known: Unpack[interface.ReadPart]) -> None:
        files, there = self.groups.recorded_files, self.groups.there(position)
        assert files is not None, "kernels have read them"
        assert there is not None, "a round continues in itself"
        files.continue_at(there, gtids, **known)

    def next_group(self) -> EventGroup | None:
        return self.groups.next_group()

    def close(self) -> None:
        self.groups.close()
