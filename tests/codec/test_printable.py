"""Text from outside cannot change a terminal."""

import pytest

from ibbmaster.codec.printable import printable, time_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("größe 表", "größe 表"), ("", ""), ("\x1b[31mred\x07", "\\u001b[31mred\\u0007")),
        *(("a\nb\tc\r", "a\\u000ab\\u0009c\\u000d"), ("\udcff\u202e\u200b\x9b", "\\udcff\\u202e\\u200b\\u009b")),
    ],
)
def test_only_what_can_be_seen_is_left_as_it_is(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_times_are_of_utc_up_to_the_last_one_that_an_event_can_have():
    assert (time_text(0), time_text(2**32 - 1)) == ("1970-01-01T00:00:00Z", "2106-02-07T06:28:15Z")
