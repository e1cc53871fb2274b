"""The partition of a row, by how its table is partitioned; tests/interop/test_refusals.py asks servers."""

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.expr.stored_values import stored_value
from ibbmaster.fold.contents import InexactRowsError
from ibbmaster.fold.partitions import names_of_partitions, partition_finder
from ibbmaster.fold.stored import StoredLayout, own_columns
from ibbmaster.schema.folding import SchemaFold
from ibbmaster.schema.model import TableVersion

LESS = "(PARTITION a VALUES LESS THAN (10), PARTITION `B` VALUES LESS THAN (MAXVALUE))"
DAYS = (
    "(PARTITION a VALUES LESS THAN ('2024-02-01'), PARTITION b VALUES LESS THAN ('2024-03-01'), "
    "PARTITION z VALUES LESS THAN (MAXVALUE))"
)


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


@pytest.mark.parametrize(
    ("partitioning", "values", "expected"),
    [
        (f"RANGE (n) {LESS}", (9,), "a"),
        (f"RANGE (n) {LESS}", (10,), "b"),
        (f"RANGE (n) {LESS}", (None,), "a"),
        (f"RANGE (u) {LESS}", (0, 2**64 - 1), "b"),
        (f"RANGE COLUMNS (d) {DAYS}", (0, 0, "2024-02-29"), "b"),
        (f"RANGE COLUMNS (d) {DAYS}", (0, 0, "2024-03-01"), "z"),
        ("RANGE (TO_DAYS(d)) (PARTITION a VALUES LESS THAN (739252))", (0, 0, "2024-01-01"), "a"),
        ("LIST (n % 4) (PARTITION a VALUES IN (-1, NULL), PARTITION b VALUES IN (0, 1))", (-5,), "a"),
        ("LIST (n % 4) (PARTITION a VALUES IN (-1, NULL), PARTITION b VALUES IN (0, 1))", (None,), "a"),
        ("LIST (n) (PARTITION a VALUES IN (1), PARTITION b DEFAULT)", (7,), "b"),
        ("HASH (n) PARTITIONS 4", (-7,), "p3"),
        ("LINEAR HASH (n) PARTITIONS 5", (6,), "p2"),
    ],
)
def test_a_row_is_in_the_partition_of_its_values(partitioning: str, values: tuple[object, ...], expected: str) -> None:
    assert found(partitioning, *values) == expected


@pytest.mark.parametrize(
    ("partitioning", "values", "reason"),
    [
        ("KEY (n) PARTITIONS 3", (1,), "by KEY"),
        ("HASH (CHAR_LENGTH(s))", (1,), "such an expression"),
        (f"RANGE COLUMNS (s) {LESS}", (1,), "such an expression"),
        (f"RANGE COLUMNS (n) {DAYS}", (1,), "another kind"),
        (f"RANGE COLUMNS (n, d) {LESS}", (1,), "bound of 1 values"),
        ("LIST (n) (PARTITION a VALUES IN (1))", (7,), "in no partition"),
        ("HASH (YEAR(d))", (1, 1, "2024-00-00"), "no calendar"),
        ("HASH (u + u)", (1, 2**64 - 1), "64 bits"),
    ],
)
def test_what_is_not_followed_is_said(partitioning: str, values: tuple[object, ...], reason: str) -> None:
    with pytest.raises(InexactRowsError, match=reason):
        found(partitioning, *values)


def test_partitions_that_are_counted_have_names() -> None:
    assert names_of_partitions(table_of("HASH (n) PARTITIONS 3")) == ["p0", "p1", "p2"]
