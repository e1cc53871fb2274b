from decimal import Decimal
from typing import Any

import pytest

from ibbmaster.primary.dialogue.lone_expressions import constant_value, row_condition
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from tests.case_table import data_beside
from tests.sessions import session_evaluator

DATA = data_beside(__file__)
VERSION = 101119
COLUMNS = (
    ColumnDefinition(name="Variable_name", column_type=FieldType.VAR_STRING, length=256),
    ColumnDefinition(name="Value", column_type=FieldType.VAR_STRING, length=256),
    ColumnDefinition(name="Id", column_type=FieldType.LONGLONG, length=11),
)
ROWS: list[tuple[Any, ...]] = [("log_bin", "ON", 1), ("Log_Format", "ROW", 20), ("timeout", "10", None)]


def set_value(sql: str) -> Any:
    (statement,) = parse(f"SET @a = {sql}", version=VERSION)
    return constant_value(statement.assignments[0].value, session_evaluator().query_session())


def chosen(condition: str) -> list[str]:
    (statement,) = parse(f"SHOW VARIABLES WHERE {condition}", version=VERSION)
    holds = row_condition(statement.where, COLUMNS, session_evaluator().query_session())
    return [row[0] for row in ROWS if holds(row)]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("1 + 2", 3),
        ("CONCAT(@@character_set_client, ',x')", "utf8mb4,x"),
        ("CAST('12abc' AS SIGNED)", 12),
        ("CAST(5 AS CHAR(1))", "5"),
        ("CONVERT(5, CHAR)", "5"),
        ("1.50 * 2", Decimal("3.00")),
        ("IF(1 > 2, 'a', 'b')", "b"),
        ("TIMEDIFF('10:00:00', '09:30:00')", "00:30:00"),
        ("IF(1, NULL, 1)", None),
    ],
)
def test_an_expression_has_a_value(sql: str, value: object) -> None:
    found = set_value(sql)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("sql", "code"), DATA["not computed"])
def test_what_is_not_computed_says_why(sql: str, code: int) -> None:
    with pytest.raises(RefusedError) as refused:
        set_value(sql)
    assert refused.value.err.code == code


@pytest.mark.parametrize(("condition", "names"), DATA["conditions"])
def test_a_condition_chooses_rows_by_their_columns(condition: str, names: list[str]) -> None:
    assert chosen(condition) == names


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(RefusedError, match="Unknown column 'nothing' in 'WHERE'"):
        chosen("nothing = 1")
