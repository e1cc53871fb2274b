"""The same SELECTs asked of a real server and of our reader of its binlog: every byte of columns and rows.

`--record-answers` keeps what the real server says in fixtures/answers, where tests/select compares with it.
"""

import itertools
import random
import shutil
import subprocess
from pathlib import Path

import pymysql
import pytest
from lanes import answers
from lanes.answers import FOLDER, SESSIONS, Answered, OurTables, RawClient, Session, expect_equal, ours_beside
from lanes.capture import CLASSIC, load_captures
from lanes.primary import login_of
from lanes.random_ddl import IMAGES
from lanes.sql import copy_binlogs, dump_of, run, run_script, sql_beside

import ibbmaster
from ibbmaster.gtid import GtidState
from ibbmaster.kernel.loading import load
from ibbmaster.position import LOG_START
from ibbmaster.primary.dialogue.log_tables import LogSnapshot
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.testkit.mariadb_server import RealPrimary

RANDOM_QUERIES = 150
_SQL = sql_beside(__file__)
LANES = Path(__file__).parent / "lanes"
TABLES = FOLDER / "11.8" / "tables"
Asked = list[tuple[str, int, bool, Answered]]


def statements_in(path: Path) -> list[str]:
    return [*filter(str.strip, path.read_text().split(";\n"))]


def ask(server: RealPrimary, ours: OurTables, queries: list[str]) -> Asked:
    """Every table in every session as text and prepared, and single queries in the first one."""
    asked: Asked = []
    for number, session in enumerate(SESSIONS):
        with RawClient.of_root(server, session) as client:
            for table in ours.base_tables(ours.snapshot()):
                sql = f"SELECT * FROM `{table.database}`.`{table.name}`"
                asked += [(sql, number, False, client.text(sql)), (sql, number, True, client.binary(sql))]
            asked += [(sql, number, False, client.text(sql)) for sql in queries if not number]
    return asked


def test_a_real_server_gives_the_same_columns_and_rows(new_server, tmp_path, request, seed):
    server = new_server("11.8")
    run(server, *statements_in(TABLES / "tables.sql"))
    ours = ours_beside(server, tmp_path)
    load()
    rng = random.Random(seed)

    asked = ask(server, ours, [*answers.QUERIES, *(answers.random_query(rng) for _ in range(RANDOM_QUERIES))])

    if request.config.getoption("--record-answers"):
        shutil.copy(tmp_path / "binlog.000001", TABLES)
        answers.save(TABLES, asked)
    assert expect_equal(ours, asked) < RANDOM_QUERIES  # the others are for the engine


@pytest.mark.parametrize("name", ["tables", "types-full-crc32"])
def test_a_served_log_answers_as_the_real_server_did(new_ibb_primary, tmp_path, name):
    own = FOLDER / "11.8" / name / "binlog.000001"
    shutil.copy(own if own.exists() else CLASSIC / "11.8" / name / "binlog.000001", tmp_path)
    served = new_ibb_primary(tmp_path, "--read-only")
    clients = [RawClient(session, **login_of(served)) for session in SESSIONS]

    refused = 0
    for sql, number, is_binary, expected in answers.load(FOLDER / "11.8" / name):
        try:
            found = clients[number].binary(sql) if is_binary else clients[number].text(sql)
        except pymysql.Error as error:
            if error.args[0] != 1235:
                raise
            refused += 1
            continue
        assert found.columns == expected.columns, (sql, SESSIONS[number])
        assert sorted(found.rows) == sorted(expected.rows), (sql, SESSIONS[number], is_binary)
    assert refused == answers.REFUSED.get(name, 0)


@pytest.mark.parametrize("name", ["types-full-crc32", "vectors"])
def test_a_server_that_applied_a_capture_gives_the_same_columns_and_rows(new_server, tmp_path, request, name):
    server = new_server("11.8")
    files = next(one for one in load_captures() if one.id == f"11.8/{name}").unpack(tmp_path)
    tool = [*server.programs.command("mariadb-binlog"), "--no-defaults", f"--local-load={tmp_path}", *files]
    assert run_script(server, subprocess.run(tool, capture_output=True, check=True).stdout) == ""
    ours = OurTables(ibbmaster.open(CLASSIC / "11.8" / name).engine)

    asked = ask(server, ours, [])

    if request.config.getoption("--record-answers"):
        (FOLDER / "11.8" / name).mkdir(exist_ok=True)
        answers.save(FOLDER / "11.8" / name, asked)
    assert expect_equal(ours, asked) == 0


def test_rows_keep_their_values_through_every_alteration(new_server, tmp_path, seed):
    rng = random.Random(seed)
    server = new_server("11.8", "--binlog-format=ROW")
    for statement in _SQL["altered"]:
        server.sql(statement)
    for number, alteration in enumerate(_SQL["alterations"]):
        for row in range(5):
            known = 10 * number + row
            values = (known, known, f"é{known}", rng.choice(["small", "large"]))
            server.sql("REPLACE INTO t (id, k, name, size) VALUES (%s, %s, %s, %s)", values)
        server.sql(f"UPDATE t SET size = 'small', at = '2024-01-02 03:04:05.678' WHERE k % 3 = {rng.randrange(3)}")
        server.sql(f"DELETE FROM t WHERE k % 7 = {rng.randrange(7)}")
        server.sql(f"SET binlog_row_image = {rng.choice(IMAGES)}")
        server.sql(alteration)
        ours = ours_beside(server, tmp_path / f"binlog{number}")
        for sql in ("SELECT * FROM d.t", "SELECT * FROM d.spare"):
            expect_alike(ours, server, sql)


def expect_alike(ours: OurTables, server: RealPrimary, sql: str, session: Session = SESSIONS[0]) -> None:
    with RawClient.of_root(server, session) as client:
        for is_binary, expected in ((False, client.text(sql)), (True, client.binary(sql))):
            found = ours.answer(sql, session, is_binary=is_binary)
            assert found.columns == expected.columns, (sql, session, is_binary)
            assert sorted(found.rows) == sorted(expected.rows), (sql, session, is_binary)


def test_what_the_log_does_not_tell_is_refused_with_the_group_and_the_reason(new_server, tmp_path):
    server = new_server("11.8", "--binlog-format=ROW")
    run(server, *_SQL["in doubt"])
    ours = ours_beside(server, tmp_path)

    reasons = {}
    for sql in ("SELECT * FROM d.child", "SELECT * FROM d.s", "SELECT b FROM d.narrow"):
        with pytest.raises(RefusedError) as refused:
            ours.answer(sql)
        assert refused.value.err.code == 1105
        reasons[sql] = refused.value.err.text

    assert reasons == {
        "SELECT * FROM d.child": "d.child: not exact since 0-1-10, because its foreign key to d.parent "
        "deletes or changes rows without an event, and its texts may be alike to others by their collation",
        "SELECT * FROM d.s": f"d.s: not exact since 0-1-11, because {in_statement_format('UPDATE')}",
        "SELECT b FROM d.narrow": "d.narrow: not exact since 0-1-12, because MODIFY or CHANGE of column b "
        "may change its values: 1000 is none of -128 to 127",
    }
    assert len(ours.answer("SELECT a FROM d.narrow").rows) == 2  # its other columns are


@pytest.mark.parametrize("option", ["--skip-hex-blob", "--hex-blob"])
def test_tables_of_a_dump_go_on_with_the_log_from_its_position(new_server, new_ibb_primary, tmp_path, option):
    server = new_server("11.8", "--binlog-format=ROW")
    run(server, *statements_in(TABLES / "tables.sql"), "DELETE FROM cond.nk LIMIT 1")
    dump = tmp_path / "dump.sql"
    dump.write_bytes(dump_of(server, "--databases", "extra", "cond", option))
    run(server, *_SQL["after the dump"])
    directory = copy_binlogs(server, tmp_path / "binlog")

    ours = OurTables(ibbmaster.open(directory).engine, dump)

    asked = ask(server, ours, [])
    assert expect_equal(ours, [one for one in asked if "num" not in one[0] or not one[2]]) == 0  # FLOAT: six digits
    too_early = LogSnapshot(end=LOG_START, file_name="", state=GtidState.parse("0-1-3"))
    with pytest.raises(RefusedError, match=r"rows of tables are known from GTID position 0-1-\d+ on"):
        ours.answer("SELECT * FROM cond.nk", snapshot=too_early)
    served = new_ibb_primary(directory, "--read-only", "--base", str(dump))
    clients = RawClient(SESSIONS[0], **login_of(served)), RawClient.of_root(server)
    mine, theirs = (client.text("SELECT * FROM cond.nk").rows for client in clients)
    assert mine == theirs


UNKNOWN_TO_A_LOG = {  # tables of lanes/row_ddl.sql whose rows no event tells, and why
    **dict.fromkeys(("d.m1", "d.m2"), "through the MERGE table"),
    **dict.fromkeys(("d.su", "d.su2"), "sql_mode lets a server take another one"),
    "d.mm": "in its UNION",
}


def test_ddl_that_failed_or_moved_rows_leaves_the_tables_and_rows_that_the_real_server_has(
    new_server, tmp_path, monkeypatch, version
):
    server = new_server(version, "--binlog-format=ROW")
    run(server, *statements_in(LANES / "row_ddl.sql"), may_fail=True)
    ours = ours_beside(server, tmp_path)
    tables = [table.full_name for table in ours.base_tables(ours.snapshot())]
    there = "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema = 'd'"

    assert sorted(tables) == sorted(name for (name,) in server.sql(there))
    for kernels_of_server in (load(), None):
        monkeypatch.setattr("ibbmaster.primary.select.scanning.kernels", lambda found=kernels_of_server: found)
        for name, session in itertools.product(tables, SESSIONS):
            if name in UNKNOWN_TO_A_LOG:
                with pytest.raises(RefusedError, match=UNKNOWN_TO_A_LOG[name]):
                    ours.answer(f"SELECT * FROM {name}", session)
            else:
                expect_alike(ours, server, f"SELECT * FROM {name}", session)
