"""Traditional files as ibbmaster serves them, against the real server that wrote them and still writes; and files of
servers without checksums and GTIDs.
"""

import contextlib
import functools
import json
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest
from lanes import python_follower
from lanes.drivers import driver_command
from lanes.pair import Pair
from lanes.primary import IbbPrimary, Primary, login_of, login_options, run_program, tool_command
from lanes.replica import Replica
from lanes.sql import sql_beside

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.classic.series import MAGIC
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.mariadb_server import RealPrimary
from ibbmaster_scorecard.adapter import build, read_adapters
from tests.machinery.events import event_offsets
from tests.tap import listen_in

VERSIONS = ["10.11", "11.8"]
FORMS = {"with checksums": ["--binlog-checksum=CRC32"], "without": ["--binlog-checksum=NONE"]}
Answer = TypeVar("Answer")
RunTool = Callable[..., subprocess.CompletedProcess[str]]
Place = tuple[str, int]
PATIENCE_S = 300.0
OFFSETS = 8  # of each file, where events begin


@pytest.fixture(scope="module", params=VERSIONS)
def version(request) -> str:
    return request.param


@pytest.fixture(scope="module", params=FORMS)
def form(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def pair(version, form, server_of) -> Iterator[Pair]:
    """A real primary that has written five files and is in a sixth, and ours that serves its index.

    Tests write behind each other. The last file has checksums if the others have none.
    """
    options = [*FORMS[form], "--binlog-format=ROW", "--binlog-row-metadata=FULL"]
    with server_of(RealPrimary, version, [], *options) as real:
        real.sql("CREATE DATABASE shop")
        real.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, text LONGTEXT)")
        for first in (0, 4, 8):
            write(real, first)
        real.sql("SET GLOBAL binlog_checksum = IF(@@GLOBAL.binlog_checksum = 'NONE', 'CRC32', 'NONE')")
        write(real, 12, ends_file=False)
        ours = IbbPrimary(real.data / "binlog.index", "--tls", "off")
        ours.start()
        yield Pair(real, ours)
        ours.end_well()


def write(primary: RealPrimary, first: int, *, ends_file: bool = True) -> None:
    for number in range(first, first + 4):
        primary.sql("INSERT INTO shop.orders VALUES (%s, REPEAT('x', %s))", (number, 10 ** (number % 4 + 2)))
    if ends_file:
        primary.sql("FLUSH BINARY LOGS")


def dumped(primary: Primary, name: str, position: int, *, checksum: str = "CRC32", capability: int = 4) -> list[bytes]:
    """Every packet of a dump by file and position that does not wait."""
    settings = f"SET autocommit = 1, @master_binlog_checksum = '{checksum}', @mariadb_slave_capability = {capability}"
    account = {"user": primary.user, "password": primary.password}
    return listen_in(primary.port, place=(name, position), statements=[settings], **account).packets


def of_both(pair: Pair, ask: Callable[[Primary], Answer]) -> tuple[Answer, Answer]:
    """What we and the server answer while it logs nothing: it may log a checkpoint between two questions."""
    theirs = None
    while theirs != (now := ask(pair.real)):
        theirs, mine = now, ask(pair.ours)
    return mine, theirs


def expect_the_same(pair: Pair, name: str, position: int, **options: Any) -> None:
    mine, theirs = of_both(pair, lambda primary: dumped(primary, name, position, **options))
    assert mine == theirs, (name, position)


def answered(primary: Primary, sql: str) -> Any:
    account = login_of(primary) | {"autocommit": True, "ssl_disabled": True}
    with pymysql.connect(**account) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def binlogs(real: RealPrimary) -> list[Path]:
    return sorted(real.data.glob("binlog.0*[0-9]"))


def test_dumps_by_file_and_position_are_those_of_the_primary_itself(pair):
    rng = random.Random(1)

    for statement in ("SHOW BINARY LOGS", "SHOW MASTER STATUS", "SHOW BINLOG EVENTS IN 'binlog.000002'"):
        mine, theirs = of_both(pair, lambda primary, sql=statement: answered(primary, sql))
        assert mine == theirs
    for path in binlogs(pair.real):
        offsets, size = event_offsets(path.read_bytes()), path.stat().st_size
        for offset in {*rng.sample(offsets, min(OFFSETS, len(offsets))), 4, offsets[-1], size, size + 1, 2, 300}:
            expect_the_same(pair, path.name, offset)
        for capability in (0, 2, 3):
            expect_the_same(pair, path.name, 4, checksum="NONE", capability=capability)
    expect_the_same(pair, "nothing", 4)


def raw_files(
    run_tool: RunTool, version: str, primary: Primary, *, directory: Path, options: list[str]
) -> dict[str, bytes]:
    """What `mariadb-binlog --raw` makes of a primary's files from the one that is named last on, and what it says."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    remote = ["--read-from-remote-server", *login_options(primary), "--skip-ssl"]
    options = ["--raw", f"--result-file={directory}/", "--to-last-log", *options]
    done = run_tool(version, "mariadb-binlog", *remote, *options)
    return {"": done.stderr.encode(), **{path.name: path.read_bytes() for path in directory.iterdir()}}


def test_raw_files_of_us_are_those_of_the_primary_itself(pair, run_tool, tmp_path):
    version = pair.real.programs.version
    second = event_offsets((pair.real.data / "binlog.000002").read_bytes())
    starts = [
        ["binlog.000001"],
        ["binlog.000004"],
        ["--start-position=4", "binlog.000003"],
        [f"--start-position={second[-3]}", "binlog.000002"],  # in a group
        [f"--start-position={second[0] + 1}", "binlog.000002"],  # in an event
        [f"--stop-position={second[-2]}", "binlog.000002"],
        ["binlog.000009"],
    ]
    if version == "10.11":  # later ones begin inside the file, where their index finds the GTID
        starts.append(["--start-position=0-1-6", "binlog.000001"])
    for number, start in enumerate(starts):
        fetch = functools.partial(raw_files, run_tool, version, directory=tmp_path / str(number), options=start)
        mine, theirs = of_both(pair, fetch)
        assert mine == theirs, start
        if number == 0:
            assert sorted(theirs) == ["", *(path.name for path in binlogs(pair.real))]


def follower_command(name: str, primary: Primary, place: Place | None) -> tuple[list[str], str]:
    """How a consumer is started that follows from a place, or from where the primary is now; and its first line."""
    account = [primary.host, str(primary.port), primary.user, primary.password]
    file, position = place or ("", 0)
    match name:
        case "zongji":
            start = {"filename": file, "position": position} if file else {"startAtEnd": True}
            request = login_of(primary) | {"server_id": 7005, "tls": False, "start": "", "resume": start, "delay_ms": 0}
            try:
                return list(build(read_adapters()["zongji-by-file"])), json.dumps(request)
            except ConfigurationError as error:
                pytest.skip(str(error))
        case "canal":
            return [*driver_command("go", "canal-at"), *account, file, str(position)], ""
        case _:
            program = str(Path(python_follower.__file__))
            return [sys.executable, program, *account, *([file, str(position)] if file else [])], ""


@contextlib.contextmanager
def following(name: str, primary: Primary, place: Place | None = None) -> Iterator[subprocess.Popen[str]]:
    command, first_line = follower_command(name, primary, place)
    newest = max(row[0] for row in answered(primary, "SHOW PROCESSLIST"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(PATIENCE_S, process.kill)
        guard.start()
        try:
            process.stdin.write(f"{first_line}\n")
            process.stdin.flush()
            while process.poll() is None and not any(
                row[0] > newest and row[4] == "Binlog Dump" for row in answered(primary, "SHOW PROCESSLIST")
            ):
                pass
            yield process
        finally:
            guard.cancel()
            process.kill()


def told_until(process: subprocess.Popen[str], last: int) -> list[int | Place]:
    """Keys of rows, and the places that could be kept, up to the one behind a row."""
    told: list[int | Place] = []
    for line in process.stdout:
        words = line.rstrip().split("\t")
        if words[0].startswith("{"):  # zongji
            found = json.loads(line)
            if found["event"] == "change":
                told.append(found["after"]["id"])
            elif found["event"] == "position":
                told.append((found["position"]["filename"], found["position"]["position"]))
        elif words[0] == "insert":
            told.append(int(words[1]))
        elif words[0] == "position":
            told.append((words[1], int(words[2])))
        if last in told[:-1] and isinstance(told[-1], tuple):
            return told
    raise AssertionError(f"it ended, or took {PATIENCE_S:.0f} s: {told}")


@pytest.mark.parametrize("version", ["11.8"], indirect=True)
@pytest.mark.parametrize("form", ["with checksums"], indirect=True)
@pytest.mark.parametrize("name", ["zongji", "canal", "python-mysql-replication"])
def test_a_consumer_follows_from_the_end_and_from_a_place_it_kept_as_at_the_primary(name, pair):
    first = pair.real.sql("SELECT COUNT(*) FROM shop.orders")[0][0]
    with contextlib.ExitStack() as stack:
        followers = [stack.enter_context(following(name, primary)) for primary in (pair.ours, pair.real)]
        write(pair.real, first)
        write(pair.real, first + 4, ends_file=False)
        mine, theirs = [told_until(process, first + 7) for process in followers]
    assert mine == theirs
    assert [row for row in mine if isinstance(row, int)] == list(range(first, first + 8))
    place = mine[mine.index(first + 1) + 1]
    assert isinstance(place, tuple)

    with following(name, pair.ours, place) as process:
        again = told_until(process, first + 7)

    assert again == mine[mine.index(place) + 1 :]


def dumped_tables(name: str, primary: Primary, directory: Path, run_tool: RunTool) -> str:
    """What a program writes that dumps a database with the place to follow on from."""
    account = login_options(primary)
    if name == "mariadb-dump":
        options = ["--skip-ssl", "--single-transaction", "--master-data", "--skip-dump-date", "--databases", "shop"]
        done = run_tool("11.8", name, *account, *options)
        assert done.returncode == 0, done.stderr
        return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("-- "))
    shutil.rmtree(directory, ignore_errors=True)
    command = [name, *account, "--database=shop", f"--outputdir={directory}"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    texts = [f"{path.name}\n{path.read_text()}" for path in sorted(directory.iterdir())]
    return re.sub(r"(Started|Finished) dump at: .*", "", "".join(texts))


@pytest.mark.parametrize("version", ["11.8"], indirect=True)
@pytest.mark.parametrize("form", ["with checksums"], indirect=True)
@pytest.mark.parametrize("name", ["mariadb-dump", "mydumper"])
def test_a_dump_of_tables_names_the_place_that_the_primary_names(name, pair, run_tool, tmp_path):
    if name == "mydumper" and shutil.which(name) is None:
        pytest.skip("mydumper is not installed")

    places = pair.real.sql("SHOW MASTER STATUS")
    mine, theirs = of_both(pair, lambda primary: dumped_tables(name, primary, tmp_path / "dump", run_tool))
    places += pair.real.sql("SHOW MASTER STATUS")  # a server adds a BINLOG_CHECKPOINT when it comes to it

    assert mine == theirs
    assert any(re.search(rf"\b{file}\b.*\b{position}\b", mine, re.DOTALL) for file, position, *_ in places)


@pytest.mark.parametrize(("form", "base"), [*zip(FORMS, ["binlog", "mysqlbin"], strict=True)])
def test_a_replica_of_the_primary_goes_on_here_by_file_and_position_and_follows_what_is_written(
    version, form, base, new_server, new_replica, new_ibb_primary
):
    real = new_server(version, *FORMS[form], f"--log-bin={base}", "--binlog-format=ROW")
    real.sql("CREATE DATABASE shop")
    real.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, text LONGTEXT)")
    for first in (0, 4):
        write(real, first)
    write(real, 8, ends_file=False)
    replica = new_replica(version)
    replica.follow_by_file(real, f"{base}.000001")
    replica.wait_until(lambda of: orders_of(of) == 12)
    replica.sql("STOP SLAVE")
    status = replica.status()
    place = status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]
    write(real, 12)

    replica.follow_by_file(new_ibb_primary(real.data / f"{base}.index", "--tls", "off"), *place)
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


@pytest.mark.parametrize("name", ["domains", "checksum-switch", "crashed"])
def test_raw_files_that_the_tool_fetches_are_the_files(
    version, name, tmp_path, captures, classic_files, new_ibb_primary, run_tool
):
    directory = tmp_path / "served"
    directory.mkdir()
    files = classic_files(captures[f"{version}/{name}"])
    for file in files:
        shutil.copy(file, directory)
    ours = new_ibb_primary(directory, "--tls", "off")

    options = ["--read-from-remote-server", *login_options(ours), "--skip-ssl", "--raw", "--to-last-log"]
    run_tool(version, "mariadb-binlog", *options, files[0].name)

    for file in files:
        data = bytearray(file.read_bytes())
        data[21] &= 0xFE  # what is sent is not in use
        assert (tmp_path / file.name).read_bytes() == data


COMMIT = "COMMIT"
TYPE_COUNT = 27  # of MySQL 5.1
TRAILER_SIZE = 5  # of what servers with checksums have behind the types


def old_log(version: str, statements: Iterable[str], *, database: str, timestamp: int = 1_200_000_000) -> bytes:
    """A file that its server has closed; COMMIT is that of a transactional table."""
    description = describe_format(version, type_count=TYPE_COUNT, created=timestamp)
    body = encode_format_description(description, server_id=1)[EVENT_HEADER_SIZE:-TRAILER_SIZE]
    parts: list[tuple[EventType, bytes]] = [(EventType.FORMAT_DESCRIPTION, body)]
    for number, text in enumerate(statements):
        if text == COMMIT:
            parts.append((EventType.XID, number.to_bytes(8, "little")))
            continue
        query = Query(thread_id=5, seconds=0, error_code=0, status=b"", database=database.encode(), text=text.encode())
        parts.append((EventType.QUERY, encode_query(query, server_id=1)[EVENT_HEADER_SIZE:]))
    data = MAGIC
    for event_type, body in (*parts, (EventType.STOP, b"")):
        log_pos = len(data) + EVENT_HEADER_SIZE + len(body)
        data += encode_event(event_type=event_type, body=body, server_id=1, timestamp=timestamp, log_pos=log_pos)
    return data


STATEMENTS = sql_beside(__file__)["statements"]
ROWS = (((1, "c"), (2, "b")), ((7,),))
NAME = "binlog.000001"
STOP_SIZE = 19


def pulled(version: str, primary, target: Path) -> bytes:
    target.mkdir()
    options = [*login_options(primary), "--skip-ssl", "--raw", "--read-from-remote-server", f"--result-file={target}/"]
    run_program(tool_command(version, "mariadb-binlog", *options, NAME))
    return (target / NAME).read_bytes()


def told(primary) -> list[object]:
    with pymysql.connect(**login_of(primary)) as connection, connection.cursor() as cursor:
        answers = []
        for statement in (
            f"SHOW BINLOG EVENTS IN '{NAME}'",
            f"SELECT BINLOG_GTID_POS('{NAME}', 4)",
            "SELECT @@gtid_binlog_pos",
        ):
            cursor.execute(statement)
            answers.append(cursor.fetchall())
        return answers


def has_all(replica: Replica, primary, size: int) -> bool:
    """Whether it gets the tables of a file with this many bytes."""
    replica.follow_by_file(primary, NAME)
    replica.wait_until(lambda one: int(one.status()["Exec_Master_Log_Pos"]) >= size)
    found = replica.sql("SELECT * FROM d.t ORDER BY id"), replica.sql("SELECT * FROM d.m")
    replica.sql("STOP SLAVE")
    return found == ROWS


@pytest.mark.parametrize("old", ["5.0.83-log", "5.1.42-MariaDB-log"])
def test_an_old_log_is_served_as_a_real_primary_serves_it(version, old, server_of, new_replica, tmp_path):
    data = old_log(old, STATEMENTS, database="d")
    directory = tmp_path / "log"
    directory.mkdir()
    (directory / NAME).write_bytes(data)
    real = server_of(RealPrimary, version, [directory / NAME])
    with real, ibbmaster.serve(directory, password="secret", tls="off") as ours:
        for number, primary in enumerate((real, ours)):
            assert pulled(version, primary, tmp_path / f"raw-{number}") == data
        assert told(ours) == told(real)
        assert has_all(new_replica(version), ours, len(data) - STOP_SIZE)
