"""What is new at the end of a log, sent from where the log grows: to wake a dump for it takes longer than that.

The first of those that wait at the same place gets its blocks as `run_dump` gets them; the others get the same bytes
with their own packet numbers, see `Crowd`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from ibbmaster.dump.session import DumpSession
from ibbmaster.server.crowd import Missed
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import Session
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.shared_step import SharedPlace, shared_step
from ibbmaster.streaming.sink import Sink
from ibbmaster.streaming.source import BlockSource, written
from ibbmaster.streaming.stage import Stage

BLOCKS_TAKEN = 4  # of one dump before the next: of a paced log there is one


class EndSender:
    """One dump that waits at the end of the log.

    It does what `run_dump` does where nothing waits; the heartbeat then is due later than the wait for it ends.
    """

    def __init__(
        self,
        source: BlockSource,
        session: DumpSession,
        follower: Follower,
        connection: Session,
        sink: Sink,
        stage: Stage | None,
    ) -> None:
        self.sink = sink
        self.has_stage = stage is not None
        self._stage = stage
        self._source = source
        self._session = session
        self._follower = follower
        self._connection = connection
        self._failure: Exception | None = None
        self._has_asked = False
        self._place: SharedPlace | None = None  # where the dump is, after its last block
        self._missed: Missed | None = None
        self._task: trio.lowlevel.Task | None = None  # while it waits
        self.rest: Block | None = None  # of a block that is begun: it comes next

    @property
    def sequence(self) -> int:
        return self._session.sequence

    async def wait(self, generation: int) -> None:
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
            self.rest = rest
        trio.lowlevel.reschedule(task)

    def continue_alone(self) -> None:
        """After `wait`: bring source and session up to date, and raise what went wrong meanwhile."""
        missed, self._missed = self._missed, None
        if missed is not None:
            self.follow(missed)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def take_asked(self) -> bool:
        """Whether what comes next has been asked for already, and has to be waited for: others rely on the answer."""
        has_asked, self._has_asked = self._has_asked, False
        return has_asked

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
                    self.rest = block
                    return False
            if block:
                rest = written(block, self.sink)
                if stage is not None:
                    stage.note_sent(len(block) - len(rest))
                session.sent()
                if rest or not self.sink.is_flushed:
                    self.rest = rest
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
