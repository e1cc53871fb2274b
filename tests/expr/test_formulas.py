"""What expressions give: exactly, or nothing."""

from decimal import Decimal

import pytest

from ibbmaster.expr.formulas import NotSimpleError, constant, formula
from ibbmaster.schema.model import SqlType
from ibbmaster.schema.names import column_of
from tests.table_versions import INT, TEXT, column

DECIMAL = SqlType(word="decimal", length=6, scale=2)
ENUM = SqlType(word="enum", labels=("a", "b"), charset="utf8mb4")
CONSTANTS = [
    ("5", INT, 5),
    ("-5", INT, -5),
    ("'7'", INT, 7),
    ("NULL", TEXT, None),
    ("TRUE", INT, 1),
    ("b'101'", SqlType(word="bit", length=4), 5),
    ("0x4142", SqlType(word="binary", length=4), b"AB\0\0"),
    ("1.005", DECIMAL, Decimal("1.01")),
    ("5", TEXT, "5"),
    ("'it''s'", TEXT, "it's"),
    ("'x  '", SqlType(word="char", length=9, charset="utf8mb4"), "x"),
    ("'B'", ENUM, "b"),
    ("'y,x'", SqlType(word="set", labels=("x", "y"), charset="utf8mb4"), "x,y"),
    ("'2020-01-02'", SqlType(word="datetime", scale=3), "2020-01-02 00:00:00.000"),
    ("'0000-00-00 00:00:00'", SqlType(word="timestamp"), "0000-00-00 00:00:00"),
    ("'12:00:00.5'", SqlType(word="time", scale=2), "12:00:00.50"),
    ("0.1", SqlType(word="float"), 0.10000000149011612),
    ("2020", SqlType(word="year", length=4), 2020),
]


@pytest.mark.parametrize(("text", "told", "value"), CONSTANTS, ids=[f"{one[0]} {one[1].word}" for one in CONSTANTS])
def test_a_constant_is_the_value_that_the_column_holds(text, told, value) -> None:
    assert constant(text, column_of(column(1, "c", told))) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("?", INT),
        ("uuid()", TEXT),
        ("current_timestamp()", SqlType(word="datetime")),
        ("'2020-01-01 00:00:00'", SqlType(word="timestamp")),  # of the session's time zone
        ("'2020-01-01 00:00:00.5'", SqlType(word="datetime")),
        ("99999999999", INT),
        ("'nothing'", ENUM),
        ("'a text of more than twenty letters'", TEXT),
        ("1e3", SqlType(word="double")),
        ("(" * 100 + "1" + ")" * 100, INT),
        ("1" + "+1" * 1000, INT),
    ],
)
def test_of_other_constants_nothing_is_said(text, told) -> None:
    with pytest.raises(NotSimpleError):
        constant(text, column_of(column(1, "c", told)))


COLUMNS = {
    "a": column_of(column(1, "a")),
    "d": column_of(column(2, "d", DECIMAL)),
    "t": column_of(column(3, "t", TEXT)),
    "when": column_of(column(4, "when", SqlType(word="datetime"))),
}
VALUES = {"a": 7, "d": Decimal("1.50"), "t": "x", "when": None}
FORMULAS = [
    ("`a` * 2 + 1", INT, 15),
    ("-(a - 10)", INT, 3),
    ("A", INT, 7),
    ("a * d", DECIMAL, Decimal("10.50")),
    ("d * d", SqlType(word="decimal", length=6, scale=1), Decimal("2.3")),
    ("CONCAT(t, '-', `a`, d)", TEXT, "x-71.50"),
    ("t", TEXT, "x"),
    ("-a % 4", INT, -3),
    ("MOD(a, -4) + 11 DIV -4", INT, 1),
    ("IFNULL(a, COALESCE(a, 3))", INT, 7),
    ("a % 0", INT, None),
    ("d % 2", INT, 2),
]


@pytest.mark.parametrize(("text", "told", "value"), FORMULAS, ids=[one[0] for one in FORMULAS])
def test_a_formula_is_computed_exactly(text, told, value) -> None:
    names, compute = formula(text, COLUMNS, column_of(column(9, "g", told)))

    assert compute({name: VALUES[name] for name in names}) == value


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
