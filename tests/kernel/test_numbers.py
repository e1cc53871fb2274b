"""Days, decimals and fractions of a second are to kernels what they are to Python."""

import calendar
import datetime
import random

import numpy as np
import pytest

from ibbmaster.event.column_types.decimals import decimal_reader
from ibbmaster.event.rows.number import decimal_size
from ibbmaster.kernel import loading

CYCLE_YEARS = 400  # after so many the calendar repeats
DIGITS_MAX = 38  # of the decimals that kernels read


@pytest.fixture(scope="module")
def numbers():
    """The kernels of the module as functions that Python can call."""
    assert loading.load() is not None
    from numba import njit

    from ibbmaster.kernel import numbers

    class Callable:
        @staticmethod
        @njit
        def days_of(year, month, day):
            return numbers.days_of(year, month, day)

        @staticmethod
        @njit
        def read_decimal(data, offset, digits, scale):
            return numbers.read_decimal(data, offset, digits, scale)

        @staticmethod
        @njit
        def fraction_of(data, offset, digits):
            return numbers.fraction_of(data, offset, digits)

    return Callable


def test_every_day_of_the_calendar_and_no_other(numbers):
    epoch = datetime.date(1970, 1, 1).toordinal()
    for year in [*range(1, 30), *range(1790, 1790 + CYCLE_YEARS), 9999]:
        for month in range(16):
            last = calendar.monthrange(year, month)[1] if 1 <= month <= 12 else 0
            for day in range(32):
                days, is_day = numbers.days_of(year, month, day)
                assert is_day == (1 <= day <= last), (year, month, day)
                if is_day:
                    assert days == datetime.date(year, month, day).toordinal() - epoch, (year, month, day)
    assert not numbers.days_of(0, 1, 1)[1]
    assert not numbers.days_of(10_000, 1, 1)[1]


def test_decimals_of_every_shape(numbers):
    rng = random.Random(random.randrange(2**32))
    for digits in range(1, DIGITS_MAX + 1):
        for scale in range(digits + 1):
            size = decimal_size(digits, scale)
            read = decimal_reader(digits, scale)
            for data in (
                *(rng.randbytes(size) for _ in range(20)),
                b"\x80" + bytes(size - 1),
                b"\x7f" + b"\xff" * (size - 1),
            ):
                for behind in (b"", bytes(8)):  # whether eight bytes can be loaded at once
                    array = np.frombuffer(data + behind, dtype=np.uint8)
                    low, high, is_good = numbers.read_decimal(array, 0, digits, scale)
                    try:
                        sign, figures, _ = read(data).as_tuple()
                    except ValueError:
                        assert not is_good, (digits, scale, data)
                        continue
                    expected = int("".join(map(str, figures))) * (-1) ** sign
                    assert is_good, (digits, scale, data)
                    assert int(low) | int(high) << 64 == expected % 2**128, (digits, scale, data)


@pytest.mark.parametrize("digits", range(7))
def test_fractions_of_a_second(numbers, digits):
    size = (digits + 1) // 2
    for value in (0, 1, 9, 10, 99, 100, 9_999, 10_000, 123_456, 999_999, 1_000_000):
        if value >= 256**size and value:
            continue
        array = np.frombuffer(value.to_bytes(size, "big") + bytes(8), dtype=np.uint8)
        stored = 2 * size
        shown = f"{value:0{stored}}"[:digits].ljust(6, "0") if digits else "0"
        assert numbers.fraction_of(array, 0, digits) == (-1 if value >= 10**stored else int(shown))
