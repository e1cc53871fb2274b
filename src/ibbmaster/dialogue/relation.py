"""Tables as values: what SHOW lists, what information_schema has; chosen from, and cut to size."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ibbmaster.dialogue.conversion import bytes_of
from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.response import ColumnDefinition, ResultSet

RowValues = Sequence[Value]


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns and rows; `rows` is read once. While `is_open`, memory is taken by what computes them."""

    columns: tuple[ColumnDefinition, ...]
    rows: Iterable[RowValues] = ()
    is_open: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in lower case, as conditions find them."""
        return tuple(column.name.lower() for column in self.columns)

    def limited(self, limit: tuple[int, int | None] | None) -> Relation:
        """Some of the rows: how many to leave out, and how many to give."""
        if limit is None:
            return self
        first, count = limit
        last = None if count is None else min(first + count, sys.maxsize)
        return replace(self, rows=itertools.islice(self.rows, min(first, sys.maxsize), last))

    def result(self, status: int, *, is_binary: bool = False, codec: str = "utf-8") -> ResultSet:
        """The answer that has these rows, texts in the character set of that codec."""
        return ResultSet(columns=self.columns, rows=_encoded(self.rows, codec), status=status, is_binary=is_binary)


def _encoded(rows: Iterable[RowValues], codec: str) -> Iterator[tuple[bytes | None, ...]]:
    if codec == "utf-8":
        return (tuple(map(bytes_of, row)) for row in rows)
    return (tuple(bytes_of(value, codec) for value in row) for row in rows)
