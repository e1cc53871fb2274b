"""Character sets of single bytes that Python lacks: bytes and letters of published tables."""

import pytest

from ibbmaster.event.rows.byte_charsets import TABLES, codec_name
from ibbmaster.event.rows.charset import CODECS, decode_text, encode_text

KNOWN = {  # ISO 646-SE; the DEC Multinational set; ArmSCII-8; Kamenický; GEOSTD8
    "swe7": (b"[\\]{|}@`^~", "ÄÖÅäöåÉéÜü"),
    "dec8": (b"\xa8\xd7\xdd\xf7\xfd\xe9", "¤ŒŸœÿé"),
    "armscii8": (b"\xb2\xb3\xfd\xa2", "Աաֆ§"),
    "keybcs2": (b"\x80\xa8\x91\xe1", "Čšžß"),
    "geostd8": (b"\xc0\xdf\xfd\x80", "აწ№€"),
}


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
