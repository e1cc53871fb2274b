import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.rows.large import ALL_ROWS, SIZE_MAX, LargeRows


def test_without_a_limit_a_row_event_may_be_as_large_as_an_event_can_say():
    ALL_ROWS.check(SIZE_MAX)
    with pytest.raises(EventError, match=r"of 4294967296 bytes, put together or unpacked, .* as an event can have"):
        ALL_ROWS.check(SIZE_MAX + 1)


def test_a_limit_says_how_it_is_raised():
    large = LargeRows(size_max=1000)
    large.check(1000)
    with pytest.raises(EventError, match=r"1001 bytes.*at most 1000.*max_row_event_bytes.*maxRowEventBytes.*--max-row"):
        large.check(1001)


@pytest.mark.parametrize("size_max", [-1, 0, 19, SIZE_MAX + 1])
def test_a_limit_that_no_row_event_keeps_or_all_do_is_refused(size_max):
    with pytest.raises(ConfigurationError, match=f"max_row_event_bytes {size_max}: expected more than 19 and at most"):
        LargeRows(size_max=size_max)
