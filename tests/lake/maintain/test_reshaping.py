"""Columns of a table that is altered are the same, wider or of NULLs; or its rows have to be written anew."""

from dataclasses import replace

import pytest

from ibbmaster.lake.maintain.reshaping import Reshape, reshape_of
from ibbmaster.rows.shape import version_shape
from ibbmaster.tables.arrow.read_options import ZeroDates
from ibbmaster.tables.arrow.shape import table_fields
from tests.case_table import data_beside
from tests.schema.conftest import type_of
from tests.table_versions import column, place, version

ID = column(1, "id")


def found(then, now, zero_dates: ZeroDates = ZeroDates.NULL) -> Reshape | None:
    def fields_of(one):
        shape = version_shape("d.t", one)
        return table_fields(shape, zero_dates, [kind.name for kind in shape.columns])

    return reshape_of(version(*then), version(*now, since=place(5)), fields_of)


def test_columns_are_followed_by_their_numbers() -> None:
    then = [ID, column(2, "a"), column(3, "b"), column(4, "c")]
    now = [column(3, "a"), ID, column(2, "b"), column(5, "c", first_value="NULL")]
    assert found(then, now) == Reshape({"a": "b", "b": "a"}, dropped=("c",), added=("c",))
    assert not found(then, then[::-1])
    assert found(then, then[::-1]) is not None


@pytest.mark.parametrize("value", ["7", "''", "?", "current_timestamp()"])
def test_a_column_with_a_value_in_old_rows_has_to_be_written(value) -> None:
    assert found([ID], [ID, column(2, "a", first_value=value)]) is None


CASES = data_beside(__file__)
TYPES = {kind: {name: [*map(type_of, pair)] for name, pair in pairs.items()} for kind, pairs in CASES.items()}


@pytest.mark.parametrize(("then", "now"), TYPES["wider"].values(), ids=TYPES["wider"])
def test_a_type_with_all_values_is_wider(then, now) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "z", now)]) == Reshape({"a": "z"}, widened=("z",))


@pytest.mark.parametrize(("then", "now"), TYPES["alike"].values(), ids=TYPES["alike"])
def test_a_type_whose_values_look_the_same_is_no_change(then, now) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "a", now)]) == Reshape()


@pytest.mark.parametrize(("then", "now"), TYPES["others"].values(), ids=TYPES["others"])
@pytest.mark.parametrize("zero_dates", ZeroDates)
def test_rows_of_another_type_have_to_be_written(then, now, zero_dates) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "a", now)], zero_dates) is None


def test_a_column_without_nulls_may_have_got_other_values() -> None:
    nullable = column(2, "a", type_of("int"))
    assert found([ID, nullable], [ID, replace(nullable, is_nullable=False)]) is None
    assert found([ID, replace(nullable, is_nullable=False)], [ID, nullable]) == Reshape()


def test_more_digits_of_a_second_are_no_change_of_moments_and_one_of_texts() -> None:
    then, now = [ID, column(2, "a", type_of("datetime"))], [ID, column(2, "a", type_of("datetime(3)"))]
    assert found(then, now, ZeroDates.TEXT) is None


def test_what_the_server_computes_may_not_change_at_all() -> None:
    computed = replace(column(2, "a"), expression="`id` + 1")
    assert found([ID, computed], [ID, computed]) == Reshape()
    assert found([ID, computed], [ID, replace(computed, name="b")]) is None
    assert found([ID], [ID, replace(computed, first_value="NULL")]) is None


def test_another_table_of_that_name_is_another_table() -> None:
    then, now = version(ID), replace(version(ID, since=place(5)), generation=version(ID).generation + 1)
    assert reshape_of(then, now, lambda _: ()) is None
