import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.sizes import parse_size, time_text

SIZES = {
    **dict.fromkeys(("65536", "64K", "64k", "64KB"), 1 << 16),
    "2M": 2 << 20,
    " 1G ": 1 << 30,
    "3t": 3 << 40,
    "0": 0,
}


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_sizes_may_have_a_unit(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5M", "1P", "K", "1 K", "9" * 21, "9" * 5000, "٣"])
def test_other_sizes_are_refused(text):
    with pytest.raises(ConfigurationError, match="is not a size: expected a number of bytes, as 64M"):
        parse_size(text)


def test_times_are_of_utc_up_to_the_last_one_that_an_event_can_have():
    assert (time_text(0), time_text(2**32 - 1)) == ("1970-01-01T00:00:00Z", "2106-02-07T06:28:15Z")
