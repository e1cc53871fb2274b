"""What statements come to for a table: where it was emptied, and what of its rows no event tells."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.operations import operations_of
from ibbmaster.lake.statements import Logged
from ibbmaster.lake.stories import Stories


def told(*statements, declared=None):
    """Stories of these statements, each in a group of its own; a number before one is its thread."""
    stories = Stories.declared(declared or {})
    for number, one in enumerate(statements, start=1):
        thread, _, text = one.partition("|") if "|" in one else ("1", "", one)
        operations = tuple(operations_of(text, "d"))
        stories.tell([Logged(0, number, 1, f"0-1-{number}", 100 + number, False, int(thread), operations)])
    return stories


def cuts(stories, table):
    """The groups in which a table was emptied."""
    return [cut.place[1] + 1 for cut in stories.of(table).cuts]


def doubts(stories, table):
    return [(doubt.gtid, doubt.rows_of) for doubt in stories.of(table).doubts]


def test_each_way_to_empty_a_table_is_a_cut():
    stories = told(
        "CREATE TABLE t (a INT)",
        "TRUNCATE t",
        "CREATE OR REPLACE TABLE t (a INT)",
        "DROP DATABASE d",
        "CREATE TABLE t (a INT)",
        "RENAME TABLE t TO u",
        "CREATE OR REPLACE DATABASE d",
        "DROP TABLE x.t",
    )
    assert cuts(stories, "d.t") == [1, 2, 3, 4, 5, 6, 7]
    assert cuts(stories, "d.u") == [4, 6, 7]
    assert cuts(stories, "d.never_named") == [4, 7]
    assert cuts(stories, "x.t") == [8]
    assert cuts(stories, "x.other") == []


def test_rows_of_the_group_itself_are_behind_the_statement_unless_they_stand_before_it():
    truncate = tuple(operations_of("TRUNCATE t", "d"))
    before = Logged(3, 500, 1, "0-1-1", 0, False, 1, truncate)
    (cut,) = Stories().tell([before]).of("d.t").cuts
    assert (3, 499) == cut.place < before.place
    (cut,) = Stories().tell([before._replace(has_rows_before=True)]).of("d.t").cuts
    assert cut.place == before.place


def test_a_temporary_table_hides_the_real_one_in_its_own_session():
    stories = told(
        "7|CREATE TEMPORARY TABLE t (a INT)",
        "7|TRUNCATE t",
        "7|ALTER TABLE t DROP PARTITION p",
        "8|TRUNCATE t",
        "7|DROP TABLE t",
        "7|DROP TABLE t",
        "9|DROP TEMPORARY TABLE t",
    )
    assert cuts(stories, "d.t") == [4, 6]
    assert doubts(stories, "d.t") == []


@pytest.mark.parametrize(
    ("statement", "rows_of"),
    [
        ("INSERT INTO t VALUES (1)", None),
        ("LOAD DATA INFILE 'x' INTO TABLE t", None),
        ("CALL p()", None),
        ("UPDATE t SET a=1", "d.t"),
        ("DELETE FROM u USING u JOIN t", "d.t"),
        ("ALTER TABLE t DROP PARTITION p", "d.t"),
        ("ALTER TABLE t ADD b INT NOT NULL", "d.t"),
        ("ALTER TABLE t ADD b INT DEFAULT 5", "d.t"),
        ("ALTER TABLE t MODIFY a SMALLINT", "d.t"),
        ("ALTER TABLE t RENAME COLUMN a TO b", "d.t"),
        ("ALTER TABLE t CHANGE a b INT", "d.t"),
        ("ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t", None),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", None),
        ("CREATE TABLE t AS SELECT 1", None),
    ],
)
def test_what_changes_rows_without_an_event_is_a_doubt_until_the_table_is_emptied(statement, rows_of):
    stories = told("CREATE TABLE t (a INT)", statement)
    assert doubts(stories, "d.t") == [("0-1-2", rows_of)]
    for emptying in ("TRUNCATE t", "DROP TABLE t", "CREATE OR REPLACE TABLE t (a INT)", "DROP DATABASE d"):
        stories = told("CREATE TABLE t (a INT)", statement, emptying)
        assert doubts(stories, "d.t") == []
        assert [doubt.gtid for doubt in stories.of("d.t").past_doubts] == ["0-1-2"]


@pytest.mark.parametrize(
    "statement",
    [
        *("ALTER TABLE t ADD b INT", "ALTER TABLE t MODIFY a BIGINT", "ALTER TABLE t ADD INDEX (a)", "ANALYZE TABLE t"),
        *("INSERT INTO u VALUES (1)", "UPDATE x.t SET a=1", "ALTER TABLE u DROP PARTITION p", "ALTER TABLE t DROP a"),
    ],
)
def test_ordinary_statements_are_no_doubts(statement):
    assert doubts(told("CREATE TABLE t (a INT)", statement), "d.t") == []


def test_a_column_that_is_dropped_takes_its_doubts_with_it_but_another_of_its_name_has_one():
    altered = ("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT DEFAULT 5", "ALTER TABLE t DROP b")
    assert doubts(told(*altered), "d.t") == []
    assert doubts(told(*altered, "ALTER TABLE t ADD b INT"), "d.t") == [("0-1-4", "d.t")]


def test_rows_go_with_a_table_that_is_renamed_also_through_a_swap():
    stories = told("CREATE TABLE a (x INT)", "CREATE TABLE b (x INT)", "RENAME TABLE a TO c, b TO a, c TO b")
    assert [doubt.rows_of for doubt in stories.of("d.a").doubts] == ["d.b"]
    assert [doubt.rows_of for doubt in stories.of("d.b").doubts] == ["d.a", "d.c"]
    assert doubts(stories, "d.c") == []


def test_a_statement_may_reach_any_table_where_there_are_triggers():
    trigger = "CREATE TRIGGER r BEFORE INSERT ON u FOR EACH ROW INSERT INTO t VALUES (1)"
    assert doubts(told(trigger, "INSERT INTO u VALUES (1)"), "d.t") == [("0-1-2", None)]
    assert doubts(told("INSERT INTO u VALUES (1)"), "d.t") == []


def test_foreign_keys_reach_over_several_tables():
    child = "CREATE TABLE c (a INT, CONSTRAINT k FOREIGN KEY (a) REFERENCES {} (a) ON DELETE CASCADE)"
    stories = told(child.format("p"), child.replace("TABLE c", "TABLE p").format("g"))
    assert [cascade.key.parent for cascade in stories.ancestors("d.c")] == ["d.p", "d.g"]
    assert [cascade.key.parent for cascade in stories.ancestors("d.p")] == ["d.g"]
    circle = told(child.format("c"))
    assert [cascade.key.parent for cascade in circle.ancestors("d.c")] == ["d.c"]
    assert told(child.format("p"), "ALTER TABLE c DROP FOREIGN KEY k").ancestors("d.c") == []
    assert told(child.format("p"), "CREATE OR REPLACE TABLE c (a INT)").ancestors("d.c") == []
    added = "ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES p (a) ON UPDATE SET NULL"
    assert [cascade.place for cascade in told("CREATE TABLE c (a INT)", added).ancestors("d.c")] == [(0, 2)]


def test_columns_are_what_statements_say_or_else_the_user():
    declared = {"d.t": {"a": "INT NOT NULL", "b": "INT"}}
    columns = told(declared=declared).of("d.t").columns
    assert [name for name, one in columns.items() if one.is_null_at_first] == ["b"]
    created = told("CREATE TABLE t (c INT)", "CREATE TABLE u LIKE t", declared=declared)
    assert [*created.of("d.t").columns] == [*created.of("d.u").columns] == ["c"]
    altered = told(
        "CREATE TABLE t (a INT, b INT, c INT)",
        "ALTER TABLE t ADD d INT, DROP b, CHANGE c e INT, ALTER a SET DEFAULT 5",
        "RENAME TABLE t TO u",
    )
    assert {name: one.is_null_at_first for name, one in altered.of("d.u").columns.items()} == {
        "a": False,
        "d": True,
        "e": True,
    }
    assert altered.of("d.t").columns is None


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ("INT", "INTEGER(9)", True),  # what an integer has there is a width to show
        ("INT", "bigint(20) after b", True),
        ("INT8", "INT4", False),
        ("INT", "INT UNSIGNED", False),
        ("INT", "DECIMAL(20,0)", True),
        ("TINYTEXT", "TEXT", True),
        ("BLOB", "TEXT", False),
        ("VARCHAR(5)", "VARCHAR(9) NULL DEFAULT 'x' COMMENT 'y'", True),
        ("VARCHAR(5)", "TEXT", True),
        ("VARCHAR(5)", "VARCHAR(9) CHARSET latin1", False),
        ("VARCHAR(9)", "VARCHAR(5)", False),
        ("DATETIME", "DATETIME(3)", True),
        ("DATE", "DATETIME", True),
        ("FLOAT", "DOUBLE", True),
        ("ENUM('a')", "ENUM('b','a')", True),
        ("ENUM('a','b')", "ENUM('a')", False),
        ("DECIMAL(10,2)", "DECIMAL(12,2)", True),
        ("DECIMAL(10,2)", "DECIMAL(10,3)", False),
        ("INT", "INT NOT NULL", False),
        ("INT NOT NULL", "INT COMMENT 'x'", True),
        ("INT AS (b)", "INT AS (b)", False),
        ("UNHEARD OF", "INT", False),
    ],
)
def test_a_column_keeps_its_values_where_its_definitions_tell(old, new, keeps):
    changed = told(f"CREATE TABLE t (b INT, a {old})", f"ALTER TABLE t MODIFY a {new}")
    assert (doubts(changed, "d.t") == []) is keeps
