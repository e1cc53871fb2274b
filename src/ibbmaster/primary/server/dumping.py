"""Who sends the next bytes to a replica: `DumpSender` alone, by the `Turn` of its dump.

- A replica alone that is far behind: a worker thread reads, frames and sends, without coming back for each block.
- Blocks in memory: the event loop frames and sends them, which takes less than a hop to a thread.
- Blocks that may have to wait for a disk: a worker thread frames them, the event loop sends them.
- At the end of the log the dump waits in a `Crowd`, and `LogEnd.announce` sends growth: to wake a task takes longer.
  One dump of a crowd leads and reads for itself; the others get the same bytes with their own packet numbers. A dump
  that cannot go on like this wakes up, and its task continues.

A dump holds one block at most, without a queue: a replica that reads slowly slows down only itself.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import os
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from itertools import chain
from typing import Any, NamedTuple

import trio

from ibbmaster.gtid import GtidState
from ibbmaster.position import LogPosition
from ibbmaster.primary.streaming.block import Block, plain_block
from ibbmaster.primary.streaming.shared import SentSteps, SharedStep, shared_step
from ibbmaster.primary.streaming.sink import Sink, Stage, left_of
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.session import DumpSession
from .client_stream import Sender
from .registry import EndReason, Session

PUMPS_MAX = (os.cpu_count() or 1) + 2  # more threads would wait for each other
FETCH_STEP_S = 0.1  # between looks whether a heartbeat is due
BLOCKS_LED = 4  # before the next dump has its turn: a paced log has one
STEPS_MIN = 32  # before a dump hears of them; at most twice as many, so that not all hear at once

SENDING = "Sending binlog event to slave"  # states as SHOW PROCESSLIST has them
WAITING = "Master has sent all binlog to slave; waiting for more updates"


class Turn(enum.Enum):
    PUMP = "a thread reads and sends"
    READ = "a thread has to look for a block"
    SEND = "a block goes out"
    PASSED = "there was nothing to send on the way"
    WAIT = "the log ends here"
    OVER = "the dump is finished"


class Missed(NamedTuple):
    """Packets that went out to a dump before it heard of them."""

    steps: SentSteps
    sequence: int
    sent_at: float  # the last of it


def _failing_alone(method: Callable[..., bool]) -> Callable[..., bool]:
    """Keep an error for the task of the dump, which raises it; False wakes the task."""

    @functools.wraps(method)
    def call(self: DumpSender, *args: Any) -> bool:
        try:
            return method(self, *args)
        except Exception as error:
            self.failure = self.failure or error
            return False

    return call


class DumpSender:
    def __init__(
        self,
        source: BlockSource,
        session: DumpSession,
        log_end: LogEnd,
        connection: Session,
        sender: Sender,
        stage: Stage | None = None,
    ) -> None:
        self.sink = sender.sink
        self.has_stage = stage is not None
        self.failure: Exception | None = None  # while it waited
        self._stage = stage
        self._source = source
        self._session = session
        self._log_end = log_end
        self._connection = connection
        self._sender = sender
        self._generation = -1  # of the log, before it was looked at
        self._rest: Block | None = None  # of a block that has begun: it comes next
        self._has_asked = False  # a thread has to find what comes next: others rely on it
        self._place: Hashable = None
        self._missed: Missed | None = None
        self._task: trio.lowlevel.Task | None = None

    @property
    def place(self) -> tuple[LogPosition, GtidState] | None:
        is_at_end = self._connection.state == WAITING
        return None if is_at_end else (self._source.position, self._session.sent_state)

    async def begin(self) -> None:
        """Open the stream, with the first groups if they are in memory; then comes `run`."""
        self._session.start()
        self._source.opens_alone = self.has_stage  # whose first block has no group
        self._connection.state = SENDING
        if self._session.has_data_to_send:
            block = self._source.next_block(self._log_end.generation, may_wait=False)
            assert block is not None, "what is queued is there"
            await self._send(block)

    async def run(self, pumps: trio.CapacityLimiter) -> None:
        try:
            turn = Turn.PASSED
            while turn is not Turn.OVER:
                turn, block = self._turn()
                if turn in (Turn.READ, Turn.PUMP) and (fetch := self._source.fetch_ahead()) is not None:
                    await self._fetch(fetch)
                if turn is Turn.READ:
                    turn, block = await self._read()
                if turn is Turn.PUMP:
                    await self._pump(pumps)
                elif turn is Turn.SEND:
                    assert block is not None
                    await self._send(block)
                elif turn is Turn.WAIT:
                    await self._wait_at_end()
                elif turn is Turn.PASSED:
                    self._session.advance_clock(now=trio.current_time())
                    await trio.lowlevel.checkpoint()
        finally:
            if self._source.end_probe():  # it was begun where the log has grown
                self._log_end.announce()

    def _turn(self) -> tuple[Turn, Block | None]:
        """A block comes with SEND and PASSED."""
        self._generation = self._log_end.generation
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return Turn.SEND, rest
        if self._connection.end_reason is EndReason.NEWER_DUMP:
            self._session.terminated_by_newer()
        elif self._connection.end_reason is not None:
            self._session.end_of_service()
        if self._source.is_far_behind and self._stage is None:
            return Turn.PUMP, None
        has_asked, self._has_asked = self._has_asked, False
        block = None if has_asked else self._source.next_block(self._generation, may_wait=False)
        return (Turn.READ, None) if block is None else self._turn_with(block)

    def _turn_with(self, block: Block) -> tuple[Turn, Block | None]:
        if block:
            return Turn.SEND, block
        if self._session.is_finished:
            return Turn.OVER, None
        if self._source.is_at_end:
            return Turn.WAIT, None
        self._session.sent_nothing(now=trio.current_time())
        return Turn.PASSED, block

    async def _fetch(self, fetch: Future[None]) -> None:
        """Wait for what comes from far away; heartbeats go out meanwhile."""
        while not fetch.done() and self._connection.end_reason is None:
            self._session.sent_nothing(now=trio.current_time())
            await trio.to_thread.run_sync(functools.partial(wait, [fetch], timeout=FETCH_STEP_S))
            self._session.advance_clock(now=trio.current_time())
            if self._session.has_data_to_send and not fetch.done():
                block = self._source.next_block(self._generation, may_wait=False)
                assert block is not None, "what is queued is there"
                await self._send(block)

    async def _read(self) -> tuple[Turn, Block | None]:
        generation = self._generation
        try:
            read = functools.partial(self._source.next_block, generation, may_wait=True)
            block = await trio.to_thread.run_sync(read)
        finally:
            if self._source.end_probe() and self._log_end.generation == generation:  # else others are awake already
                self._log_end.announce()
        assert block is not None
        return self._turn_with(block)

    async def _pump(self, pumps: trio.CapacityLimiter) -> None:
        rest, sent_bytes = await trio.to_thread.run_sync(self._source.pump, self.sink, limiter=pumps)
        if sent_bytes or rest:  # else a heartbeat may be due
            await self._send(rest)

    async def _send(self, block: Block) -> None:
        if self._stage is None:
            await self._sender.send(block)
        else:
            await self._stage.pass_on(block, self._sender.send)
        self._session.sent()

    # At the end of the log

    async def _wait_at_end(self) -> None:
        session, connection = self._session, self._connection
        if self._log_end.is_over():
            session.end_of_service()
            return
        session.reached_end(now=trio.current_time())
        if session.is_finished:
            return
        connection.state = WAITING
        with trio.CancelScope(deadline=session.heartbeat_due) as connection.waiting:
            if connection.end_reason is None and self._log_end.generation == self._generation:
                self._task = trio.lowlevel.current_task()
                self._log_end.join(self, self._source.standing)
                await trio.lowlevel.wait_task_rescheduled(self._abort)
        connection.waiting = None
        connection.state = SENDING
        missed, self._missed = self._missed, None
        if missed is not None:
            self.follow(missed)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        session.advance_clock(now=trio.current_time())

    def _abort(self, _: Callable[[], Any]) -> trio.lowlevel.Abort:
        """At once, because the socket may be closed next."""
        self._task = None
        self._missed = self._log_end.leave(self)
        return trio.lowlevel.Abort.SUCCEEDED

    def wake_up(self, missed: Missed | None, rest: Block | None = None) -> None:
        """Have the task continue, first with the rest of a block."""
        assert self._task is not None
        task, self._task = self._task, None
        self._missed = missed
        self._rest = self._rest if rest is None else rest
        trio.lowlevel.reschedule(task)

    @property
    def sequence(self) -> int:
        """Of the next packet, after all steps that it has followed."""
        return self._session.sequence

    @_failing_alone
    def follow(self, missed: Missed) -> bool:
        """Continue after packets that went out; False if the dump has to wake up."""
        self._source.follow(missed.steps, missed.sequence)
        self._session.sent()
        self._session.reached_end(now=missed.sent_at)
        return not self._session.is_finished

    def lead(self, place: Hashable, missed: Missed | None) -> None:
        """Send what is new, share it with the others at the place, and join them or wake up."""
        if (missed is None or self.follow(missed)) and self._sends_all(place):
            self._log_end.join(self, self._place)
        else:
            self.wake_up(None)

    @_failing_alone
    def _sends_all(self, place: Hashable) -> bool:
        """Send without waiting; False if the task has to continue."""
        if self._connection.end_reason is not None or self.has_stage:
            return False
        session, sequence, blocks = self._session, self._session.sequence, list[Block]()
        for _ in range(BLOCKS_LED):
            turn, block = self._turn()
            if turn is Turn.WAIT:
                session.reached_end(now=trio.current_time())
                self._place = self._share(place, blocks, sequence)
                return not session.is_finished
            if turn is Turn.READ:
                self._has_asked = True
                self._share(place, blocks, sequence)
            if block is None or (turn is Turn.SEND and not self._is_out(block)):
                return False
            blocks.append(block)
        return False

    def _is_out(self, block: Block) -> bool:
        left = left_of(block.data(), self.sink)
        self._rest = None if left is None else plain_block(left, block.after)
        self._session.sent()
        return left is None

    def _share(self, place: Hashable, blocks: list[Block], sequence: int) -> Hashable:
        after = self._source.standing
        if after is not None and place is not None and blocks:
            step = shared_step(blocks, sequence, after, self._source.probe)
            if step is not None:
                self._log_end.steps[place] = step
        return after


class Crowd:
    """The dumps at one place, and the steps that each has missed; a few at a time hear of these later."""

    def __init__(self, place: Hashable) -> None:
        """`place` is the `standing` of their sources; None: of one dump, which may share nothing."""
        self.place = place
        self._sinks: dict[int, dict[DumpSender, Sink]] = {}  # by how far packet numbers are from `_packets`; old first
        self._staged: dict[DumpSender, None] = {}
        self._known: dict[DumpSender, tuple[int, int]] = {}  # where each is in `_sinks`, and the first step it missed
        self._steps: list[SharedStep] = []
        self._first = 0  # number of the first of these
        self._joined: tuple[int, int, SentSteps] | None = None  # that were asked for last: from where and to where
        self._packets = 0  # of all steps there were
        self._sent_at = 0.0

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[DumpSender]:
        """Of each kind those that have missed most come first."""
        return chain.from_iterable(self._sinks.values())

    def add(self, dump: DumpSender) -> None:
        lead = (dump.sequence - self._packets) & 0xFF
        self._sinks.setdefault(lead, {})[dump] = dump.sink
        self._known[dump] = lead, self._first + len(self._steps)
        if dump.has_stage:
            self._staged[dump] = None

    def remove(self, dump: DumpSender) -> Missed | None:
        lead, first = self._known.pop(dump)
        del self._sinks[lead][dump]
        if not self._sinks[lead]:
            del self._sinks[lead]
        self._staged.pop(dump, None)
        last = self._first + len(self._steps)
        if first == last:
            return None
        if self._joined is None or self._joined[:2] != (first, last):  # many have come at the same time
            self._joined = first, last, SentSteps(self._steps[first - self._first :])
        return Missed(self._joined[2], (self._packets + lead) & 0xFF, self._sent_at)

    def send(self, step: SharedStep) -> Iterator[tuple[DumpSender, Missed | None, Block | None]]:
        """Yields the dumps that have to wake up, with the rest of the step."""
        for dump in tuple(self._staged):  # a stage hears of every block
            yield dump, self.remove(dump), None
        if not self._known:
            return
        rests: dict[DumpSender, bytes] = {}
        for lead, sinks in self._sinks.items():
            data = step.numbered((self._packets + lead) & 0xFF)
            for dump, sink in sinks.items():
                if (left := left_of(data, sink)) is not None:
                    rests[dump] = left
        self._steps.append(step)
        self._packets += step.packets
        self._sent_at = trio.current_time()
        self.place = step.after
        if step.probe is not None:
            step.probe.has_others = True
        for dump, rest in rests.items():
            yield dump, self.remove(dump), plain_block(rest, step.block.after)
        for dump in self._oldest():
            missed = self.remove(dump)
            may_stay = missed is None or dump.follow(missed)
            self.add(dump)
            if not may_stay:
                yield dump, self.remove(dump), None
        first = min((self._known[next(iter(sinks))][1] for sinks in self._sinks.values()), default=None)
        count = len(self._steps) if first is None else first - self._first
        del self._steps[:count]  # which nobody has missed
        self._first += count

    def _oldest(self) -> list[DumpSender]:
        last = self._first + len(self._steps) - STEPS_MIN
        oldest: list[DumpSender] = []
        for sinks in self._sinks.values():
            for dump, _ in zip(sinks, range(len(sinks) // STEPS_MIN + 1), strict=False):
                if self._known[dump][1] > last:
                    break
                oldest.append(dump)
        return oldest


class LogEnd:
    """The end of one log, and all dumps that wait there."""

    def __init__(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """`is_over`: dumps end here, because nothing more comes."""
        self.is_over = is_over
        self.generation = 0
        """How often the log has grown: what was found at its end before is void. Read it before you look there."""
        self.is_read = False
        """Whether a dump runs, so that growth is of interest."""
        self._readers = 0
        self.steps: dict[Hashable, SharedStep] = {}
        """From a place on, once a dump has got it: good until the log grows again."""
        self._crowds: dict[Hashable, Crowd] = {}  # by place, or by a dump alone
        self._of: dict[DumpSender, Crowd] = {}
        self._is_awaited = trio.Event()

    def __len__(self) -> int:
        return len(self._of)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """A dump runs. What earlier ones knew of the end is void: without a dump nobody announces growth."""
        if not self._readers:
            self.announce()
        self._readers += 1
        self.is_read = True
        try:
            yield
        finally:
            self._readers -= 1
            self.is_read = bool(self._readers)

    async def wait_until_awaited(self) -> None:
        if not self._of:
            self._is_awaited = trio.Event()
            await self._is_awaited.wait()

    def join(self, dump: DumpSender, place: Hashable) -> None:
        """Let a dump wait that has missed nothing, at a place if it is known."""
        crowd = self._crowds.get(key := dump if place is None else place)
        if crowd is None:
            crowd = self._crowds[key] = Crowd(place)
        crowd.add(dump)
        self._of[dump] = crowd
        self._is_awaited.set()

    def leave(self, dump: DumpSender) -> Missed | None:
        crowd = self._of.pop(dump)
        missed = crowd.remove(dump)
        if not crowd:
            self._crowds.pop(dump if crowd.place is None else crowd.place)
        return missed

    def announce(self) -> None:
        """The log has grown: send that to all that wait, or wake them."""
        self.generation += 1
        self.steps = {}
        if not self._of:
            return
        try:
            is_over = self.is_over()
        except Exception:  # each dump meets it when it is awake
            is_over = True
        for crowd in list(self._crowds.values()):
            for dump in list(crowd):
                if is_over:
                    dump.wake_up(self.leave(dump))
                    continue
                step = self.steps.get(crowd.place)
                if step is not None:
                    self._send(crowd, step)
                    break
                dump.lead(crowd.place, self.leave(dump))

    def _send(self, crowd: Crowd, step: SharedStep) -> None:
        del self._crowds[crowd.place]
        for dump, missed, rest in crowd.send(step):
            del self._of[dump]
            dump.wake_up(missed, rest)
        there = self._crowds.setdefault(step.after, crowd) if crowd else crowd
        if there is crowd:
            return
        few, many = sorted((there, crowd), key=len)
        self._crowds[step.after] = many
        for dump in list(few):
            missed = few.remove(dump)
            if missed is None or dump.follow(missed):
                many.add(dump)
                self._of[dump] = many
            else:
                del self._of[dump]
                dump.wake_up(None)
