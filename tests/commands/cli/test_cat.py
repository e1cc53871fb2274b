import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.printing.csv_lines import CsvLines
from ibbmaster.commands.printing.debezium_lines import DebeziumLines
from ibbmaster.commands.printing.json_lines import JsonLines
from ibbmaster.commands.printing.server_script import ServerScript
from ibbmaster.commands.printing.sql_script import SqlScript
from ibbmaster.errors import IbbMasterError
from ibbmaster.replication.event.rows.encoding import written_table
from tests.damage import flip
from tests.table_versions import without_statements
from tests.written_log import inserted, write_log

FIXTURES = Path(__file__).parents[3] / "fixtures"
IBB = FIXTURES / "ibb"
CLASSIC = FIXTURES / "classic" / "11.8"


def test_every_change_is_a_line(run):
    code, out, err = run("cat", IBB / "xa-and-ddl")
    assert (code, err) == (0, "")
    with ibbmaster.open(IBB / "xa-and-ddl") as log:
        rows = sum(1 for group in log for _ in group.rows())
    lines = [json.loads(line) for line in out.splitlines()]
    assert sum(line["kind"] in ("insert", "update", "delete") for line in lines) == rows > 100
    assert {line["kind"] for line in lines} == {"insert", "update", "delete", "ddl", "statement"}


def test_a_part_of_a_log_may_be_chosen(run):
    lines = run("cat", IBB / "domains", "--after", "0-1-5", "--until", "0-77-9", "--server", "77")[1].splitlines()
    assert [json.loads(line)["gtid"] for line in lines] == ["0-77-7", "0-77-8", "0-77-9"]


def test_the_log_may_be_written_to_a_file(run, tmp_path):
    _, printed, _ = run("cat", IBB / "domains")
    code, out, err = run("cat", IBB / "domains", "--output", tmp_path / "out.json")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "out.json").read_text("utf-8") == printed


def test_tables_that_nothing_names_are_named_by_a_schema(run, tmp_path):
    log = without_statements(FIXTURES / "classic" / "10.11" / "domains-none", tmp_path / "log")
    _, out, _ = run("cat", log)
    first = next(line for line in map(json.loads, out.splitlines()) if line["kind"] == "insert")
    assert list(first["after"]) == ["@1", "@2"]
    (tmp_path / "tables.sql").write_text(f"CREATE TABLE {first['database']}.{first['table']} (a INT, b VARCHAR(50));")
    _, out, _ = run("cat", log, "--schema", tmp_path / "tables.sql")
    found = [json.loads(line) for line in out.splitlines()]
    assert any(line.get("after") and list(line["after"]) == ["a", "b"] for line in found)


def test_a_damaged_log_ends_with_whole_transactions_and_a_place(run, tmp_path):
    shutil.copytree(IBB / "types", tmp_path / "log")
    flip(tmp_path / "log" / "binlog-000001.ibb", 5 * 16384 + 700)
    code, out, err = run("cat", tmp_path / "log")
    assert code == 2
    assert err.startswith("ibbmaster: binlog-000001.ibb page 5")
    assert out.endswith("}\n")
    _, whole, _ = run("cat", IBB / "types")
    assert whole.startswith(out)


@pytest.mark.parametrize("form", ["json", "mariadb-binlog", "sql", "csv", "debezium"])
@pytest.mark.parametrize("is_damage", [True, False], ids=["damage", "a refusal"])
def test_all_in_front_of_what_cannot_be_passed_on_is_printed(run, tmp_path, form, is_damage):
    """Though the versions of tables, and whether each pattern is about one, are looked for in the whole log."""
    table = written_table("d.t", {"id": "int"}, table_id=1)
    groups = ["CREATE TABLE d.t (id INT)", *([inserted(table, [number])] for number in range(9))]
    last = ["DROP TRIGGER d.tr", "CREATE TABLE d.late (a INT)", [inserted(table, [77])]]
    if is_damage:  # on a page of its own, and not in the last file
        large = f"CREATE TABLE d.large (a INT COMMENT '{'x' * 40_000}')"
        last = [large, *last, large, large]
    chosen = ["--format", form, *(["--table", "d.t"] if form == "csv" else [])]
    expected = run("cat", write_log(tmp_path / "front", *groups), *chosen)
    log = write_log(tmp_path / "log", *groups, *last, file_bytes=1 << 16)
    if is_damage:
        path = log / "binlog-000000.ibb"
        path.write_bytes(path.read_bytes().replace(b"DROP TRIGGER", b"DROP trigger"))
    code, out, err = run("cat", log, *chosen, *([] if is_damage else ["--only", "d.t,d.late"]))
    assert (expected[0], code, err.count("\n")) == (0, 2, 1)
    assert "checksum" in err if is_damage else "group 0-1-11 cannot be filtered: 'DROP TRIGGER d.tr'" in err
    lines = expected[1].splitlines(keepends=True)
    assert out == "".join(lines[:-2] if form in ("sql", "mariadb-binlog") else lines)  # the script does not end


def test_a_value_that_cannot_be_read_names_group_place_and_remedy(run, tmp_path):
    table = written_table("d.t", {"id": "int", "c": "varchar(36)"}, table_id=1)
    rows = [event.replace(b"zz", b"\xff\xfe") for event in inserted(table, [1, "ok"], [2, "zz"])]
    log = write_log(tmp_path / "log", "CREATE TABLE d.t (id INT, c VARCHAR(36))", [rows])
    code, out, err = run("cat", log)
    assert (code, out.count("\n")) == (2, 1)
    assert "d.t column c" in err
    assert "(in group 0-1-2)" in err
    assert "at binlog-000000.ibb page 1 offset" in err
    for form, shown in (
        ("json", '"c":{"undecodable":"//4="}}}'),
        ("debezium", '"c":{"undecodable":"//4="}},"source"'),
        ("csv", ",2,0xfffe\n"),
        ("sql", "(2, X'fffe');\n"),
    ):
        chosen = ["--format", form, *(["--table", "d.t"] if form == "csv" else [])]
        code, out, _ = run("cat", log, *chosen, "--on-undecodable", "binary")
        assert (code, out.count(shown)) == (0, 1)


def test_a_reader_that_leaves_ends_it_in_silence():
    command = [sys.executable, "-m", "ibbmaster", "cat", str(CLASSIC / "types-full-crc32")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        assert json.loads(done.stdout.readline())
        done.stdout.close()
        assert done.stderr.read() == b""
        assert done.wait(60) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_log_is_followed_until_a_signal_ends_that(number, tmp_path):
    with ibbmaster.create(tmp_path / "log", max_file_bytes="64K") as log:
        log.append("0-1-1", "CREATE DATABASE a")
        command = [sys.executable, "-m", "ibbmaster", "cat", str(tmp_path / "log"), "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            assert done.stdout is not None
            assert json.loads(done.stdout.readline())["gtid"] == "0-1-1"
            log.append("0-1-2", "CREATE DATABASE b")
            assert json.loads(done.stdout.readline())["statement"] == "CREATE DATABASE b"
            done.send_signal(number)
            assert done.communicate(timeout=60) == (b"", b"")
            assert done.returncode == 0


def test_a_part_that_ends_is_not_followed_beyond(tmp_path, run):
    with ibbmaster.create(tmp_path / "log", max_file_bytes="64K") as log:
        log.append("0-1-1", "CREATE DATABASE a")
        log.append("0-1-2", "CREATE DATABASE b")
    code, out, _ = run("cat", tmp_path / "log", "--follow", "--until", "0-1-1", "--output", tmp_path / "out")
    assert (code, out) == (0, "")
    assert (tmp_path / "out").read_text().count("\n") == 1


PRINTERS = {
    "json": JsonLines,
    "mariadb-binlog": ServerScript,
    "sql": SqlScript,
    "csv": lambda: CsvLines("sw.t"),
    "debezium": lambda: DebeziumLines(str),
}


@pytest.mark.parametrize("name", ["checksum-switch/binlog.000002", "statement-compressed-none/binlog.000001"])
@pytest.mark.parametrize("make", PRINTERS.values(), ids=PRINTERS)
def test_damage_anywhere_is_an_error_and_never_a_surprise(make, name, tmp_path):
    data = (CLASSIC / name).read_bytes()[:5000]  # without checksums: nothing else finds them
    path = tmp_path / "binlog.000001"
    refused: list[str] = []
    for number in range(0, len(data), 53):
        for hurt in (data[:number], data[:number] + bytes([data[number] ^ 1 << number % 8]) + data[number + 1 :]):
            path.write_bytes(hurt)
            try:
                with ibbmaster.open(path) as log:
                    for group in log.groups(asks_statements=True):
                        assert b"".join(make().group(group)).count(b"\0") < len(data)
            except IbbMasterError as error:
                refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in problem for problem in refused)
