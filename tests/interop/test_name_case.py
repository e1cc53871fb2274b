"""A real server with lower_case_table_names=1, and all that answers from its log alone: found out, not told."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.described import described_by, differences, places_by_gtid, put_beside_rows

import ibbmaster
from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.log.schema_history import LoggedSchema
from ibbmaster.schema.name_case import NameCase, lower_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary

STATEMENTS = (
    "CREATE DATABASE D",
    "USE d",
    "CREATE TABLE three (a INT PRIMARY KEY, b INT)",
    "ALTER TABLE Three MODIFY b INT UNSIGNED",
    "INSERT INTO three VALUES (1, 4000000000)",
    "CREATE TABLE two (a INT PRIMARY KEY)",
    "INSERT INTO Two VALUES (1)",
    "TRUNCATE TABLE Two",
    "CREATE DATABASE Shop",
    "USE Shop",
    "CREATE TABLE Orders (a INT PRIMARY KEY, b VARCHAR(9)) COMMENT='x'",
    "INSERT INTO Orders VALUES (1, 'a'), (2, 'b')",
    "ALTER TABLE ORDERS ADD c INT DEFAULT 7",
    "UPDATE ORDERS SET c = 8 WHERE A = 2",
    "CREATE TABLE Child (a INT, FOREIGN KEY (a) REFERENCES Orders (a))",
    "CREATE TABLE Like1 LIKE SHOP.ORDERS",
    "RENAME TABLE Like1 TO D.LIKE2",
    "ALTER TABLE CHILD ADD d INT, RENAME TO Kid",
    "CREATE TABLE ZÄ (a INT)",
    "ALTER TABLE zä ADD b INT",
    "CREATE VIEW Vv AS SELECT A FROM OrderS",
    "CREATE SEQUENCE Sq",
    "CREATE OR REPLACE TABLE KID (z INT)",
)
QUESTIONS = (
    "SELECT @@lower_case_table_names",
    "SHOW VARIABLES LIKE 'lower_case_table%'",
    "SHOW DATABASES",
    "SHOW TABLES FROM SHOP",
    "SHOW TABLES FROM shop LIKE 'ORD%'",
    "SELECT * FROM d.THREE",
    "SELECT * FROM D.two",
    "SELECT ORDERS.a, b, c FROM SHOP.Orders ORDER BY orders.A",
    "SELECT X.a FROM Shop.orders x WHERE x.A = 2",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'SHOP' AND table_name = 'ORDERS'",
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'Shop' AND table_name = 'orderS'",
    "SHOW COLUMNS FROM Shop.ORDERS",
    "SHOW INDEX FROM SHOP.KID",
    "USE SHOP",
    "SELECT DATABASE()",
    "SELECT COUNT(*) FROM Orders",
    "SELECT 1 FROM nowhere.t",
)


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def real(
    request, template_of, servers_directory, server_numbers
) -> Iterator[tuple[RealPrimary, list[tuple[str, str, Any]]]]:
    """A server that has carried out the statements, with what it said of its tables behind each."""
    directory = servers_directory / f"n{next(server_numbers)}"
    options = ("--lower-case-table-names=1", "--binlog-format=ROW", "--binlog-row-metadata=NO_LOG")
    with RealPrimary(template_of(request.param), directory, [], *options) as server:
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
