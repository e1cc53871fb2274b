"""One dump: groups from the store, through the session that decides, to the socket.

A worker thread reads and frames until a block is full; the event loop sends the block.
There is no queue between them, so a replica that reads slowly slows down only its own
dump, and a dump never holds more than one block.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterator

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import DumpError
from ibbmaster.dump.session import DumpSession
from ibbmaster.errors import IbbMasterError
from ibbmaster.server.follower import Follower
from ibbmaster.server.registry import EndReason, Session
from ibbmaster.store.engine import EventGroups

log = logging.getLogger(__name__)

BLOCK_SIZE = 256 * 1024  # one hop to a thread and one send for so many bytes
WRITE_TIMEOUT_S = 60.0  # MariaDB's net_write_timeout: a replica that takes no block for so long is dropped


class Producer:
    """Reads groups and frames what the session wants of them; runs in a worker thread."""

    def __init__(self, groups: EventGroups, session: DumpSession) -> None:
        self._groups = groups
        self._session = session
        self._pieces: Iterator[Buffer] = iter(())  # the rest of the group under way
        self.at_end = False

    def next_block(self) -> bytes:
        """About `BLOCK_SIZE` bytes for the socket, fewer at the durable end, where `at_end` is set."""
        block = bytearray()
        self.at_end = False
        while len(block) < BLOCK_SIZE:
            for piece in self._pieces:
                block += piece
                if len(block) >= BLOCK_SIZE:
                    return bytes(block)
            group = None if self._session.is_finished else self._groups.next_group()
            if group is None:
                self.at_end = True
                break
            self._pieces = self._session.receive_group(group)
        return bytes(block)


async def run_dump(
    producer: Producer,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    send_all: Callable[[bytes], Awaitable[None]],
) -> None:
    """Move bytes for one dump until the session says it is finished; every decision is the session's."""
    session.start(now=trio.current_time())
    while True:
        generation = follower.generation
        if connection.end_reason is not None:
            _say_why(session, connection.end_reason)
        block = await _next_block(producer, session)
        if block:
            connection.note("Binlog Dump", "Sending binlog event to slave", connection.since)
            with trio.fail_after(WRITE_TIMEOUT_S):
                await send_all(block)
            session.sent(now=trio.current_time())
        if session.is_finished:
            return
        if producer.at_end and not block:
            await _wait_at_end(session, follower, generation, connection)


async def _next_block(producer: Producer, session: DumpSession) -> bytes:
    """The session's own packets first, then groups; damage in the log becomes the error packet."""
    try:
        return session.data_to_send() + await trio.to_thread.run_sync(producer.next_block)
    except DumpError as error:
        session.fail(error)
    except IbbMasterError as error:
        session.fail(DumpError.reading_failed(error))
    return session.data_to_send()


async def _wait_at_end(session: DumpSession, follower: Follower, generation: int, connection: Session) -> None:
    """Wait for growth, the next heartbeat, or somebody who ends the dump."""
    session.reached_end(now=trio.current_time())
    if session.is_finished:
        return
    connection.note("Binlog Dump", "Master has sent all binlog to slave; waiting for more updates", connection.since)
    deadline = math.inf if session.heartbeat_due is None else session.heartbeat_due
    with trio.CancelScope(deadline=deadline) as connection.waiting:
        if connection.end_reason is None:
            await follower.wait_for_growth(generation)
    connection.waiting = None
    session.advance_clock(now=trio.current_time())


def _say_why(session: DumpSession, reason: EndReason) -> None:
    match reason:
        case EndReason.NEWER_DUMP:
            session.terminated_by_newer()
        case EndReason.SHUTDOWN | EndReason.KILL_QUERY:
            session.end_of_service()
