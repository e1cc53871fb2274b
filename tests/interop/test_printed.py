"""What `cat` prints for a server is run by real ones, by their own client, and gives the tables of the primary."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes.capture import load_captures
from lanes.replica import Replica
from lanes.sql import drop_databases, position_of, run_script

import ibbmaster
from ibbmaster.commands.cli.main import main
from tests.case_table import data_beside
from tests.written_log import Said, write_log

VERSIONS = ("10.11", "11.8")
SMALL = [one for one in load_captures() if not one.is_encrypted and one.size < 30_000_000]
#: What 11.8's BINLOG statements, also those of its own mariadb-binlog, do not do; replicas do.
ROWS_OF_BEFORE_11_5 = "types.versioned"
WHAT_10_11_LACKS = "Unknown data type: 'VECTOR'|Unknown character set: '579'|'#579' is not"
PARTIAL_SEQUENCE = "4085"  # under MINIMAL and NOBLOB images: so do those of mariadb-binlog


@pytest.fixture(scope="module", params=VERSIONS)
def taker(request, server_of) -> Iterator[Replica]:
    """A server with a binlog of its own, which takes scripts."""
    options = ["--log-bin=own", "--max-allowed-packet=64M", "--binlog-format=MIXED"]
    with server_of(Replica, request.param, *options) as server:
        server.version = request.param
        yield server


@pytest.fixture(autouse=True)
def emptied(taker) -> Iterator[None]:
    yield
    taker.sql("SET SESSION foreign_key_checks=0")
    drop_databases(taker)


def run(taker: Replica, script: Path) -> str:
    """What the client of the server's version says of a script; nothing if it ran to its end."""
    return run_script(taker, script.read_bytes(), "--local-infile=1", "--max-allowed-packet=64M")


def printed(log: Path, directory: Path, *options: str) -> Path:
    script = directory / "script.sql"
    loads = ["--load-files", str(directory / "loads")] if "mariadb-binlog" in options else []
    assert main(["cat", str(log), "--output", str(script), *options, *loads]) == 0
    return script


@pytest.mark.parametrize("capture", SMALL, ids=lambda one: one.id)
def test_a_server_that_runs_the_script_has_the_tables_of_the_primary(capture, taker, tmp_path):
    capture.unpack(tmp_path / "log")
    expected = capture.replayed(taker.version)

    said = run(taker, printed(tmp_path / "log", tmp_path, "--format", "mariadb-binlog"))

    if "shop.sq" in expected.tables and capture.name.endswith("compressed"):
        assert PARTIAL_SEQUENCE in said
        return
    if expected.error is not None:
        assert re.search(WHAT_10_11_LACKS, said)
        assert re.search(WHAT_10_11_LACKS, expected.error)
        return
    assert said == ""
    found, wanted = taker.tables(list(expected.tables)), dict(expected.tables)
    if (capture.version, taker.version) == VERSIONS and ROWS_OF_BEFORE_11_5 in wanted:
        assert found.pop(ROWS_OF_BEFORE_11_5) != wanted.pop(ROWS_OF_BEFORE_11_5)
    assert found == wanted


# What others have that SQL does not say exactly: triggers, which run again, and columns of system versioning.
@pytest.mark.parametrize("name", ["alter-two-phase", "chained", "checksum-switch", "domains", "statement", "vectors"])
def test_a_server_that_runs_the_sql_has_the_tables_of_the_primary(name, taker, tmp_path):
    capture = next((one for one in SMALL if one.id == f"{taker.version}/{name}"), None)
    if capture is None:
        pytest.skip("10.11 has no vectors")
    capture.unpack(tmp_path / "log")
    expected = capture.replayed(taker.version).tables

    said = run(taker, printed(tmp_path / "log", tmp_path, "--format", "sql", "--load-files", str(tmp_path / "loads")))

    assert (said, taker.tables(list(expected))) == ("", expected)


def test_every_type_comes_as_it_was_through_sql(taker, tmp_path):
    capture = next(one for one in SMALL if one.id == f"{taker.version}/types-full-crc32")
    capture.unpack(tmp_path / "log")
    expected = dict(capture.replayed(taker.version).tables)

    said = run(taker, printed(tmp_path / "log", tmp_path, "--format", "sql"))

    assert "Unknown column 'row_start'" in said  # the last table: a server gives these columns itself
    found = taker.tables(list(expected))
    assert expected.pop(ROWS_OF_BEFORE_11_5) != found.pop(ROWS_OF_BEFORE_11_5)
    assert found == expected


#: Options of mariadb-binlog, and ours for the same.
RANGES = data_beside(__file__)["ranges"]
SAID = re.compile(r"@@session\.(gtid_domain_id|server_id|gtid_seq_no)=(\d+)")


def said_gtids(script: str) -> list[str]:
    known: dict[str, str] = {}
    found = []
    for name, value in SAID.findall(script):
        known[name] = value
        if name == "gtid_seq_no":
            found.append(f"{known['gtid_domain_id']}-{known['server_id']}-{value}")
    return found


# As mysql-test/suite/binlog_in_engine/rpl_mysqlbinlog_slave_consistency_basic.test
@pytest.mark.parametrize(("theirs", "ours"), RANGES, ids=lambda options: " ".join(options) or "all")
def test_ranges_and_filters_print_the_transactions_that_mariadb_binlog_prints(theirs, ours, taker, tmp_path, run_tool):
    files = next(one for one in SMALL if one.id == f"{taker.version}/domains").unpack(tmp_path / "log")

    printed_there = run_tool(
        taker.version, "mariadb-binlog", f"--local-load={tmp_path}", "--gtid-strict-mode=0", *theirs, *map(str, files)
    )
    script = printed(tmp_path / "log", tmp_path, "--format", "mariadb-binlog", "--drop-empty", *ours)

    assert said_gtids(script.read_text()) == said_gtids(printed_there.stdout) != []


def test_the_server_logs_the_same_gtids(taker, tmp_path):
    taker.sql("RESET MASTER")
    next(one for one in SMALL if one.id == f"{taker.version}/domains").unpack(tmp_path / "log")

    assert run(taker, printed(tmp_path / "log", tmp_path, "--format", "mariadb-binlog")) == ""

    with ibbmaster.open(tmp_path / "log") as read:
        assert set(position_of(taker).split(",")) == set(map(str, read.position.values()))


def test_statements_that_failed_and_odd_texts_are_run(taker, tmp_path):
    log = write_log(
        tmp_path / "log",
        "CREATE TABLE m (a INT PRIMARY KEY, t VARCHAR(99)) ENGINE=MyISAM",
        [Said("INSERT INTO d.m (a) VALUES (1), (1), (2)", 1062)],
        [Said("INSERT INTO d.m VALUES (3, '/*!*/; it''s \\\\ \r\n\0 \\n')")],
        [Said("INSERT INTO d.m VALUES (4, 'DELIMITER x\nDELIMITER ;\n-- no comment')")],
    )
    taker.sql("CREATE DATABASE d")

    assert run(taker, printed(log, tmp_path, "--format", "mariadb-binlog")) == ""

    assert taker.sql("SELECT * FROM d.m ORDER BY a") == (
        (1, None),
        (3, "/*!*/; it's \\ \r\n\0 \n"),
        (4, "DELIMITER x\nDELIMITER ;\n-- no comment"),
    )
