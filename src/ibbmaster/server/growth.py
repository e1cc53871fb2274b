"""What is new at the end of a log, sent from where the log grows: to wake a dump for it takes longer than that.

The first of those that wait at the same place gets its blocks as `run_dump` gets them; the others get the same bytes
with their own packet numbers, and what they know of the log is brought up to that later, when they wake.
"""

from __future__ import annotations

import itertools

import trio

from ibbmaster.dump.session import DumpSession
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import Session
from ibbmaster.streaming.block import Block, plain_block
from ibbmaster.streaming.shared_step import SharedPlace, SharedStep, shared_step
from ibbmaster.streaming.sink import Sink
from ibbmaster.streaming.source import BlockSource, written
from ibbmaster.streaming.stage import Stage

BLOCKS_TAKEN = 4  # of one dump before the next: of a paced log there is one
STEPS_MIN = 32  # before a dump is brought up to them; up to twice as many, so that not all are at once

_turns = itertools.count()


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
        self._source = source
        self._session = session
        self._follower = follower
        self._connection = connection
        self._sink = sink
        self._stage = stage
        self._failure: Exception | None = None
        self._has_asked = False
        self._place: SharedPlace | None = None  # where the dump waits, with others or alone
        self._steps: list[SharedStep] = []  # that went out since source and session were brought up to date
        self._steps_max = STEPS_MIN + next(_turns) % STEPS_MIN
        self._sequence = 0  # of the next packet, after these steps
        self._sent_at = 0.0  # the last of them
        self.rest: Block | None = None  # of a block that is begun: it comes next

    def take(self) -> bool:
        """Send what is new; False where the dump has to continue by itself."""
        try:
            return self._take()
        except Exception as error:  # of this dump alone: it meets it when it is awake
            self._failure = error
            return False

    def wake(self) -> None:
        """The dump continues by itself: bring source and session up to date, and raise what `take` has met."""
        self._place = None
        self._catch_up()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def take_asked(self) -> bool:
        """Whether what comes next has been asked for already, and has to be waited for: others rely on the answer."""
        has_asked, self._has_asked = self._has_asked, False
        return has_asked

    def _take(self) -> bool:
        stage = self._stage
        if self._connection.end_reason is not None or self._follower.is_over():
            return False
        if stage is not None:
            stage.note_border()
            if not stage.only_counts:
                return False
        place, self._place = self._place, None
        if place is not None and place.step is not None and place.generation == self._follower.generation:
            return self._take_step(place.step)
        self._catch_up()
        return self._take_blocks(place)

    def _take_step(self, step: SharedStep) -> bool:
        """Send what another dump at the same place has got."""
        if not self._steps:
            self._sequence = self._session.sequence
        data = step.numbered(self._sequence)
        taken = self._sink.write(data)
        if self._stage is not None:
            self._stage.note_sent(taken)
        if step.probe is not None:
            step.probe.has_others = True
        self._steps.append(step)
        self._sequence = (self._sequence + step.packets) & 0xFF
        self._sent_at = trio.current_time()
        if taken < len(data):
            self.rest = plain_block(bytes(data[taken:]), step.block.after)
            return False
        self._place = step.after
        if len(self._steps) >= self._steps_max:
            self._catch_up()
        return not self._session.is_finished

    def _catch_up(self) -> None:
        """Bring source and session up to the steps that went out."""
        steps, self._steps = self._steps, []
        if steps:
            self._source.follow(steps, self._sequence)
            self._session.sent()
            self._session.reached_end(now=self._sent_at)

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
                rest = written(block, self._sink)
                if stage is not None:
                    stage.note_sent(len(block) - len(rest))
                session.sent()
                if rest:
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
        standing = self._source.standing
        if standing is None:
            return None
        after = self._source.shared.place(standing)
        if place is not None and blocks:
            place.step = shared_step(blocks, sequence, after, self._source.probe)
            place.generation = self._follower.generation
        return after
