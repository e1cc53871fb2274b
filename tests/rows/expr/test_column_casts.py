"""Values in another type; tests/interop/test_changed_columns.py compares all of them with what real servers make."""

from decimal import Decimal

import pytest

from ibbmaster.rows.expr.column_casts import cast_of, unchanged
from ibbmaster.schema.model import TableColumn
from ibbmaster.schema.names import column_of
from tests.case_table import data_beside
from tests.schema.conftest import type_of

CASES = data_beside(__file__)


def of(declared: str):
    return column_of(TableColumn(id=1, name="c", type=type_of(declared)))


def value_of(value, declared: str):
    return Decimal(value) if "decimal" in declared else value.encode() if "binary" in declared else value


@pytest.mark.parametrize(("old", "value", "new", "expected"), CASES["fits"])
def test_a_value_that_fits_is_what_a_server_makes_of_it(old, value, new, expected) -> None:
    convert = cast_of(of(old), of(new))
    assert convert is not None
    assert str(convert(value_of(value, old))) == expected


@pytest.mark.parametrize(("old", "value", "new", "problem"), CASES["does_not_fit"])
def test_a_value_that_does_not_fit_is_an_error(old, value, new, problem) -> None:
    convert = cast_of(of(old), of(new))
    assert convert is not None
    with pytest.raises(ValueError, match=problem):
        convert(value_of(value, old))


@pytest.mark.parametrize(("old", "new"), CASES["untold"])
def test_what_the_log_does_not_tell_has_no_cast(old, new) -> None:
    assert cast_of(of(old), of(new)) is None


def test_columns_of_one_type_have_the_same_values() -> None:
    for column in map(of, ("uuid", "vector(2)", "double", "time")):
        assert cast_of(column, column) is unchanged
