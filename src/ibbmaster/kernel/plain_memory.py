"""Memory for kernels without NumPy, whose import takes longer than many a command."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.page_memory import page_memory


def numbers(count: int) -> Any:
    """Of 64 bits, all zero."""
    return memoryview(bytearray(8 * count)).cast("q")


NOTHING: Any = memoryview(bytearray())  # stands for an empty array of any shape


def number_rows(rows: Iterable[Sequence[int]], columns: int) -> Any:
    """Rows of numbers of 64 bits; numbers from 2**63 on become negative."""
    data = bytearray(b"".join((number % 2**64).to_bytes(8, sys.byteorder) for row in rows for number in row))
    return memoryview(data).cast("q", shape=[len(data) // (8 * columns), columns]) if data else NOTHING


class RowTable:
    """Rows of numbers of 64 bits, all zero at first; `memory` is what kernels take."""

    def __init__(self, rows: int, columns: int) -> None:
        self.memory: Any = memoryview(bytearray(8 * rows * columns)).cast("q", shape=[rows, columns])

    def rows(self, count: int) -> list[tuple[int, ...]]:
        return rows_in(self.memory, count)


def rows_in(table: Any, count: int) -> list[tuple[int, ...]]:
    columns = table.shape[1]
    return list(zip(*[iter(table.cast("B").cast("q")[: count * columns])] * columns, strict=True))


def short_rows(rows: int, columns: int) -> Any:
    """Rows of numbers of 32 bits, all zero."""
    return page_memory(4 * rows * columns).cast("i", shape=[rows, columns])


def scratch(size: int) -> Any:
    return memoryview(bytearray(size))


def kept(data: Buffer) -> Any:
    return memoryview(bytearray(data))
