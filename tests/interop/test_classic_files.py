"""Traditional files as ibbmaster serves them, against the real server that wrote them and still writes."""

from __future__ import annotations

import contextlib
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.capture import Capture
from lanes.primary import IbbPrimary, Primary
from lanes.replica import Replica

from ibbmaster.testkit.mariadb_server import RealPrimary, ServerTemplate

VERSIONS = ["10.11", "11.8"]
FORMS = {"with checksums": ["--binlog-checksum=CRC32"], "without": ["--binlog-checksum=NONE"]}
OFFSETS = 8  # of each file, where events begin


@pytest.fixture
def new_writer(
    template_of: Callable[[str], ServerTemplate], servers_directory: Path, server_numbers: Iterator[int]
) -> Iterator[Callable[..., RealPrimary]]:
    """Start a real primary of a version with a log of its own."""
    with contextlib.ExitStack() as stack:

        def start(version: str, *options: str) -> RealPrimary:
            directory = servers_directory / f"w{next(server_numbers)}"
            return stack.enter_context(RealPrimary(template_of(version), directory, [], *options))

        yield start


def write(primary: RealPrimary, first: int, *, ends_file: bool = True) -> None:
    for number in range(first, first + 4):
        primary.sql("INSERT INTO shop.orders VALUES (%s, REPEAT('x', %s))", (number, 10 ** (number % 4 + 2)))
    if ends_file:
        primary.sql("FLUSH BINARY LOGS")


def connected(primary: Primary) -> pymysql.Connection:
    where = {"host": primary.host, "port": primary.port, "user": primary.user, "password": primary.password}
    return pymysql.connect(**where, autocommit=True, ssl_disabled=True)


def dumped(primary: Primary, name: str, position: int, *, checksum: str = "CRC32", capability: int = 4) -> list[bytes]:
    """Every packet of a dump by file and position that does not wait."""
    with contextlib.closing(connected(primary)) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"SET @master_binlog_checksum = '{checksum}', @mariadb_slave_capability = {capability}")
        connection._execute_command(0x12, struct.pack("<IHI", position, 3, 0) + name.encode())
        payloads: list[bytes] = []
        while not payloads or payloads[-1][:1] == b"\0":
            try:
                payloads.append(bytes(connection._read_packet()._data))
            except pymysql.Error as error:
                return [*payloads, str(error.args).encode()]
        return payloads


def expect_the_same(ours: Primary, real: Primary, name: str, position: int, **options: Any) -> None:
    """Dumps of both are equal; the server may log a checkpoint between two of its own."""
    theirs = None
    while theirs != (now := dumped(real, name, position, **options)):
        theirs, mine = now, dumped(ours, name, position, **options)
    assert mine == theirs, (name, position)


def event_offsets(path: Path) -> list[int]:
    data = path.read_bytes()
    offsets, offset = [], 4
    while offset < len(data):
        offsets.append(offset)
        offset += struct.unpack_from("<I", data, offset + 9)[0]
    return offsets


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", FORMS)
def test_dumps_by_file_and_position_are_those_of_the_primary_itself(
    version: str, form: str, new_writer: Callable[..., RealPrimary], new_ibb_primary: Callable[..., IbbPrimary]
) -> None:
    real = new_writer(version, *FORMS[form], "--binlog-format=ROW")
    real.sql("CREATE DATABASE shop")
    real.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, text LONGTEXT)")
    for first in (0, 4, 8):
        write(real, first)
    real.sql("SET GLOBAL binlog_checksum = IF(@@GLOBAL.binlog_checksum = 'NONE', 'CRC32', 'NONE')")
    write(real, 12, ends_file=False)
    ours = new_ibb_primary(real.data / "binlog.index", "--tls", "off")
    rng = random.Random(1)

    for statement in ("SHOW BINARY LOGS", "SHOW MASTER STATUS", "SHOW BINLOG EVENTS IN 'binlog.000002'"):
        with contextlib.closing(connected(ours)) as connection:
            cursor = connection.cursor()
            theirs = None
            while theirs != (now := real.sql(statement)):
                cursor.execute(statement)
                theirs, mine = now, cursor.fetchall()
            assert mine == theirs
    for path in sorted(real.data.glob("binlog.0*[0-9]")):
        offsets, size = event_offsets(path), path.stat().st_size
        for offset in {*rng.sample(offsets, min(OFFSETS, len(offsets))), 4, offsets[-1], size, size + 1, 2, 300}:
            expect_the_same(ours, real, path.name, offset)
        for capability in (0, 2, 3):
            kept = {"checksum": "NONE", "capability": capability}
            expect_the_same(ours, real, path.name, 4, **kept)
    expect_the_same(ours, real, "nothing", 4)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("form", "base"), [*zip(FORMS, ["binlog", "mysqlbin"], strict=True)])
def test_a_replica_of_the_primary_goes_on_here_by_file_and_position_and_follows_what_is_written(
    version: str,
    form: str,
    base: str,
    new_writer: Callable[..., RealPrimary],
    new_replica: Callable[..., Replica],
    new_ibb_primary: Callable[..., IbbPrimary],
) -> None:
    real = new_writer(version, *FORMS[form], f"--log-bin={base}", "--binlog-format=ROW")
    real.sql("CREATE DATABASE shop")
    real.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, text LONGTEXT)")
    for first in (0, 4):
        write(real, first)
    write(real, 8, ends_file=False)
    replica = new_replica(version)
    replica.follow(real, start=False)
    replica.sql("CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = %s, MASTER_LOG_POS = 4", (f"{base}.000001",))
    replica.sql("START SLAVE")
    replica.wait_until(lambda of: orders_of(of) == 12)
    replica.sql("STOP SLAVE")
    status = replica.status()
    place = status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]
    write(real, 12)

    ours = new_ibb_primary(real.data / f"{base}.index", "--tls", "off")
    replica.follow(ours, start=False)
    replica.sql("CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = %s, MASTER_LOG_POS = %s", place)
    replica.sql("START SLAVE")
    replica.wait_until(lambda of: orders_of(of) == 16)
    write(real, 16)
    write(real, 20, ends_file=False)
    replica.wait_until(lambda of: orders_of(of) == 24)

    status = replica.status()
    assert (status["Last_IO_Error"], status["Last_SQL_Error"]) == ("", "")
    end = real.sql("SHOW MASTER STATUS")[0][:2]
    replica.wait_until(lambda of: (of.status()["Master_Log_File"], int(str(of.status()["Read_Master_Log_Pos"]))) == end)


def orders_of(replica: Replica) -> int:
    with contextlib.suppress(pymysql.Error):
        return int(replica.sql("SELECT COUNT(*) FROM shop.orders")[0][0])
    return -1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["domains", "checksum-switch", "crashed"])
def test_raw_files_that_the_tool_fetches_are_the_files(
    version: str,
    name: str,
    tmp_path: Path,
    captures: dict[str, Capture],
    classic_files: Callable[[Capture], list[Path]],
    new_ibb_primary: Callable[..., IbbPrimary],
    run_tool: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    directory = tmp_path / "served"
    directory.mkdir()
    files = classic_files(captures[f"{version}/{name}"])
    for file in files:
        shutil.copy(file, directory)
    ours = new_ibb_primary(directory, "--tls", "off")

    run_tool(
        version,
        "mariadb-binlog",
        *("--read-from-remote-server", f"--host={ours.host}", f"--port={ours.port}", f"--user={ours.user}"),
        *(f"--password={ours.password}", "--skip-ssl", "--raw", "--to-last-log", files[0].name),
    )

    for file in files:
        data = bytearray(file.read_bytes())
        data[21] &= 0xFE  # what is sent is not in use
        assert (tmp_path / file.name).read_bytes() == data
