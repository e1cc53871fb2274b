"""The partition of a row, by how its table is partitioned; tests/interop/test_refusals.py asks servers."""

import pytest

from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.folding import SchemaFold
from ibbmaster.schema.model import TableVersion
from ibbmaster.tables.fold.partitions import names_of_partitions, partition_finder
from ibbmaster.tables.fold.stored import InexactRowsError, StoredLayout, own_columns
from tests.case_table import data_beside

DATA = data_beside(__file__)

LESS = "(PARTITION a VALUES LESS THAN (10), PARTITION `B` VALUES LESS THAN (MAXVALUE))"


def table_of(partitioning: str) -> TableVersion:
    fold = SchemaFold(lambda *_: None)
    text = f"CREATE TABLE d.t (n INT, u BIGINT UNSIGNED, d DATE, s VARCHAR(9)) PARTITION BY {partitioning}"
    assert fold.apply(LoggedStatement(text, "d", 1, 0, True)) is None
    (table,) = fold.tables.values()
    assert isinstance(table, TableVersion)
    return table


def found(partitioning: str, *values: object) -> str:
    table = table_of(partitioning)
    layout = StoredLayout(tuple(own_columns(table)), 0)
    given = [*values, *[None] * (4 - len(values))]
    stored = [stored_value(one.column, one.type, value) for one, value in zip(layout.columns, given, strict=True)]
    return partition_finder(table, layout)(stored)


@pytest.mark.parametrize(("partitioning", "values", "expected"), DATA["places"])
def test_a_row_is_in_the_partition_of_its_values(partitioning: str, values: tuple[object, ...], expected: str) -> None:
    assert found(partitioning, *values) == expected


@pytest.mark.parametrize(("partitioning", "values", "reason"), DATA["not_followed"])
def test_what_is_not_followed_is_said(partitioning: str, values: tuple[object, ...], reason: str) -> None:
    with pytest.raises(InexactRowsError, match=reason):
        found(partitioning, *values)


def test_partitions_that_are_counted_have_names() -> None:
    assert names_of_partitions(table_of("HASH (n) PARTITIONS 3")) == ["p0", "p1", "p2"]
