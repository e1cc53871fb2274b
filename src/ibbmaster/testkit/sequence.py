"""Sequences as tests use them: the one row of their table, and the values that are taken out of it."""

from __future__ import annotations

from typing import NamedTuple

from ibbmaster.errors import ConfigurationError
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.view_text import sequence_options

NEXT_AND_COUNT = (0, 7)  # columns that the smallest image of the row has


class SequenceRow(NamedTuple):
    """The row of a sequence, its columns in order."""

    next_not_cached_value: int
    minimum_value: int
    maximum_value: int
    start_value: int
    increment: int
    cache_size: int
    cycle_option: int
    cycle_count: int

    @property
    def step(self) -> int:
        return self.increment or 1  # 0 stands for auto_increment_increment

    def has_cached(self, value: int) -> bool:
        """Whether a value is given out without another row being logged."""
        end = self.next_not_cached_value
        return value < end if self.step > 0 else value > end

    def reserved(self, name: str) -> tuple[int, SequenceRow]:
        """The next value, and the row after as many as the server takes at once.

        Raises ConfigurationError: there is none left.

        Source: MariaDB 12.3, sql_sequence.cc, SEQUENCE::next_value().
        """
        first, count = self.next_not_cached_value, self.cycle_count
        if not self.minimum_value <= first <= self.maximum_value:
            if not self.cycle_option:
                raise ConfigurationError(f"{name}: the sequence has run out at {self.maximum_value}")
            first, count = (self.minimum_value if self.step > 0 else self.maximum_value), count + 1
        end = first + self.step * (self.cache_size or 1)
        end = min(end, self.maximum_value + 1) if self.step > 0 else max(end, self.minimum_value - 1)
        return first, self._replace(next_not_cached_value=end, cycle_count=count)


def first_row(table: TableVersion) -> SequenceRow:
    """The row of a sequence that was just made."""
    made = sequence_options(table)
    return SequenceRow(
        next_not_cached_value=made.start,
        minimum_value=made.minimum,
        maximum_value=made.maximum,
        start_value=made.start,
        increment=made.increment,
        cache_size=made.cache,
        cycle_option=int(made.is_cycling),
        cycle_count=0,
    )
