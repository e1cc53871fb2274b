"""Character sets that Python has no codec for, as codecs of their own: some of single bytes, and eucjpms.

Each of those of single bytes is Latin-1 but for some bytes; a byte of which nothing is known is U+FFFE, which is no
character. Of several bytes that mean one letter the first is written. MariaDB 10.11 and 11.8 were asked for each byte,
in both directions.

eucjpms is EUC-JP with the characters of NEC and IBM, and those of users. Two bytes are what cp932 has in the same row
and cell; three bytes, of which the first is 8F, are JIS X 0212 with characters of IBM in two of its rows. The last ten
rows of both are for users. Source: MariaDB 10.11, CONVERT(_eucjpms … USING utf8mb4) of every code.
"""

from __future__ import annotations

import codecs
import functools

from ibbmaster.codec.buffer import Buffer
from ibbmaster.facts import rows_of

PREFIX = "ibbmaster_"  # of the codecs' names in Python
_LATIN1 = "".join(map(chr, range(256)))
_HOLE = "\ufffe"
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


def _tables() -> dict[str, str]:
    """By name, what each byte of a character set means."""
    found: dict[str, str] = {}
    for charset, byte, cell in rows_of(__package__, "letters"):
        start, table = int(byte, 16), found.get(charset, _LATIN1)
        letters = cell.replace("□", _HOLE).encode("raw_unicode_escape").decode("raw_unicode_escape")
        found[charset] = table[:start] + letters + table[start + len(letters) :]
    return found


TABLES = _tables()


def codec_name(charset: str) -> str:
    """What Python calls the codec of a character set that stands here."""
    return PREFIX + charset


def _letter(code: bytes) -> str | None:
    """What two or three bytes mean."""
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
    """Every code of two and three bytes."""
    pairs = [bytes((row, cell)) for row in range(_FIRST, _END) for cell in range(_FIRST, _END)]
    codes = [*pairs, *(bytes((_SINGLE_SHIFT_3,)) + pair for pair in pairs)]
    found = {code: letter for code in codes if (letter := _letter(code)) is not None}
    start = codes.index(_IBM_START)
    return found | dict(zip(codes[start : start + len(_IBM)], _IBM, strict=True)) | _OTHERS


@functools.cache
def _codes() -> dict[str, bytes]:
    """The code of every letter; of two the shorter one."""
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
    if name == codec_name("eucjpms"):
        return codecs.CodecInfo(_encode, _decode, name=name)  # type: ignore[arg-type]
    table = TABLES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if table is None:
        return None
    numbers = {ord(letter): byte for byte, letter in reversed(list(enumerate(table))) if letter != _HOLE}
    return codecs.CodecInfo(
        lambda text, errors="strict": codecs.charmap_encode(text, errors, numbers),
        lambda data, errors="strict": codecs.charmap_decode(data, errors, table),
        name=name,
    )


codecs.register(_find)
