"""Which values a sequence gives out, and when the server reserves more of them."""

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.sequence import SequenceRow

ROW = SequenceRow(5, 1, 20, 5, 4, 3, 0, 0)


def test_as_many_values_are_reserved_as_are_cached():
    value, row = ROW.reserved("s")
    assert (value, row) == (5, ROW._replace(next_not_cached_value=17))
    assert [row.has_cached(number) for number in (9, 13, 17)] == [True, True, False]


def test_no_more_are_reserved_than_there_are():
    assert ROW._replace(next_not_cached_value=13).reserved("s")[1].next_not_cached_value == 21
    falling = SequenceRow(-3, -4, -1, -1, -1, 10, 0, 0)
    assert falling.reserved("s") == (-3, falling._replace(next_not_cached_value=-5))


def test_a_sequence_begins_again_or_runs_out():
    with pytest.raises(ConfigurationError, match="s: the sequence has run out at 20"):
        ROW._replace(next_not_cached_value=21).reserved("s")
    cycling = ROW._replace(next_not_cached_value=21, cycle_option=1)
    assert cycling.reserved("s") == (1, cycling._replace(next_not_cached_value=13, cycle_count=1))
