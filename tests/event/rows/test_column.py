"""Columns and tables by their names for people."""

from __future__ import annotations

import pytest

from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind


@pytest.mark.parametrize(
    ("code", "metadata", "name"),
    [
        (ColumnType.LONG, 0, "LONG"),
        (ColumnType.VARCHAR, 40, "VARCHAR(40)"),
        (200, 0, "type 200"),
        (200, 7, "type 200(7)"),
    ],
)
def test_a_type_has_a_name_also_one_that_is_not_known(code, metadata, name):
    assert Column(name="a", type=code, metadata=metadata, kind=ValueKind.BINARY).type_name == name


def test_a_table_is_named_with_its_database():
    assert TableSchema(table_id=1, database="shop", table="t", columns=()).name == "shop.t"
