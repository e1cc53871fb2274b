"""Dumps that wait at one place of a log: what is new there goes to all of their sockets in one loop.

What each of them knows of the log is brought up to that later, and not of all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, Protocol

import trio

from ibbmaster.streaming.block import Block, plain_block
from ibbmaster.streaming.shared import SentSteps, SharedPlace, SharedStep
from ibbmaster.streaming.sink import Sink

STEPS_MIN = 32  # before a dump is brought up to them; about twice as many at most, so that not all are at once


class Missed(NamedTuple):
    """What went out to a dump that has not heard of it yet."""

    steps: SentSteps
    sequence: int  # of the packet that comes next
    sent_at: float  # the last of it


class Member(Protocol):
    """A dump that waits."""

    @property
    def sink(self) -> Sink: ...

    @property
    def has_stage(self) -> bool: ...

    @property
    def sequence(self) -> int:
        """Number of the next packet, once all that it has missed was followed."""

    def note_border(self) -> bool:
        """As its stage does; False where that does more than count."""

    def note_sent(self, size: int) -> bool:
        """As its stage does; False where the dump has to continue by itself."""

    def follow(self, missed: Missed) -> bool:
        """Continue after what went out; False where the dump has to continue by itself."""

    def lead(self, place: SharedPlace | None, missed: Missed | None) -> None:
        """Send what is new, leave that to others at the place, and join them again or wake up."""

    def wake_up(self, missed: Missed | None, rest: Block | None = None) -> None:
        """The dump continues by itself, first with the rest of a block."""


class Crowd:
    """Those who are at one place now, and what they have missed since each has come."""

    def __init__(self, place: SharedPlace | None) -> None:
        """Without `place` it is one dump, of which it is unknown what it shares."""
        self.place = place
        self._sinks: dict[int, dict[Member, Sink]] = {}  # by how far packet numbers are from `_packets`; oldest first
        self._staged: dict[Member, None] = {}
        self._known: dict[Member, tuple[int, int]] = {}  # where each is in these, and the step that it has missed first
        self._steps: list[SharedStep] = []
        self._first = 0  # of the steps, of all that there were
        self._joined: tuple[int, int, SentSteps] | None = None  # the last that were asked for: from where and to where
        self._packets = 0  # of all steps
        self._sent_at = 0.0  # the last of them

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Member]:
        """Those who have missed most come first, of each kind."""
        return chain.from_iterable(self._sinks.values())

    def __contains__(self, member: Member) -> bool:
        return member in self._known

    def add(self, member: Member) -> None:
        """Take one in that has missed nothing."""
        lead = (member.sequence - self._packets) & 0xFF
        self._sinks.setdefault(lead, {})[member] = member.sink
        self._known[member] = lead, self._first + len(self._steps)
        if member.has_stage:
            self._staged[member] = None

    def remove(self, member: Member) -> Missed | None:
        """Let one go, with what it has missed."""
        missed = self._missed(member)
        lead, _ = self._known.pop(member)
        del self._sinks[lead][member]
        if not self._sinks[lead]:
            del self._sinks[lead]
        self._staged.pop(member, None)
        return missed

    def send(self, step: SharedStep) -> Iterator[tuple[Member, Missed | None, Block | None]]:
        """Send a step to all; gives those that are to continue by themselves, with the rest of it."""
        for member in list(self._staged):
            if not member.note_border():
                yield member, self.remove(member), None
        if not self._known:
            return
        rests = self._write(step)
        self._steps.append(step)
        self._packets += step.packets
        self._sent_at = trio.current_time()
        self.place = step.after
        if step.probe is not None:
            step.probe.has_others = True
        size = len(step.block)
        failed = [member for member in self._staged if not member.note_sent(size - len(rests.get(member, b"")))]
        for member, rest in rests.items():
            yield member, self.remove(member), plain_block(rest, step.block.after)
        for member in failed:
            if member not in rests:
                yield member, self.remove(member), None
        for member in self._oldest():
            if not self._bring_up(member):
                yield member, self.remove(member), None
        self._forget_steps()

    def _write(self, step: SharedStep) -> dict[Member, bytes]:
        """What was not taken, of those where something is left: perhaps nothing but what is encrypted already."""
        rests: dict[Member, bytes] = {}
        for lead, sinks in self._sinks.items():
            data = step.numbered((self._packets + lead) & 0xFF)
            size = len(data)
            for member, sink in sinks.items():
                taken = sink.write(data)
                if taken != size or not sink.is_flushed:
                    rests[member] = bytes(data[taken:])
        return rests

    def _missed(self, member: Member) -> Missed | None:
        lead, first = self._known[member]
        last = self._first + len(self._steps)
        if first == last:
            return None
        if self._joined is None or self._joined[:2] != (first, last):  # many have come at the same time
            self._joined = first, last, SentSteps(self._steps[first - self._first :])
        return Missed(self._joined[2], (self._packets + lead) & 0xFF, self._sent_at)

    def _oldest(self) -> list[Member]:
        """Those who are to be brought up to date now."""
        last = self._first + len(self._steps) - STEPS_MIN
        oldest: list[Member] = []
        for sinks in self._sinks.values():
            for member, _ in zip(sinks, range(len(sinks) // STEPS_MIN + 1), strict=False):
                if self._known[member][1] > last:
                    break
                oldest.append(member)
        return oldest

    def _bring_up(self, member: Member) -> bool:
        """Have one follow what it has missed; False where it is to continue by itself."""
        missed = self.remove(member)
        may_stay = missed is None or member.follow(missed)
        self.add(member)
        return may_stay

    def _forget_steps(self) -> None:
        """Keep those that at least one has missed."""
        first = min((self._known[next(iter(sinks))][1] for sinks in self._sinks.values()), default=None)
        count = len(self._steps) if first is None else first - self._first
        del self._steps[:count]
        self._first += count


class Crowds:
    """All dumps of one log that wait at its end."""

    def __init__(self) -> None:
        self._by_place: dict[SharedPlace | Member, Crowd] = {}
        self._of: dict[Member, Crowd] = {}

    def join(self, member: Member, place: SharedPlace | None) -> None:
        """Let a dump wait, at a place if it is known; it has missed nothing."""
        crowd = self._by_place.get(key := member if place is None else place)
        if crowd is None:
            crowd = self._by_place[key] = Crowd(place)
        crowd.add(member)
        self._of[member] = crowd

    def leave(self, member: Member) -> Missed | None:
        """Let a dump wait no longer; gives what it has missed."""
        crowd = self._of.pop(member)
        missed = crowd.remove(member)
        if not crowd:
            self._by_place.pop(member if crowd.place is None else crowd.place)
        return missed

    def __len__(self) -> int:
        return len(self._of)

    def grow(self, generation: int, *, wakes_all: bool = False) -> None:
        """Send what is new, and wake those who need longer for it."""
        for crowd in list(self._by_place.values()):
            for member in list(crowd):
                if wakes_all:
                    member.wake_up(self.leave(member))
                    continue
                step = None if crowd.place is None else crowd.place.step_of(generation)
                if step is not None:
                    self._take(crowd, step)
                    break
                member.lead(crowd.place, self.leave(member))

    def _take(self, crowd: Crowd, step: SharedStep) -> None:
        assert crowd.place is not None
        del self._by_place[crowd.place]
        for member, missed, rest in crowd.send(step):
            del self._of[member]
            member.wake_up(missed, rest)
        if crowd:
            self._put(crowd, step.after)

    def _put(self, crowd: Crowd, place: SharedPlace) -> None:
        """A crowd has come to a place, where others may be."""
        there = self._by_place.setdefault(place, crowd)
        if there is crowd:
            return
        few, many = sorted((there, crowd), key=len)
        self._by_place[place] = many
        for member in list(few):
            missed = few.remove(member)
            if missed is None or member.follow(missed):
                many.add(member)
                self._of[member] = many
            else:
                del self._of[member]
                member.wake_up(None)
