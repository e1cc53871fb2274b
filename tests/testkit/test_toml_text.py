"""What is written as TOML is read as the same."""

import random
import tomllib

import pytest

from ibbmaster.testkit.toml_text import toml_key, toml_lines, toml_value


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 1 << 62, 0.5, -1e300, 1e16, True, False, "", "plain"),
        *('"quoted"', "back\\slash", "two\nlines", "\x00\x1f\x7f\x80", "Zoë 🙂", "'", "'''", "#", "a = 1"),
        *([], [1, "a", [True]], {}, {"a b": {"c": [1, 2]}, "": 1, "d-e_9": "x"}),
    ],
)
def test_a_value_is_read_as_it_was(value):
    found = tomllib.loads(f"key = {toml_value(value)}")["key"]
    assert (found, type(found)) == (value, type(value))


def test_any_text_is_read_as_it_was():
    for _ in range(300):
        codes = random.choices([*range(0x200), *range(0x200, 0xD800, 97), *range(0xE000, 0x110000, 1009)], k=5)
        text = "".join(map(chr, codes))
        assert tomllib.loads(f"{toml_key(text)} = {toml_value(text)}") == {text: text}


def test_half_a_character_becomes_the_sign_for_what_cannot_be_shown():
    assert toml_value("a\ud800") == '"a\N{REPLACEMENT CHARACTER}"'


def test_a_table_has_a_line_for_each_key():
    assert toml_lines({"a": 1, "b.c": ["x"]}) == ["a = 1", '"b.c" = ["x"]']


@pytest.mark.parametrize("value", [None, b"bytes", object()])
def test_what_toml_does_not_have_is_refused(value):
    with pytest.raises(TypeError, match="TOML has no"):
        toml_value(value)
