import pytest

from ibbmaster.storage.codec.printable import printable


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
