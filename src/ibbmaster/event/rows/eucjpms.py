"""The character set eucjpms as a codec of Python: EUC-JP with the characters of NEC and IBM, and those of users.

Two bytes are what cp932 has in the same row and cell; three bytes, of which the first is 8F, are JIS X 0212
with characters of IBM in two of its rows. The last ten rows of both are for users.

Source: MariaDB 10.11, CONVERT(_eucjpms … USING utf8mb4) of every code.
"""

from __future__ import annotations

import codecs
import functools

from ibbmaster.codec.buffer import Buffer

NAME = "ibbmaster_eucjpms"
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
    if name != NAME:
        return None
    return codecs.CodecInfo(_encode, _decode, name=NAME)  # type: ignore[arg-type]


codecs.register(_find)
