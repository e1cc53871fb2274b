"""A real server as judge of the schema history: columns, indexes and keys of all tables, at the end and on the way."""

import contextlib
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from lanes.capture import load_captures
from lanes.described import OF_TABLES, described_by, differences, places_by_gtid, put_beside_rows
from lanes.hard_ddl import LAX, hard_statements

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.schema.base_dump import read_base
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary, RealServer

REPLAYED = [
    capture
    for capture in load_captures()
    if not capture.is_encrypted and not capture.is_large and "statement" not in capture.name
]
REPLAY_TIMEOUT_S = 600
OWN_DATABASES = ("mysql", "information_schema", "performance_schema", "sys")
ALREADY_LOGGED = {b"1051"}  # DROP TABLE of which one is not there: the statement failed on its own server, too


def write_rows(cursor, statement: str) -> None:
    """A row into each table that a statement names, where it takes one, and out again."""
    cursor.execute(f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES {OF_TABLES}")
    for names in cursor.fetchall():
        if names[1] in statement:
            table = ".".join("`" + name.replace("`", "``") + "`" for name in names)
            with contextlib.suppress(Exception):  # views, sequences, and tables with other demands
                cursor.execute(f"INSERT IGNORE INTO {table} () VALUES ()")
                cursor.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
def test_each_hard_statement_leaves_the_tables_of_the_server(server_of, watch_log, version):
    server = server_of(RealPrimary, version, [], "--binlog-row-metadata=FULL", "--binlog-format=ROW")
    watch_log("log of the real server", server.log_text)
    told = []
    with server:
        told = run_hard_statements(server, version)
        dump, last = dumped(server), described_by(server)
        server.stop()
        log = ClassicBinlog(sorted(server.data.glob("binlog.0*[0-9]")))
        history = LoggedSchema(log).history()
        places = places_by_gtid(log)
        for text, gtid, described in told:
            assert differences(history.at(places[gtid]), described) == [], text
        assert put_beside_rows(log, history) > len(told)
        assert history.disagreements == []
        base = read_base(dump[at : at + 1000] for at in range(0, len(dump), 1000))
        # A server that reads a dump sorts indexes anew, too: what became NOT NULL later is so from the beginning.
        assert [line for line in differences(base.catalog, last) if "in another order" not in line] == []
        assert str(base.position) in places


def dumped(server: RealServer) -> str:
    """What mariadb-dump writes of it, with the position that it is of."""
    databases = [name for (name,) in server.sql("SHOW DATABASES") if name not in OWN_DATABASES]
    options = ["--no-defaults", f"--socket={server.socket}", "--user=root", "--master-data", "--gtid", "--routines"]
    command = [*server.programs.command("mariadb-dump"), *options, "--databases", *databases]
    done = subprocess.run(command, capture_output=True, timeout=REPLAY_TIMEOUT_S, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def run_hard_statements(server, version):
    """Each of them with the position behind it, and the tables that the server has there."""
    told = []
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("USE d")
        cursor.execute("SET system_versioning_alter_history = KEEP")
        for one in hard_statements(version):
            explicit = "ON" if one.is_explicit else "OFF"
            cursor.execute(f"SET sql_mode = '{one.sql_mode}', explicit_defaults_for_timestamp = {explicit}")
            cursor.execute(one.text)
            cursor.execute(f"SET sql_mode = '{LAX}'")
            cursor.execute("SELECT @@gtid_binlog_pos")
            told.append((one.text, cursor.fetchone()[0], described_by(server)))
            write_rows(cursor, one.text)
    return told


@pytest.mark.parametrize("capture", REPLAYED, ids=lambda capture: capture.id)
def test_a_capture_that_is_replayed_leaves_the_tables_of_its_history(replayed_on, capture, tmp_path):
    files = capture.unpack(tmp_path)
    log = ClassicBinlog(files)
    history = LoggedSchema(log).history()
    places = places_by_gtid(log)
    positions = [gtid for gtid in places if gtid.startswith("0-")] or list(places)
    middle = random.choice(positions[len(positions) // 4 :])
    server = replayed_on(capture.version)
    for begin, end in (
        (("", middle), (middle, "")) if len({gtid.split("-")[0] for gtid in places}) == 1 else (("", ""),)
    ):
        replay(server, files, begin, end)
        assert differences(history.at(places[end] if end else None), described_by(server)) == [], (begin, end)


def replay(server: RealServer, files: list[Path], begin: str, end: str) -> None:
    """Run the groups behind a position, up to another, with mariadb-binlog."""
    command = [*server.programs.command("mariadb-binlog"), *map(str, files)]
    command += [f"--start-position={begin}"] * bool(begin) + [f"--stop-position={end}"] * bool(end)
    printed = subprocess.run(
        command, capture_output=True, timeout=REPLAY_TIMEOUT_S, check=True, env={**os.environ, "TZ": "UTC"}
    )
    run = subprocess.run(
        [*server.programs.command("mariadb"), "--no-defaults", f"--socket={server.socket}", "--user=root", "--force"],
        input=printed.stdout,
        capture_output=True,
        timeout=REPLAY_TIMEOUT_S,
        check=False,
    )
    assert set(re.findall(rb"^ERROR (\d+)", run.stderr, re.MULTILINE)) <= ALREADY_LOGGED, run.stderr[-2000:]


@pytest.fixture(scope="module")
def replayed_on(server_of):
    """One server of each version, empty again."""
    with contextlib.ExitStack() as stack:
        running = {}

        def find(version):
            if version not in running:
                options = ("--character-set-server=utf8mb4", "--log-bin-trust-function-creators=ON")
                running[version] = stack.enter_context(server_of(RealServer, version, *options))
            server = running[version]
            for (name,) in server.sql("SHOW DATABASES"):
                if name not in OWN_DATABASES:
                    server.sql(f"DROP DATABASE `{name}`")
            server.sql("SET GLOBAL gtid_slave_pos = ''")
            return server

        yield find
