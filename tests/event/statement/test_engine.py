"""What options of a table say of its engine."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.engine import EngineOption, rows_are_elsewhere
from ibbmaster.event.statement.operations import operations_of

OPTIONS = {
    "CREATE TABLE t (engine INT) COMMENT='ENGINE=x' engine = blackhole": EngineOption("BLACKHOLE"),
    "CREATE TABLE t (a INT) TYPE InnoDB PARTITION BY HASH (a) (PARTITION p ENGINE=CSV)": EngineOption("INNODB"),
    "CREATE TABLE t (a INT) ENGINE=MERGE UNION (m1, x.`m 2`) INSERT_METHOD=LAST": EngineOption(
        "MERGE", ("d.m1", "x.m 2")
    ),
    "CREATE TABLE t (a INT) SELECT 1 AS engine UNION (SELECT 2)": EngineOption(),
    "CREATE TABLE t (a INT)": EngineOption(),
}


@pytest.mark.parametrize(("sql", "engine"), OPTIONS.items(), ids=OPTIONS)
def test_the_engine_is_read_where_options_stand_and_nowhere_else(sql, engine):
    (created,) = operations_of(sql, "d")
    assert created.engine == engine


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("ALTER TABLE t COMMENT 'x' ENGINE=BLACKHOLE", EngineOption("BLACKHOLE")),
        ("ALTER TABLE t ADD b INT, ENGINE Aria", EngineOption("ARIA")),
        ("ALTER TABLE t UNION=(a,b)", EngineOption(None, ("d.a", "d.b"))),
    ],
)
def test_an_alter_may_give_another_engine_among_other_options(sql, engine):
    (altered,) = operations_of(sql, "d")
    assert engine in [getattr(clause, "engine", None) for clause in altered.clauses]


def test_an_engine_that_keeps_its_rows_has_no_reason():
    assert [rows_are_elsewhere(name) for name in ("InnoDB", "Aria", "BLACKHOLE", "")] == [None] * 4
    assert "UNION" in str(rows_are_elsewhere("mrg_myisam"))
    assert "SPIDER" in str(rows_are_elsewhere("SPIDER"))
