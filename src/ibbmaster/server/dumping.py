"""One dump: groups from the store, through the session that decides, to the socket.

A worker thread reads and frames until a block is full; the event loop sends the block.
There is no queue between them, so a replica that reads slowly slows down only its own
dump, and a dump never holds more than one block.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import DumpError, reading_failed
from ibbmaster.dump.session import DumpSession
from ibbmaster.errors import IbbMasterError
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import EndReason, Session
from ibbmaster.store.engine import EventGroups

BLOCK_SIZE = 256 * 1024  # one hop to a thread and one send for so many bytes
GROUPS_MAX = 5000  # read in one hop: a long way to the first group that is wanted keeps nobody waiting
WRITE_TIMEOUT_S = 60.0  # MariaDB's net_write_timeout: a replica that takes no block for so long is dropped

SENDING = "Sending binlog event to slave"  # states as SHOW PROCESSLIST has them
WAITING = "Master has sent all binlog to slave; waiting for more updates"


class Producer:
    """Reads groups and frames what the session wants of them; runs in a worker thread."""

    def __init__(self, groups: EventGroups, session: DumpSession) -> None:
        self._groups = groups
        self._session = session
        self._pieces: Iterator[Buffer] = iter(())  # the rest of the group under way
        self._groups_left = 0
        self.is_at_end = False  # after the block that was produced last

    def next_block(self) -> bytearray:
        """About `BLOCK_SIZE` bytes for the socket, fewer at the durable end or where the dump finishes."""
        self.is_at_end = False
        block = bytearray(self._session.data_to_send())
        self._groups_left = GROUPS_MAX
        try:
            while len(block) < BLOCK_SIZE and self._groups_left and not self.is_at_end:
                piece = next(self._pieces, None)
                if piece is not None:
                    block += piece
                elif not self._begin_group():
                    self.is_at_end = True
        except DumpError as error:
            self._fail(error)
        except IbbMasterError as error:
            self._fail(reading_failed(error))
        block += self._session.data_to_send()
        return block

    def _begin_group(self) -> bool:
        group = None if self._session.is_finished else self._groups.next_group()
        if group is None:
            return False
        self._groups_left -= 1
        self._pieces = self._session.receive_group(group)
        return True

    def _fail(self, error: DumpError) -> None:
        self._pieces = iter(())
        self._session.fail(error)
        self.is_at_end = True


async def run_dump(
    producer: Producer,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    send_all: Callable[[bytearray], Awaitable[None]],
) -> None:
    """Move bytes for one dump until the session says it is finished; every decision is the session's."""
    session.start()
    while True:
        generation = follower.generation
        if connection.end_reason is not None:
            _say_last_word(session, connection.end_reason)
        connection.state = SENDING
        block = await trio.to_thread.run_sync(producer.next_block)
        if block:
            with trio.fail_after(WRITE_TIMEOUT_S):
                await send_all(block)
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
