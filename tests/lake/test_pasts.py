"""What statements come to for a table: where it was emptied, and what of its rows no event tells."""

import pytest

import ibbmaster
from ibbmaster.errors import InexactError
from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot
from ibbmaster.lake.pasts import Past, past_of
from ibbmaster.lake.statements import Logged
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.rows.effects import effects_of
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.schema_reading import schema_of_texts
from tests.schema.conftest import Folded, logged
from tests.written_log import inserted, write_log


def told(*statements: str, table: str = "t", has_rows_before: bool = False, declared: str = "") -> Past:
    """The past of a table of d by these statements, each in a group of its own; a number before one is its thread.
    `declared` is what d.t was before the log."""
    history, found = Folded(schema_of_texts({TableName("d", "t"): declared}) if declared else None), []
    for number, one in enumerate(statements, start=1):
        thread, _, text = one.partition("|") if "|" in one else ("1", "", one)
        history.run(text, thread_id=int(thread))
        effects = effects_of(logged(text, thread_id=int(thread)))
        found.append(Logged(0, number, 1, f"0-1-{number}", 100 + number, has_rows_before, effects))
    return past_of(history, ("d", table), None, found)


def cuts(past: Past) -> list[int]:
    return [cut.place[1] + 1 for cut in past.cuts]


def doubts(past: Past) -> list[str]:
    return [doubt.gtid for doubt in past.doubts]


def test_each_way_to_empty_a_table_is_a_cut() -> None:
    made = ("CREATE TABLE t (a INT)", "TRUNCATE t")
    assert cuts(told(*made)) == [1, 2]
    assert cuts(told(*made, "CREATE OR REPLACE TABLE t (a INT)")) == [3]
    assert cuts(told(*made, "DROP DATABASE d", "CREATE TABLE t (a INT)")) == [4]
    assert cuts(told(*made, "RENAME TABLE t TO u", table="u")) == [1, 2]
    assert told(*made, "ALTER TABLE t ADD b INT").cuts


def test_a_table_that_no_statement_makes_is_emptied_by_its_name() -> None:
    for emptying in ("TRUNCATE t", "DROP TABLE t", "DROP DATABASE d"):
        assert cuts(told(emptying)) == [1]
        assert not told("CREATE TABLE u (a INT)").cuts
    assert cuts(told("TRUNCATE x.t")) == []
    assert cuts(told("CREATE TEMPORARY TABLE t (a INT)", "TRUNCATE t", "DROP TEMPORARY TABLE t")) == []


def test_rows_of_the_group_itself_are_behind_the_statement_unless_they_stand_before_it() -> None:
    assert told("CREATE TABLE t (a INT)", "TRUNCATE t").begin == (0, 1)
    assert told("CREATE TABLE t (a INT)", "TRUNCATE t", has_rows_before=True).begin == (0, 2)


def test_a_temporary_table_hides_the_real_one_in_its_own_session() -> None:
    past = told("CREATE TABLE t (a INT)", "7|CREATE TEMPORARY TABLE t (a INT)", "7|TRUNCATE t", "8|TRUNCATE t")
    assert cuts(past) == [1, 4]


@pytest.mark.parametrize(
    "statement",
    [
        *("INSERT INTO t VALUES (1)", "LOAD DATA INFILE 'x' INTO TABLE t", "CALL p()", "UPDATE t SET a=1"),
        *("DELETE FROM u USING u JOIN t", "ALTER TABLE t DROP PARTITION p", "ALTER TABLE t MODIFY a SMALLINT"),
        *("ALTER TABLE t ADD b DATETIME DEFAULT CURRENT_TIMESTAMP", "ALTER TABLE t ADD b INT AS (rand())"),
        *("ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t", "ALTER TABLE t CONVERT PARTITION p TO TABLE u"),
        *("ALTER TABLE t ENGINE=SPIDER", "ALTER TABLE t ENGINE=BLACKHOLE", "ALTER TABLE t ADD SYSTEM VERSIONING"),
        "ALTER TABLE t FROBNICATE",
    ],
)
def test_what_may_change_rows_without_an_event_is_a_doubt_until_the_table_is_emptied(statement: str) -> None:
    assert "0-1-2" in doubts(told("CREATE TABLE t (a INT)", statement))
    assert doubts(told("CREATE TABLE t (a INT)", statement, "CREATE OR REPLACE TABLE t (a INT)")) == []


@pytest.mark.parametrize(
    "statement",
    [
        *("ALTER TABLE t ADD b INT", "ALTER TABLE t MODIFY a BIGINT", "ALTER TABLE t ADD INDEX (a)", "ANALYZE TABLE t"),
        *("INSERT INTO u VALUES (1)", "UPDATE x.t SET a=1", "ALTER TABLE u DROP PARTITION p", "RENAME TABLE t TO t"),
        *("ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t ADD b INT DEFAULT 5", "ALTER TABLE t CHANGE a b BIGINT"),
    ],
)
def test_ordinary_statements_are_no_doubts(statement: str) -> None:
    assert doubts(told("CREATE TABLE t (a INT)", statement)) == []


def test_what_a_table_was_before_the_log_is_one_of_its_versions() -> None:
    past = told("ALTER TABLE t MODIFY a INT NOT NULL", declared="CREATE TABLE t (a INT)")
    assert doubts(past) == ["0-1-1"]
    assert len(past.versions) == 2


def test_a_column_that_is_dropped_takes_its_doubts_with_it() -> None:
    altered = ("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b DATETIME DEFAULT CURRENT_TIMESTAMP")
    assert doubts(told(*altered)) == ["0-1-2"]
    assert doubts(told(*altered, "ALTER TABLE t DROP b", "ALTER TABLE t ADD b INT")) == []


def test_rows_go_with_a_table_that_is_renamed_also_through_a_swap() -> None:
    swap = (
        "CREATE TABLE a (x INT)",
        "CREATE TABLE b (x INT)",
        "UPDATE b SET x=1",
        "RENAME TABLE a TO c, b TO a, c TO b",
    )
    assert doubts(told(*swap, table="a")) == ["0-1-3"]
    assert doubts(told(*swap, table="b")) == []


def test_a_statement_may_reach_any_table_where_there_are_triggers() -> None:
    trigger = "CREATE TRIGGER r BEFORE INSERT ON u FOR EACH ROW INSERT INTO t VALUES (1)"
    assert doubts(told("CREATE TABLE t (a INT)", trigger, "INSERT INTO u VALUES (1)")) == ["0-1-3"]


def test_the_parents_of_a_table_are_those_whose_changes_reach_it() -> None:
    child = "CREATE TABLE t (a INT, KEY (a), CONSTRAINT k FOREIGN KEY (a) REFERENCES p (a) ON {})"
    assert told(child.format("DELETE CASCADE")).ancestors == {("d", "p")}
    grandparent = child.replace("TABLE t", "TABLE p").replace("REFERENCES p", "REFERENCES g").format("UPDATE SET NULL")
    assert told(child.format("UPDATE SET NULL"), grandparent).ancestors == {("d", "p"), ("d", "g")}
    assert doubts(told(child.format("DELETE CASCADE"), "DELETE FROM p")) == ["0-1-2"]
    assert told(child.format("DELETE RESTRICT")).ancestors == set()


def test_a_table_whose_statement_is_not_understood_has_its_reason() -> None:
    (doubt,) = told("CREATE TABLE t (a FROBNICATION)").doubts
    assert "not understood" in doubt.reason


def test_a_rollback_and_a_commit_of_what_was_not_prepared_are_doubts() -> None:
    history = Folded().run("CREATE TABLE t (a INT)")
    said = [
        Logged(0, 2, 1, "0-1-2", 0, True, verb="ROLLBACK"),
        Logged(0, 3, 0, "0-1-3", 0, xid="a", verb="XA PREPARE"),
        Logged(0, 4, 0, "0-1-4", 0, xid="a", verb="XA COMMIT"),
        Logged(0, 5, 0, "0-1-5", 0, xid="b", verb="XA COMMIT"),
    ]
    assert doubts(past_of(history, ("d", "t"), None, said)) == ["0-1-2", "0-1-5"]


def test_a_table_whose_beginning_was_purged_is_not_taken_for_whole_since_its_schema_is_remembered(tmp_path) -> None:
    orders = written_table("d.t", {"id": "int", "a": "varchar(300)"}, table_id=5, primary_key=["id"])
    groups = [[inserted(orders, *([100 * group + row, "x" * 250] for row in range(100)))] for group in range(60)]
    path = write_log(tmp_path / "log", "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(300))", *groups)
    options = parse_options({"path": str(path), "table": "d.t"})
    assert arrow_snapshot(options).num_rows == 6000
    with ibbmaster.open(path, writable=True) as log:
        log.purge(to=log.files[-1].name)
    for find in (arrow_snapshot, arrow_history):
        with pytest.raises(InexactError, match="the log does not begin with its CREATE TABLE"):
            find(options)
