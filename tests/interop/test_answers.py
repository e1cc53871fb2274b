"""The same SELECTs asked of a real server and of our reader of its binlog: every byte of columns and rows.

`--record-answers` keeps what the real server says in fixtures/answers, where tests/sql compares with it.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes.answers import FOLDER, QUERIES, SESSIONS, Answered, OurTables, RawClient, expect_equal, random_query, save
from lanes.capture import CLASSIC, load_captures
from lanes.primary import ClassicPrimary
from lanes.random_ddl import DATABASE, IMAGES, Campaign

import ibbmaster
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.loading import load

RANDOM_QUERIES = 150
TABLES = FOLDER / "11.8" / "tables"
Asked = list[tuple[str, int, bool, Answered]]


def binlogs_of(server: ClassicPrimary, target: Path) -> Path:
    """A directory with its binlog files so far."""
    server.sql("FLUSH BINARY LOGS")
    target.mkdir(exist_ok=True)
    for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
        shutil.copy(server.data / name, target / name)
    return target


def run(server: ClassicPrimary, *statements: str) -> None:
    """Run statements on a connection of their own, which are logged."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def ask(server: ClassicPrimary, ours: OurTables, queries: list[str]) -> Asked:
    """Every table in every session as text and prepared, and single queries in the first one."""
    asked: Asked = []
    for number, session in enumerate(SESSIONS):
        client = RawClient(server.socket, session)
        for table in ours.base_tables(ours.snapshot()):
            sql = f"SELECT * FROM `{table.database}`.`{table.name}`"
            asked += [(sql, number, False, client.text(sql)), (sql, number, True, client.binary(sql))]
        asked += [(sql, number, False, client.text(sql)) for sql in queries if not number]
        client.close()
    return asked


def test_a_real_server_gives_the_same_columns_and_rows(
    new_server: Callable[..., ClassicPrimary], tmp_path: Path, request: pytest.FixtureRequest, seed: int
) -> None:
    server = new_server("11.8")
    run(server, *filter(str.strip, (TABLES / "tables.sql").read_text().split(";\n")))
    directory = binlogs_of(server, tmp_path / "binlog")
    ours = OurTables(ibbmaster.open(directory).engine)
    load(KernelSet.SELECT)
    rng = random.Random(seed)

    asked = ask(server, ours, [*QUERIES, *(random_query(rng) for _ in range(RANDOM_QUERIES))])

    if request.config.getoption("--record-answers"):
        shutil.copy(directory / "binlog.000001", TABLES)
        save(TABLES, asked)
    assert expect_equal(ours, asked) == 0


@pytest.mark.parametrize("name", ["types-full-crc32", "vectors"])
def test_a_server_that_applied_a_capture_gives_the_same_columns_and_rows(
    new_server: Callable[..., ClassicPrimary], tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    server = new_server("11.8")
    capture = next(one for one in load_captures() if one.id == f"11.8/{name}")
    files = capture.unpack(tmp_path)
    events = subprocess.run(
        [*server.lane.command("mariadb-binlog"), "--no-defaults", *map(str, files)], capture_output=True, check=True
    ).stdout
    client = [*server.lane.command("mariadb"), "--no-defaults", "--binary-mode", f"--socket={server.socket}", "-uroot"]
    subprocess.run(client, input=events, capture_output=True, check=True)
    ours = OurTables(ibbmaster.open(CLASSIC / "11.8" / name).engine)

    asked = ask(server, ours, [])

    if request.config.getoption("--record-answers"):
        (FOLDER / "11.8" / name).mkdir(exist_ok=True)
        save(FOLDER / "11.8" / name, asked)
    assert expect_equal(ours, asked) == 0


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_tables_after_random_ddl_have_the_rows_that_the_real_server_has(
    new_server: Callable[..., ClassicPrimary], tmp_path: Path, request: pytest.FixtureRequest, seed: int, version: str
) -> None:
    rng = random.Random(f"{seed} {version}")
    images = (*IMAGES, "FULL_NODUP") if version != "10.11" else IMAGES
    server = new_server(version, f"--binlog-row-metadata={rng.choice(['FULL', 'NO_LOG'])}", "--binlog-format=ROW")
    campaign = Campaign(server, rng, images)
    for _ in range(request.config.getoption("--ddl-steps")):
        campaign.step()
    campaign.close()
    ours = OurTables(ibbmaster.open(binlogs_of(server, tmp_path / "binlog")).engine)
    client = RawClient(server.socket, SESSIONS[0])

    for name in campaign.tables:
        sql = f"SELECT * FROM {DATABASE}.{name}"
        assert sorted(ours.answer(sql).rows) == sorted(client.text(sql).rows), name


ALTERATIONS = (
    "ALTER TABLE t ADD COLUMN added INT NOT NULL DEFAULT 7",
    "ALTER TABLE t ADD COLUMN late VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ä' FIRST",
    "ALTER TABLE t DROP PRIMARY KEY",
    "ALTER TABLE t ADD PRIMARY KEY (k)",
    "ALTER TABLE t MODIFY id BIGINT NOT NULL, MODIFY name VARCHAR(60) CHARACTER SET utf8mb4",
    "ALTER TABLE t MODIFY at DATETIME(6), MODIFY size ENUM('small', 'large', 'huge')",
    "ALTER TABLE t CHANGE price cost DECIMAL(14, 4)",
    "ALTER TABLE t DROP COLUMN added, ADD COLUMN added VARCHAR(5) NOT NULL DEFAULT 'again'",
    "ALTER TABLE t DROP PRIMARY KEY, ADD UNIQUE KEY (name)",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    "RENAME TABLE t TO other, spare TO t, other TO spare",
    "RENAME TABLE t TO other, spare TO t, other TO spare",
    "ALTER TABLE t ADD COLUMN zero DATE NOT NULL, ADD COLUMN flag BIT(3) NOT NULL DEFAULT b'101'",
)


def test_rows_keep_their_values_through_every_alteration(
    new_server: Callable[..., ClassicPrimary], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    server = new_server("11.8", "--binlog-format=ROW")
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE d")
    cursor.execute("USE d")
    cursor.execute("SET sql_mode = ''")
    create = (
        "CREATE TABLE t (id INT NOT NULL, k INT NOT NULL, name VARCHAR(20) CHARACTER SET latin1 NOT NULL, "
        "price DECIMAL(10, 2), at DATETIME(3), size ENUM('small', 'large'), PRIMARY KEY (id))"
    )
    cursor.execute(create)
    cursor.execute("CREATE TABLE spare LIKE t")
    client = RawClient(server.socket, SESSIONS[0])
    for number, alteration in enumerate(ALTERATIONS):
        for row in range(5):
            known = 10 * number + row
            values = (known, known, f"é{known}", rng.choice(["small", "large"]))
            cursor.execute("REPLACE INTO t (id, k, name, size) VALUES (%s, %s, %s, %s)", values)
        cursor.execute(f"UPDATE t SET size = 'small', at = '2024-01-02 03:04:05.678' WHERE k % 3 = {rng.randrange(3)}")
        cursor.execute(f"DELETE FROM t WHERE k % 7 = {rng.randrange(7)}")
        cursor.execute(f"SET binlog_row_image = {rng.choice(IMAGES)}")
        cursor.execute(alteration)
        ours = OurTables(ibbmaster.open(binlogs_of(server, tmp_path / f"binlog{number}")).engine)
        for name in ("t", "spare"):
            sql = f"SELECT * FROM d.{name}"
            expected = client.text(sql)
            found = ours.answer(sql)
            assert found.columns == expected.columns, alteration
            assert sorted(found.rows) == sorted(expected.rows), alteration
    connection.close()


def test_what_the_log_does_not_tell_is_refused_with_the_group_and_the_reason(
    new_server: Callable[..., ClassicPrimary], tmp_path: Path
) -> None:
    server = new_server("11.8", "--binlog-format=ROW")
    run(
        server,
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "CREATE TABLE s (a INT PRIMARY KEY, b INT)",
        "CREATE TABLE narrow (a INT PRIMARY KEY, b BIGINT)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1, 1), (2, 2)",
        "INSERT INTO s VALUES (1, 1)",
        "INSERT INTO narrow VALUES (1, 1)",
        "DELETE FROM parent WHERE id = 1",
        "SET binlog_format = STATEMENT",
        "UPDATE s SET b = 2",
        "SET binlog_format = ROW",
        "ALTER TABLE narrow MODIFY b TINYINT",
    )
    ours = OurTables(ibbmaster.open(binlogs_of(server, tmp_path / "binlog")).engine)

    reasons = {}
    for sql in ("SELECT * FROM d.child", "SELECT * FROM d.s", "SELECT b FROM d.narrow"):
        with pytest.raises(RefusedError) as refused:
            ours.answer(sql)
        assert refused.value.err.code == 1105
        reasons[sql] = refused.value.err.text

    assert reasons == {
        "SELECT * FROM d.child": "the rows of d.child are not known since GTID 0-1-10: its foreign key to d.parent "
        "deletes or changes rows without an event",
        "SELECT * FROM d.s": "the rows of d.s are not known since GTID 0-1-11: in statement format: UPDATE",
        "SELECT b FROM d.narrow": "the rows of d.narrow are not known since GTID 0-1-12: MODIFY or CHANGE of column b "
        "may change its values",
    }
    assert len(ours.answer("SELECT a FROM d.narrow").rows) == 1  # its other columns are
