"""The bytes of values in rows. Layout: protocol/event/rows.md."""

from collections.abc import Callable
from typing import TypeAlias

Value: TypeAlias = object  # None, or what `ValueKind` says
Convert: TypeAlias = Callable[[bytes], Value]
Reader: TypeAlias = Callable[[bytes, int], tuple[Value, int]]
"""From the data and an offset to the value and the offset after it. Raises ValueError."""
Encode: TypeAlias = Callable[[object], bytes]
"""From a value that is not NULL to its bytes. Raises ValueError."""


class BadValueError(ValueError):
    def __init__(self, problem: str, data: bytes, end: int) -> None:
        super().__init__(problem)
        self.data = data
        self.end = end  # the offset after them


def fixed(size: int, convert: Convert) -> Reader:
    def read(data: bytes, offset: int) -> tuple[Value, int]:
        end = offset + size
        if end > len(data):
            raise ValueError(f"a value of {size} bytes runs over the end of the rows")
        return _converted(convert, data[offset:end], end), end

    return read


def prefixed(length_size: int, convert: Convert) -> Reader:
    def read(data: bytes, offset: int) -> tuple[Value, int]:
        start = offset + length_size
        end = start + int.from_bytes(data[offset:start], "little")
        if end > len(data) or start > len(data):
            raise ValueError(f"a string of {end - start} bytes runs over the end of the rows")
        return _converted(convert, data[start:end], end), end

    return read


def _converted(convert: Convert, data: bytes, end: int) -> Value:
    try:
        return convert(data)
    except (ValueError, OverflowError) as error:
        raise BadValueError(str(error), data, end) from None
