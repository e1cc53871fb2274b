"""The dump of a client, from what it asked for to its end."""

from __future__ import annotations

import contextlib
import functools
import logging
import time

import trio

from ibbmaster.dump.error import DumpError, seeking_failed
from ibbmaster.dump.request import dump_request
from ibbmaster.errors import IbbMasterError, LogResetError
from ibbmaster.server.client import RECEIVE_SIZE, ConnectedClient
from ibbmaster.server.dump_opening import DumpStart
from ibbmaster.server.dumping import begin_dump, run_dump
from ibbmaster.server.observing import ConnectionStep
from ibbmaster.streaming.source import BlockSource
from ibbmaster.streaming.stage import made_stage
from ibbmaster.wire import command as commands
from ibbmaster.wire.connection import Closed
from ibbmaster.wire.response import Eof

log = logging.getLogger(__name__)


async def serve_dump(client: ConnectedClient, command: commands.BinlogDump) -> None:
    """The last answer of a connection: events until one of us ends it."""
    primary, session = client.primary, client.session
    try:
        client.dialog.check_dump()
        if command.server_id:
            primary.registry.end_dumps_of(command.server_id, but=session)
        await primary.preparation.wait()
        try:
            opened = _prepare_dump(client, command, only_cached=True)
        except BlockingIOError:
            opened = await trio.to_thread.run_sync(_prepare_dump, client, command)
    except IbbMasterError as error:
        refused = error if isinstance(error, DumpError) else seeking_failed(error)
        session.reason = f"its dump was refused: {refused}"
        log.warning("%s (server id %d) refused: %s", client, command.server_id, refused)
        comes_back = isinstance(error, LogResetError)  # and is judged anew
        client.wire.close(Eof() if comes_back else refused.err)
        await client.flush()
        return
    session.dump_server_id = command.server_id
    if primary.options.observer is not None:
        await primary.options.observer.reached(ConnectionStep.DUMPING, session, command)
    session.note("Binlog Dump", "", time.monotonic())
    await _run_dump(client, opened)
    dump = opened.dump
    if dump.error is not None:
        name = str(client)  # a log that is kept shall not keep the connection
        session.reason = f"its dump ended: {dump.error}"
        log.warning("%s (server id %d) ended: %s", name, command.server_id, dump.error)


async def _run_dump(client: ConnectedClient, opened: DumpStart) -> None:
    """Send until the dump is finished or the client has left."""
    primary, dump, session = client.primary, opened.dump, client.session
    stage = made_stage(primary.options.stages, session)
    with (
        primary.follower.reading(),
        contextlib.closing(BlockSource(opened.groups, dump, primary.shared_blocks)) as source,
    ):
        await begin_dump(source, dump, primary.follower, session, client.sender, stage)
        server_id = session.dump_server_id  # the first events do not wait for what is logged of them
        log.info("%s (server id %d) dumps from [%s], %s", client, server_id, opened.position, opened.file_name)
        if client.holds_more and _notice_leaving(client):
            return
        with (
            trio.CancelScope() as scope,
            primary.reactor.watching(client.descriptor, functools.partial(_notice_leaving, client), scope.cancel),
        ):
            await run_dump(source, dump, primary.follower, session, client.sender, primary.pumps, stage)


def _prepare_dump(client: ConnectedClient, command: commands.BinlogDump, *, only_cached: bool = False) -> DumpStart:
    """As `DumpOpening.open`; notes where the dump begins."""
    opened = open_dump(client, command, only_cached=only_cached)
    client.session.dump_start = opened.start
    return opened


def open_dump(client: ConnectedClient, command: commands.BinlogDump, *, only_cached: bool) -> DumpStart:
    """As `DumpOpening.open`, with what the client has said before."""
    request = dump_request(
        command,
        client.dialog.variables,
        client.primary.options.profile,
        skip_replication=client.dialog.skip_replication,
        is_registered=client.session.replica_server_id is not None,
    )
    return client.primary.opening.open(request, only_cached=only_cached)


def _notice_leaving(client: ConnectedClient) -> bool:
    """Notice when the client of a dump goes; what else it says means nothing now."""
    try:
        data = client.stream.receive_now(RECEIVE_SIZE)
        if data is not None:
            client.wire.receive_data(data)
        if data == b"" or client.wire.has_quit or isinstance(client.wire.next_event(), Closed):
            log.info("%s disconnected", client)
            return True
    except trio.BrokenResourceError:
        return True
    return False
