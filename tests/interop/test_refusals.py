"""Rows that the log tells after random migrations: those of a real server, or refused with a reason.

`--ddl-steps=5000` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lanes.answers import OurTables, RawClient, expect_rows, ours_beside
from lanes.choosing import Looking
from lanes.described import places_by_gtid
from lanes.migrations import Migrations
from lanes.replay import rows_read
from lanes.row_statements import RowStatements
from lanes.sql import copy_binlogs, drop_databases, run, sql_beside

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import data_beside

_SQL = sql_beside(__file__)
LOOKS = 10  # at how many positions every table is asked for
REFUSED_MAX = {"ROW": 0.05, "MIXED": 0.95}  # of the tables that are asked for, by binlog_format


#: Tables with generated columns: some that are computed here, and `lost`, which is not.
GENERATED = data_beside(__file__)["generated"]
VERSIONED = ("versioned", "versioned_keyless")
MADE = (
    "twice BIGINT AS (a * 2) STORED, shown VARCHAR(60) AS (CONCAT(a, '-', b)) VIRTUAL, other INT AS (id + 1) VIRTUAL, "
    "lost VARCHAR(60) AS (REVERSE(t)) STORED"
)
LOST = [(what, "lost") for what in ("UPDATE", "INSERT")]


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def running_server(request, server_of) -> Iterator[RealPrimary]:
    with server_of(RealPrimary, request.param, [], "--binlog-format=ROW") as server:
        yield server


@pytest.fixture
def server(running_server) -> RealPrimary:
    """Without tables of the tests before, and with a log that begins here."""
    drop_databases(running_server)
    running_server.sql("SET GLOBAL binlog_row_metadata = NO_LOG")
    running_server.sql("RESET MASTER")
    return running_server


def compared(server: RealPrimary, directory: Path) -> dict[str, str]:
    """Every table that is known is that of the server, asked for alone; why others are refused."""
    log = binlog_of(server, directory / "classic")
    refused = {}
    ours = OurTables(log)
    for table in ours.base_tables(ours.snapshot()):
        try:
            expect_rows(OurTables(log), server, f"SELECT * FROM {table.full_name}")
        except RefusedError as error:
            refused[table.name] = error.err.text.partition(", because ")[2]
    return refused


def binlog_of(server: RealPrimary, target: Path) -> ClassicBinlog:
    return ClassicBinlog([copy_binlogs(server, target)])


@pytest.mark.parametrize("binlog_format", REFUSED_MAX)
def test_rows_after_random_migrations_are_those_of_the_server_and_few_are_refused(
    request, seed, tmp_path, server, watch_log, binlog_format
):
    rng = random.Random(f"{seed} {server.programs.version}")
    campaign = Migrations(server, rng, binlog_format=binlog_format)
    watch_log("last statements", campaign.last_statements)
    campaign.run(3 * request.config.getoption("--ddl-steps"), LOOKS)
    log = binlog_of(server, tmp_path / "classic")
    asked, refused = judged(campaign, log)
    assert len(refused) <= REFUSED_MAX[binlog_format] * len(asked)


def judged(campaign: Looking, log: ClassicBinlog) -> tuple[list[str], list[str]]:
    """What was asked where a campaign looked, and what of it is refused; all else is as the server had it."""
    places, ours = places_by_gtid(log), OurTables(log)
    asked, refused, wrong = [], [], []
    reasons: Counter[str] = Counter()
    for gtid, answers in campaign.looks:
        snapshot = ours.snapshot(places[gtid].position)
        for sql, rows in answers.items():
            asked.append(sql)
            try:
                found = sorted(ours.answer(sql, snapshot=snapshot).rows)
            except RefusedError as error:
                refused.append(sql)
                reasons[error.err.text] += 1
                continue
            if found != rows:
                wrong.append((gtid, sql, found, rows))
    print(f"{len(asked)} asked, {len(refused)} refused, {len(wrong)} wrong; {reasons.most_common()}")
    assert not wrong
    return asked, refused


def test_rows_after_random_statements_are_those_of_the_server_or_in_doubt(request, seed, tmp_path, server, watch_log):
    rng = random.Random(f"{seed} {server.programs.version}")
    campaign = RowStatements(server, rng)
    watch_log("last statements", campaign.last_statements)
    for _ in range(request.config.getoption("--ddl-steps") // 4):
        campaign.begin()
        for _ in range(3):
            campaign.go_on(rng.randint(1, 3))
            campaign.look()
    campaign.close()
    log = binlog_of(server, tmp_path / "classic")
    asked, refused = (Counter("WHERE" in sql for sql in part) for part in judged(campaign, log))
    assert all(0 < refused[is_by_key] < asked[is_by_key] for is_by_key in (True, False))


@pytest.mark.parametrize("binlog_format", ["MIXED", "STATEMENT"])
def test_a_server_that_replays_the_log_has_the_rows_that_are_in_doubt(
    seed, tmp_path, server, new_ibb_primary, new_replica, watch_log, binlog_format
):
    """As docs/statements.md does it."""
    campaign = RowStatements(server, random.Random(f"{seed} {server.programs.version}"), [binlog_format])
    watch_log("last statements", campaign.last_statements)
    campaign.begin()
    campaign.go_on(60)
    campaign.look()
    campaign.go_on(20)
    campaign.close()
    (look,) = campaign.looks
    log = binlog_of(server, tmp_path / "classic")
    snapshot = (ours := OurTables(log)).snapshot(places_by_gtid(log)[look.gtid].position)
    replica = new_replica(server.programs.version)
    replica.follow(new_ibb_primary(tmp_path / "classic"), start=False)
    replica.follow_until(look.gtid)

    answered = 0
    with RawClient.of_root(replica) as client:
        for sql, rows in look.answers.items():
            assert sorted(client.text(sql).rows) == rows, sql
            with contextlib.suppress(RefusedError):
                assert sorted(ours.answer(sql, snapshot=snapshot).rows) == rows, sql
                answered += 1
    assert answered < len(look.answers)


@pytest.mark.parametrize("what", ["keys", "partitions"])
def test_foreign_keys_and_partitions_change_rows_as_a_server_does(what, tmp_path, server):
    run(server, "CREATE DATABASE m", "USE m", *_SQL[what])

    assert compared(server, tmp_path) == {}


IMAGES = _SQL["images"]


def test_defaults_that_a_replace_gives_are_in_doubt_where_images_are_minimal(tmp_path, server):
    run(
        server,
        *("CREATE DATABASE m", "USE m", "CREATE TABLE r (id INT PRIMARY KEY, a INT, b INT, c INT DEFAULT 3)"),
        *("INSERT INTO r VALUES (1, 1, 1, 3), (2, 2, NULL, 3)", "SET binlog_row_image = MINIMAL"),
        *("REPLACE INTO r (id, a) VALUES (1, 5), (2, 6)", "UPDATE r SET id = 2, a = 7 WHERE id = 2"),
    )
    ours = ours_beside(server, tmp_path)
    expect_rows(ours, server, "SELECT id, a, c FROM m.r", "SELECT * FROM m.r WHERE id = 2")
    with pytest.raises(RefusedError, match="REPLACE does not have the defaults"):
        ours.answer("SELECT * FROM m.r")


def test_merging_by_the_key_loses_no_update_where_images_are_completed(tmp_path, server, monkeypatch):
    server.sql("SET GLOBAL binlog_row_metadata = FULL")
    for image in ("FULL", "MINIMAL", "NOBLOB"):
        database = f"d{image.lower()}"
        statements = [statement.format(image=image) for statement in IMAGES]
        run(server, f"CREATE DATABASE {database}", f"USE {database}", *statements)
    binlog_of(server, tmp_path / "classic")
    read: dict[object, object] = {}
    for kernels in ({}, {"ibbmaster.tables.arrow.plan.load": lambda: None}):
        for name, value in kernels.items():
            monkeypatch.setattr(name, value)
        for image, names in itertools.product(("FULL", "MINIMAL", "NOBLOB"), (("id", "a", "n", "b"), ("id", "a"))):
            table = f"d{image.lower()}.{'k' if 'b' in names else 'w'}"
            options = parse_options({"path": str(tmp_path / "classic"), "table": table, "completeKeys": "true"})
            fields = find_fields(replace(options, columns=("_change_type", "_absent", "made", *names)))
            changes = [*rows_read(options, fields)]
            assert read.setdefault((image, names), changes) == changes
            merged: dict[int, dict[str, object]] = {}
            for row in changes:
                if row["_change_type"] in ("update_preimage", "delete"):
                    was = merged.pop(row["id"])
                    continue
                assert "id" not in row["_absent"], (image, row)
                assert row["made"] in (None, row["id"] + 1, row["id"] * 2)
                known = {} if row["_change_type"] == "insert" else was
                merged[row["id"]] = known | {name: row[name] for name in names if name not in row["_absent"]}
            expected = server.sql(f"SELECT {', '.join(names)} FROM {table}")
            found = {tuple(one.get(name) for name in names) for one in merged.values()}
            assert found == {tuple(row) for row in expected}, (image, names)


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB", "FULL_NODUP"])
def test_generated_columns_that_images_leave_out_are_those_of_the_server_or_in_doubt(seed, tmp_path, server, image):
    if image == "FULL_NODUP" and server.programs.version == "10.11":
        pytest.skip("10.11 has no FULL_NODUP")
    rng = random.Random(f"{seed} {image}")
    changes = [line for name in GENERATED for line in changes_of_generated(rng, name)]
    create = [f"CREATE TABLE {name} ({columns}, {MADE} {keys})" for name, (columns, keys) in GENERATED.items()]
    create += [f"ALTER TABLE {name} ADD SYSTEM VERSIONING" for name in VERSIONED]
    run(server, "CREATE DATABASE m", "USE m", f"SET binlog_row_image = {image}", *create, *changes)

    refused = compared(server, tmp_path / "all")
    assert set(refused) <= set(GENERATED)
    assert set(refused.values()) <= {f"an {what} has no value for the generated column {name}" for what, name in LOST}
    ours = OurTables(ClassicBinlog(sorted((tmp_path / "all" / "classic").iterdir())))
    asked = [f"SELECT id, a, b, t, twice, shown, other FROM m.{name}" for name in GENERATED]
    of_one_row = [name for name, (columns, _) in GENERATED.items() if "KEY" in columns and name not in VERSIONED]
    asked += [f"SELECT * FROM m.{name} WHERE id > 90" for name in of_one_row]
    expect_rows(ours, server, *asked)


def changes_of_generated(rng: random.Random, name: str) -> Iterator[str]:
    """Rows from 91 on whose inputs of `lost` stay as they are, the last one as a whole; others change at random."""
    for number in (*range(1, 9), 91, 92, 93, 95):
        yield f"INSERT INTO {name} (id, a, b, t) VALUES ({number}, {number % 5}, 1, 'T{number}')"
    for _ in range(30):
        where, value = f"id BETWEEN {rng.randrange(9)} AND {rng.randrange(9)}", rng.choice(("a + 1", "5", "NULL"))
        text = "t = CONCAT(t, 'x')"
        assigned = rng.choice((f"a = {value}", f"b = {value}", text, f"a = {value}, {text}, id = id"))
        yield f"UPDATE {name} SET {assigned} WHERE {where}"
    yield f"UPDATE {name} SET b = 7, a = a + 1 WHERE id IN (91, 92)"
    yield f"UPDATE {name} SET id = 94 WHERE id = 92"
    yield f"DELETE FROM {name} WHERE id = {rng.randrange(1, 9)} OR id = 93 LIMIT 2"


def test_children_are_refused_whose_parents_are_not_known(tmp_path, server):
    child = "INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {} (id) ON DELETE CASCADE"
    run(
        server, "CREATE DATABASE m", "USE m", "CREATE TABLE old (id INT PRIMARY KEY)", "INSERT INTO old VALUES (1), (2)"
    )
    server.sql("RESET MASTER")
    run(
        server,
        *("CREATE DATABASE IF NOT EXISTS m", "USE m"),
        f"CREATE TABLE c (id {child.format('old')})",
        f"CREATE TABLE g (id {child.format('c')})",
        *("INSERT INTO c VALUES (1, 1), (2, 2)", "INSERT INTO g VALUES (1, 1)", "DELETE FROM old WHERE id = 1"),
    )

    reason = "its foreign key to m.old, whose columns are not known, may change rows"
    below = "its foreign key to m.c deletes or changes rows without an event"
    assert compared(server, tmp_path) == {"c": reason, "g": below}


def test_spark_finds_updates_by_their_key_where_images_are_completed(spark, server, tmp_path):
    server.sql("SET GLOBAL binlog_row_metadata = FULL")
    run(server, "CREATE DATABASE d", "USE d", *(statement.format(image="MINIMAL") for statement in IMAGES))
    binlog_of(server, tmp_path / "classic")
    found = {}
    for completes in ("false", "true"):
        frame = spark.read.format("ibb").options(table="d.k", completeKeys=completes).load(str(tmp_path / "classic"))
        found[completes] = [row.id for row in frame.filter("_change_type = 'update_postimage' AND id < 10").collect()]

    assert found == {"false": [], "true": [1, 2, 3, 1, 2]}
