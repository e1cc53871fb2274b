"""Compares two streams of transactions by domain: what only one has, and what differs.

A side is a log or a running primary. The order among domains does not count: each server has its own. A waiting
transaction keeps digests of events, not their bytes.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.api.group import Group
from ibbmaster.api.log import Log
from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.capture.client import PrimaryAddress, groups_between, logged_position
from ibbmaster.logs.log.group_content import group_events
from ibbmaster.replication.event.describe import describe_event
from ibbmaster.replication.event.essence import Essence, Sums, first_difference
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import HEADER, TYPE_OFFSET
from ibbmaster.replication.event.types import type_name

DESCRIBED_MAX = 200  # characters of an event
ONLY_IN_FIRST, ONLY_IN_SECOND, EVENTS = "only in first", "only in second", "events"


class ReadGroup:
    """Of a log; its events are read again each time."""

    def __init__(self, group: Group) -> None:
        self.gtid: Gtid = group.gtid
        self._group = group

    def data(self) -> Iterator[bytes]:
        for event in self._group.events():
            yield event.data
        self._group.release()

    def place(self) -> str:
        return str(self._group.start)


class SentGroup:
    """Sent by a primary, once."""

    def __init__(self, group: EventGroup) -> None:
        assert group.gtid is not None
        self.gtid: Gtid = group.gtid
        self._group: EventGroup | None = group

    def data(self) -> Iterator[bytes]:
        group, self._group = self._group, None
        return iter(()) if group is None else group_events(group)

    def place(self) -> str:
        return ""


ComparedGroup = ReadGroup | SentGroup


class Summed(NamedTuple):
    group: ComparedGroup
    events: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDifference:
    gtid: Gtid  # where the logs have another server there, that of the first
    kind: str  # "only in first", "only in second", "events" (one has more), or the type of the event that differs
    event_no: int | None = None  # among events that count, from 0; None without such a transaction
    part: str = ""  # "time", "server id", "flags", "body from byte N"; empty where unreadable
    first: str = ""  # the transaction, or the event, for people; empty where there is none
    second: str = ""  # likewise
    first_place: str = ""
    second_place: str = ""


@dataclass(slots=True)
class Comparison:
    """Counts while it is iterated over: once."""

    first: Iterator[ComparedGroup]
    second: Iterator[ComparedGroup]
    essence: Essence = field(default_factory=Essence)
    ignores_server_id: bool = False
    equal: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __iter__(self) -> Iterator[LogDifference]:
        """In the order in which both logs reach them. Raises EventError: an event is damaged."""
        for found in self._found():
            if found is None:
                self.equal += 1
            else:
                self.kinds[found.kind] += 1
                yield found

    def _found(self) -> Iterator[LogDifference | None]:
        waiting: tuple[dict[int, deque[Summed]], ...] = (defaultdict(deque), defaultdict(deque))
        sides = [self.first, self.second]
        while any(side is not None for side in sides):
            for number, side in enumerate(sides):
                group = None if side is None else next(side, None)
                if group is None:
                    sides[number] = None  # type: ignore[call-overload]
                    continue
                waiting[number][group.gtid.domain_id].append(self._summed(group))
                yield from self._matched(*(side[group.gtid.domain_id] for side in waiting))
        for one, other in zip((ONLY_IN_FIRST, ONLY_IN_SECOND), waiting, strict=True):
            for queue in other.values():
                yield from (self._alone(one, summed) for summed in queue)

    def _matched(self, first: deque[Summed], second: deque[Summed]) -> Iterator[LogDifference | None]:
        while first and second:
            mine, theirs = first[0].group.gtid, second[0].group.gtid
            if mine.seq_no < theirs.seq_no:
                yield self._alone(ONLY_IN_FIRST, first.popleft())
            elif mine.seq_no > theirs.seq_no:
                yield self._alone(ONLY_IN_SECOND, second.popleft())
            elif mine.server_id != theirs.server_id and not self.ignores_server_id:
                yield self._alone(ONLY_IN_FIRST, first.popleft())
                yield self._alone(ONLY_IN_SECOND, second.popleft())
            else:
                yield self._compared(first.popleft(), second.popleft())

    def _alone(self, kind: str, summed: Summed) -> LogDifference:
        place = summed.group.place()
        of_first = kind == ONLY_IN_FIRST
        return LogDifference(
            gtid=summed.group.gtid,
            kind=kind,
            first_place=place if of_first else "",
            second_place="" if of_first else place,
        )

    def _compared(self, first: Summed, second: Summed) -> LogDifference | None:
        number = first_difference(first.events, second.events)
        if number is None:
            return None
        has_both = number < min(len(first.events), len(second.events))
        kind = type_name(first.events[number][0]) if has_both else EVENTS
        (mine, my_text), (theirs, their_text) = self._described(first, number), self._described(second, number)
        return LogDifference(
            gtid=first.group.gtid,
            kind=kind,
            event_no=number,
            part=_part(mine, theirs) if mine and theirs else "",
            first=my_text,
            second=their_text,
            first_place=first.group.place(),
            second_place=second.group.place(),
        )

    def _summed(self, group: ComparedGroup) -> Summed:
        try:
            return Summed(group, self.essence.sums(group.data()))
        except EventError as error:
            raise EventError(f"group {group.gtid} at {group.place()}: {error}") from None

    def _described(self, summed: Summed, number: int) -> tuple[bytes, str]:
        if number >= len(summed.events):
            return b"", ""
        for found, (event, kept) in enumerate(self.essence.of_group(summed.group.data())):
            if found == number:
                size = f"{type_name(event[TYPE_OFFSET])}, {len(event)} bytes"
                text = describe_event(event)[:DESCRIBED_MAX]
                return kept, f"{size}: {text}" if text else size
        return b"", type_name(summed.events[number][0])


def _part(mine: bytes, theirs: bytes) -> str:
    names = ("time", "type", "server id", "size", "position", "flags")
    for name, one, other in zip(names, HEADER.unpack_from(mine), HEADER.unpack_from(theirs), strict=True):
        if one != other:
            return name
    pairs = zip(mine[HEADER.size :], theirs[HEADER.size :], strict=False)
    same = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    return f"body from byte {min(len(mine), len(theirs)) - HEADER.size if same is None else same}"


def lines_of(differences: Iterable[LogDifference], names: tuple[str, str], show: Callable[[str], str]) -> Iterator[str]:
    """For people, a line or three each; `names` are the logs', `show` makes text printable."""
    for one in differences:
        if one.event_no is None:
            name, place = names[one.kind == ONLY_IN_SECOND], one.first_place or one.second_place
            yield f"{one.gtid} only in {name}" + (f", at {place}" if place else "")
            continue
        what = "is in one alone" if one.kind == EVENTS else f"differs{f' in its {one.part}' if one.part else ''}"
        yield f"{one.gtid} event {one.event_no} {what}"
        for name, place, text in ((names[0], one.first_place, one.first), (names[1], one.second_place, one.second)):
            yield show(f"  {name}{f' {place}' if place else ''}: {text or 'no more events'}")


def logged_groups(log: Log) -> Iterator[ReadGroup]:
    return map(ReadGroup, log.groups())


def sent_groups(primary: PrimaryAddress, after: GtidPosition) -> Iterator[SentGroup]:
    """Logged by now, after a position. Raises SourceError: the primary refuses, or breaks off."""
    return map(SentGroup, groups_between(primary, after, logged_position(primary)))
