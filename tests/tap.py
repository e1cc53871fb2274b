"""A primary with faults in this process, and a tap: a client that keeps every byte and says how it ended."""

import contextlib
import dataclasses
import struct
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import trio

import ibbmaster
from ibbmaster.api.serving import check_options
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.capture.client import PrimaryAddress, groups_between
from ibbmaster.logs.log.group_content import RowReader, group_events
from ibbmaster.primary.server.primary import Primary
from ibbmaster.testkit.fault_stage import Faults

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = {"engine": FIXTURES / "ibb" / "domains", "classic": FIXTURES / "classic" / "10.11" / "domains"}
COM_BINLOG_DUMP = 0x12
SILENCE_S = 0.2
TIMEOUT_S = 60.0
STARTED_AT = 1_800_000_000


@dataclass(slots=True, kw_only=True)
class Tapped:
    """What came through a wire, and how it ended: by "end", "reset", or "silence"."""

    data: bytes
    end: str
    seconds: float

    @property
    def packets(self) -> list[bytes]:
        """The whole payloads, whatever their numbers."""
        found, rest = [], self.data
        while len(rest) >= 4 and len(rest) >= 4 + int.from_bytes(rest[:3], "little"):
            size = int.from_bytes(rest[:3], "little")
            found.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        return found


def framed(packets: list[bytes]) -> bytes:
    return b"".join(
        len(payload).to_bytes(3, "little") + bytes([(number + 1) % 256]) + payload
        for number, payload in enumerate(packets)
    )


def connect(primary: Any, **options: Any) -> pymysql.Connection:
    """A client of a primary, in clear unless its options say otherwise."""
    return pymysql.connect(host=primary.host, port=primary.port, user="repl", **{"ssl_disabled": True, **options})


def ask(primary: Any, *statements: str) -> tuple[tuple[Any, ...], ...]:
    """The answer to the last of these statements, of a connection or of a primary that gets one for them."""
    connection = primary if isinstance(primary, pymysql.Connection) else connect(primary)
    with contextlib.nullcontext() if connection is primary else connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


def live_changes(primary: Any) -> list[Any]:
    address = PrimaryAddress(
        host=primary.host, port=primary.port, user="repl", password="", uses_tls=False, server_id=9
    )
    reader, groups = RowReader(), groups_between(address, GtidPosition(), primary.log.position)
    return [change for group in groups for _, change in reader.changes(group_events(group))]


def ask_for_dump(
    port: int,
    *,
    flags: int = 0,
    server_id: int = 9,
    position: str = "",
    user: str = "repl",
    password: str = "",
    statements: Sequence[str] = (),
    place: tuple[str, int] | None = None,
) -> pymysql.Connection:
    """A connection that has asked for a dump and read nothing of it; flags: 1 not to wait at the end, 2 to annotate."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, ssl_disabled=True)
    with contextlib.ExitStack() as stack:
        stack.callback(connection._force_close)  # where a statement is refused
        cursor = stack.enter_context(connection.cursor())
        cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
        cursor.execute("SET @mariadb_slave_capability = 4")
        if place is None:
            cursor.execute(f"SET @slave_connect_state = '{position}'")
        for statement in statements:
            cursor.execute(statement)
        stack.pop_all()
    file, offset = place or ("", 4)
    connection._execute_command(COM_BINLOG_DUMP, struct.pack("<IHI", offset, flags, server_id) + file.encode())
    return connection


def listen_in(port: int, *, until: int | None = None, server_id: int = 7, **how: Any) -> Tapped:
    """Dump everything, or from a file and an offset on; with `until` wait for so many bytes, and whether more come."""
    begun = time.monotonic()
    connection = ask_for_dump(port, flags=3 if until is None else 2, server_id=server_id, **how)
    with contextlib.ExitStack() as stack:
        stack.callback(connection._force_close)
        data, end = bytearray(), "end"
        connection._sock.settimeout(TIMEOUT_S)
        try:
            while True:
                if until is not None and len(data) >= until:
                    connection._sock.settimeout(SILENCE_S)
                piece = connection._sock.recv(1 << 16)
                if not piece:
                    break
                data += piece
        except ConnectionResetError:
            end = "reset"
        except TimeoutError:
            end = "silence"
    return Tapped(data=bytes(data), end=end, seconds=time.monotonic() - begun)


@contextlib.asynccontextmanager
async def serving(faults: Faults | None, log: str = "engine", **options: Any) -> AsyncIterator[int]:
    with ibbmaster.open(LOGS[log]) as opened:
        checked = check_options(**{"tls": "off", **options}).for_log(opened)
        if faults is not None:
            checked = dataclasses.replace(checked, stages=(faults.stage,), observer=faults)
        primary = Primary(opened.engine, checked)
        primary._parts.facts.started_at = STARTED_AT  # a traditional stream opens with it
        async with trio.open_nursery() as nursery:
            yield await nursery.start(primary.serve)
            primary.stop()


async def tap(faults: Faults | None, log: str = "engine", **how: Any) -> Tapped:
    async with serving(faults, log) as port:
        return await trio.to_thread.run_sync(lambda: listen_in(port, **how), abandon_on_cancel=True)
