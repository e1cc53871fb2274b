import random

import numpy as np
import pytest

from ibbmaster.kernel.loading import load
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.tables.arrow.arrays import shown_array
from ibbmaster.tables.arrow.column_reading import text_op, text_reading_of

SIZES = {ColumnType.DATE: 3, ColumnType.DATETIME2: 5, ColumnType.TIMESTAMP2: 4}
CASES = [
    (ColumnType.DATE, 0),
    *((kind, digits) for kind in (ColumnType.DATETIME2, ColumnType.TIMESTAMP2) for digits in range(7)),
]


VALUES = {
    ColumnType.DATE: ValueKind.DATE,
    ColumnType.DATETIME2: ValueKind.DATETIME,
    ColumnType.TIMESTAMP2: ValueKind.TIMESTAMP,
}


def column(kind, digits):
    return Column(name="a", type=kind, metadata=digits, kind=VALUES[kind], scale=digits)


def shown(of, data, starts, valid):
    assert text_reading_of(of).what == "shown"
    sizes = np.full(len(starts), SIZES[of.type] + FRACTION_SIZES[of.scale])
    return shown_array(data, starts, sizes, valid, load(), *text_op(of))


def random_value(kind, digits) -> bytes:
    fraction = random.randrange(10 ** (2 * FRACTION_SIZES[digits])).to_bytes(FRACTION_SIZES[digits], "big")
    if random.random() < 0.1:
        zero = {ColumnType.DATE: "000000", ColumnType.DATETIME2: "8000000000", ColumnType.TIMESTAMP2: "00000000"}[kind]
        return bytes.fromhex(zero) + random.choice([fraction, bytes(len(fraction))])
    if kind == ColumnType.DATE:
        return random.randrange(10_000 << 9).to_bytes(3, "little")
    if kind == ColumnType.DATETIME2:
        month = random.randrange(10_000 * 13)
        return ((1 << 39) + (month << 22) + random.randrange(1 << 22)).to_bytes(5, "big") + fraction
    return random.randrange(1 << 32).to_bytes(4, "big") + fraction


@pytest.mark.parametrize(("kind", "digits"), CASES, ids=[f"{kind.name}({digits})" for kind, digits in CASES])
def test_random_values_read_as_the_reference_reads_them(kind, digits):
    values = [None if random.random() < 0.2 else random_value(kind, digits) for _ in range(300)]
    data = b"".join(value or b"" for value in values)
    starts = np.cumsum([0, *(len(value or b"") for value in values)])[:-1]
    valid = np.array([value is not None for value in values], dtype=np.uint8)

    found = shown(column(kind, digits), np.frombuffer(data, dtype=np.uint8), starts, valid)

    found.validate(full=True)
    read = kind_of(column(kind, digits)).convert(column(kind, digits))
    assert found.to_pylist() == [None if value is None else read(value) for value in values]


@pytest.mark.parametrize(
    ("kind", "digits", "value"),
    [
        (ColumnType.DATE, 0, "ffffff"),  # a year beyond 9999
        (ColumnType.DATETIME2, 0, "0000000001"),  # negative
        (ColumnType.DATETIME2, 2, "99b9d43c10 64"),  # a fraction of three digits
        (ColumnType.TIMESTAMP2, 2, "00000001 64"),
    ],
)
def test_what_is_not_as_it_should_be_is_left_to_the_reference(kind, digits, value):
    data = np.frombuffer(bytes.fromhex(value), dtype=np.uint8)
    assert shown(column(kind, digits), data, np.array([0]), np.array([1], dtype=np.uint8)) is None
    assert len(data) == SIZES[kind] + FRACTION_SIZES[digits]
