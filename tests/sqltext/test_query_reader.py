"""Queries as values."""

import pytest

from ibbmaster.sqltext.query_reader import QueryReader
from ibbmaster.sqltext.query_tree import Compound, GivenTable, Join, Query, SelectBlock
from ibbmaster.sqltext.token import SqlError, UnreadSqlError, tokenize


def read(sql: str) -> Query:
    reader = QueryReader(tokenize(sql))
    query = reader.query()
    reader.expect_end()
    return query


def test_a_join_has_two_sides_and_a_condition():
    found = read("SELECT * FROM a LEFT JOIN s.b AS x ON a.i = x.i")
    assert isinstance(found, SelectBlock)
    assert isinstance(found.source, Join)
    assert (found.source.kind, found.source.right) == ("LEFT", GivenTable("b", "s", "x"))


def test_the_end_of_the_last_select_is_that_of_the_whole_union():
    found = read("SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1 LIMIT 3")
    assert isinstance(found, Compound)
    assert (found.operators, found.limit, len(found.order_by)) == (("UNION ALL",), (0, 3), 1)
    inside = read("(SELECT a FROM t LIMIT 1) UNION (SELECT b FROM u LIMIT 2)")
    assert isinstance(inside, Compound)
    assert (inside.limit, inside.members[1].limit) == (None, (0, 2))  # type: ignore[union-attr]


def test_limit_has_three_forms():
    limits = [read(f"SELECT a FROM t {end}").limit for end in ("LIMIT 5", "LIMIT 2, 5", "LIMIT 5 OFFSET 2")]  # type: ignore[union-attr]
    assert limits == [(0, 5), (2, 5), (2, 5)]


@pytest.mark.parametrize("end", ["", "a FROM", "a FROM t WHERE", "a FROM t JOIN", "a b c"])
def test_what_is_no_query_is_an_error(end: str) -> None:
    with pytest.raises(SqlError):
        read(f"SELECT {end}")


@pytest.mark.parametrize(
    "sql", ["SELECT a FROM t GROUP BY a WITH ROLLUP", "SELECT a FROM t EXCEPT ALL SELECT a FROM u"]
)
def test_forms_that_are_not_carried_out_are_named(sql: str) -> None:
    with pytest.raises(UnreadSqlError):
        read(sql)
