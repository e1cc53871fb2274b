"""A scenario once more, with a real MariaDB server as the primary: what a consumer loses there, it loses.

The primary of the scenario writes as ever, and the real server is its replica, which writes the same groups into its
own binlog. The consumer is behind a relay that does the faults; what concerns the whole primary is done to the server.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import trio

from ibbmaster.commands.recorder.relay import Relay, listen_on
from ibbmaster.errors import ConfigurationError
from ibbmaster.primary.server.registry import Registry, Session
from ibbmaster.replication.wire.response import Response
from ibbmaster.testkit import action as actions
from ibbmaster.testkit.action import FaultAction
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.incident import Incidents, reset_all, reset_dumps
from ibbmaster.testkit.mariadb_programs import find_programs
from ibbmaster.testkit.mariadb_server import RealPrimary, ServerTemplate, problem_of
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.testkit.scenario import Scenario
from ibbmaster.testkit.witness import Witness
from .adapter import Adapter
from .cards import Card
from .relayed_faults import FaultedConnection
from .results import Confirmation
from .runner import PASSWORD, run_and_ask

if TYPE_CHECKING:
    from ibbmaster.api.writing import WritableLog

#: Profile -> the packaged server with such streams.
SERVERS = {
    **dict.fromkeys(("10.6", "10.11", "classic-10.11"), "10.11"),
    **dict.fromkeys(("11.4", "11.8", "classic-11.8"), "11.8"),
}
NO_ENGINE = "no 12.3 server is packaged by Debian"
COMPRESSED_FROM = 10  # bytes of a row event, the least of a server
CATCH_UP_S = 60.0
STEP_S = 0.01
#: What cannot be done to a real server.
_NOT_DONE: dict[type[FaultAction], str] = {
    actions.FailOver: "a real server has no second one that lags",
    actions.MoveClock: "the clock of a real server is that of the machine",
    actions.TakeOver: "a newer dump of the same server id would be another consumer",
}


def confirm(adapter: Adapter, card: Card) -> tuple[Confirmation | None, str]:
    """None where it cannot be run, and why not."""
    reason = why_not(card)
    if reason:
        return None, reason
    try:
        real = RealStage(SERVERS[card.profile])
        found, _ = run_and_ask(adapter, card, serve=real.serving)
    except ConfigurationError as error:
        return None, str(error)
    if found.grade is None:
        return None, found.not_run or "it was not run"
    return Confirmation(server=real.server_version, grade=found.grade, summary=found.summary), ""


def why_not(card: Card) -> str:
    if card.profile not in SERVERS:
        return NO_ENGINE
    if card.primary.get("tls", "off") != "off":
        return "what goes through TLS can be read by nobody between the two"
    for fault in card.scenario().faults:
        action = fault.action
        if fault.place is None:
            return f"{fault}: beside a real server faults have places, and no times"
        if type(action) in _NOT_DONE:
            return _NOT_DONE[type(action)]
        if isinstance(action, actions.CrashPrimary) and action.torn is not None:
            return "a real server is not killed in the middle of a write on cue"
        if isinstance(action, actions.RestartPrimary) and action.profile is not None:
            return "a real server stays of its version"
    return ""


class RealStage:
    def __init__(self, version: str) -> None:
        """Raises ConfigurationError: this machine lacks the version."""
        self._template = ServerTemplate.of_user(find_programs(version))
        self.server_version = version

    @contextlib.contextmanager
    def serving(self, scenario: Scenario) -> Iterator[FixturePrimary]:
        """Serve a scenario by the real server. Raises ConfigurationError: the server does not start, or does not take
        what is logged."""
        alone = dataclasses.replace(scenario, faults=())
        with contextlib.ExitStack() as stack:
            scratch = tempfile.TemporaryDirectory(prefix="ibb-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(scratch))
            source = stack.enter_context(alone.serving(password=PASSWORD))
            server = RealPrimary(self._template, directory / "p", [], *_options(source, scenario))
            stack.enter_context(server)
            self.server_version = str(server.sql("SELECT VERSION()")[0][0])
            server.sql("SET sql_log_bin = 0")
            server.sql(f"ALTER USER {server.user} IDENTIFIED BY '{PASSWORD}'")
            server.sql("SET sql_log_bin = 1")
            server.follow_at(source.host, source.port, user=source.user, password=source.password)
            faults = _RealFaults(scenario.seed, server)
            for fault in scenario.faults:
                faults.add_fault(fault)
            witness = Witness(source.clock, faults)
            port = stack.enter_context(faults.relaying(witness))
            primary = _RealPrimary(source, server, witness, faults, port)
            primary.wait()
            yield cast("FixturePrimary", primary)


def _options(source: FixturePrimary, scenario: Scenario) -> list[str]:
    row = source.format
    return [
        "--log-slave-updates=1",
        "--binlog-format=ROW",
        f"--binlog-row-image={row.image.value}",
        f"--binlog-row-metadata={row.metadata.value}",
        f"--log-bin-compress={int(row.is_compressed)}",
        f"--log-bin-compress-min-len={COMPRESSED_FROM}",
        "--binlog-checksum=CRC32",
        "--binlog-annotate-row-events=1",
        "--sync-binlog=1",
        "--innodb-flush-log-at-trx-commit=1",
        "--slave-net-timeout=10",
        "--relay-log=relay",
    ]


class _RealPrimary:
    """Like a `FixturePrimary`, but read from the real server."""

    def __init__(
        self, source: FixturePrimary, server: RealPrimary, witness: Witness, faults: Faults, port: int
    ) -> None:
        self._source = source
        self.server = server
        self._witness = witness
        self.faults = faults
        self.host, self.port = "127.0.0.1", port
        self.user, self.password = server.user, PASSWORD
        self.log = cast("WritableLog", _RotatingLog(source.log, self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def in_loop(self, function: Callable[[None], Any]) -> Any:
        """Call it here: the server takes what is written in its own time."""
        return function(None)

    @property
    def connections(self) -> list[Any]:
        return list(self._witness.connections)

    def wait(self) -> None:
        """Wait until the server has logged everything. Raises ConfigurationError: it does not take it."""
        deadline = time.monotonic() + CATCH_UP_S
        wanted = {str(gtid) for gtid in self._source.log.position.values()}
        while wanted - set(str(self.server.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]).split(",")):
            problem = problem_of(self.server.status(), tolerates_lost_connections=True)
            if problem is not None:
                raise ConfigurationError(f"the real server does not take what is logged: {problem}")
            if time.monotonic() > deadline:
                raise ConfigurationError(f"the real server has not logged {', '.join(wanted)} in {CATCH_UP_S:g} s")
            time.sleep(STEP_S)


class _RotatingLog:
    """The log of the source, whose new files the server begins, too."""

    def __init__(self, log: WritableLog, primary: _RealPrimary) -> None:
        self._log = log
        self._primary = primary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def flush(self) -> None:
        self._log.flush()
        self._primary.wait()
        self._primary.server.sql("FLUSH BINARY LOGS")


class _RealFaults(Faults):
    """Calls wait, and come from threads."""

    def __init__(self, seed: int, server: RealPrimary) -> None:
        super().__init__(seed)
        self._server = server
        self._by_session: dict[Session, FaultedConnection] = {}
        self._over = threading.Event()
        self._registry = Registry()
        self._token: trio.lowlevel.TrioToken
        self.attach(cast("Incidents", self))  # but for its clock and its successors: see `why_not`

    @contextlib.contextmanager
    def relaying(self, witness: Witness) -> Iterator[int]:
        """Relay in a thread of its own; yields the port."""
        assert self._server.port is not None
        registry = self._registry

        def begin(client: trio.socket.SocketType, peer: str) -> FaultedConnection:
            made = FaultedConnection(witness, registry, client, peer)
            self._by_session[made.session] = made
            return made

        relay = Relay(("127.0.0.1", self._server.port), begin)
        begun, found = threading.Event(), dict[str, Any]()

        async def run() -> None:
            try:
                async with trio.open_nursery() as nursery:
                    found["scope"], found["token"] = nursery.cancel_scope, trio.lowlevel.current_trio_token()
                    _, found["port"] = await nursery.start(relay.serve, await listen_on("127.0.0.1", 0))
                    begun.set()
                    await trio.sleep_forever()
            except* ConfigurationError as errors:
                found["problem"] = errors.exceptions[0]
            finally:
                begun.set()  # an end wakes, too

        thread = threading.Thread(target=trio.run, args=(run,), name="ibbmaster-relay", daemon=True)
        thread.start()
        begun.wait()
        if "port" not in found:
            raise ConfigurationError(f"the relay to a real server: {found.get('problem', 'it has ended')}")
        self._token = found["token"]
        try:
            yield found["port"]
        finally:
            self._over.set()
            found["token"].run_sync_soon(found["scope"].cancel)
            thread.join()

    async def do(self, fault: PlannedFault, session: Session) -> Response | None:
        """As for any primary; a KILL is that of the server."""
        if isinstance(fault.action, actions.KillConnection):
            number = self._by_session[session].primary_id
            word = "KILL QUERY" if fault.action.query else "KILL"
            await trio.to_thread.run_sync(self._sql, f"{word} {number}", abandon_on_cancel=True)
            return None
        return await super().do(fault, session)

    def _sql(self, statement: str) -> None:
        with contextlib.closing(self._server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    # What `Incidents` do for

    def crash(self, torn: str | None = None) -> None:
        """SIGKILL, and a reset for each connection."""
        self._server.kill()
        self._token.run_sync_soon(reset_all, self._registry)

    def stop(self) -> None:
        self._server.stop()
        self._token.run_sync_soon(_end_all, self._registry)

    def restart(self, after_s: float = 0.0, *, profile: str | None = None) -> None:
        if not self._over.wait(after_s):
            self._server.start()

    def purge(self) -> None:
        """Reset every dump, and remove every file but a new one; new connections are reset meanwhile."""
        self.set_down(True)
        try:
            self._token.run_sync_soon(reset_dumps, self._registry)
            self._sql("FLUSH BINARY LOGS")
            deadline = time.monotonic() + CATCH_UP_S
            while len(files := self._server.query("SHOW BINARY LOGS")) > 1:
                self._end_dumps()
                self._sql(f"PURGE BINARY LOGS TO '{files[-1]['Log_name']}'")
                if time.monotonic() > deadline:
                    raise ConfigurationError("the real server keeps its files")
                time.sleep(STEP_S)
        finally:
            self.set_down(False)

    def _end_dumps(self) -> None:
        for row in self._server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"):
            with contextlib.suppress(Exception):  # it has ended by itself
                self._sql(f"KILL {row['ID']}")


def _end_all(registry: Registry) -> None:
    for session in registry:
        session.scope.cancel()
