"""One dump: groups from the store, through the session that decides, to the socket.

Blocks that are in memory, or whose pages are, are made on the event loop: that takes less
than a hop to a thread. What may have to wait for a disk, and groups about which something
has to be decided, are read and framed in a worker thread. A replica alone that is far
behind has a thread for a while, which reads, frames and sends without coming back for each
block. There is no queue, so a replica
that reads slowly slows down only its own dump, and a dump never holds more than one block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import DumpError, reading_failed
from ibbmaster.dump.session import DumpSession
from ibbmaster.errors import IbbMasterError
from ibbmaster.event.group import EventGroup
from ibbmaster.log.interface import EventGroups
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import EndReason, Session
from ibbmaster.server.sending import Sender
from ibbmaster.server.shared_blocks import FastReader, SharedBlocks

if TYPE_CHECKING:
    from ibbmaster.streaming.block import Block

BLOCK_SIZE = 256 * 1024  # one hop to a thread and one send for so many bytes
FAR_BEHIND_BYTES = 128 * 1024  # a block of so many is not the last one
SKIP_TRIES = 3  # in a row may be in vain: where a file begins, or a group has a part out of band
GROUPS_OF_SKIP = 50  # groups take about as long as to pass over many
GROUPS_MAX = 5000  # read in one hop: a long way to the first group that is wanted keeps nobody waiting

SENDING = "Sending binlog event to slave"  # states as SHOW PROCESSLIST has them
WAITING = "Master has sent all binlog to slave; waiting for more updates"


class Producer:
    """Reads groups and frames what the session wants of them, in blocks where nothing has to be decided."""

    def __init__(self, groups: EventGroups, session: DumpSession, shared: SharedBlocks) -> None:
        self._groups = groups
        self._session = session
        self._shared = shared
        self._fast: FastReader | None = None  # once the kernels are ready
        self._pieces: Iterator[Buffer] | None = None  # the rest of the group under way, if it takes the careful path
        self._is_far_behind = False
        self.is_at_end = False  # after the block that was produced last

    def close(self) -> None:
        """The dump is over: leave those who share blocks, and let go of the log. Not while a thread produces."""
        if self._fast is not None:
            self._fast.close()
        self._pieces = None
        self._groups.close()

    def ready_block(self, generation: int) -> Buffer | Block | None:
        """The next block if it can be had at once; None where `next_block` must be asked, in a worker thread.

        `generation` is what the follower said before.
        """
        self.is_at_end = False
        if self._session.has_data_to_send:
            return self._session.data_to_send()
        if self._pieces is not None:
            return None
        fast = self._fast_reader()
        if fast is None:
            return None
        if fast.is_at_end(generation):
            self.is_at_end = True
            return b""
        with self._failures_told():
            block = fast.next_block(only_cached=True)
            size = -1 if block is None else len(block)
            self._is_far_behind = size == 0 or size >= FAR_BEHIND_BYTES  # without packets: large groups to be passed
            if block is None:
                fast.begin_look(generation)
            return block
        return self._session.data_to_send()

    @property
    def is_far_behind(self) -> bool:
        """Whether the block before was a full one, and nobody shares it: then `pump` is worth a hop to a thread."""
        if not self._is_far_behind or self._pieces is not None or self._session.has_data_to_send:
            return False
        return self._fast is not None and not self._fast.is_shared

    def pump(self, socket: int) -> Buffer | Block:
        """Send to the socket until there is something to decide, or much was sent; returns what it did not take."""
        self._is_far_behind = False
        fast = self._fast
        if self._pieces is not None or self._session.has_data_to_send:
            return b""
        with self._failures_told():
            pumped = None if fast is None else fast.pump(socket)
            if pumped is None:
                return b""
            rest, size = pumped
            self._is_far_behind = size > 0
            return rest
        return self._session.data_to_send()

    def end_look(self) -> bool:
        """After `next_block`: whether it was no end where others have taken it for one."""
        return self._fast is not None and self._fast.end_look()

    def next_block(self, generation: int) -> Buffer | Block:
        """About `BLOCK_SIZE` bytes for the socket, fewer at the durable end or where the dump finishes.

        What is queued goes out by itself and first, so that nothing stands between the
        group under way and its next part.
        """
        self.is_at_end = False
        if self._session.has_data_to_send:
            return self._session.data_to_send()
        fast = self._fast_reader()
        block = bytearray()
        with self._failures_told():
            if fast is not None and self._pieces is None:
                found = fast.next_block(only_cached=False)
                if found is not None:
                    return found
            self._fill(block, fast, generation)
        return block + self._session.data_to_send()

    @contextlib.contextmanager
    def _failures_told(self) -> Iterator[None]:
        """Let the session end the dump when reading fails; what was produced before stays."""
        try:
            yield
        except DumpError as error:
            self._end(error)
        except IbbMasterError as error:
            self._end(reading_failed(error))

    def _end(self, error: DumpError) -> None:
        self._session.fail(error)
        self._pieces = None
        self.is_at_end = True

    def _fill(self, block: bytearray, fast: FastReader | None, generation: int) -> None:
        """Append group after group to a block, each as the session decides."""
        groups_left = GROUPS_MAX
        tries_left = SKIP_TRIES
        while len(block) < BLOCK_SIZE and groups_left > 0:
            if self._pieces is None:
                if fast is not None and tries_left:
                    if fast.skip():
                        tries_left, groups_left = SKIP_TRIES, groups_left - GROUPS_OF_SKIP
                    else:
                        tries_left -= 1
                group = None if self._session.is_finished else self._next_group()
                if group is None:
                    self.is_at_end = True
                    if fast is not None and not self._session.is_finished:
                        fast.note_end(generation)
                    break
                groups_left -= 1
                if fast is not None and fast.begin_group(group):
                    break
                self._pieces = self._session.receive_group(group)
            piece = next(self._pieces, None)
            if piece is not None:
                block += piece
                continue
            self._pieces = None
            if fast is not None and fast.may_go_on:
                break

    def _next_group(self) -> EventGroup | None:
        """Read the next group: never while another one is under way, whichever path it takes."""
        self._session.check_position(self._groups.position)
        assert self._pieces is None
        assert not self._session.is_inside_group, "the rest of a group would be lost"
        group = self._groups.next_group()
        if group is None:
            self._session.receive_skipped((), self._groups.position)  # behind states, or in the next file
        return group

    def _fast_reader(self) -> FastReader | None:
        if self._fast is None:
            self._fast = self._shared.reader(self._groups, self._session)
        return self._fast


async def run_dump(
    producer: Producer,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    sender: Sender,
    pumps: trio.CapacityLimiter,
) -> None:
    """Move bytes for one dump until the session says it is finished; every decision is the session's."""
    session.start()
    while True:
        generation = follower.generation
        if connection.end_reason is not None:
            _say_last_word(session, connection.end_reason)
        connection.state = SENDING
        if producer.is_far_behind and sender.descriptor is not None:
            rest = await trio.to_thread.run_sync(producer.pump, sender.descriptor, limiter=pumps)
            if rest or producer.is_far_behind:  # else nothing went out, and a heartbeat may be due
                await sender.send(rest)
                session.sent()
            continue
        block = producer.ready_block(generation)
        if block is None:
            try:
                block = await trio.to_thread.run_sync(producer.next_block, generation)
            finally:
                if producer.end_look() and follower.generation == generation:  # else they are awake already
                    follower.announce()
        if block:
            await sender.send(block)
            session.sent()
        elif session.is_finished:
            return
        elif producer.is_at_end:
            await _wait_at_end(session, follower, generation, connection)
        else:
            session.sent_nothing(now=trio.current_time())
            session.advance_clock(now=trio.current_time())


async def _wait_at_end(session: DumpSession, follower: Follower, generation: int, connection: Session) -> None:
    """Wait for growth, the next heartbeat, or somebody who ends the dump."""
    session.reached_end(now=trio.current_time())
    if session.is_finished:
        return
    connection.state = WAITING
    with trio.CancelScope(deadline=session.heartbeat_due) as connection.waiting:
        if connection.end_reason is None:
            await follower.wait_for_growth(generation)
    connection.waiting = None
    session.advance_clock(now=trio.current_time())


def _say_last_word(session: DumpSession, reason: EndReason) -> None:
    match reason:
        case EndReason.NEWER_DUMP:
            session.terminated_by_newer()
        case EndReason.SHUTDOWN | EndReason.KILL_QUERY:
            session.end_of_service()
