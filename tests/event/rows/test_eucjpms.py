"""The codec of eucjpms; what a real server makes of every code is compared in tests/interop."""

import json
from pathlib import Path

import pytest

from ibbmaster.event.rows.charset import decode_text, encode_text

CASES = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize(("text", "data"), CASES.values(), ids=CASES)
def test_text_and_bytes_agree(text, data):
    assert decode_text(bytes.fromhex(data), "eucjpms") == text
    assert encode_text(text, "eucjpms").hex() == data


@pytest.mark.parametrize("data", ["b4", "8fb4", "8e", "80", "ff", "8ea0", "a9a1"])
def test_what_is_no_character_is_an_error(data):
    with pytest.raises(ValueError, match="no character"):
        decode_text(bytes.fromhex(data), "eucjpms")


def test_a_character_that_it_lacks_is_an_error():
    with pytest.raises(ValueError, match="no text of character set eucjpms"):
        encode_text("a😀", "eucjpms")


def test_a_lax_reader_gets_the_rest():
    assert b"a\xffb".decode("ibbmaster_eucjpms", "replace") == "a\ufffdb"
    assert "a😀b".encode("ibbmaster_eucjpms", "replace") == b"a?b"
