from decimal import Decimal

import pytest

from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.expr.stored_values import stored_value
from ibbmaster.expr.value_texts import TextSettings, text_of
from ibbmaster.fold.stored import StoredColumn, own_columns
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.sqltext.literals import Value, VariableValueError, literal_value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7", 7),
        ("-1.50", Decimal("-1.50")),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        ("_utf8mb4'ä'", "ä"),
        ("b'101'", b"\5"),
        ("0xABC", b"\x0a\xbc"),
        ("x''", b""),
        ("(NULL)", None),
        ("TRUE", 1),
    ],
)
def test_literals_are_constants(expression: str, value: Value) -> None:
    assert literal_value(expression) == value


@pytest.mark.parametrize("expression", ["current_timestamp()", "uuid()", "1 + 1", "?", "concat('x', `a`)", ""])
def test_what_has_to_be_run_is_no_constant(expression: str) -> None:
    with pytest.raises(VariableValueError):
        literal_value(expression)


def column(kind: SqlType) -> StoredColumn:
    table = TableVersion(database="d", name="t", columns=(TableColumn(id=1, name="c", type=kind),))
    return own_columns(table)[0]


TEXT = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (SqlType(word="tinyint"), -128, b"-128"),
        (SqlType(word="bigint", is_unsigned=True), 2**64 - 1, b"18446744073709551615"),
        (SqlType(word="decimal", length=10, scale=2), "7.5", b"7.50"),
        (SqlType(word="double"), 1e20, b"1e20"),
        (SqlType(word="bit", length=10), b"\5", b"\0\5"),
        (SqlType(word="year", length=4), 2020, b"2020"),
        (SqlType(word="date"), "0000-00-00", b"0000-00-00"),
        (SqlType(word="datetime", scale=3), "2020-01-02 03:04:05.678", b"2020-01-02 03:04:05.678"),
        (SqlType(word="datetime", scale=3), 0, b"0000-00-00 00:00:00.000"),
        (SqlType(word="timestamp"), "2020-01-02 03:04:05", b"2020-01-02 03:04:05"),
        (SqlType(word="time"), "-01:02:03", b"-01:02:03"),
        (SqlType(word="enum", labels=("a", "b"), **TEXT), "B", b"b"),
        (SqlType(word="set", labels=("x", "y", "z"), **TEXT), "x,z", b"x,z"),
        (SqlType(word="char", length=5, **TEXT), "ab  ", b"ab"),
        (SqlType(word="varchar", length=5, charset="latin1", collation="latin1_swedish_ci"), "ä", "ä".encode()),
        (SqlType(word="binary", length=3), "a", b"a\0\0"),
        (SqlType(word="uuid"), "123e4567-e89b-12d3-a456-426614174000", b"123e4567-e89b-12d3-a456-426614174000"),
        (SqlType(word="inet6"), "2001:db8::1", b"2001:db8::1"),
        (SqlType(word="inet4"), "1.2.3.4", b"1.2.3.4"),
        (SqlType(word="varchar", length=9, is_compressed=True, **TEXT), "abc", b"abc"),
    ],
)
def test_a_constant_is_stored_as_what_it_shows(kind: SqlType, value: Value, shown: bytes) -> None:
    made = column(kind)

    data = stored_value(made.column, made.type, value)

    assert data is not None
    assert made.fixed in (None, len(data))
    assert text_of(made.column, kind, TextSettings("utf8mb4"))(data) == shown
    assert kind_of(made.column) is not None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SqlType(word="tinyint"), 128),
        (SqlType(word="int"), "1.5"),
        (SqlType(word="int"), "one"),
        (SqlType(word="enum", labels=("a",), **TEXT), "b"),
        (SqlType(word="date"), "2020-13-01"),
        (SqlType(word="varchar", length=5, charset="latin1", collation="latin1_swedish_ci"), "中"),
        (SqlType(word="uuid"), "123"),
        (SqlType(word="bit", length=2), 4),
    ],
)
def test_what_a_column_cannot_hold_as_it_is_is_an_error(kind: SqlType, value: Value) -> None:
    made = column(kind)

    with pytest.raises(ValueError, match=r"."):
        stored_value(made.column, made.type, value)
