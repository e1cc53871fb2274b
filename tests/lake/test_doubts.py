"""Snapshots of logs whose statements empty, rename and alter tables: right, or said not to be."""

import json

import pytest

import ibbmaster
from ibbmaster.errors import InexactError
from ibbmaster.lake.arrow_snapshots import domains_left_out
from ibbmaster.lake.statements import statements_of
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.testkit import FixturePrimary, RowFormat, RowImage
from tests.machinery.events import make_event
from tests.written_log import deleted, inserted, write_log

T = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
U = written_table("d.u", {"id": "int", "a": "int"}, table_id=2, primary_key=["id"])
SMALL = written_table("d.t", {"id": "int", "a": "smallint"}, table_id=1, primary_key=["id"])
CREATE_T = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"
CREATE_U = "CREATE TABLE u (id INT PRIMARY KEY, a INT)"


@pytest.fixture
def log(tmp_path):
    def write(*items, first=1):
        groups = [[item] if isinstance(item[0], bytes) else item for item in items]
        return str(write_log(tmp_path / "log", *groups, first=first))

    return write


def rows(path, table="d.t", **given):
    with ibbmaster.open(path) as log:
        return sorted(tuple(row.values()) for row in log.snapshot(table, **given).to_pylist())


def history(path, *names, table="d.t", **given):
    with ibbmaster.open(path) as log:
        return sorted(tuple(row.values()) for row in log.history(table, **given).select(names).to_pylist())


EMPTYING = {
    "SET STATEMENT": "SET STATEMENT max_statement_time=60 FOR TRUNCATE TABLE t",
    "CREATE OR REPLACE DATABASE": "CREATE OR REPLACE DATABASE d",
    "names with commas": "DROP TABLE IF EXISTS `a,b`, `x`.`y`, `d`.`t`",
    "a comment inside": "DROP /* no */ TABLE -- x\n t",
    "code in a comment": "/*!50000 TRUNCATE */ /*M!100100 TABLE */ t",
    "a long statement": "DROP TABLE " + ", ".join(f"x{number}" for number in range(1000)) + ", t",
}


def found_in(path, **given):
    options = parse_options({"path": path, "granularity": "groups", **given})
    return [one for task in plan_tasks(options, find_fields(options)) for one in statements_of(task)]


def test_a_statement_that_empties_a_table_is_known_however_it_is_written(log):
    steps = []
    for number, statement in enumerate(EMPTYING.values(), start=1):
        steps += [inserted(T, [number, 1]), statement]
    path = log(CREATE_T, *steps, inserted(T, [100, 1]))
    assert rows(path, at="0-1-5") == []
    assert rows(path) == [(100, 1)]
    emptied = [(number, False, f"0-1-{2 * number + 1}") for number in range(1, len(EMPTYING) + 1)]
    assert history(path, "id", "_is_current", "_gtid_to") == [*emptied, (100, True, None)]


def test_the_rows_of_create_or_replace_select_are_those_of_its_group(log):
    path = log(
        CREATE_T,
        inserted(T, [1, 1], [2, 2]),
        ["CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT)", inserted(T, [3, 3])],
    )
    assert rows(path) == [(3, 3)]
    assert history(path, "id", "_is_current") == [(3, True)]  # what was called so before was another table


def test_what_had_no_rows_cannot_have_lost_any(log):
    altered = "ALTER TABLE t MODIFY a SMALLINT"
    path = log(CREATE_T, altered, "UPDATE t SET a=1", CREATE_U, "RENAME TABLE u TO v", inserted(SMALL, [1, 1]))
    assert rows(path) == [(1, 1)]
    path = log(inserted(SMALL, [5, 500]), "ALTER TABLE t MODIFY a TINYINT", first=7)
    with pytest.raises(InexactError, match="0-1-8, because MODIFY or CHANGE of column a may change its values: 500"):
        rows(path)


def test_renamed_tables_and_cascades_are_told(log):
    path = log(
        CREATE_U,
        inserted(U, [1, 1]),
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES u (id) ON DELETE CASCADE)",
        inserted(T, [4, 1]),
        inserted(U, [2, 2]),
    )
    assert rows(path) == [(4, 1)]
    path = log(deleted(U, [2, 2]), "RENAME TABLE t TO v, u TO t", inserted(T, [9, 9]), first=6)
    assert rows(path, at="0-1-6") == [(4, 1)]
    assert rows(path) == [(1, 1), (9, 9)]


def test_a_log_that_does_not_begin_with_the_table_is_told(log):
    path = log(inserted(T, [1, 1]))
    with pytest.raises(InexactError, match="log begins, because the log does not begin with its CREATE TABLE"):
        rows(path)  # nobody says that nothing was before it
    assert rows(path, on_doubt=lambda text: None) == [(1, 1)]


def test_statements_are_found_alike_with_and_without_kernels(log, monkeypatch):
    big = [event for number in range(3000) for event in inserted(T, [number, 1])]
    path = log(
        CREATE_T,
        [big, "INSERT INTO t VALUES (0,0)", "INSERT INTO t VALUES (0,1)", "INSERT INTO u VALUES (1,1)"],
        ["TRUNCATE t", inserted(T, [1, 1])],
        [inserted(T, [2, 2]), "TRUNCATE t"],
        [make_event(EventType.INCIDENT, 1, bytes(4))],
    )
    monkeypatch.setattr("ibbmaster.tables.arrow.collecting.DATA_BYTES", 1_100_000)
    given = {"endingGtid": "0-1-5", "partitionBytes": "64k"}
    fast = found_in(path, **given)
    monkeypatch.setattr("ibbmaster.lake.statements.load_kernels", lambda options: None)
    assert found_in(path, **given) == fast
    assert [(one.gtid, one.has_rows_before) for one in sorted(fast)] == [
        ("0-1-1", False),
        ("0-1-2", True),
        ("0-1-2", True),  # the first of two that do the same, and the last
        ("0-1-2", True),
        ("0-1-3", False),
        ("0-1-4", True),
        ("0-1-5", False),
    ]


OURS = ["_gtid", "_ABSENT", "_order", "_key", "__seq", "a,b", "a`b", "it's", "_date", "_valid_to", "c0", "x.y"]


def test_columns_may_be_called_anything(spark, log, tmp_path):
    table = written_table("d.t", {"_op": "int"} | dict.fromkeys(OURS, "varchar(20)"), table_id=1, primary_key=["_op"])
    values = [f"value {number}" for number in range(len(OURS))]
    path = log(inserted(table, [1, *values], [2, *[None] * len(OURS)]), deleted(table, [2, *[None] * len(OURS)]))
    fields = [f"_{name}" if name in ("_gtid", "_ABSENT", "__seq", "_date", "_valid_to") else name for name in OURS]
    frame = spark.read.format("ibb").option("table", "d.t").load(path)
    assert frame.columns[-len(OURS) - 1 :] == ["_op", *fields]
    assert [*frame.where("_op = 1").first()][-len(OURS) :] == values
    some = spark.read.format("ibb").options(table="d.t", columns="`a,b`,__gtid,`a``b`,_gtid").load(path)
    assert [*some.first()] == [values[5], values[0], values[6], "0-1-1"]
    accepted = {"on_doubt": lambda text: None}  # the log has no CREATE TABLE
    with ibbmaster.open(path) as opened:
        for given in ({}, {"key": ["_gtid"]}, {"key": ["a,b"]}):
            found = opened.snapshot("d.t", **accepted, **given)
            assert found.column_names == ["_op", *fields]
            assert [1, *values] in [[*row.values()] for row in found.to_pylist()]
        assert opened.history("d.t", **accepted).column_names[: len(OURS) + 1] == ["_op", *fields]
    assert history(path, "_is_current", *fields, **accepted) == [(False, *[None] * len(OURS)), (True, *values)]
    written = str(tmp_path / "written")
    changes = frame.drop("_domain", "_server_id", "_commit_ts", "_file_no", "_offset")
    changes.write.format("ibb").options(table="d.t", primaryKey="_op").mode("append").save(written)
    assert spark.read.format("ibb").option("table", "d.t").load(written).columns[-len(OURS) :] == fields


def test_the_command_refuses_a_snapshot_that_is_not_sure_or_lists_why(log, tmp_path, run):
    command = ["lake", "snapshot", log(CREATE_T, inserted(T, [1, 1]), "CALL p()"), "d.t", "--to", tmp_path / "to"]
    reason = f"d.t: not exact since 0-1-3, because {in_statement_format('CALL p()')}"
    assert run(*command) == (2, "", f"ibbmaster: {reason}; --accept-inexact takes it as it is, and lists them\n")
    assert not (tmp_path / "to").exists()
    code, out, err = run(*command, "--accept-inexact", "--json")
    expected = (0, {"table": "d.t", "rows": 1, "inexact": [reason]}, f"ibbmaster: {reason}\n")
    assert (code, json.loads(out), err) == expected


def test_a_table_that_was_altered_is_told_by_its_versions(log):
    wide = written_table("d.t", {"b": "bigint", "id": "int", "n": "int", "g": "bigint"}, table_id=3)
    path = log(
        CREATE_T,
        inserted(T, [1, 10], [2, 20]),
        "ALTER TABLE t CHANGE a b BIGINT FIRST",
        "ALTER TABLE t ADD n INT NOT NULL DEFAULT 7, ADD x INT",
        "ALTER TABLE t DROP x, ADD g BIGINT AS (b * 2)",
        inserted(wide, [2**40, 3, 8, 2**41]),
    )

    assert rows(path, key=["id"]) == [(10, 1, 7, 20), (20, 2, 7, 40), (2**40, 3, 8, 2**41)]
    assert rows(path, at="0-1-2") == [(1, 10), (2, 20)]


ALTERED = {
    "ADD c DATETIME DEFAULT CURRENT_TIMESTAMP": "ADD COLUMN: column c has a value that is no constant",
    "ADD g INT AS (a / 2)": "ADD COLUMN: column g has a value that the server has filled in",
}


def test_a_type_that_has_less_values_is_converted_as_select_does_it(log):
    path = log(CREATE_T, inserted(T, [1, 1], [2, None]), "ALTER TABLE t MODIFY a TINYINT NOT NULL")
    assert rows(path) == [(1, 1), (2, 0)]


@pytest.mark.parametrize("clause", ALTERED)
def test_what_the_versions_do_not_tell_is_refused_with_its_gtid(log, clause):
    path = log(CREATE_T, inserted(T, [1, 1]), f"ALTER TABLE t {clause}")

    with pytest.raises(InexactError, match=rf"^d\.t: not exact since 0-1-3, because {ALTERED[clause]}"):
        rows(path)
    assert rows(path, at="0-1-2") == [(1, 1)]


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_generated_columns_that_images_leave_out_are_computed_stay_or_are_refused(tmp_path, image):
    made = {"twice": "bigint as (a * 2) stored", "back": "varchar(9) as (reverse(t)) stored"}
    with FixturePrimary(profile="classic-11.8") as primary:
        table = primary.table("d.t", id="int primary key", a="int", t="varchar(9)", **made)
        primary.format = RowFormat(image=RowImage(image), has_generated=False)
        for number in (1, 2, 3):
            table.insert(id=number, a=number, t="ab", back="ba")
        table.update({"id": 1}, a=5, back="ba")
        table.update({"id": 2}, id=4, back="ba")
        table.delete(id=3)
        primary.save_classic(tmp_path / "1")
        table.update(id=1, t="cd", back="dc")
        primary.save_classic(tmp_path / "2")

    assert rows(str(tmp_path / "1")) == [(1, 5, "ab", 10, "ba"), (4, 2, "ab", 4, "ba")]
    with pytest.raises(InexactError, match="an UPDATE has no value for the generated column back"):
        rows(str(tmp_path / "2"))


def left_out(path, at):
    return domains_left_out(parse_options({"path": path, "endingGtid": at}))


def test_a_position_that_leaves_domains_out_is_told(fixtures):
    path = str(fixtures / "ibb" / "domains")
    with ibbmaster.open(path) as log:
        position = [str(gtid) for gtid in log.position.values()]
    assert len(position) > 1
    assert left_out(path, ",".join(position)) == []
    assert left_out(path, position[0]) == sorted(int(gtid.partition("-")[0]) for gtid in position[1:])
