"""Columns of changes: those of the table, and ours. What is found in them, tests/cli/test_lake.py says."""

from __future__ import annotations

from ibbmaster.arrow.shape import RESERVED
from ibbmaster.lake.finding import COLUMNS, own_columns


def test_the_columns_of_a_table_are_told_from_ours():
    assert own_columns([*COLUMNS, "a", "__gtid", "_other"]) == ["a", "__gtid", "_other"]
    assert {*COLUMNS} <= RESERVED
