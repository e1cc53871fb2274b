import pytest

from ibbmaster.sqltext.expression import GivenTable, Join, SqlQuery
from ibbmaster.sqltext.query_reader import QueryReader
from ibbmaster.sqltext.token import SqlError, UnreadSqlError, tokenize
from tests.case_table import data_beside

DATA = data_beside(__file__)


def read(sql: str) -> SqlQuery:
    reader = QueryReader(tokenize(sql))
    query = reader.query()
    reader.expect_end()
    return query


def test_a_join_has_two_sides_and_a_condition():
    found = read("SELECT * FROM a LEFT JOIN s.b AS x ON a.i = x.i")
    assert isinstance(found.source, Join)
    assert (found.source.is_left, found.source.right) == (True, GivenTable("b", "s", "x"))


def test_limit_has_three_forms_and_may_stand_behind_brackets():
    assert read("(SELECT a FROM t) ORDER BY 1 LIMIT 3") == read("SELECT a FROM t ORDER BY 1 LIMIT 3")
    limits = [read(f"SELECT a FROM t {end}").limit for end in ("LIMIT 5", "LIMIT 2, 5", "LIMIT 5 OFFSET 2")]
    assert limits == [(0, 5), (2, 5), (2, 5)]


@pytest.mark.parametrize("end", ["", "a FROM", "a FROM t WHERE", "a FROM t JOIN", "a b c"])
def test_what_is_no_query_is_an_error(end: str) -> None:
    with pytest.raises(SqlError):
        read(f"SELECT {end}")


@pytest.mark.parametrize("sql", DATA["unread forms"])
def test_forms_that_are_not_carried_out_are_named(sql: str) -> None:
    with pytest.raises(UnreadSqlError):
        read(sql)
