"""Dates and times of many rows as text, all at once. The reference, for one: `ibbmaster.event.rows.kinds.temporal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.kinds.temporal import FRACTION_SIZES

if TYPE_CHECKING:
    import pyarrow as pa

DATE_SIZE = len("YYYY-MM-DD")
MOMENT_SIZE = len("YYYY-MM-DD hh:mm:ss")
YEAR_MAX = 9999
ZERO = ord("0")
Parts = tuple[Any, Any, Any, Any, Any, Any, Any]  # year, month, day, hour, minute, second, fraction


def moment_texts(column: Column, data: Any, starts: Any, valid: Any) -> pa.Array | None:
    """DATE, DATETIME and TIMESTAMP (since 10.1) as text; None if one of them is not as it should be.

    `starts` says where each value begins in `data`, `valid` has 0 for those that are NULL.
    """
    import pyarrow as pa

    is_there = valid != 0
    places = starts[is_there]
    has_clock = column.kind is not ValueKind.DATE
    digits = column.scale if has_clock else 0
    if not has_clock:
        packed = _number(data, places, 3, highest_first=False)
        zeros = np.zeros_like(packed)
        if (packed >> 9 > YEAR_MAX).any():
            return None
        parts = (packed >> 9, packed >> 5 & 15, packed & 31, zeros, zeros, zeros, zeros)
    else:
        read = _datetime if column.kind is ValueKind.DATETIME else _timestamp
        found = read(data, places, digits)
        if found is None:
            return None
        parts = found
    size = MOMENT_SIZE + (1 + digits if digits else 0) if has_clock else DATE_SIZE
    text = _text(parts, size, digits)
    offsets = np.zeros(len(valid) + 1, dtype=np.int32)
    np.cumsum(is_there * size, out=offsets[1:])
    mask = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(valid), [mask, pa.py_buffer(offsets), pa.py_buffer(text)])


def _number(data: Any, places: Any, size: int, *, highest_first: bool = True) -> Any:
    """A number of some bytes at each place."""
    order = range(size) if highest_first else reversed(range(size))
    number = np.zeros(len(places), dtype=np.int64)
    for index in order:
        number = number << 8 | data[places + index]
    return number


def _fraction(data: Any, places: Any, digits: int) -> Any | None:
    """The fraction of a second as a number of `digits` digits."""
    size = FRACTION_SIZES[digits]
    fraction = _number(data, places, size)
    if (fraction >= 10 ** (2 * size)).any():
        return None
    return fraction // 10 if digits % 2 else fraction


def _datetime(data: Any, places: Any, digits: int) -> Parts | None:
    packed = _number(data, places, 5) - (1 << 39)
    fraction = _fraction(data, places + 5, digits)
    year, month = np.divmod(packed >> 22, 13)
    if fraction is None or (packed < 0).any() or (year > YEAR_MAX).any():
        return None
    return year, month, packed >> 17 & 31, packed >> 12 & 31, packed >> 6 & 63, packed & 63, fraction


def _timestamp(data: Any, places: Any, digits: int) -> Parts | None:
    seconds = _number(data, places, 4)
    is_moment = _number(data, places, 4 + FRACTION_SIZES[digits]) != 0  # a digit that is not shown counts, too
    fraction = _fraction(data, places + 4, digits)
    if fraction is None:
        return None
    moments = seconds.astype("datetime64[s]")
    months = moments.astype("datetime64[M]")
    year, month = np.divmod(months.astype(np.int64) + 1970 * 12, 12)
    day = (moments.astype("datetime64[D]") - months).astype(np.int64) + 1
    clock = seconds % 86400
    parts = (year, month + 1, day, clock // 3600, clock // 60 % 60, clock % 60)
    return (*(part * is_moment for part in parts), fraction)


def _text(parts: Parts, size: int, digits: int) -> Any:
    """YYYY-MM-DD hh:mm:ss.ffffff of each, cut to `size`, one after the other."""
    count = len(parts[0])
    text = np.empty((count, size), dtype=np.uint8)
    layout = ((parts[0], 4, "-"), (parts[1], 2, "-"), (parts[2], 2, " "), (parts[3], 2, ":"), (parts[4], 2, ":"))
    column = 0
    for number, width, behind in (*layout, (parts[5], 2, "."), (parts[6], digits, "")):
        if column >= size:
            break
        rest = number
        for place in range(column + width - 1, column - 1, -1):
            rest, digit = np.divmod(rest, 10)
            text[:, place] = digit + ZERO
        column += width
        if column < size:
            text[:, column] = ord(behind)
            column += 1
    return text
