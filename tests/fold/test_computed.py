"""Generated columns that images leave out; tests/interop/test_answers.py compares their rows with a real server's."""

from __future__ import annotations

import pytest

from ibbmaster.fold.computed import affected, compute, computed_columns
from ibbmaster.fold.stored import StoredLayout, own_columns
from ibbmaster.schema.expression import NotSimpleError
from tests.table_versions import BIGINT, INT, TEXT, column, version

TABLE = version(
    column(1, "id"),
    column(2, "A b"),
    column(3, "twice", BIGINT, expression="`a b` * 2"),
    column(4, "name", TEXT),
    column(5, "other", INT, expression="rand() + `name`"),
    column(6, "again", INT, expression="`twice` + 1"),
)
LAYOUT = StoredLayout(tuple(own_columns(TABLE)), 0)
COLUMNS = list(computed_columns(TABLE, LAYOUT))


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def updated(values: list[bytes | None], told: set[int], unknown: tuple[int, ...] = ()) -> set[int]:
    """Compute what changes with the columns that are told; the ids of those that could not be."""
    return {column.id for column in compute(affected(COLUMNS, told), LAYOUT, values, unknown)}


def test_what_an_image_leaves_out_is_computed_from_what_it_has() -> None:
    values = [number(1), number(-4), None, None, None, None]

    assert {column.id for column in compute(COLUMNS, LAYOUT, values, ())} == {5, 6}
    assert values[2] == number(-8, 8)  # rand() is nobody's to repeat, and what is made of `twice` is not simple
    assert values[4:] == [None, None]


def test_a_column_of_what_did_not_change_stays_as_it_is() -> None:
    values = [number(1), number(5), number(10, 8), None, number(7), number(11)]

    assert updated(values, {0}) == set()
    assert values == [number(1), number(5), number(10, 8), None, number(7), number(11)]
    assert updated(values, {0, 3}) == {5}


def test_a_column_changes_with_what_another_one_is_made_of() -> None:
    values = [number(1), number(6), number(10, 8), None, number(7), number(11)]

    assert updated(values, {1}) == {6}
    assert values == [number(1), number(6), number(12, 8), None, number(7), None]
    assert updated(values, {1, 2, 5}) == set()


def test_what_is_made_of_an_unknown_column_is_unknown() -> None:
    values = [number(1), number(5), None, None, None, None]

    assert updated(values, {1}, unknown=(2,)) == {3, 6}
    assert values[2] is None


def test_a_value_that_the_column_cannot_hold_is_not_told() -> None:
    (twice, *_) = COLUMNS
    assert twice.value(LAYOUT, [None] * 6) is None
    with pytest.raises(NotSimpleError):
        COLUMNS[1].value(LAYOUT, [number(1)] * 6)
