"""What kernels write as text is what the reference shows."""

import calendar
import ctypes
import datetime
import random
from ctypes import byref, c_int64, create_string_buffer

import numpy as np
import pytest

from ibbmaster.kernel import loading
from ibbmaster.logs.store.writer import seal_pages
from ibbmaster.replication.event.column_types.decimals import decimal_reader, decimal_size
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
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


def test_a_record_ends_where_it_was_said_to_end(pieces):
    rng = random.Random(2)
    record, pages = rng.randbytes(60_000), ctypes.create_string_buffer(8 * PAGE_SIZE)
    for _ in range(3000):
        position = rng.choice([rng.randrange(DATA_SIZE), DATA_SIZE - rng.randrange(1, 12)])
        size = rng.choice([rng.randrange(1, 60_000), DATA_SIZE - position - 3 - rng.randrange(-6, 6), CHUNK_SIZE_MIN])
        size = max(1, size)
        end = pieces.place(record, ctypes.c_int64(size), pages, ctypes.c_int64(position))
        assert end == pieces.end_of(ctypes.c_int64(position), ctypes.c_int64(size)), (position, size)
        assert end % PAGE_SIZE < DATA_SIZE


def test_pages_are_sealed_as_the_reference_seals_them():
    data = bytearray(random.Random(3).randbytes(3 * PAGE_SIZE))
    data[PAGE_SIZE : 2 * PAGE_SIZE] = bytes(PAGE_SIZE)
    by_kernel = bytearray(data)
    for count in (0, 2, 3):
        seal_pages(memoryview(data), count)
        loading.load().seal_pages(memoryview(by_kernel), count)
        assert by_kernel == data
    assert any(data[PAGE_SIZE + DATA_SIZE : 2 * PAGE_SIZE])


CYCLE_YEARS = 400  # after so many the calendar repeats
DIGITS_MAX = 38  # of the decimals that kernels read


def test_every_day_of_the_calendar_and_no_other(pieces):
    epoch, days = datetime.date(1970, 1, 1).toordinal(), c_int64()
    for year in [*range(1, 30), *range(1790, 1790 + CYCLE_YEARS), 9999]:
        for month in range(16):
            last = calendar.monthrange(year, month)[1] if 1 <= month <= 12 else 0
            for day in range(32):
                is_day = pieces.day_of(c_int64(year), c_int64(month), c_int64(day), byref(days))
                assert bool(is_day) == (1 <= day <= last), (year, month, day)
                if is_day:
                    assert days.value == datetime.date(year, month, day).toordinal() - epoch, (year, month, day)
    for year in (0, 10_000):
        assert not pieces.day_of(c_int64(year), c_int64(1), c_int64(1), byref(days))


def test_decimals_of_every_shape(pieces):
    rng, found = random.Random(random.randrange(2**32)), create_string_buffer(32)
    for digits in range(1, DIGITS_MAX + 1):
        for scale in range(digits + 1):
            width = decimal_size(digits, scale)
            read = decimal_reader(digits, scale)
            for data in (
                *(rng.randbytes(width) for _ in range(20)),
                b"\x80" + bytes(width - 1),
                b"\x7f" + b"\xff" * (width - 1),
            ):
                for behind in (b"", bytes(8)):  # whether eight bytes can be loaded at once
                    size, shape = c_int64(len(data + behind)), (c_int64(digits), c_int64(scale))
                    is_good = pieces.decimal_of(data + behind, size, *shape, found)
                    try:
                        sign, figures, _ = read(data).as_tuple()
                    except ValueError:
                        assert not is_good, (digits, scale, data)
                        continue
                    expected = int("".join(map(str, figures))) * (-1) ** sign
                    assert is_good, (digits, scale, data)
                    assert int.from_bytes(found.raw[:16], "little") == expected % 2**128, (digits, scale, data)


@pytest.mark.parametrize("digits", range(7))
def test_fractions_of_a_second(pieces, digits):
    size = (digits + 1) // 2
    for value in (0, 1, 9, 10, 99, 100, 9_999, 10_000, 123_456, 999_999, 1_000_000):
        if value >= 256**size and value:
            continue
        data = value.to_bytes(size, "big") + bytes(8)
        stored = 2 * size
        shown = f"{value:0{stored}}"[:digits].ljust(6, "0") if digits else "0"
        assert pieces.fraction(data, c_int64(len(data)), c_int64(digits)) == (-1 if value >= 10**stored else int(shown))
