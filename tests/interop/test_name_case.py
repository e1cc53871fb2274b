"""A real server with lower_case_table_names=1, and all that answers from its log alone: found out, not told."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.described import described_by, differences, places_by_gtid, put_beside_rows
from lanes.sql_file import sql_beside

import ibbmaster
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary

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
        server.sql("FLUSH BINARY LOGS")
        yield server, told


@pytest.fixture
def files(real, tmp_path) -> Path:
    """Its binlogs."""
    server, _ = real
    for path in sorted(server.data.glob("binlog.0*[0-9]"))[:-1]:
        shutil.copy(path, tmp_path)
    return tmp_path


def ask(connection: Any, sql: str) -> Any:
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall(), [column[0] for column in cursor.description or ()]
    except pymysql.Error as error:
        return error.args[0]


@pytest.mark.parametrize("case", [None, NameCase.LOWER])
def test_each_statement_leaves_the_tables_of_the_server(real, files, case):
    _, told = real
    log = ClassicBinlog([files])
    history = LoggedSchema(log, case=case).history()
    assert history.case is NameCase.LOWER
    places = places_by_gtid(log)
    for text, gtid, described in told:
        assert differences(history.at(places[gtid]), described) == [], text
    assert put_beside_rows(log, history)
    assert history.disagreements == []


def test_a_session_has_the_answers_of_the_server(real, files):
    server, _ = real
    with (
        ibbmaster.open(files) as log,
        ibbmaster.serve(log, tls="off") as primary,
        contextlib.closing(pymysql.connect(host=primary.host, port=primary.port, user=primary.user)) as ours,
        contextlib.closing(server.connect()) as theirs,
    ):
        for question in QUESTIONS:
            wanted = ask(theirs, question)
            assert ask(ours, question) == wanted, question


def test_rows_have_the_names_and_signs_of_their_columns(files):
    with ibbmaster.open(files) as log:
        changes = [(schema.name, change.after) for group in log for schema, change in group.rows()]
        assert ("d.three", {"a": 1, "b": 4000000000}) in changes
        assert log.to_arrow(table="d.three")["b"].to_pylist() == [4000000000]
    with ibbmaster.open(files, lower_case_table_names=1) as log:
        assert log.to_arrow(table="D.Three")["b"].to_pylist() == [4000000000]


def test_who_says_that_capitals_matter_is_believed(files):
    with ibbmaster.open(files, lower_case_table_names=0) as log, ibbmaster.serve(log, tls="off") as primary:
        connection = pymysql.connect(host=primary.host, port=primary.port, user=primary.user)
        with contextlib.closing(connection):
            assert ask(connection, "SELECT @@lower_case_table_names")[0] == ((0,),)
            names = [name for (name,) in ask(connection, "SHOW DATABASES")[0]]
            assert {"Shop", "shop"} <= set(names)


def test_letters_fold_as_on_the_server(real):
    server, _ = real
    for first in range(0x80, 0x10000, 0x400):
        letters = [chr(code) for code in range(first, first + 0x400) if not 0xD800 <= code < 0xE000]
        if letters:
            ((lower,),) = server.sql(f"SELECT LOWER('{'|'.join(letters)}' COLLATE utf8mb4_general_ci)")
            assert lower.split("|") == [lower_name(letter) for letter in letters], hex(first)
