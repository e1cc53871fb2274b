"""What is left of statements that failed after they had changed something."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.failing import left_by_failure
from ibbmaster.event.statement.operations import Alter, Drop, operations_of

LEFT = {
    ("CREATE OR REPLACE TABLE t (a INT)", 1005): [Drop(table="d.t")],
    ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", 1005): [Drop(table="d.t", is_temporary=True)],
    ("CREATE TABLE t (a INT)", 1005): [],
    ("DROP TABLE t, u", 1051): [Drop(table="d.t"), Drop(table="d.u")],
}


@pytest.mark.parametrize(("failed", "left"), LEFT.items(), ids=[f"{sql} {code}" for sql, code in LEFT])
def test_what_was_dropped_is_gone_and_what_was_not_made_is_not_there(failed, left):
    sql, error_code = failed
    assert left_by_failure(operations_of(sql, "d"), error_code) == left


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DROP TABLE t, u", ["d.t", "d.u"]),
        ("TRUNCATE t", ["d.t"]),
        ("RENAME TABLE t TO u", ["d.t", "d.u"]),
        ("ALTER TABLE t DROP a, RENAME u", ["d.t", "d.t", "d.u"]),
    ],
)
def test_of_other_statements_nobody_knows_how_far_they_came(sql, tables):
    left = left_by_failure(operations_of(sql, "d"), 1317)
    assert [one.table for one in left] == tables
    assert all("failed with error 1317" in one.clauses[0].what for one in left if isinstance(one, Alter))


def test_rows_that_a_statement_wrote_before_it_failed_are_no_less_unknown():
    written = operations_of("INSERT INTO t VALUES (1), (1)", "d")
    assert left_by_failure(written, 1062) == written
