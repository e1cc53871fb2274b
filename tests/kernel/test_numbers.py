"""Days, decimals and fractions of a second are to kernels what they are to Python."""

import calendar
import datetime
import random
from ctypes import byref, c_int64, create_string_buffer

import pytest

from ibbmaster.replication.event.column_types.decimals import decimal_reader, decimal_size

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
