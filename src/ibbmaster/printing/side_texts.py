"""Values of rows that the reference writes, side by side for the kernel that writes lines."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ibbmaster.arrow.event_batch import EventBatch


class SideMaker(Protocol):
    """Who knows the lines of each kind of row event, and their values.

    Attributes:
        side_numbers: of columns that the reference writes, by their numbers in their tables.
    """

    side_numbers: dict[int, int]

    def sides_of(self, variant: int) -> list[int]:
        """The columns that the reference writes for a kind of row event."""

    def program(self, variant: int, forced: frozenset[int]) -> tuple[int, int]:
        """The steps of its lines, with columns that are left to the reference, too."""

    def texts(self, batch: EventBatch, variant: int, number: int, rows: Any) -> Any:
        """The values of a column in some rows of it, in UTF-8."""


class SideTexts:
    """Those of some rows, `start` the first; `variants` has their kinds of row events.

    Attributes:
        programs: of the lines of each kind of row event.
        offsets: a row for each column of texts: where each begins.
        data: their bytes.
    """

    def __init__(self, maker: SideMaker, batch: EventBatch, programs: Any, variants: Any, start: int) -> None:
        self._maker = maker
        self._batch = batch
        self._variants = variants
        self._start = start
        self.programs = programs
        self._forced: dict[int, frozenset[int]] = {}
        self._columns: dict[int, Any] = {}  # of texts, by the number of the column
        self.offsets: Any = np.zeros((1, 1), dtype=np.int64)
        self.data: Any = np.zeros(1, dtype=np.uint8)
        present = np.unique(variants).tolist()
        wanted = [(variant, number) for variant in present for number in maker.sides_of(variant)]
        for variant, number in wanted:
            self._write(variant, number)
        if wanted:
            self._arrange()

    def add(self, row: int, number: int) -> None:
        """Let the reference write a column of the kind of row event of some row."""
        variant = int(self._variants[row - self._start])
        if not self._forced:
            self.programs = self.programs.copy()
        self._forced[variant] = self._forced.get(variant, frozenset()) | {number}
        self.programs[variant] = self._maker.program(variant, self._forced[variant])
        self._write(variant, number)
        self._arrange()

    def _write(self, variant: int, number: int) -> None:
        rows = np.flatnonzero(self._variants == variant)
        texts = self._columns.setdefault(number, np.full(len(self._variants), b"", dtype=object))
        texts[rows] = self._maker.texts(self._batch, variant, number, self._start + rows)

    def _arrange(self) -> None:
        """Put all texts side by side."""
        self.offsets = np.zeros((len(self._maker.side_numbers), len(self._variants) + 1), dtype=np.int64)
        pieces, position = [], 0
        for number, texts in self._columns.items():
            sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
            offsets = self.offsets[self._maker.side_numbers[number]]
            offsets[0] = position
            offsets[1:] = position + np.cumsum(sizes)
            position = int(offsets[-1])
            pieces.append(b"".join(texts))
        self.data = np.frombuffer(bytearray(b"".join(pieces)) + bytes(1), dtype=np.uint8)
