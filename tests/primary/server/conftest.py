"""A primary in this process, over real sockets, and clients for it."""

import contextlib
import dataclasses
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pymysql
import pytest
import trio
import trio.testing

from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.primary.server.certificate import make_certificate
from ibbmaster.primary.server.client_stream import PlainStream, Sender
from ibbmaster.primary.server.dumping import DumpSender, LogEnd
from ibbmaster.primary.server.options import PrimaryOptions
from ibbmaster.primary.server.primary import Primary
from ibbmaster.primary.server.registry import EndReason, Session
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.profile import PROFILES, Profile
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.wire.auth import make_account
from ibbmaster.replication.wire.packet import PacketReader
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.dump_sessions import session_of
from tests.machinery.importing import import_classic

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11"
USER, PASSWORD = "repl", "replpw"

Serving = Callable[..., AbstractAsyncContextManager[tuple[Primary, int]]]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("archive")
    import_classic(sorted((CLASSIC / "domains").glob("binlog.0*")), RealDisk(directory), max_file_bytes=1 << 20)
    return directory


@pytest.fixture
def serving() -> Serving:
    """Serve a directory, or an engine, for the length of a block: gives the primary and its port."""

    @contextlib.asynccontextmanager
    async def serve(
        log: Path | LogEngine,
        *,
        profile: str | Profile = "engine",
        auth: str = "native",
        tls: bool = False,
        directory: Path | None = None,
        **options: Any,
    ) -> AsyncIterator[tuple[Primary, int]]:
        defaults = PrimaryOptions(
            host="127.0.0.1",
            port=0,
            account=make_account(USER, PASSWORD, plugin=auth),
            certificate=make_certificate() if tls else None,
            profile=PROFILES[profile] if isinstance(profile, str) else profile,
        )
        engine = BinlogDirectory(RealDisk(log)) if isinstance(log, Path) else log
        cache = None if directory is None else HistoryCache(directory, is_written=False)
        primary = Primary(engine, dataclasses.replace(defaults, **options), cache)
        async with trio.open_nursery() as nursery:
            yield primary, await nursery.start(primary.serve)
            primary.stop()

    return serve


def client_of(port: int, password: str = PASSWORD, user: str = USER, **settings: Any) -> pymysql.Connection:
    settings = {"host": "127.0.0.1", "ssl_disabled": True, **settings}
    return pymysql.connect(port=port, user=user, password=password, **settings)


def refusal(act: Callable[..., object], *given: Any) -> tuple[Any, ...]:
    """What the server says against something: its number and text."""
    with pytest.raises(pymysql.MySQLError) as caught:
        act(*given)
    return caught.value.args


def dumping(port: int, position: str = "", *, flags: int = 0, server_id: int = 7) -> pymysql.Connection:
    connection = client_of(port)
    connection.query("SET @mariadb_slave_capability=4, @master_binlog_checksum=@@global.binlog_checksum")
    connection.query(f"SET @slave_connect_state='{position}'")
    connection._execute_command(0x12, struct.pack("<IHI", 4, flags, server_id))
    return connection


@pytest.fixture
def ask() -> Callable[..., Any]:
    async def ask(port: int, *statements: str, **settings: Any) -> Any:
        def work() -> Any:
            with client_of(port, **settings) as connection, connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return cursor.fetchall()

        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)

    return ask


class JumpingGroups:
    def __init__(self, groups: Any, jump: Callable[[], None]) -> None:
        self._groups = groups
        self._jump = jump

    def next_group(self, *, only_cached: bool = False) -> Any:
        if only_cached:
            raise BlockingIOError("a jump is made from a worker thread")
        group = self._groups.next_group()
        if group is not None:
            trio.from_thread.run_sync(self._jump)
        return group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._groups, name)


class WaitingDump:
    def __init__(self, engine: Any, *, heartbeat_s: float, jump: Callable[[], None], **request: Any) -> None:
        asked = DumpRequest(
            replica_server_id=9,
            position=GtidPosition(),
            **{"capability": 4, "wants_annotate_rows": True, "heartbeat_period_s": heartbeat_s, **request},
        )
        self.session, place = session_of(engine, asked)
        self.log_end = LogEnd()  # growth is announced by hand
        self.connection = Session(connection_id=1, host="here", since=0.0)
        self.stream = bytearray()
        self._source = BlockSource(JumpingGroups(engine.groups(place), jump), self.session, SharedBlocks())

    async def run(self) -> None:
        ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in socket.socketpair())
        async with ours, theirs, trio.open_nursery() as nursery:
            nursery.start_soon(self._receive, theirs)
            with contextlib.closing(self._source):
                socket_sender = Sender(PlainStream(ours))
                sender = DumpSender(self._source, self.session, self.log_end, self.connection, socket_sender)
                await sender.begin()
                await sender.run(trio.CapacityLimiter(1))
            await ours.aclose()

    async def wait_until_idle(self) -> None:
        while self.connection.waiting is None:
            await trio.lowlevel.checkpoint()

    async def grow(self) -> None:
        """Tell it that the log has grown, and return when it waits again, or still."""
        await self.wait_until_idle()
        self.log_end.announce()
        await trio.testing.wait_all_tasks_blocked()
        await self.wait_until_idle()

    def end(self) -> None:
        self.connection.end_dump(EndReason.KILL_QUERY)

    def payloads(self) -> list[bytes]:
        reader = PacketReader(limit=1 << 30, next_sequence=1)
        reader.receive_data(self.stream)
        return list(iter(reader.next_payload, None))

    async def _receive(self, stream: trio.SocketStream) -> None:
        async for data in stream:
            self.stream += data


@pytest.fixture
def waiting_dump() -> Callable[..., WaitingDump]:
    return WaitingDump
