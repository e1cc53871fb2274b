"""What an account without any privilege can do to a server: its memory, its time and its end are bounded."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest

import ibbmaster
from tests.primary.server.conftest import client_of, refusal

DOMAINS = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"
JOINED = (
    "SELECT a.*, b.*, c.* FROM information_schema.columns a, information_schema.columns b, information_schema.columns c"
)
ENDLESS = f"SELECT COUNT(*) FROM ({JOINED.replace('a.*, b.*, c.*', '1')} WHERE CONCAT(a.extra, b.extra) < c.extra) q"
SORTED = f"{JOINED} ORDER BY a.column_name, b.column_name, UPPER(c.column_name)"
MIB = 1 << 20


class Growing:
    """A log that a primary still writes: its last groups come one by one."""

    def __init__(self, directory: Path) -> None:
        with ibbmaster.open(directory) as log:
            with contextlib.closing(log.engine.groups(log.engine.start_of_file())) as reader:
                groups = list(iter(reader.next_group, None))
            last = groups[-1].start.file_no
            self._path = directory / log.engine.file_name(last)
            for file in log.engine.files()[last + 1 :]:
                (directory / file.name).unlink()
        data = self._path.read_bytes()
        borders = [group.start.offset for group in groups if group.start.file_no == last]
        self.name, self.end = self._path.name, borders[0]
        self.to_come = [data[start:end] for start, end in itertools.pairwise(borders)]
        self._path.write_bytes(data[: self.end])

    def commit(self) -> bytes | None:
        if not self.to_come:
            return None
        group = self.to_come.pop(0)
        with self._path.open("ab") as file:
            file.write(group)
        return group


class Server:
    """`ibbmaster serve` in a process of its own, with one account that may do nothing, and one that may dump."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.growing = Growing(directory)
        accounts = home / "accounts"
        accounts.write_text("[nobody]\npassword = pw\ngrant = USAGE\n")
        accounts.chmod(0o600)
        command = [sys.executable, "-m", "ibbmaster", "serve", directory, "--listen", "127.0.0.1:0", "--json"]
        self.process = subprocess.Popen(
            [*command, "--accounts", accounts, "--tls", "off"],
            env={**os.environ, "IBBMASTER_PASSWORD": "pw", "IBBMASTER_KERNELS": "off"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = json.loads(self.process.stdout.readline())["port"]

    def connect(self, user="nobody", **options):
        return client_of(self.port, "pw", user, **options)

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def temporary_bytes(self) -> int:
        """Bytes of files that nobody else sees."""
        found = 0
        for name in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "etilqs" in os.readlink(name):
                    found += name.stat().st_size
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("attacked")
    shutil.copytree(DOMAINS, home / "log")
    server = Server(home / "log", home)
    yield server
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()


def send(connection: pymysql.Connection, text: bytes, command: bytes = b"\x03") -> socket.socket:
    payload = command + text
    while payload:
        piece, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
        connection._sock.sendall(len(piece).to_bytes(3, "little") + b"\0" + piece)
    return connection._sock


def test_what_sessions_keep_is_bounded_for_all_of_them_together(server):
    before = server.resident()
    letters = "x" * 500_000
    numbers = ",".join("1" * 20_000)
    sessions, refused = [], set()
    for _ in range(30):
        session = server.connect()
        sessions.append(session)
        with session.cursor() as cursor:
            for number in range(7):
                try:
                    cursor.execute(f"SET @v{number} = '{letters}'")
                except pymysql.MySQLError as error:
                    refused.add(error.args[0])
                    break
        with contextlib.suppress(OSError):  # a text that has no room ends its connection
            send(session, f"SELECT {numbers}".encode(), b"\x16")  # to be prepared
    for session in [session for session in sessions if session.open][:10]:
        with contextlib.suppress(OSError):  # a command of 16 MB of which the end never comes
            session._sock.settimeout(5)
            session._sock.sendall(b"\xff\xff\xff\0\x03" + bytes(8 * MIB))
    assert 1041 in refused
    with server.connect("repl") as replica, replica.cursor() as cursor:
        cursor.execute("SET @slave_connect_state = '0-1-1'")
        cursor.execute("SELECT @slave_connect_state")
        assert cursor.fetchall() == (("0-1-1",),)
    assert server.resident() - before < 300 * MIB
    for session in sessions:
        session._force_close()


@pytest.mark.parametrize("way", ["KILL QUERY", "KILL", "max_statement_time", "leaves"])
def test_a_statement_without_an_end_is_ended(server, way):
    attacker, admin = server.connect(), server.connect()
    with admin.cursor() as cursor:
        if way == "max_statement_time":
            attacker.query("SET SESSION max_statement_time = 0.2")
            assert refusal(attacker.query, ENDLESS)[0] == 1969
            return
        send(attacker, ENDLESS.encode())
        number = attacker.thread_id()
        while (number, "Query") not in commands(cursor):  # KILL is answered sooner than a statement begins
            pass
        if way == "leaves":
            attacker._force_close()
        else:
            cursor.execute(f"{way} {number}")
            attacker._next_seq_id = 1
            if way == "KILL":
                assert attacker._sock.recv(100) == b""
            else:
                assert refusal(attacker._read_packet)[0] == 1317
                attacker.ping()
        for _ in range(1000):
            if (number, "Query") not in commands(cursor):
                return
        pytest.fail("it is still there")


def commands(cursor) -> set[tuple[int, str]]:
    cursor.execute("SHOW PROCESSLIST")
    return {(row[0], row[4]) for row in cursor.fetchall()}


COSTLY = {
    "values that are alive together": f"SELECT COALESCE({','.join(['UPPER(@long)'] * 500)})",
    "a row of them": f"SELECT {','.join(['UPPER(@long)'] * 500)}",
    "a text of statements": ";".join(["SELECT UPPER(@long)"] * 500),
    "many comparisons": f"SELECT @long IN ({','.join(['@long'] * 2000)})",
    "a cunning pattern": f"SELECT @long LIKE CONCAT('{'_%' * 5000}', 'y')",
    "brackets": f"SELECT {'(' * 5000}1{')' * 5000}",
    "a chain": f"SELECT {' OR '.join(['0'] * 20000)}",
    "signs": f"SELECT {'-+' * 20000}1",
    "a chain over tables": f"SELECT 1 FROM information_schema.tables WHERE {' OR '.join(['0'] * 20000)}",
    "subqueries": f"SELECT {'(SELECT ' * 500}1{')' * 500}",
    "functions of SQLite": "SELECT zeroblob(1000000000), randomblob(1000000000) FROM information_schema.tables",
    "a width": "SELECT printf('%1000000000d', 1) FROM information_schema.tables",
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_statement_that_wants_much_gets_an_answer_or_an_error_at_little_cost(server, name):
    before = server.resident()
    with server.connect(read_timeout=60) as session, session.cursor() as cursor:
        cursor.execute(f"SET @long = '{'x' * 900_000}'")
        with contextlib.suppress(pymysql.MySQLError):
            cursor.execute(f"SET STATEMENT max_statement_time = 1 FOR {COSTLY[name]}")
        with contextlib.suppress(pymysql.MySQLError):
            session._result = None
            session.ping()
        assert server.process.poll() is None
    assert server.resident() - before < 200 * MIB


def test_costly_statements_fill_neither_memory_nor_disk_and_keep_nobody_waiting(server):
    replica, growing = server.connect("repl", read_timeout=120), server.growing
    with replica.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.columns")
        cursor.execute("SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4")
    send(replica, struct.pack("<IHI", growing.end, 2, 5) + growing.name.encode(), b"\x12")
    replica._next_seq_id = 1

    def committed() -> float:
        """Commit one group more; the seconds until the replica has it."""
        begun, group = time.monotonic(), growing.commit()
        while group:
            event = replica._read_packet().get_all_data()[1:]
            group = group[len(event) :] if group.startswith(event) else group
        return time.monotonic() - begun

    alone = statistics.median(committed() for _ in range(len(growing.to_come) // 3))
    before = server.resident()
    attackers = [server.connect() for _ in range(24)]
    for number, attacker in enumerate(attackers):
        send(attacker, [JOINED, ENDLESS, SORTED][number % 3].encode())
    peak = spilled = 0
    delays = []
    for _ in range(30):
        with server.connect("repl") as other, other.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")  # in a thread, as the statements of others
        if growing.to_come:
            delays.append(committed())
        peak, spilled = max(peak, server.resident()), max(spilled, server.temporary_bytes())
    assert peak - before < 300 * MIB
    assert spilled < 4096 * MIB
    assert not growing.to_come
    print(f"a group came after {alone:.4f} s, beside costly statements after {statistics.median(delays):.4f} s")
    assert statistics.median(delays) < 1 + 100 * alone  # what 24 threads at work leave of an interpreter
    assert max(delays) < 20
    with server.connect("repl") as other, other.cursor() as cursor:  # it was all while they were at it, and they are
        cursor.execute("SHOW PROCESSLIST")
        at_work = {row[0] for row in cursor.fetchall() if row[4] == "Query"}
    assert at_work & {attacker.thread_id() for attacker in attackers[1::3]}
    server.process.send_signal(signal.SIGTERM)  # the last that is done to it
    begun = time.monotonic()
    assert server.process.wait(60) == 0
    assert time.monotonic() - begun < 20  # a moment, on a machine that is not busy
    for attacker in attackers:
        attacker._force_close()
