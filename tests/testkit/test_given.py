import os
import random
import threading
import tomllib
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.given import read_small_file, toml_key, toml_lines, toml_value


def test_a_file_is_read_up_to_its_limit_also_where_it_has_no_end_and_must_be_text(tmp_path):
    path = tmp_path / "a"
    path.write_text("Zoë")
    assert read_small_file(path, 4) == "Zoë"
    with pytest.raises(ConfigurationError, match="a: expected a file of at most 3 bytes"):
        read_small_file(path, 3)
    with pytest.raises(ConfigurationError, match="/dev/zero: expected a file of at most 100 bytes"):
        read_small_file(Path("/dev/zero"), 100)
    (tmp_path / "a").write_bytes(b"ab\xff")
    with pytest.raises(ConfigurationError, match="a: no UTF-8 at byte 2"):
        read_small_file(tmp_path / "a", 100)


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("through a pipe",))
    writer.start()
    assert read_small_file(path, 100) == "through a pipe"
    writer.join()


@pytest.mark.parametrize(("name", "text"), [("gone", "No such file"), ("", "Is a directory")])
def test_what_cannot_be_read_is_said(tmp_path, name, text):
    with pytest.raises(ConfigurationError, match=text):
        read_small_file(tmp_path / name, 100)


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


def test_a_table_has_a_line_for_each_key_and_half_a_character_a_sign():
    assert toml_lines({"a": 1, "b.c": ["x"]}) == ["a = 1", '"b.c" = ["x"]']
    assert toml_value("a\ud800") == '"a\N{REPLACEMENT CHARACTER}"'


@pytest.mark.parametrize("value", [None, b"bytes", object()])
def test_what_toml_does_not_have_is_refused(value):
    with pytest.raises(TypeError, match="TOML has no"):
        toml_value(value)
