"""Character sets by collation number, and their text.

The numbers are those `information_schema.COLLATIONS` of MariaDB 10.11 lists. From 1024 on
stand the NO PAD twins of the old ones, from 2048 on the UCA 14.0 collations: 256 numbers for
each of five Unicode character sets.
"""

from __future__ import annotations

import contextlib
import functools

from ibbmaster.event.rows import eucjpms
from ibbmaster.event.rows.byte_charsets import codec_name

BINARY_COLLATION = 63
NO_PAD = 1024
UCA_1400 = 2048
UCA_1400_STEP = 256
UCA_1400_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")

UNICODE = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))
OF_PLANE_0 = frozenset(("utf8mb3", "ucs2"))  # these have only its first 65536 characters
_WIDE = {  # bytes of the longest character; all others have one
    **dict.fromkeys(("big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ucs2"), 2),
    **dict.fromkeys(("eucjpms", "ujis", "utf8mb3"), 3),
    **dict.fromkeys(UNICODE, 4),
}

#: name, Python's codec (None: there is none), collations
_TABLE: tuple[tuple[str, str | None, str], ...] = (
    ("big5", "big5hkscs", "1 84"),
    ("dec8", codec_name("dec8"), "3 69"),
    ("cp850", "cp850", "4 80"),
    ("hp8", "hp_roman8", "6 72"),
    ("koi8r", "koi8_r", "7 74"),
    ("latin1", "cp1252", "5 8 15 31 47-49 94"),
    ("latin2", "iso8859_2", "2 9 21 27 77"),
    ("swe7", codec_name("swe7"), "10 82"),
    ("ascii", "ascii", "11 65"),
    ("ujis", "euc_jp", "12 91"),
    ("sjis", "shift_jis", "13 88"),
    ("hebrew", "iso8859_8", "16 71"),
    ("tis620", "cp874", "18 89"),
    ("euckr", "cp949", "19 85"),
    ("koi8u", "koi8_u", "22 75"),
    ("gb2312", "gb2312", "24 86"),
    ("greek", "iso8859_7", "25 70"),
    ("cp1250", "cp1250", "26 34 44 66 99"),
    ("gbk", "gbk", "28 87"),
    ("latin5", "iso8859_9", "30 78"),
    ("armscii8", codec_name("armscii8"), "32 64"),
    ("utf8mb3", "utf_8", "33 83 192-215 223 576-578"),
    ("ucs2", "utf_16_be", "35 90 128-151 159 640-642"),
    ("cp866", "cp866", "36 68"),
    ("keybcs2", codec_name("keybcs2"), "37 73"),
    ("macce", "mac_latin2", "38 43"),
    ("macroman", "mac_roman", "39 53"),
    ("cp852", "cp852", "40 81"),
    ("latin7", "iso8859_13", "20 41-42 79"),
    ("utf8mb4", "utf_8", "45-46 224-247 608-610"),
    ("cp1251", "cp1251", "14 23 50-52"),
    ("utf16", "utf_16_be", "54-55 101-124 672-674"),
    ("utf16le", "utf_16_le", "56 62"),
    ("cp1256", "cp1256", "57 67"),
    ("cp1257", "cp1257", "29 58-59"),
    ("utf32", "utf_32_be", "60-61 160-183 736-738"),
    ("binary", None, "63"),
    ("geostd8", codec_name("geostd8"), "92-93"),
    ("cp932", "cp932", "95-96"),
    ("eucjpms", eucjpms.NAME, "97-98"),
)
CODECS = {name: codec for name, codec, _ in _TABLE}
LETTER_BYTES_MAX = 4
LATIN1_HOLES = "\x81\x8d\x8f\x90\x9d"  # of cp1252


@functools.cache
def character_size(charset: str | None) -> int:
    """Bytes of the longest character of a set; 1 without one, or for one that is unknown."""
    return _WIDE.get(charset or "", 1)


def _charsets() -> dict[int, str]:
    found = {}
    for name, _, numbers in _TABLE:
        for part in numbers.split():
            first, _, last = part.partition("-")
            found.update(dict.fromkeys(range(int(first), int(last or first) + 1), name))
    return found


def charset_of(collation: int) -> str | None:
    """The name of the character set a collation belongs to; None if the number is unknown here.

    Source: MariaDB 10.11, information_schema.COLLATIONS; MariaDB 12.3, ctype-uca1400.h.
    """
    if collation >= UCA_1400:
        index = (collation - UCA_1400) // UCA_1400_STEP
        return UCA_1400_CHARSETS[index] if index < len(UCA_1400_CHARSETS) else None
    return _charsets().get(collation - NO_PAD if collation >= NO_PAD else collation)


def decode_text(data: bytes, charset: str) -> str:
    """Bytes of a character set as text.

    MariaDB's latin1 is cp1252 with the five holes filled by the controls of Latin-1. Its ucs2 may hold
    halves of surrogate pairs, which are no text anywhere else: an error.

    Raises:
        ValueError: the bytes are no text of it, or Python has no codec for it.
    """
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"character set {charset} cannot be decoded")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        if charset == "latin1":
            return "".join(bytes((byte,)).decode(codec, "ignore") or chr(byte) for byte in data)
        raise


def encode_text(text: str, charset: str) -> bytes:
    """Text as bytes of a character set: the inverse of `decode_text`.

    Raises:
        ValueError: the character set does not have one of the characters, or Python has no codec for it.
    """
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"text of character set {charset} cannot be written")
    above = max(text, default="")
    if charset in OF_PLANE_0 and above > "\uffff":
        raise ValueError(f"{above!r} is no text of character set {charset}")
    try:
        data = text.encode(codec)
    except UnicodeEncodeError as error:
        if charset == "latin1":
            return b"".join(map(_latin1, text))
        raise ValueError(f"{text[error.start : error.end]!r} is no text of character set {charset}") from None
    if not codec.startswith("utf") and data.decode(codec) != text:  # some take a look-alike instead
        raise ValueError(f"{text[:60]!r} is no text of character set {charset}")
    return data


def decode_label(data: bytes, charset: str) -> str:
    """A label of ENUM or SET, whose bytes CONVERT TO CHARACTER SET leaves as they are; a byte that is no text is `?`.

    Raises:
        ValueError: Python has no codec for the character set.
    """
    try:
        return decode_text(data, charset)
    except UnicodeDecodeError:
        pass
    found: list[str] = []
    at = 0
    while at < len(data):
        letter, size = _first_letter(data[at : at + LETTER_BYTES_MAX], charset)
        found.append(letter)
        at += size
    return "".join(found)


def _first_letter(data: bytes, charset: str) -> tuple[str, int]:
    """The letter that bytes begin with, and how many it takes."""
    for size in range(1, len(data) + 1):
        with contextlib.suppress(UnicodeDecodeError):
            letter = decode_text(data[:size], charset)
            if len(letter) == 1:
                return letter, size
    return "?", 1


def label_in(label: str, charset: str) -> str:
    """A label as a server keeps it in a character set: `?` stands for what that does not have."""
    if CODECS.get(charset) is None or label.isascii():
        return label
    return "".join(letter if _has(letter, charset) else "?" for letter in label)


def _has(letter: str, charset: str) -> bool:
    try:
        return bool(encode_text(letter, charset))
    except ValueError:
        return False


def _latin1(letter: str) -> bytes:
    """A character of cp1252, or of Latin-1 where that has holes."""
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        if letter in LATIN1_HOLES:
            return letter.encode("latin-1")
        raise ValueError(f"{letter!r} is no text of character set latin1") from None
