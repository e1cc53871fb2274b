"""Columns of a table that is altered are the same, wider or of NULLs; or its rows have to be written anew."""

from dataclasses import replace

import pytest

from ibbmaster.arrow.read_options import ZeroDates
from ibbmaster.arrow.shape import table_fields
from ibbmaster.lake.maintain.reshaping import Reshape, reshape_of
from ibbmaster.rows.shape import version_shape
from ibbmaster.schema.model import SqlType
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


def sql(word: str, length: int | None = None, scale: int | None = None, **more) -> SqlType:
    if word in ("varchar", "char", "text"):
        more = {"charset": "utf8mb4", "collation": "utf8mb4_bin"} | more
    return SqlType(word=word, length=length, scale=scale, **more)


WIDER = {
    "of more bits": (sql("int", 11), sql("bigint", 20)),
    "of a smaller kind": (sql("tinyint", 4), sql("bigint", 20)),
    "without a sign": (sql("smallint", 5, is_unsigned=True), sql("bigint", 20)),
    "of more precision": (sql("float"), sql("double")),
    "of more digits": (sql("decimal", 10, 2), sql("decimal", 12, 2)),
}
ALIKE = {
    "longer texts": (sql("varchar", 5), sql("varchar", 9)),
    "other kinds of texts": (sql("char", 5), sql("text")),
    "longer bytes": (sql("varbinary", 5), sql("blob")),
    "still as long": (sql("tinyint", 4), sql("smallint", 6)),
    "more labels": (sql("enum", labels=("a",), charset="utf8mb4"), sql("enum", labels=("b", "a"), charset="utf8mb4")),
    "still texts of digits": (sql("decimal", 40, 2), sql("decimal", 42, 2)),
}
OTHERS = {
    "narrower": (sql("bigint", 20), sql("int", 11)),
    "a sign lost": (sql("int", 11), sql("int", 10, is_unsigned=True)),
    "a decimal of an integer": (sql("int", 11), sql("decimal", 12, 0)),
    "more digits after the point": (sql("decimal", 10, 2), sql("decimal", 12, 4)),
    "longer texts of digits": (sql("decimal", 40, 2), sql("decimal", 44, 4)),
    "texts of digits": (sql("decimal", 30, 2), sql("decimal", 40, 2)),
    "shorter": (sql("varchar", 9), sql("varchar", 5)),
    "a date with a clock": (sql("date"), sql("datetime")),
    "more digits of a second, in texts": (sql("time"), sql("time", scale=6)),
    "labels in another order of bits": (
        sql("set", labels=("a", "b"), charset="utf8mb4"),
        sql("set", labels=("b", "a"), charset="utf8mb4"),
    ),
    "bits as numbers": (sql("bit", 8), sql("bigint", 20)),
}


@pytest.mark.parametrize(("then", "now"), WIDER.values(), ids=WIDER)
def test_a_type_with_all_values_is_wider(then, now) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "z", now)]) == Reshape({"a": "z"}, widened=("z",))


@pytest.mark.parametrize(("then", "now"), ALIKE.values(), ids=ALIKE)
def test_a_type_whose_values_look_the_same_is_no_change(then, now) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "a", now)]) == Reshape()


@pytest.mark.parametrize(("then", "now"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("zero_dates", ZeroDates)
def test_rows_of_another_type_have_to_be_written(then, now, zero_dates) -> None:
    assert found([ID, column(2, "a", then)], [ID, column(2, "a", now)], zero_dates) is None


def test_a_column_without_nulls_may_have_got_other_values() -> None:
    nullable = column(2, "a", sql("int", 11))
    assert found([ID, nullable], [ID, replace(nullable, is_nullable=False)]) is None
    assert found([ID, replace(nullable, is_nullable=False)], [ID, nullable]) == Reshape()


def test_more_digits_of_a_second_are_no_change_of_moments_and_one_of_texts() -> None:
    then, now = [ID, column(2, "a", sql("datetime"))], [ID, column(2, "a", sql("datetime", scale=3))]
    assert found(then, now, ZeroDates.TEXT) is None


def test_what_the_server_computes_may_not_change_at_all() -> None:
    computed = replace(column(2, "a"), expression="`id` + 1")
    assert found([ID, computed], [ID, computed]) == Reshape()
    assert found([ID, computed], [ID, replace(computed, name="b")]) is None
    assert found([ID], [ID, replace(computed, first_value="NULL")]) is None


def test_another_table_of_that_name_is_another_table() -> None:
    then, now = version(ID), replace(version(ID, since=place(5)), generation=version(ID).generation + 1)
    assert reshape_of(then, now, lambda _: ()) is None
