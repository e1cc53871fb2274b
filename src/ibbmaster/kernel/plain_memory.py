"""Memory for kernels without NumPy, which takes longer to import than what many a command does."""

from __future__ import annotations

from typing import Any


def numbers(count: int) -> Any:
    """`count` numbers of 64 bits, all zero."""
    return memoryview(bytearray(8 * count)).cast("q")


class RowTable:
    """Rows of numbers of 64 bits, all zero at first; `memory` is what kernels take."""

    def __init__(self, rows: int, columns: int) -> None:
        bytes_of_all = memoryview(bytearray(8 * rows * columns))
        self.memory: Any = bytes_of_all.cast("q", shape=[rows, columns])
        self._numbers = bytes_of_all.cast("q")
        self._columns = columns

    def rows(self, count: int) -> list[tuple[int, ...]]:
        """The first ones."""
        columns = self._columns
        return list(zip(*[iter(self._numbers[: count * columns])] * columns, strict=True))


def short_rows(rows: int, columns: int) -> Any:
    """Rows of numbers of 32 bits, all zero."""
    return memoryview(bytearray(4 * rows * columns)).cast("i", shape=[rows, columns])


def scratch(size: int) -> Any:
    """`size` bytes, all zero."""
    return memoryview(bytearray(size))


def kept(data: bytes) -> Any:
    """A copy of these bytes."""
    return memoryview(bytearray(data))
