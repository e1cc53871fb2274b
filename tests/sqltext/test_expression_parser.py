"""Expressions as trees: precedence, calls, literals; what MariaDB refuses is an error at the same place."""

import random

import pytest

from ibbmaster.sqltext.expression import (
    Aggregate,
    Call,
    Cast,
    ColumnName,
    Literal,
    Operation,
    SqlQuery,
    Star,
    SystemVariable,
    UserVariable,
)
from ibbmaster.sqltext.expression_parser import DEPTH_MAX, STEPS_MAX
from ibbmaster.sqltext.query_reader import QueryReader
from ibbmaster.sqltext.token import SqlError, tokenize
from tests.case_table import data_beside


def told(expression) -> str:
    """A tree in brackets."""
    match expression:
        case Literal(value=value):
            return repr(value)
        case ColumnName(parts=parts):
            return ".".join(parts)
        case Call(name=name, arguments=arguments, is_read=is_read):
            return f"{name}({', '.join(map(told, arguments)) if is_read else '?'})"
        case Operation(operator=operator, operands=operands):
            return f"[{operator} {' '.join(map(told, operands))}]"
        case Star(table=table):
            return ".".join((*table, "*"))
        case UserVariable(name=name):
            return f"@{name}"
        case SystemVariable(name=name, scope=scope):
            return f"@@{scope}.{name}"
        case Aggregate(name=name, arguments=arguments):
            return f"{name}({', '.join(map(told, arguments))})"
        case Cast(value=value, kind=kind):
            return f"cast({told(value)}, {kind})"
    return type(expression).__name__.upper()


def query_of(sql: str) -> SqlQuery:
    reader = QueryReader(tokenize(sql))
    query = reader.query()
    reader.expect_end()
    return query


def read(sql: str) -> str:
    return told(query_of(f"SELECT {sql}").items[0].node)


CASES = data_beside(__file__)
TREES = CASES["trees"]


@pytest.mark.parametrize(("sql", "tree"), TREES.items(), ids=list(TREES))
def test_operators_bind_as_in_mariadb(sql, tree):
    assert read(sql) == tree


@pytest.mark.parametrize(("sql", "near"), CASES["near"])
def test_an_error_is_where_mariadb_sees_it(sql, near):
    """The text behind `near` in the error of MariaDB 10.11."""
    with pytest.raises(SqlError) as caught:
        query_of(sql)
    assert caught.value.near == near


def test_brackets_nest_only_so_deep():
    depth = DEPTH_MAX - 1
    assert read("(" * depth + "1" + ")" * depth) == "1"
    with pytest.raises(SqlError):
        query_of(f"SELECT {'(' * 500}1{')' * 500}")


def test_operators_nest_only_so_deep_but_a_long_row_of_one_kind_is_flat():
    assert read(" + ".join("1" * 5000)).count(" 1") == 5000
    with pytest.raises(SqlError):
        read(" - ".join("1" * (STEPS_MAX + 2)))


def test_any_words_are_read_or_refused_and_nothing_else():
    pieces = "1 a ( ) , + - NOT IN BETWEEN AND CASE WHEN THEN END 'x' @a := LIKE IS NULL f( SELECT . * CAST( AS"
    read_count = 0
    for _ in range(4000):
        sql = "SELECT " + " ".join(random.choices(pieces.split(), k=random.randrange(9)))
        try:
            query_of(sql)
            read_count += 1
        except SqlError:
            pass
    assert read_count
