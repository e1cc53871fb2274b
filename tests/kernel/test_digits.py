"""What kernels write as text is what the reference shows."""

import random

import numpy as np
import pytest

from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.tables.arrow.arrays import shown_array
from ibbmaster.tables.arrow.column_reading import text_op

SIZES = {ValueKind.UUID: 16, ValueKind.INET4: 4, ValueKind.INET6: 16}


@pytest.fixture
def rng():
    return random.Random(random.randrange(2**32))


def fixed_string(kind):
    return Column(name="a", type=ColumnType.STRING, metadata=0, kind=kind, size=SIZES[kind])


def time_column(digits):
    return Column(name="a", type=ColumnType.TIME2, metadata=digits, kind=ValueKind.TIME, scale=digits)


def shown(kernels, column, values):
    """The texts of values between other bytes; None stands for NULL."""
    data = b"\xff" + b"\xff".join(value or b"" for value in values) + b"\xff"
    sizes = np.array([len(value or b"") for value in values], dtype=np.int64)
    starts = np.cumsum([1, *(sizes[:-1] + 1)])
    valid = np.array([value is not None for value in values], dtype=np.uint8)
    array = shown_array(np.frombuffer(data, dtype=np.uint8), starts, sizes, valid, kernels, *text_op(column))
    if array is not None:
        array.validate(full=True)
    return array


def expect_same(kernels, column, values):
    convert = kind_of(column).convert(column)
    assert shown(kernels, column, values).to_pylist() == [None if value is None else convert(value) for value in values]


@pytest.mark.parametrize("kind", SIZES)
def test_strings_of_bytes_are_shown_alike_however_many_zeros_they_have(kernels, rng, kind):
    size = SIZES[kind]
    values = [bytes(count) + b"\1" * (size - count) for count in range(size + 1)]
    values += [b"\1" * count for count in range(size)]  # zeros at the end are not there
    values += [(bytes(10) + b"\xff\xff" + rng.randbytes(4))[-size:], (bytes(12) + rng.randbytes(4))[-size:]]
    for _ in range(5000):
        value = bytes(rng.choice((0, 0, rng.randrange(256))) for _ in range(size))
        values.append(rng.choice([None, value.rstrip(b"\0"), value, rng.randbytes(size)]))
    expect_same(kernels, fixed_string(kind), values)


@pytest.mark.parametrize("place", range(8))
def test_every_word_of_an_inet6_is_shown_alike(kernels, place):
    words = [word.to_bytes(2, "big") for word in range(1 << 16)]
    others = [b"\0\0"] * place, [b"\0\1"] * (7 - place)
    values = [b"".join([*others[0], word, *others[1]]) for word in words[:: 1 + 16 * (place % 2)]]
    expect_same(kernels, fixed_string(ValueKind.INET6), values)


@pytest.mark.parametrize("digits", range(7))
def test_every_kind_of_time_is_shown_alike(kernels, rng, digits):
    size = FRACTION_SIZES[digits]
    values = []
    for _ in range(3000):
        whole, fraction = rng.choice((0, rng.randrange(1 << 23))), rng.randrange(10 ** (2 * size))
        packed = (whole << 8 * size | fraction) * rng.choice((1, -1))
        values.append(rng.choice([None, (packed + (0x800000 << 8 * size)).to_bytes(3 + size, "big")]))
    expect_same(kernels, time_column(digits), values)


@pytest.mark.parametrize("kind", SIZES)
def test_a_string_that_is_too_long_is_for_the_reference(kernels, kind):
    values = [None, b"\1" * SIZES[kind], b"\1" * (SIZES[kind] + 1)]
    assert shown(kernels, fixed_string(kind), values) is None
    with pytest.raises(ValueError, match="bytes"):
        kind_of(fixed_string(kind)).convert(fixed_string(kind))(values[2])


@pytest.mark.parametrize("digits", range(1, 7))
def test_a_time_with_too_many_digits_is_for_the_reference(kernels, digits):
    size = FRACTION_SIZES[digits]
    values = [b"\x80\0\0" + (10 ** (2 * size) - less).to_bytes(size, "big") for less in (1, 0)]
    expect_same(kernels, time_column(digits), values[:1])
    assert shown(kernels, time_column(digits), values) is None
