"""One dump: blocks from the source, through its stages if there are any, to the socket.

Blocks that are in memory, or whose pages are, are made on the event loop: that takes less than a hop to a thread. What
may have to wait for a disk is read and framed in a worker thread. A replica alone that is far behind has a thread for a
while, which reads, frames and sends without coming back for each block. There is no queue, so a replica that reads
slowly slows down only its own dump, and a dump never holds more than one block.

What is new at the end of a log is sent from where the log grows: to wake a dump for it takes longer than that. The
first of those that wait at the same place gets its blocks as it does elsewhere; the others get the same bytes with
their own packet numbers, see `Crowd`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from ibbmaster.dump.session import DumpSession
from ibbmaster.server.client_stream import Sender
from ibbmaster.server.crowd import Missed
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import EndReason, Session
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.shared import SharedPlace, shared_step
from ibbmaster.streaming.source import BlockSource, written
from ibbmaster.streaming.stage import Stage

PUMPS_MAX = (os.cpu_count() or 1) + 2  # threads that send: what more of them do is wait for each other
BLOCKS_TAKEN = 4  # of one dump that waits before the next: of a paced log there is one

SENDING = "Sending binlog event to slave"  # states as SHOW PROCESSLIST has them
WAITING = "Master has sent all binlog to slave; waiting for more updates"


class DumpSender:
    """Sends one dump; every decision is the session's. At the end of the log it is a `Member` of the crowds there.

    What these have it do is what `run` does where nothing waits; the heartbeat then is due later than the wait for it
    ends.
    """

    def __init__(
        self,
        source: BlockSource,
        session: DumpSession,
        follower: Follower,
        connection: Session,
        sender: Sender,
        stage: Stage | None = None,
    ) -> None:
        self.sink = sender.sink
        self.has_stage = stage is not None
        self._stage = stage
        self._source = source
        self._session = session
        self._follower = follower
        self._connection = connection
        self._sender = sender
        self._failure: Exception | None = None
        self._has_asked = False  # for what comes next, which has to be waited for: others rely on the answer
        self._place: SharedPlace | None = None  # where the dump is, after its last block
        self._missed: Missed | None = None
        self._task: trio.lowlevel.Task | None = None  # while it waits
        self._rest: Block | None = None  # of a block that is begun: it comes next

    async def begin(self) -> None:
        """Send what opens the stream, with the first groups if they are in memory; then comes `run`."""
        self._session.start()
        self._source.opens_alone = self.has_stage  # it hears of borders between groups
        self._connection.state = SENDING
        if self._session.has_data_to_send:
            if self._stage is not None:
                self._stage.note_border()
            block = self._source.next_block(self._follower.generation, may_wait=False)
            assert block is not None, "what is queued is there"
            await self._send(block)

    async def run(self, pumps: trio.CapacityLimiter) -> None:
        """Move blocks of a dump that was begun until the session says it is finished."""
        try:
            await self._move_blocks(pumps)
        finally:
            if self._source.end_probe():  # that was begun where the log has grown
                self._follower.announce()

    async def _move_blocks(self, pumps: trio.CapacityLimiter) -> None:
        source, session, follower, stage = self._source, self._session, self._follower, self._stage
        while True:
            generation = follower.generation
            if stage is not None and not session.is_inside_group:
                stage.note_border()
            if self._connection.end_reason is not None:
                _say_last_word(session, self._connection.end_reason)
            self._connection.state = SENDING
            if source.is_far_behind and (stage is None or stage.only_counts):
                block, sent_bytes = await trio.to_thread.run_sync(source.pump, self.sink, limiter=pumps)
                if stage is not None:
                    stage.note_sent(sent_bytes)
                if sent_bytes or block:  # else a heartbeat may be due
                    await self._send(block)
                continue
            has_asked, self._has_asked = self._has_asked, False
            found = None if has_asked else source.next_block(generation, may_wait=False)
            if found is None:
                try:
                    found = await trio.to_thread.run_sync(partial(source.next_block, generation, may_wait=True))
                finally:
                    if source.end_probe() and follower.generation == generation:  # else they are awake already
                        follower.announce()
                assert found is not None
            if found:
                await self._send(found)
            elif session.is_finished:
                return
            elif source.is_at_end:
                await self._wait_at_end(generation)
                if self._rest is not None:
                    rest, self._rest = self._rest, None
                    await self._send(rest)
            else:
                session.sent_nothing(now=trio.current_time())
                session.advance_clock(now=trio.current_time())
                await trio.lowlevel.checkpoint()

    async def _send(self, block: Block) -> None:
        if self._stage is None:
            await self._sender.send(block)
        else:
            await self._stage.pass_on(block, self._sender.send)
        self._session.sent()

    async def _wait_at_end(self, generation: int) -> None:
        """Wait for growth, the next heartbeat, or a request to end the dump."""
        session, connection = self._session, self._connection
        if self._follower.is_over():
            session.end_of_service()
            return
        session.reached_end(now=trio.current_time())
        if session.is_finished:
            return
        connection.state = WAITING
        with trio.CancelScope(deadline=session.heartbeat_due) as connection.waiting:
            if connection.end_reason is None:
                await self._wait_for_growth(generation)
        connection.waiting = None
        self._continue_alone()
        session.advance_clock(now=trio.current_time())

    @property
    def sequence(self) -> int:
        return self._session.sequence

    async def _wait_for_growth(self, generation: int) -> None:
        """Return once the log has grown since `generation` was read; what is new and takes little is sent meanwhile.

        What is sent no longer waits for this task where it is cancelled, and at once: who cuts a dump off, or ends it,
        may close its socket.
        """
        if self._follower.generation != generation:
            return
        self._task = trio.lowlevel.current_task()
        with self._follower.waiting():
            self._follower.crowds.join(self, self._source.place)
            await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: Callable[[], Any]) -> trio.lowlevel.Abort:
        self._task = None
        self._missed = self._follower.crowds.leave(self)
        return trio.lowlevel.Abort.SUCCEEDED

    def wake_up(self, missed: Missed | None, rest: Block | None = None) -> None:
        assert self._task is not None
        task, self._task = self._task, None
        self._missed = missed
        if rest is not None:
            self._rest = rest
        trio.lowlevel.reschedule(task)

    def _continue_alone(self) -> None:
        """Bring source and session up to date after a wait, and raise what went wrong meanwhile."""
        missed, self._missed = self._missed, None
        if missed is not None:
            self.follow(missed)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def note_border(self) -> bool:
        if self._stage is None:
            return True
        try:
            self._stage.note_border()
            return self._stage.only_counts
        except Exception as error:  # of this dump alone: it meets it when it is awake
            self._failure = self._failure or error
            return False

    def note_sent(self, size: int) -> bool:
        assert self._stage is not None
        try:
            self._stage.note_sent(size)
        except Exception as error:  # likewise
            self._failure = self._failure or error
            return False
        return True

    def follow(self, missed: Missed) -> bool:
        try:
            self._source.follow(missed.steps, missed.sequence)
            self._session.sent()
            self._session.reached_end(now=missed.sent_at)
        except Exception as error:  # likewise
            self._failure = self._failure or error
            return False
        return not self._session.is_finished

    def lead(self, place: SharedPlace | None, missed: Missed | None) -> None:
        may_wait = missed is None or self.follow(missed)
        try:
            may_wait = may_wait and self._take(place)
        except Exception as error:  # likewise
            self._failure = self._failure or error
            may_wait = False
        if may_wait:
            self._follower.crowds.join(self, self._place)
        else:
            self.wake_up(None)

    def _take(self, place: SharedPlace | None) -> bool:
        """Send what is new; False where the dump has to continue by itself."""
        if self._connection.end_reason is not None:
            return False
        return self.note_border() and self._take_blocks(place)

    def _take_blocks(self, place: SharedPlace | None) -> bool:
        """Send what is new, and leave it to others at the same place."""
        source, session, stage = self._source, self._session, self._stage
        sequence, blocks = session.sequence, list[Block]()
        for _ in range(BLOCKS_TAKEN):
            is_at_border = not session.is_inside_group
            block = source.next_block(self._follower.generation, may_wait=False)
            if block is None:
                self._has_asked = True
                self._share(place, blocks, sequence)
                return False
            if block and stage is not None and is_at_border:
                stage.note_border()  # what was planned before this block was written is about it
                if not stage.only_counts:
                    self._rest = block
                    return False
            if block:
                rest = written(block, self.sink)
                if stage is not None:
                    stage.note_sent(len(block) - len(rest))
                session.sent()
                if rest or not self.sink.is_flushed:
                    self._rest = rest
                    return False
                blocks.append(block)
            elif session.is_finished:
                return False
            elif source.is_at_end:
                session.reached_end(now=trio.current_time())
                self._place = self._share(place, blocks, sequence)
                return not session.is_finished
            else:
                blocks.append(block)
                session.sent_nothing(now=trio.current_time())
        return False

    def _share(self, place: SharedPlace | None, blocks: list[Block], sequence: int) -> SharedPlace | None:
        """Give others at a place what this dump has got there; returns where it is now."""
        after = self._source.place
        if after is not None and place is not None and blocks:
            place.step = shared_step(blocks, sequence, after, self._source.probe)
            place.generation = self._follower.generation
        return after


def _say_last_word(session: DumpSession, reason: EndReason) -> None:
    match reason:
        case EndReason.NEWER_DUMP:
            session.terminated_by_newer()
        case EndReason.SHUTDOWN | EndReason.KILL_QUERY:
            session.end_of_service()
