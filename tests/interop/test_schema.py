"""A real server as judge of the schema history: columns, indexes and keys of all tables, at the end and on the way.

And one with lower_case_table_names=1, and all that answers from its log alone: found out, not told.
"""

import contextlib
import os
import random
import re
import subprocess
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from lanes.capture import load_captures
from lanes.described import described_by, differences, expect_history, places_by_gtid
from lanes.hard_ddl import LAX, hard_statements
from lanes.pair import Pair, answer, ask, connect, expect_alike
from lanes.sql import OF_SERVERS, copy_binlogs, drop_databases, dump_of, run_script, sql_beside

import ibbmaster
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.schema.base_dump import read_base
from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary, RealServer

REPLAYED = [
    capture
    for capture in load_captures()
    if not capture.is_encrypted and not capture.is_large and "statement" not in capture.name
]
ALREADY_LOGGED = {"1051"}  # DROP TABLE of which one is not there: the statement failed on its own server, too


def write_rows(cursor, statement: str) -> None:
    """A row into each table that a statement names, where it takes one, and out again."""
    tables = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN %s"
    cursor.execute(tables, (OF_SERVERS,))
    for names in cursor.fetchall():
        if names[1] in statement:
            table = ".".join("`" + name.replace("`", "``") + "`" for name in names)
            with contextlib.suppress(Exception):  # views, sequences, and tables with other demands
                cursor.execute(f"INSERT IGNORE INTO {table} () VALUES ()")
                cursor.execute(f"DELETE FROM {table}")


def test_each_hard_statement_leaves_the_tables_of_the_server(server_of, watch_log, version):
    server = server_of(RealPrimary, version, [], "--binlog-row-metadata=FULL", "--binlog-format=ROW")
    watch_log("log of the real server", server.log_text)
    with server:
        told = run_hard_statements(server, version)
        databases = [name for (name,) in server.sql("SHOW DATABASES") if name not in OF_SERVERS]
        dump = dump_of(server, "--routines", "--databases", *databases).decode("utf-8", "surrogateescape")
        last = described_by(server)
        server.stop()
        log = ClassicBinlog(sorted(server.data.glob("binlog.0*[0-9]")))
        assert expect_history(log, LoggedSchema(log).history(), told) > len(told)
        base = read_base(dump[at : at + 1000] for at in range(0, len(dump), 1000))
        # A server that reads a dump sorts indexes anew, too: what became NOT NULL later is so from the beginning.
        assert [line for line in differences(base.catalog, last) if "in another order" not in line] == []
        assert str(base.position) in places_by_gtid(log)


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
    command = [*server.programs.command("mariadb-binlog"), *files]
    command += [f"--start-position={begin}"] * bool(begin) + [f"--stop-position={end}"] * bool(end)
    printed = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "TZ": "UTC"}).stdout
    said = run_script(server, printed, "--force")
    assert set(re.findall(r"^ERROR (\d+)", said, re.MULTILINE)) <= ALREADY_LOGGED, said[-2000:]


@pytest.fixture(scope="module")
def replayed_on(server_of):
    with contextlib.ExitStack() as stack:
        running = {}

        def find(version):
            if version not in running:
                options = ("--character-set-server=utf8mb4", "--log-bin-trust-function-creators=ON")
                running[version] = stack.enter_context(server_of(RealServer, version, *options))
            server = running[version]
            drop_databases(server)
            server.sql("SET GLOBAL gtid_slave_pos = ''")
            return server

        yield find


_SQL = sql_beside(__file__)
STATEMENTS = _SQL["statements"]
QUESTIONS = _SQL["questions"]


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def real(request, server_of) -> Iterator[tuple[RealPrimary, list[tuple[str, str, Any]]]]:
    """A server that has carried out the statements, with what it said of its tables behind each."""
    options = ("--lower-case-table-names=1", "--binlog-format=ROW", "--binlog-row-metadata=NO_LOG")
    with server_of(RealPrimary, request.param, [], *options) as server:
        told = []
        with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
            for statement in STATEMENTS:
                cursor.execute(statement)
                cursor.execute("SELECT @@gtid_binlog_pos")
                told.append((statement, cursor.fetchone()[0], described_by(server)))
        yield server, told


@pytest.fixture
def files(real, tmp_path) -> Path:
    return copy_binlogs(real[0], tmp_path)


@pytest.mark.parametrize("case", [None, NameCase.LOWER])
def test_each_statement_leaves_the_tables_of_the_server(real, files, case):
    _, told = real
    log = ClassicBinlog([files])
    history = LoggedSchema(log, case=case).history()
    assert history.case is NameCase.LOWER
    assert expect_history(log, history, told)


def test_a_session_has_the_answers_of_the_server(real, files):
    server, _ = real
    with (
        ibbmaster.serve(files, password="secret", tls="off") as primary,
        Pair(server, primary).asking() as (ours, theirs),
    ):
        told = attrgetter("name", "type_code")
        expect_alike((asked, answer(ours, asked, told), answer(theirs, asked, told)) for asked in QUESTIONS)


def test_rows_have_the_names_and_signs_of_their_columns(files):
    with ibbmaster.open(files) as log:
        changes = [(schema.name, change.after) for group in log for schema, change in group.rows()]
        assert ("d.three", {"a": 1, "b": 4000000000}) in changes
        assert log.to_arrow(table="d.three")["b"].to_pylist() == [4000000000]
    with ibbmaster.open(files, lower_case_table_names=1) as log:
        assert log.to_arrow(table="D.Three")["b"].to_pylist() == [4000000000]


def test_who_says_that_capitals_matter_is_believed(files):
    with (
        ibbmaster.open(files, lower_case_table_names=0) as log,
        ibbmaster.serve(log, password="secret", tls="off") as primary,
        connect(primary) as connection,
    ):
        assert ask(connection, "SELECT @@lower_case_table_names")[1] == [("0",)]
        assert {("Shop",), ("shop",)} <= {*ask(connection, "SHOW DATABASES")[1]}


def test_letters_fold_as_on_the_server(real):
    server, _ = real
    for first in range(0x80, 0x10000, 0x400):
        letters = [chr(code) for code in range(first, first + 0x400) if not 0xD800 <= code < 0xE000]
        if letters:
            ((lower,),) = server.sql(f"SELECT LOWER('{'|'.join(letters)}' COLLATE utf8mb4_general_ci)")
            assert lower.split("|") == [lower_name(letter) for letter in letters], hex(first)
