from decimal import Decimal

import pytest

from ibbmaster.rows.expr.formulas import NotSimpleError, constant, formula
from ibbmaster.schema.model import SqlType
from ibbmaster.schema.names import column_of
from tests.case_table import data_beside
from tests.schema.conftest import type_of
from tests.table_versions import INT, TEXT, column

DECIMAL = SqlType(word="decimal", length=6, scale=2)
CASES = data_beside(__file__)


@pytest.mark.parametrize(("text", "told", "value"), CASES["constants"])
def test_a_constant_is_the_value_that_the_column_holds(text, told, value) -> None:
    assert repr(constant(text, column_of(column(1, "c", type_of(told))))) == value


DEEP = [["(" * 100 + "1" + ")" * 100, "int"], ["1" + "+1" * 1000, "int"]]


@pytest.mark.parametrize(("text", "told"), CASES["nothing"] + DEEP)
def test_of_other_constants_nothing_is_said(text, told) -> None:
    with pytest.raises(NotSimpleError):
        constant(text, column_of(column(1, "c", type_of(told))))


COLUMNS = {
    "a": column_of(column(1, "a")),
    "d": column_of(column(2, "d", DECIMAL)),
    "t": column_of(column(3, "t", TEXT)),
    "when": column_of(column(4, "when", SqlType(word="datetime"))),
}
VALUES = {"a": 7, "d": Decimal("1.50"), "t": "x", "when": None}


@pytest.mark.parametrize(("text", "told", "value"), CASES["formulas"])
def test_a_formula_is_computed_exactly(text, told, value) -> None:
    names, compute = formula(text, COLUMNS, column_of(column(9, "g", type_of(told))))

    assert repr(compute({name: VALUES[name] for name in names})) == value


def test_null_makes_null() -> None:
    for text, told in (("a + d", DECIMAL), ("concat(t, a)", TEXT)):
        _, compute = formula(text, COLUMNS, column_of(column(9, "g", told)))
        assert compute({"a": None, "d": Decimal(1), "t": "x"}) is None


@pytest.mark.parametrize("text", ["a / 2", "a % b", "upper(t)", "t + 1 > 2", "concat(t, `when`)", "b", "when", "a b"])
def test_of_other_formulas_nothing_is_said(text) -> None:
    with pytest.raises(NotSimpleError):
        formula(text, COLUMNS, column_of(column(9, "g", INT)))


@pytest.mark.parametrize("text", ["ifnull(t, a)", "t + d"])
def test_what_only_a_server_decides_has_no_value(text) -> None:
    _, compute = formula(text, COLUMNS, column_of(column(9, "g", INT)))
    with pytest.raises(NotSimpleError):
        compute(VALUES)


def test_a_result_that_the_column_cannot_hold_is_none() -> None:
    _, compute = formula("a * a", COLUMNS, column_of(column(9, "g", SqlType(word="tinyint", length=4))))
    with pytest.raises(NotSimpleError):
        compute({"a": 100})
    _, compute = formula("a * a", COLUMNS, column_of(column(9, "g", SqlType(word="bigint", length=20))))
    with pytest.raises(NotSimpleError, match="out of range"):
        compute({"a": 1 << 40})
