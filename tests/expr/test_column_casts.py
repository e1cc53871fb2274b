"""Values in another type; tests/interop/test_type_changes.py compares all of them with what real servers make."""

from decimal import Decimal

import pytest

from ibbmaster.expr.column_casts import cast_of, unchanged
from ibbmaster.schema.model import SqlType, TableColumn
from ibbmaster.schema.names import column_of

UTF8, LATIN = {"charset": "utf8mb4"}, {"charset": "latin1"}


def of(word: str, *sizes: int, **more: object):
    length, scale = (*sizes, None, None)[:2]
    return column_of(TableColumn(id=1, name="c", type=SqlType(word=word, length=length, scale=scale, **more)))


FITS = [
    (of("bigint"), 42, of("tinyint"), 42),
    (of("int"), 0, of("year"), 0),
    (of("decimal", 5, 2), Decimal("-2.50"), of("int"), -3),
    (of("decimal", 8, 4), Decimal("1.2350"), of("decimal", 5, 2), Decimal("1.24")),
    (of("decimal", 8, 4), Decimal("-0.0010"), of("decimal", 5, 2), Decimal("0.00")),
    (of("double"), 3.0, of("int"), 3),
    (of("int"), 16777217, of("float"), 16777216.0),
    (of("date"), "2020-02-29", of("datetime", 0, 2), "2020-02-29 00:00:00.00"),
    (of("datetime"), "2020-02-29 01:02:03", of("date"), "2020-02-29"),
    (of("time", 0, 3), "01:02:03.500", of("time", 0, 1), "01:02:03.5"),
    (of("time", 0, 3), "01:02:03.000", of("time"), "01:02:03"),
    (of("enum", labels=("a", "b"), **UTF8), "", of("enum", labels=("b",), **UTF8), ""),
    (of("set", labels=("a", "b"), **UTF8), "a,b", of("set", labels=("b", "a"), **UTF8), "b,a"),
    (of("set", labels=("a", "b"), **UTF8), "", of("set", labels=("b",), **UTF8), ""),
    (of("varchar", 9, **UTF8), "a ", of("char", 1, **UTF8), "a"),
    (of("varchar", 9, **UTF8), "é", of("varbinary", 2), "é".encode()),
    (of("varchar", 9, **UTF8), "-12", of("int"), -12),
    (of("varchar", 9, **UTF8), "0.5", of("decimal", 5, 2), Decimal("0.50")),
    (of("binary", 2), b"ab", of("binary", 4), b"ab\0\0"),
    (of("inet6"), "::1", of("varchar", 39, **LATIN), "::1"),
]
DOES_NOT_FIT = [
    (of("bigint"), 128, of("tinyint"), "128 is none of -128 to 127"),
    (of("int"), 70, of("year"), "70 is none of 1901 to 2155"),
    (of("decimal", 5, 2), Decimal("99.50"), of("decimal", 2, 0), "does not fit into DECIMAL"),
    (of("double"), 0.5, of("int"), "0.5 is no whole number"),
    (of("double"), 1e300, of("float"), "does not fit into FLOAT"),
    (of("double"), 0.5, of("float", 5, 2), "0.5 is rounded"),
    (of("double"), -1.0, of("double", is_unsigned=True), "-1.0 is negative"),
    (of("time", 0, 3), "01:02:03.500", of("time"), "more than 0 digits of a second"),
    (of("enum", labels=("a", "b"), **UTF8), "a", of("enum", labels=("b",), **UTF8), "'a' is no label"),
    (of("set", labels=("a", "b"), **UTF8), "a,b", of("set", labels=("b",), **UTF8), "'a' is no label"),
    (of("varchar", 9, **UTF8), "", of("enum", labels=("b",), **UTF8), "'' is no label"),
    (of("varchar", 9, **UTF8), "ab", of("char", 1, **UTF8), "'ab' is too long"),
    (of("varchar", 9, **UTF8), "漢", of("varchar", 9, **LATIN), "no text of character set latin1"),
    (of("varchar", 9, **UTF8), " 1", of("int"), "' 1' is no plain number"),
    (of("varbinary", 9), b"abc", of("binary", 2), "3 bytes are too long"),
]
UNTOLD = [
    (of("datetime"), of("timestamp")),  # in what time zone
    (of("time"), of("datetime")),  # on what day
    (of("varbinary", 9), of("varchar", 9, **UTF8)),
    (of("bit", 64), of("double")),
    (of("point"), of("text", **UTF8)),
]


@pytest.mark.parametrize(("old", "value", "new", "expected"), FITS)
def test_a_value_that_fits_is_what_a_server_makes_of_it(old, value, new, expected) -> None:
    convert = cast_of(old, new)
    assert convert is not None
    assert str(convert(value)) == str(expected)


@pytest.mark.parametrize(("old", "value", "new", "problem"), DOES_NOT_FIT)
def test_a_value_that_does_not_fit_is_an_error(old, value, new, problem) -> None:
    convert = cast_of(old, new)
    assert convert is not None
    with pytest.raises(ValueError, match=problem):
        convert(value)


@pytest.mark.parametrize(("old", "new"), UNTOLD)
def test_what_the_log_does_not_tell_has_no_cast(old, new) -> None:
    assert cast_of(old, new) is None


def test_columns_of_one_type_have_the_same_values() -> None:
    for column in (of("uuid"), of("vector", 2), of("double"), of("time")):
        assert cast_of(column, column) is unchanged
