"""The primary: what users hold, and what accepts connections."""

from __future__ import annotations

import copy
import dataclasses
import errno
import logging
import math
import signal
import socket
import time
from collections.abc import Callable

import trio

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import FileEngine, LogEngine
from ibbmaster.storage.codec.printable import address
from ibbmaster.work import BreakReason
from .client import PrimaryParts
from .connection import serve_connection
from .follower import Follower
from .login import refuse_connection, refuse_host
from .options import PrimaryOptions
from .registry import EndReason, Session

log = logging.getLogger(__name__)

SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
WATCH_S = 2.0  # between two looks at the dumps
LOOK_SHARE = 50  # of many thousand dumps they take no more than this part of the time
STOP_STEP_S = 0.01  # between two looks at who is still connected
SHORTAGE_WAIT_S = 0.1
SHORTAGE_TOLD_S = 60.0
SEND_BUFFER_SIZE = 512 * 1024  # in the kernel, per replica: with our one block below 2 MiB


class Primary:
    """A log served to any number of replicas, until `serve` is cancelled or `stop` is called. `engine` is only read;
    `cache` keeps its schema history."""

    def __init__(self, engine: LogEngine, options: PrimaryOptions, cache: HistoryCache | None = None) -> None:
        if isinstance(engine, FileEngine):
            options = dataclasses.replace(options, profile=options.profile.of_files(engine.checksum_algorithm))
        elif (algorithm := getattr(engine, "checksum_algorithm", None)) is not None:
            options = dataclasses.replace(options, profile=options.profile.made_of_files(algorithm))
        self.engine = engine
        self.options = options
        self._parts = parts = PrimaryParts(engine, options, cache, is_traditional=isinstance(engine, FileEngine))
        self.registry, self.guard, self.workers = parts.registry, parts.guard, parts.workers
        self.figures, self.administration = parts.figures, parts.administration
        parts.stop = self.stop
        self._follower = Follower(parts.log_end, engine.wait_for_growth, engine.tell_growth, lambda: engine.unfinished)
        self._stopping = trio.Event()
        self._stops_for_replicas = False
        self._accepting = trio.CancelScope()

    async def serve(
        self,
        *,
        handle_signals: bool = False,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
        read_again: Callable[[], PrimaryOptions] | None = None,
    ) -> None:
        """Listen, and report the port through `task_status`; returns after `stop`.

        With `handle_signals` SIGINT and SIGTERM stop it, and SIGHUP takes accounts, certificate and limits for new
        connections from `read_again`; if these are wrong, that is logged and changes nothing. Raises
        ConfigurationError: cannot listen on the address; StoreError, FormatError: the directory holds no readable log.
        """
        # What cannot be read shall fail here, not later.
        await trio.to_thread.run_sync(self.engine.wait_for_growth, 0.0)
        listeners = await self._listen()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._parts.reactor.run)
            nursery.start_soon(self._follower.run)
            nursery.start_soon(self._accept, listeners, nursery)
            nursery.start_soon(self._parts.preparation.run)
            nursery.start_soon(self._watch)
            if handle_signals:
                await nursery.start(self._heed_signals, nursery.cancel_scope, read_again)
            task_status.started(listeners[0].socket.getsockname()[1])
            await self._stopping.wait()
            await self._end_everybody()
            nursery.cancel_scope.cancel()
        self._parts.shared_blocks.close()

    def stop(self, for_replicas: bool = False) -> None:
        """End every dump with its last packet, or with `for_replicas` once it has all that is durable; then `serve`
        returns."""
        if not for_replicas:  # how long they take is theirs to say, and no time limit of the service's
            self.figures.stop()
        self._stops_for_replicas = for_replicas
        self._stopping.set()

    async def _listen(self) -> list[trio.SocketListener]:
        host, port = self.options.host, self.options.port
        try:
            return await trio.open_tcp_listeners(port, host=host)
        except (OSError, socket.gaierror) as error:
            raise ConfigurationError(f"cannot listen on {address(host, port)}: {error}") from error

    async def _accept(self, listeners: list[trio.SocketListener], nursery: trio.Nursery) -> None:
        with self._accepting:
            async with trio.open_nursery() as listening:
                for listener in listeners:
                    listening.start_soon(self._accept_from, listener, nursery)

    async def _accept_from(self, listener: trio.abc.Listener[trio.SocketStream], nursery: trio.Nursery) -> None:
        told_at = -math.inf
        async with listener:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    if error.errno not in SHORTAGES:
                        raise
                    if trio.current_time() >= told_at + SHORTAGE_TOLD_S:
                        told_at = trio.current_time()
                        log.warning(
                            "no new connection can be taken: %s; %d are open, and new ones wait for one to end "
                            "(see ulimit -n and --max-connections)",
                            error.strerror,
                            len(self.registry),
                        )
                    await trio.sleep(SHORTAGE_WAIT_S)
                else:
                    nursery.start_soon(self._handle, stream)

    async def _handle(self, stream: trio.SocketStream) -> None:
        try:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_SIZE)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            host, port = stream.socket.getpeername()[:2]
        except OSError as error:
            log.info("a client was gone before it was greeted: %s", error)
            await trio.aclose_forcefully(stream)
            return
        if not any(account.allows(host) for account in self.options.accounts):
            await refuse_host(stream, host, self.registry)
            return
        if len(self.registry) >= self.options.connections_max and not self.registry.make_room():
            await refuse_connection(stream)
            return
        session = self.registry.open(host, time.monotonic(), port)
        session.socket = stream.socket
        try:
            with session.scope:
                await serve_connection(stream, session, self._parts)
        except Exception:
            log.exception("%s failed", session)
        finally:
            self.registry.close(session)

    async def _end_everybody(self) -> None:
        """Dumps end with EOF, after the door is closed: a replica comes back at once."""
        self._accepting.cancel()
        await trio.lowlevel.checkpoint()
        for session in self.registry:
            if session.dump_server_id is None:
                session.cut_off(BreakReason.STOPPED)
        if self._stops_for_replicas:
            await self._serve_rest()
            self.figures.stop()
        for session in self.registry:
            session.end_dump(EndReason.SHUTDOWN)
        while len(self.registry):
            await trio.sleep(STOP_STEP_S)
        await self._parts.workers.wait_until_idle()

    async def _serve_rest(self) -> None:
        """Until each dump has reached the end of the log once, or `stop` waits for none of them. Source: MariaDB 12.3,
        sql_repl.cc, should_stop(), whose dumps end there while the server shuts down."""
        await trio.to_thread.run_sync(self.engine.wait_for_growth, 0.0)
        self._parts.log_end.announce()  # what is known of the end may be void
        ready: set[Session] = set()
        while self._stops_for_replicas:
            await trio.sleep(STOP_STEP_S)
            dumps = [session for session in self.registry if session.dump_server_id is not None]
            ready.update(one for one in dumps if one.dump is not None and one.dump.place is None)
            if ready.issuperset(dumps):
                return

    async def _watch(self) -> None:
        """Measure the dumps from time to time. One that keeps a file from being removed is named, and ended in time."""
        named: set[int] = set()
        limit_s = math.inf if self.options.hold_s is None else self.options.hold_s
        limiter = trio.CapacityLimiter(1)  # its own: other work in threads does not delay it
        while True:
            self.figures.beat()
            holding: list[Session] = []
            if any(session.dump is not None for session in self.registry):
                holding = await trio.to_thread.run_sync(self.figures.look, limiter=limiter, abandon_on_cancel=True)
            for session in holding:
                dump = self.figures.dumps.get(session.connection_id)
                if dump is None:
                    continue
                if session.connection_id not in named:
                    log.warning("%s (server id %d): %s", session, dump.server_id, dump)
                if dump.held_s >= limit_s:
                    log.warning("%s (server id %d) is ended, so that the file can be removed", session, dump.server_id)
                    session.end_dump(EndReason.HOLDS_FILE)
            named = {session.connection_id for session in holding}
            await trio.sleep(max(WATCH_S, LOOK_SHARE * self.figures.looked_s))

    async def _heed_signals(
        self,
        scope: trio.CancelScope,
        read_again: Callable[[], PrimaryOptions] | None,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                if number == signal.SIGHUP:
                    await self._read_again(read_again)
                    continue
                name, count = signal.Signals(number).name, len(self.registry)
                log.info("%s: serving ends, and %d connections with it", name, count)
                if self._stopping.is_set() and not self._stops_for_replicas:
                    scope.cancel()  # the second one waits for nobody
                self.stop()

    async def _read_again(self, read_again: Callable[[], PrimaryOptions] | None) -> None:
        if read_again is None:
            log.info("SIGHUP: there is nothing that is read again")
            return
        try:
            found = await trio.to_thread.run_sync(read_again)
        except (ConfigurationError, OSError) as error:
            log.warning("SIGHUP: accounts, certificate and limits stay as they are: %s", error)
            return
        certificate = self.options.certificate
        if certificate is None or not certificate.is_automatic:  # a self-signed one stays: clients may have pinned it
            certificate = found.certificate
        self.options = dataclasses.replace(
            self.options,
            account=found.account,
            held=found.held,
            other_accounts=found.other_accounts,
            certificate=certificate,
            connections_max=found.connections_max,
            statement_s=found.statement_s,
        )
        self._parts = copy.copy(self._parts)  # open connections keep theirs
        self._parts.options = self.options
        log.info("SIGHUP: accounts, certificate and limits were read again, and hold for new connections")
