"""One dump: blocks from the source, through its stages if there are any, to the socket.

Blocks that are in memory, or whose pages are, are made on the event loop: that takes less than a hop to a thread. What
may have to wait for a disk is read and framed in a worker thread. A replica alone that is far behind has a thread for a
while, which reads, frames and sends without coming back for each block. There is no queue, so a replica that reads
slowly slows down only its own dump, and a dump never holds more than one block.
"""

from __future__ import annotations

import os
from functools import partial

import trio

from ibbmaster.dump.session import DumpSession
from ibbmaster.server.client_stream import Sender
from ibbmaster.server.follower import Follower
from ibbmaster.server.growth import EndSender
from ibbmaster.server.registry import EndReason, Session
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.source import BlockSource
from ibbmaster.streaming.stage import Stage

PUMPS_MAX = (os.cpu_count() or 1) + 2  # threads that send: what more of them do is wait for each other

SENDING = "Sending binlog event to slave"  # states as SHOW PROCESSLIST has them
WAITING = "Master has sent all binlog to slave; waiting for more updates"


async def begin_dump(
    source: BlockSource,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    sender: Sender,
    stage: Stage | None = None,
) -> None:
    """Send what opens the stream, with the first groups if they are in memory; then comes `run_dump`."""
    session.start()
    source.opens_alone = stage is not None  # it hears of borders between groups
    connection.state = SENDING
    if session.has_data_to_send:
        if stage is not None:
            stage.note_border()
        block = source.next_block(follower.generation, may_wait=False)
        assert block is not None, "what is queued is there"
        await _send(block, sender, stage)
        session.sent()


async def run_dump(
    source: BlockSource,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    sender: Sender,
    pumps: trio.CapacityLimiter,
    stage: Stage | None = None,
) -> None:
    """Move blocks of a dump that was begun until the session says it is finished; every decision is the session's."""
    try:
        await _move_blocks(source, session, follower, connection, sender, pumps, stage)
    finally:
        if source.end_probe():  # that was begun where the log has grown
            follower.announce()


async def _move_blocks(
    source: BlockSource,
    session: DumpSession,
    follower: Follower,
    connection: Session,
    sender: Sender,
    pumps: trio.CapacityLimiter,
    stage: Stage | None,
) -> None:
    growth = EndSender(source, session, follower, connection, sender.sink, stage)
    while True:
        generation = follower.generation
        if stage is not None and not session.is_inside_group:
            stage.note_border()
        if connection.end_reason is not None:
            _say_last_word(session, connection.end_reason)
        connection.state = SENDING
        if source.is_far_behind and (stage is None or stage.only_counts):
            block, sent_bytes = await trio.to_thread.run_sync(source.pump, sender.sink, limiter=pumps)
            if stage is not None:
                stage.note_sent(sent_bytes)
            if sent_bytes or block:  # else a heartbeat may be due
                await _send(block, sender, stage)
                session.sent()
            continue
        found = None if growth.take_asked() else source.next_block(generation, may_wait=False)
        if found is None:
            try:
                found = await trio.to_thread.run_sync(partial(source.next_block, generation, may_wait=True))
            finally:
                if source.end_probe() and follower.generation == generation:  # else they are awake already
                    follower.announce()
            assert found is not None
        if found:
            await _send(found, sender, stage)
            session.sent()
        elif session.is_finished:
            return
        elif source.is_at_end:
            await _wait_at_end(session, follower, generation, connection, growth)
            if growth.rest is not None:
                rest, growth.rest = growth.rest, None
                await _send(rest, sender, stage)
                session.sent()
        else:
            session.sent_nothing(now=trio.current_time())
            session.advance_clock(now=trio.current_time())
            await trio.lowlevel.checkpoint()


async def _send(block: Block, sender: Sender, stage: Stage | None) -> None:
    if stage is None:
        await sender.send(block)
    else:
        await stage.pass_on(block, sender.send)


async def _wait_at_end(
    session: DumpSession, follower: Follower, generation: int, connection: Session, growth: EndSender
) -> None:
    """Wait for growth, the next heartbeat, or a request to end the dump."""
    if follower.is_over():
        session.end_of_service()
        return
    session.reached_end(now=trio.current_time())
    if session.is_finished:
        return
    connection.state = WAITING
    with trio.CancelScope(deadline=session.heartbeat_due) as connection.waiting:
        if connection.end_reason is None:
            await growth.wait(generation)
    connection.waiting = None
    growth.continue_alone()
    session.advance_clock(now=trio.current_time())


def _say_last_word(session: DumpSession, reason: EndReason) -> None:
    match reason:
        case EndReason.NEWER_DUMP:
            session.terminated_by_newer()
        case EndReason.SHUTDOWN | EndReason.KILL_QUERY:
            session.end_of_service()
