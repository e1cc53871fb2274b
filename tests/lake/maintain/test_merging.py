"""Rows that are there are found by their keys, and become what changes say of them."""

import datetime
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ibbmaster.lake.maintain.merging import NONE, as_changed, as_ended, numbers_of
from ibbmaster.lake.row_versions import DELETED, PATCHED, WHOLE, LastChanges

DAY = datetime.date(2026, 1, 1)
KINDS_OF_KEYS = {
    "numbers": lambda number: number,
    "texts": lambda number: f"{number}",
    "bytes": lambda number: bytes([number % 256, number // 256]),
    "decimals": lambda number: Decimal(100_000 + number) / 100,
    "days": lambda number: DAY + datetime.timedelta(number),
    "moments": lambda number: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=number),
}


@pytest.mark.parametrize("kind", KINDS_OF_KEYS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_row_is_found_by_all_columns_of_its_key(kind, count) -> None:
    key = lambda: tuple(KINDS_OF_KEYS[kind](random.randrange(1 + 300 // count**3)) for _ in range(count))  # noqa: E731
    names = [f"k{number}" for number in range(count)]
    wanted = sorted({key() for _ in range(100)}, key=repr)
    rows = [key() for _ in range(400)]
    table = lambda keys: pa.table(dict(zip(names, map(list, zip(*keys, strict=True)), strict=True)))  # noqa: E731
    chunked = pa.concat_tables([table(rows[:150]), table(rows[150:])])
    expected = [wanted.index(one) if one in wanted else NONE for one in rows]
    assert numbers_of(chunked, table(wanted), names).tolist() == expected
    assert NONE in expected
    assert max(expected) >= 0


def test_a_row_without_a_value_and_a_search_for_nothing_find_nothing() -> None:
    rows = pa.table({"id": pa.array([None, 1], pa.int32())})
    assert numbers_of(rows, pa.table({"id": pa.array([1], pa.int32())}), ["id"]).tolist() == [NONE, 0]
    assert numbers_of(rows, pa.table({"id": pa.array([], pa.int32())}), ["id"]).tolist() == [NONE, NONE]


def test_rows_are_gone_or_have_the_values_that_are_known() -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "a": ["a", "b", "c", "d"], "v": [[1.0], [2.0], None, [4.0]]})
    changes = LastChanges(
        outcomes=np.array([DELETED, PATCHED, WHOLE]),
        were_there=np.array([True, True, True]),
        rows=pa.table({"id": [3, 1, 4], "a": [None, "A", None], "v": [None, [9.0], [8.0]]}, rows.schema),
        known={"v": np.array([False, False, True])},
    )
    numbers = numbers_of(rows, changes.rows, ["id"])
    expected = [{"id": 1, "a": "A", "v": [1.0]}, {"id": 2, "a": "b", "v": [2.0]}, {"id": 4, "a": None, "v": [8.0]}]
    assert as_changed(rows, numbers, changes).to_pylist() == expected


def test_versions_end_where_they_are_named() -> None:
    rows = pa.table({"id": [1, 2], "_valid_to": [None, 5], "_gtid_to": [None, "0-1-5"], "_is_current": [True, False]})
    ended = pa.table({"id": [1], "_valid_to": [7], "_gtid_to": ["0-1-7"]})
    assert as_ended(rows, np.array([0, NONE]), ended).to_pylist() == [
        {"id": 1, "_valid_to": 7, "_gtid_to": "0-1-7", "_is_current": False},
        {"id": 2, "_valid_to": 5, "_gtid_to": "0-1-5", "_is_current": False},
    ]
