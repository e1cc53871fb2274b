import contextlib

import pytest

from ibbmaster.replication.event.rows import charset as charsets
from tests.case_table import data_beside

DATA = data_beside(__file__)


# What information_schema.COLLATIONS of MariaDB 10.11 says: ID, CHARACTER_SET_NAME
@pytest.mark.parametrize(("collation", "charset"), DATA["collations"])
def test_a_collation_belongs_to_the_character_set_that_mariadb_names(collation, charset):
    assert charsets.charset_of(collation) == charset


@pytest.mark.parametrize("collation", [0, 17, 125, 127, 216, 255, 577 + 20, 3328, 2**20])
def test_an_unknown_number_belongs_to_none(collation):
    assert charsets.charset_of(collation) is None


# What SELECT CONVERT(x'…' USING charset) of MariaDB 10.11 says
@pytest.mark.parametrize(("data", "charset", "text"), DATA["texts"])
def test_bytes_are_the_text_that_mariadb_takes_them_for(data, charset, text):
    assert charsets.decode_text(bytes.fromhex(data), charset) == text


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        *(("ff", "utf8mb4"), ("d83d", "ucs2"), ("80", "ascii"), ("00110000", "utf32")),
        *((data, "eucjpms") for data in ("b4", "8fb4", "8e", "80", "ff", "8ea0", "a9a1")),
    ],
)
def test_what_is_no_text_is_an_error(data, charset):
    with pytest.raises(UnicodeDecodeError):
        charsets.decode_text(bytes.fromhex(data), charset)


@pytest.mark.parametrize("charset", ["binary", "klingon"])
def test_a_character_set_without_a_codec_is_named(charset):
    with pytest.raises(ValueError, match=f"character set {charset} cannot be decoded"):
        charsets.decode_text(b"a", charset)


def test_python_has_each_codec_that_is_named():
    for charset, codec in charsets.CODECS.items():
        if codec is not None:
            width = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}.get(charset, 1)
            order = "little" if charset == "utf16le" else "big"
            assert charsets.decode_text(ord("A").to_bytes(width, order), charset) == "A"


@pytest.mark.parametrize("charset", [name for name, codec in charsets.CODECS.items() if codec is not None])
def test_text_is_encoded_as_it_is_decoded(charset):
    letters = []
    for number in (*range(0x20, 0x2000), 0x20AC, 0x3042, 0x4F60, 0xFFFD, 0x1F600):
        with contextlib.suppress(ValueError):
            assert charsets.decode_text(charsets.encode_text(chr(number), charset), charset) == chr(number)
            letters.append(chr(number))
    assert set(map(chr, range(0x20, 0x7F))) - set(letters) == set("@[\\]^`{|}~" if charset == "swe7" else "")
    assert ("\U0001f600" in letters) == (charset in ("utf8mb4", "utf16", "utf16le", "utf32"))


@pytest.mark.parametrize(
    ("text", "charset", "problem"),
    [
        ("¥", "sjis", "'¥' is no text of character set sjis"),
        ("a😀", "eucjpms", "no text of character set eucjpms"),
        ("a", "binary", "text of character set binary cannot be written"),
    ],
)
def test_what_a_character_set_lacks_is_not_encoded(text, charset, problem):
    with pytest.raises(ValueError, match=problem):
        charsets.encode_text(text, charset)


@pytest.mark.parametrize("charset", charsets.CODECS)
def test_the_letters_of_a_character_set_are_what_each_of_its_bytes_means(charset):
    letters = charsets.letters_of(charset)
    assert (letters is None) == (charset == "binary" or charsets.character_size(charset) > 1)
    assert letters is None or len(letters) == 256
    for byte, letter in enumerate(letters or ""):
        if letter == charsets.NO_LETTER:
            with pytest.raises(UnicodeDecodeError):
                charsets.decode_text(bytes([byte]), charset)
        else:
            assert charsets.decode_text(bytes([byte]), charset) == letter


KNOWN = {  # ISO 646-SE; the DEC Multinational set; ArmSCII-8; Kamenický; GEOSTD8
    "swe7": (b"[\\]{|}@`^~", "ÄÖÅäöåÉéÜü"),
    "dec8": (b"\xa8\xd7\xdd\xf7\xfd\xe9", "¤ŒŸœÿé"),
    "armscii8": (b"\xb2\xb3\xfd\xa2", "Աաֆ§"),
    "keybcs2": (b"\x80\xa8\x91\xe1", "Čšžß"),
    "latin1": (b"\x80\x81\x9f\xe9", "€\x81Ÿé"),
    "geostd8": (b"\xc0\xdf\xfd\x80", "აწ№€"),
}


@pytest.mark.parametrize("charset", charsets.TABLES)
def test_letters_are_those_of_the_published_tables(charset):
    data, text = KNOWN[charset]
    assert charsets.decode_text(data, charset) == text
    assert charsets.encode_text(text, charset) == data


@pytest.mark.parametrize("charset", charsets.TABLES)
def test_a_letter_is_written_as_its_first_byte(charset):
    for letter in set(charsets.TABLES[charset]) - {charsets.NO_LETTER}:
        assert charsets.encode_text(letter, charset)[0] == charsets.TABLES[charset].index(letter)


def test_their_codecs_are_of_this_package_and_take_what_is_missing_for_a_question_mark():
    assert charsets.CODECS["swe7"] == "ibbmaster_swe7"
    assert "a@€".encode("ibbmaster_swe7", "replace") == b"a??"
    with pytest.raises(LookupError):
        "a".encode("ibbmaster_klingon")


@pytest.mark.parametrize(("text", "data"), DATA["eucjpms"].values(), ids=DATA["eucjpms"])
def test_text_and_bytes_agree(text, data):
    assert charsets.decode_text(bytes.fromhex(data), "eucjpms") == text
    assert charsets.encode_text(text, "eucjpms").hex() == data


def test_a_lax_reader_gets_the_rest():
    assert b"a\xffb".decode("ibbmaster_eucjpms", "replace") == "a\ufffdb"
    assert "a😀b".encode("ibbmaster_eucjpms", "replace") == b"a?b"
