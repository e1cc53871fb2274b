"""Character sets that Python lacks: bytes and letters of published tables.

What a real server makes of every code of eucjpms is compared in tests/interop.
"""

import json
from pathlib import Path

import pytest

from ibbmaster.event.rows.charset import CODECS, decode_text, encode_text
from ibbmaster.event.rows.charset_codecs import TABLES, codec_name

KNOWN = {  # ISO 646-SE; the DEC Multinational set; ArmSCII-8; Kamenický; GEOSTD8
    "swe7": (b"[\\]{|}@`^~", "ÄÖÅäöåÉéÜü"),
    "dec8": (b"\xa8\xd7\xdd\xf7\xfd\xe9", "¤ŒŸœÿé"),
    "armscii8": (b"\xb2\xb3\xfd\xa2", "Աաֆ§"),
    "keybcs2": (b"\x80\xa8\x91\xe1", "Čšžß"),
    "geostd8": (b"\xc0\xdf\xfd\x80", "აწ№€"),
}
CASES = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("charset", TABLES)
def test_letters_are_those_of_the_published_tables(charset):
    data, text = KNOWN[charset]
    assert decode_text(data, charset) == text
    assert encode_text(text, charset) == data


@pytest.mark.parametrize("charset", TABLES)
def test_every_byte_is_a_letter_or_an_error_and_a_letter_is_written_as_its_first_byte(charset):
    for number in range(256):
        letter = TABLES[charset][number]
        if letter == "\ufffe":
            with pytest.raises(UnicodeDecodeError):
                decode_text(bytes((number,)), charset)
        else:
            assert encode_text(decode_text(bytes((number,)), charset), charset)[0] == TABLES[charset].index(letter)


def test_their_codecs_are_of_this_package_and_take_what_is_missing_for_a_question_mark():
    assert CODECS["swe7"] == codec_name("swe7")
    assert "a@€".encode(codec_name("swe7"), "replace") == b"a??"
    with pytest.raises(LookupError):
        "a".encode("ibbmaster_klingon")


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
