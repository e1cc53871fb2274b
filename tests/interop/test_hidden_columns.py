"""The hash of a unique index of long columns is in rows of a real server, and in nothing that is read of them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lanes.replay import rows_read
from lanes.sql import copy_binlogs, run, sql_beside

import ibbmaster
from ibbmaster.commands.cli.main import main
from ibbmaster.commands.printing.debezium_lines import DebeziumLines
from ibbmaster.commands.printing.fast_lines import FastLines
from ibbmaster.commands.printing.json_lines import JsonLines
from ibbmaster.commands.printing.line_formats import DebeziumFormat, JsonFormat
from ibbmaster.kernel.loading import load
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.tables.arrow.plan import find_fields
from ibbmaster.tables.arrow.shape import GROUP_FIELDS
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.kept_tables import KINDS, KeptTables

STATEMENTS = sql_beside(__file__)["statements"]
TABLES = ("t", "two", "own", "past", "later", "begun")
HAVE_PAST = ("past", "begun")
OF_PAST = ["row_start", "row_end"]  # no part of SELECT *, but statements can name them, and tell the past by them
COLUMNS = (
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'd' ORDER BY ordinal_position"
)


@pytest.fixture(scope="module", params=[(one, form) for one in MARIADB_VERSIONS for form in ("NO_LOG", "FULL")])
def told(request, server_of, tmp_path_factory) -> tuple[Path, dict[str, list[str]], dict[str, list[dict[str, Any]]]]:
    """A server's log, and by table what it names as its columns, and its rows."""
    version, form = request.param
    log = tmp_path_factory.mktemp("log")
    with server_of(RealPrimary, version, [], f"--binlog-row-metadata={form}") as server:
        server.sql("SET time_zone = '+00:00'")
        run(server, "SET binlog_format = ROW, time_zone = '+00:00'", "CREATE DATABASE d", *STATEMENTS)
        columns: dict[str, list[str]] = {}
        for table, column in server.sql(COLUMNS):
            columns.setdefault(table, []).append(column)
        for table in HAVE_PAST:
            columns[table] += OF_PAST
        names = {table: ", ".join(columns[table]) for table in TABLES}
        rows = {table: server.query(f"SELECT {names[table]} FROM d.{table} ORDER BY 1") for table in TABLES}
        for row in rows["past"]:
            assert row.pop("row_end") > row.pop("row_start")
        copy_binlogs(server, log)
    return log, columns, rows


def test_lines_have_the_columns_that_the_server_names(told, capsys):
    log_path, columns, _ = told
    with ibbmaster.open(log_path) as log:
        for form, printer in ((JsonFormat(), JsonLines()), (DebeziumFormat(), DebeziumLines(log.engine.file_name))):
            fast = b"".join(bytes(piece) for pieces in FastLines(log, load(), form).runs() for piece in pieces)
            assert fast == b"".join(b"".join(printer.group(group)) for group in log.groups(asks_statements=True))
            lines = [line for line in map(json.loads, fast.splitlines()) if line.get("kind", "") not in ("ddl",)]
            found = {
                line.get("table") or line["source"]["table"]: list(line["after"] or line["before"]) for line in lines
            }
            assert found == columns
    assert main(["cat", str(log_path), "--format", "sql"]) == 0
    inserts = re.findall(r"INSERT INTO `d`\.`(\w+)` \((.*?)\)", capsys.readouterr().out)
    assert {table: names.replace("`", "").split(", ") for table, names in inserts} == columns
    for table in TABLES:
        assert main(["cat", str(log_path), "--format", "csv", "--table", f"d.{table}"]) == 0
        head, *lines = capsys.readouterr().out.splitlines()
        assert head.split(",")[5:] == columns[table]
        lacking = [line.split(",")[4] for line in lines if line.split(",")[4]]
        assert len(lacking) == (2 if table == "begun" else 0), "only images of before it was versioned lack anything"


def test_arrow_has_the_columns_that_the_server_names(told):
    log_path, columns, rows = told
    with ibbmaster.open(log_path) as log:
        for uses_kernels in (True, False):
            options = log.read_options(uses_kernels=uses_kernels)
            for table in TABLES:
                of_table = replace(options, table=f"d.{table}", tables=(f"d.{table}",))
                fields = find_fields(of_table)  # Spark has these, too
                assert [field.name for field in fields[len(GROUP_FIELDS) + 2 :]] == columns[table]
            rows_of_all = rows_read(options, find_fields(options))
            maps = {row["_table"]: [name for name, _ in row["before"] or row["after"]] for row in rows_of_all}
            assert maps == {f"d.{table}": columns[table] for table in TABLES}
        for table in TABLES:
            snapshot = log.snapshot(f"d.{table}", on_doubt=print)
            assert snapshot.column_names == columns[table]
            found = sorted(snapshot.to_pylist(), key=str)
            for row in found if table == "begun" else ():  # the ALTER gave old rows the moment and the end of time
                row |= {name: row[name].replace(tzinfo=None) for name in OF_PAST}
            if table != "past":
                assert found == rows[table]


@pytest.mark.parametrize("kind", ["current", "changes", "history"])
@pytest.mark.parametrize("lake", KINDS)
def test_kept_tables_have_the_columns_that_the_server_names(told, lake, kind, tmp_path):
    log_path, columns, _ = told
    kept = KeptTables(lake, tmp_path)
    maintain(str(log_path), kept.target, kind=kind)
    have_past = {table for table in TABLES if "id" in columns[table]}  # a history needs a key
    tables = have_past - {*HAVE_PAST} if kind == "history" else TABLES
    for table in tables:
        assert [name for name in kept.read(f"d.{table}").column_names if name[0] != "_"] == columns[table]
