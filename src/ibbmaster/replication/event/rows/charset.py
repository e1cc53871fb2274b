"""Character sets by collation number, and their text.

The numbers are those of `information_schema.COLLATIONS` of MariaDB 10.11. NO PAD twins begin at 1024, UCA 14.0
collations at 2048: 256 numbers for each of five Unicode character sets.

Python lacks some codecs, and its cp1252 has holes that MariaDB's latin1 fills: the package registers its own. Those of
single bytes are Latin-1 but for `letters.tsv`; of several bytes for one letter the first is written.

eucjpms is EUC-JP with the characters of NEC, IBM and users. Two bytes are what cp932 has in the same row and cell;
three, of which the first is 8F, are JIS X 0212 with characters of IBM in two of its rows. The last ten rows of both
belong to users. Source: MariaDB 10.11, CONVERT(_eucjpms … USING utf8mb4) of every code."""

import codecs
import contextlib
import functools

from ibbmaster.facts import NULL, rows_of
from ibbmaster.storage.codec.buffer import Buffer

BINARY_COLLATION = 63
NO_PAD = 1024
UCA_1400 = 2048
UCA_1400_STEP = 256
UCA_1400_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")

UNICODE = frozenset(("utf8mb4", "utf16", "utf16le", "utf32"))
OF_PLANE_0 = frozenset(("utf8mb3", "ucs2"))  # these have only its first 65536 characters

#: Name, description, bytes of the longest character, Python's codec, default collation, and collations of each.
CHARACTER_SETS = rows_of("ibbmaster.replication.event.rows", "character_sets")
CODECS = {name: None if codec == NULL else codec for name, _, _, codec, *_ in CHARACTER_SETS}
_SIZES = {name: int(size) for name, _, size, *_ in CHARACTER_SETS}
LETTER_BYTES_MAX = 4
NO_LETTER = "\ufffe"  # in tables of letters

PREFIX = "ibbmaster_"  # of our codecs' names in Python
_LATIN1 = "".join(map(chr, range(256)))
_FIRST, _END = 0xA1, 0xFF  # of the bytes after each other
_ROW = _END - _FIRST
_USER_ROW = 84  # from here on
_USER = 0xE000
_SINGLE_SHIFT_2, _SINGLE_SHIFT_3 = 0x8E, 0x8F
_KATAKANA = 0xFF61
_IBM_START = b"\x8f\xf3\xf3"  # where these begin
_IBM = (  # escaped are those that normalizing this file would make others
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏\ufa10增寬峵嵓﨑德悅愠敎昻晥\ufa12\uf929栁﨓﨔橫櫢淸淲瀨\ufa15\ufa16"
    "甁皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧\ufa1c\ufa1d綠緖\ufa1e荢﨟薰\ufa20﨡蠇\ufa22譿賴赶﨣﨤\ufa25郞"
    "\ufa26鄕﨧﨨閒\uf9dc﨩霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑"
)
_OTHERS = {b"\x8f\xa2\xb7": "～", b"\x8f\xa2\xc3": "￤"}  # than in EUC-JP


@functools.cache
def character_size(charset: str | None) -> int:
    """Bytes of the longest character; 1 without a set, or for an unknown one."""
    return _SIZES.get(charset or "", 1)


@functools.cache
def _charsets() -> dict[int, str]:
    return {
        int(entry.partition("=")[2].partition("/")[0]): name
        for name, *_, entries in CHARACTER_SETS
        for entry in entries.split()
        if not entry.startswith("+")
    }


def charset_of(collation: int) -> str | None:
    """By the number of a collation, if known. Source: MariaDB, information_schema.COLLATIONS, ctype-uca1400.h."""
    if collation >= UCA_1400:
        index = (collation - UCA_1400) // UCA_1400_STEP
        return UCA_1400_CHARSETS[index] if index < len(UCA_1400_CHARSETS) else None
    return _charsets().get(collation - NO_PAD if collation >= NO_PAD else collation)


def decode_text(data: bytes, charset: str) -> str:
    """Raises ValueError: the bytes are no text of the character set, or Python lacks the codec."""
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"character set {charset} cannot be decoded")
    return data.decode(codec)


@functools.cache
def letters_of(charset: str) -> str | None:
    """The meaning of each byte of a character set of single bytes, U+FFFE where it is no text; None for other sets."""
    if not is_of_single_bytes(charset):
        return None
    return "".join(bytes((byte,)).decode(CODECS[charset] or "", "no_letter") for byte in range(256))


codecs.register_error("no_letter", lambda error: (NO_LETTER, error.end))  # type: ignore[attr-defined]


def encode_text(text: str, charset: str) -> bytes:
    """Raises ValueError: the character set lacks a character, or Python the codec."""
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"text of character set {charset} cannot be written")
    above = max(text, default="")
    if charset in OF_PLANE_0 and above > "\uffff":
        raise ValueError(f"{above!r} is no text of character set {charset}")
    try:
        data = text.encode(codec)
    except UnicodeEncodeError as error:
        raise ValueError(f"{text[error.start : error.end]!r} is no text of character set {charset}") from None
    if not codec.startswith("utf") and data.decode(codec) != text:  # some take a look-alike instead
        raise ValueError(f"{text[:60]!r} is no text of character set {charset}")
    return data


def encoded(text: str, charset: str) -> bytes:
    """With `?` for what the character set lacks. Raises ValueError: Python lacks the codec."""
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"character set {charset} cannot be written")
    if charset == "utf8mb3" and max(text, default="") > "\uffff":
        text = "".join(letter if letter <= "\uffff" else "?" for letter in text)
    return text.encode(codec, "replace")


def lenient_text(data: bytes, charset: str) -> str:
    """With `?` for what is no text. Raises ValueError: Python lacks the codec."""
    try:
        return decode_text(data, charset)
    except UnicodeDecodeError:
        return data.decode(CODECS[charset] or "", "replace").replace("\ufffd", "?")


@functools.cache
def byte_texts(stored: str, wanted: str) -> tuple[bytes, ...]:
    return tuple(encoded(lenient_text(bytes((byte,)), stored), wanted) for byte in range(256))


def is_of_single_bytes(charset: str) -> bool:
    return character_size(charset) == 1 and CODECS.get(charset) is not None


def decode_label(data: bytes, charset: str) -> str:
    """Of ENUM or SET, with `?` for a byte that is no text, as CONVERT TO CHARACTER SET may leave. Raises ValueError."""
    with contextlib.suppress(UnicodeDecodeError):
        return decode_text(data, charset)
    found: list[str] = []
    at = 0
    while at < len(data):
        letter, size = _first_letter(data[at : at + LETTER_BYTES_MAX], charset)
        found.append(letter)
        at += size
    return "".join(found)


def _first_letter(data: bytes, charset: str) -> tuple[str, int]:
    for size in range(1, len(data) + 1):
        with contextlib.suppress(UnicodeDecodeError):
            letter = decode_text(data[:size], charset)
            if len(letter) == 1:
                return letter, size
    return "?", 1


def label_in(label: str, charset: str) -> str:
    """As a server keeps it, with `?` for letters that the character set lacks."""
    if CODECS.get(charset) is None or label.isascii():
        return label
    return "".join(letter if _has(letter, charset) else "?" for letter in label)


def _has(letter: str, charset: str) -> bool:
    try:
        return bool(encode_text(letter, charset))
    except ValueError:
        return False


# Codecs of our own


def _tables() -> dict[str, str]:
    found: dict[str, str] = {}
    for charset, byte, cell in rows_of(__package__, "letters"):
        start, table = int(byte, 16), found.get(charset, _LATIN1)
        letters = cell.replace("□", NO_LETTER).encode("raw_unicode_escape").decode("raw_unicode_escape")
        found[charset] = table[:start] + letters + table[start + len(letters) :]
    return found


TABLES = _tables()


def _letter(code: bytes) -> str | None:
    row, cell = code[-2] - _FIRST, code[-1] - _FIRST
    if row >= _USER_ROW:
        planes = (len(code) - 2) * (_ROW - _USER_ROW)
        return chr(_USER + (planes + row - _USER_ROW) * _ROW + cell)
    try:
        if len(code) == 3:
            return code.decode("euc_jp")
        lead = (row >> 1) + (0x81 if row < 62 else 0xC1)
        trail = cell + 0x9F if row % 2 else cell + (0x40 if cell < 63 else 0x41)
        return bytes((lead, trail)).decode("cp932")
    except UnicodeDecodeError:
        return None


@functools.cache
def _letters() -> dict[bytes, str]:
    pairs = [bytes((row, cell)) for row in range(_FIRST, _END) for cell in range(_FIRST, _END)]
    codes = [*pairs, *(bytes((_SINGLE_SHIFT_3,)) + pair for pair in pairs)]
    found = {code: letter for code in codes if (letter := _letter(code)) is not None}
    start = codes.index(_IBM_START)
    return found | dict(zip(codes[start : start + len(_IBM)], _IBM, strict=True)) | _OTHERS


@functools.cache
def _codes() -> dict[str, bytes]:
    found = {letter: code for code, letter in reversed(_letters().items())}
    katakana = {chr(_KATAKANA + n): bytes((_SINGLE_SHIFT_2, _FIRST + n)) for n in range(63)}
    return found | katakana | {chr(n): bytes((n,)) for n in range(128)}


def _decode(data: Buffer, errors: str = "strict") -> tuple[str, int]:
    data = bytes(data)
    if data.isascii():
        return data.decode("ascii"), len(data)
    found, at, letters = [], 0, _letters()
    while at < len(data):
        first = data[at]
        size = 1 if first < 128 else 3 if first == _SINGLE_SHIFT_3 else 2
        code = data[at : at + size]
        letter = chr(first) if size == 1 else letters.get(code)
        if first == _SINGLE_SHIFT_2 and len(code) == 2 and _FIRST <= code[1] < _FIRST + 63:
            letter = chr(_KATAKANA + code[1] - _FIRST)
        if letter is None:
            wrong = UnicodeDecodeError("eucjpms", data, at, at + 1, "no character")
            replaced, at = codecs.lookup_error(errors)(wrong)
            found.append(str(replaced))
            continue
        found.append(letter)
        at += size
    return "".join(found), len(data)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    if text.isascii():
        return text.encode("ascii"), len(text)
    codes = _codes()
    found = bytearray()
    for at, letter in enumerate(text):
        code = codes.get(letter)
        if code is None:
            wrong = UnicodeEncodeError("eucjpms", text, at, at + 1, "no such character")
            replaced, _ = codecs.lookup_error(errors)(wrong)
            code = replaced if isinstance(replaced, bytes) else replaced.encode("ascii")
        found += code
    return bytes(found), len(text)


def _find(name: str) -> codecs.CodecInfo | None:
    if name == PREFIX + "eucjpms":
        return codecs.CodecInfo(_encode, _decode, name=name)  # type: ignore[arg-type]
    table = TABLES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if table is None:
        return None
    numbers = {ord(letter): byte for byte, letter in reversed(list(enumerate(table))) if letter != NO_LETTER}
    known = codecs.charmap_build(table) if len(numbers) == len(table) else numbers  # the first takes half the time
    return codecs.CodecInfo(
        lambda text, errors="strict": codecs.charmap_encode(text, errors, known),
        lambda data, errors="strict": codecs.charmap_decode(data, errors, table),
        name=name,
    )


codecs.register(_find)
