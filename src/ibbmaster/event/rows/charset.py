"""Character sets by collation number, and their text.

The numbers are those `information_schema.COLLATIONS` of MariaDB 10.11 lists. From 1024 on stand the NO PAD twins of the
old ones, from 2048 on the UCA 14.0 collations: 256 numbers for each of five Unicode character sets.
"""

from __future__ import annotations

import contextlib
import functools

from ibbmaster.event.rows import charset_codecs  # noqa: F401 - it registers codecs
from ibbmaster.facts import NULL, rows_of

BINARY_COLLATION = 63
NO_PAD = 1024
UCA_1400 = 2048
UCA_1400_STEP = 256
UCA_1400_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")

UNICODE = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))
OF_PLANE_0 = frozenset(("utf8mb3", "ucs2"))  # these have only its first 65536 characters

#: Name, description, bytes of the longest character, Python's codec, default collation, and collations of each.
CHARACTER_SETS = rows_of("ibbmaster.event.rows", "character_sets")
CODECS = {name: None if codec == NULL else codec for name, _, _, codec, *_ in CHARACTER_SETS}
_SIZES = {name: int(size) for name, _, size, *_ in CHARACTER_SETS}
LETTER_BYTES_MAX = 4
NO_LETTER = "\ufffe"  # in tables of letters
LATIN1_HOLES = "\x81\x8d\x8f\x90\x9d"  # of cp1252


@functools.cache
def character_size(charset: str | None) -> int:
    """Bytes of the longest character of a set; 1 without one, or for one that is unknown."""
    return _SIZES.get(charset or "", 1)


@functools.cache
def _charsets() -> dict[int, str]:
    """By numbers of collations, but those that are newer than 10.11."""
    return {
        int(entry.partition("=")[2].partition("/")[0]): name
        for name, *_, entries in CHARACTER_SETS
        for entry in entries.split()
        if not entry.startswith("+")
    }


def charset_of(collation: int) -> str | None:
    """The name of the character set a collation belongs to; None if the number is unknown here. Source: MariaDB 10.11,
    information_schema.COLLATIONS; MariaDB 12.3, ctype-uca1400.h."""
    if collation >= UCA_1400:
        index = (collation - UCA_1400) // UCA_1400_STEP
        return UCA_1400_CHARSETS[index] if index < len(UCA_1400_CHARSETS) else None
    return _charsets().get(collation - NO_PAD if collation >= NO_PAD else collation)


def decode_text(data: bytes, charset: str) -> str:
    """Bytes of a character set as text.

    MariaDB's latin1 is cp1252 with the five holes filled by the controls of Latin-1. Its ucs2 may hold
    halves of surrogate pairs, which are no text anywhere else: an error.

    Raises ValueError: the bytes are no text of it, or Python has no codec for it.
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


@functools.cache
def letters_of(charset: str) -> str | None:
    """What each byte means in a character set of single bytes, U+FFFE where it is no text; None for any other set."""
    if character_size(charset) > 1 or CODECS.get(charset) is None:
        return None
    return "".join(map(_letter_of, range(256), [charset] * 256))


def _letter_of(byte: int, charset: str) -> str:
    try:
        return decode_text(bytes((byte,)), charset)
    except UnicodeDecodeError:
        return NO_LETTER


def encode_text(text: str, charset: str) -> bytes:
    """Text as bytes of a character set: the inverse of `decode_text`. Raises ValueError: the character set does not
    have one of the characters, or Python has no codec for it."""
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


def encoded(text: str, charset: str) -> bytes:
    """Text in a character set, with `?` for what it does not have. Raises ValueError: Python has no codec for it."""
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"character set {charset} cannot be written")
    if charset == "utf8mb3" and max(text, default="") > "\uffff":
        text = "".join(letter if letter <= "\uffff" else "?" for letter in text)
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        if charset == "latin1":
            return b"".join(_latin1(letter) if _has(letter, charset) else b"?" for letter in text)
        return text.encode(codec, "replace")


def lenient_text(data: bytes, charset: str) -> str:
    """Bytes as text, with `?` for what is none. Raises ValueError: Python has no codec for the character set."""
    try:
        return decode_text(data, charset)
    except UnicodeDecodeError:
        return data.decode(CODECS[charset] or "latin-1", "replace").replace("\ufffd", "?")


@functools.cache
def byte_texts(stored: str, wanted: str) -> tuple[bytes, ...]:
    """What each byte of a character set of single bytes is in another one."""
    return tuple(encoded(lenient_text(bytes((byte,)), stored), wanted) for byte in range(256))


def is_of_single_bytes(charset: str) -> bool:
    """Whether each byte is a letter by itself."""
    return character_size(charset) == 1 and CODECS.get(charset) is not None


def decode_label(data: bytes, charset: str) -> str:
    """A label of ENUM or SET, whose bytes CONVERT TO CHARACTER SET leaves as they are; a byte that is no text is `?`.
    Raises ValueError: Python has no codec for the character set."""
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
