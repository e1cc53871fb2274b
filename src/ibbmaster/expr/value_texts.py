"""Values of rows as the text protocol has them, from their stored bytes. The reference of `kernel.row_values`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from ibbmaster.event.column_types.registry import kind_of
from ibbmaster.event.rows.charset import CODECS, decode_text
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.schema.model import SqlType
from ibbmaster.sqltext.moment import civil_date

Text = Callable[[bytes], bytes]
"""Takes the stored bytes of a value, without what tells its length; gives its text. Raises ValueError."""

FLOAT_DIGITS = 6  # that a FLOAT is shown with
PLAIN_EXPONENTS = range(-14, 16)  # where the point of a number may be that is shown without an exponent
SINGLE_BYTE = frozenset(name for name, codec in CODECS.items() if codec is not None) - frozenset(
    (
        *("big5", "ujis", "sjis", "euckr", "gb2312", "gbk", "cp932", "eucjpms", "ucs2", "utf16", "utf16le", "utf32"),
        *("utf8mb3", "utf8mb4"),
    )
)
_DAY_S = 86400
_ZERO_TIME = "0000-00-00 00:00:00"


class TextSettings(NamedTuple):
    """What a session has set: the character set of texts (None, binary: as stored), and seconds east of UTC."""

    charset: str | None = None
    time_zone_s: int = 0


def text_of(column: Column, kind: SqlType, shown: TextSettings) -> Text:
    """How values that were stored in `column` are shown in a column of type `kind`.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    match column.kind:
        case ValueKind.INTEGER:
            return _integer(is_signed=not column.is_unsigned, width=_zeros(kind, kind.length or 0))
        case ValueKind.YEAR:
            return _short_year if kind.length == 2 else _year
        case ValueKind.FLOAT:
            return _floating(column, kind)
        case ValueKind.DECIMAL:
            return _decimal(column, kind)
        case ValueKind.BIT:
            size = bit_bytes(kind)
            return lambda data: data.rjust(size, b"\0")
        case ValueKind.TIMESTAMP:
            return _timestamp(column, kind, shown.time_zone_s)
        case ValueKind.ENUM | ValueKind.SET:
            return _label(column, kind, shown)
    read = kind_of(column).convert(column)
    match column.kind:
        case ValueKind.DATE | ValueKind.TIME | ValueKind.DATETIME:
            return _with_digits(lambda data: str(read(data)).encode(), column.scale, kind.scale or 0)
        case ValueKind.UUID | ValueKind.INET4 | ValueKind.INET6:
            return lambda data: str(read(data)).encode()
        case ValueKind.VECTOR | ValueKind.GEOMETRY:
            return bytes
        case ValueKind.BINARY if kind.word == "binary":
            size = 1 if kind.length is None else kind.length
            return lambda data: data.ljust(size, b"\0")
        case ValueKind.TEXT:
            return _converted(column, wanted_charset(kind, shown.charset))
    return lambda data: bytes(read(data))  # type: ignore[call-overload]


def bit_bytes(kind: SqlType) -> int:
    """How many bytes a value of BIT(n) is shown with, also one that was stored when the column was narrower."""
    return ((kind.length or 1) + 7) // 8


def wanted_charset(kind: SqlType, shown: str | None) -> str | None:
    """The character set that texts are shown in; where none is asked for, that of the column as it is now."""
    return kind.charset if shown in (None, "binary") else shown


def _zeros(kind: SqlType, width: int) -> int:
    return width if kind.is_zerofill else 0


def _integer(*, is_signed: bool, width: int) -> Text:
    def text(data: bytes) -> bytes:
        return b"%d" % int.from_bytes(data, "little", signed=is_signed)

    return text if not width else lambda data: text(data).rjust(width, b"0")


def _year(data: bytes) -> bytes:
    return b"%04d" % (1900 + data[0] if data[0] else 0)


def _short_year(data: bytes) -> bytes:
    return b"%02d" % (data[0] % 100)


def _decimal(column: Column, kind: SqlType) -> Text:
    read = kind_of(column).convert(column)
    scale = kind.scale or 0
    width = _zeros(kind, (kind.length or 10) + bool(scale))

    def text(data: bytes) -> bytes:
        value = read(data)
        assert isinstance(value, Decimal)
        plain = format(value, "f")
        if scale > column.scale:
            plain += ("." if not column.scale else "") + "0" * (scale - column.scale)
        return plain.encode().rjust(width, b"0")

    return text


def _floating(column: Column, kind: SqlType) -> Text:
    read, scale = kind_of(column).convert(column), kind.scale
    is_short = kind.word == "float"
    width = _zeros(kind, kind.length or (12 if is_short else 22))

    def text(data: bytes) -> bytes:
        value = read(data)
        assert isinstance(value, float)
        plain = (
            floating_text(value, digits=FLOAT_DIGITS if is_short else None) if scale is None else _fixed(value, scale)
        )
        return plain.encode().rjust(width, b"0")

    return text


def floating_text(value: float, *, digits: int | None) -> str:
    """A number with the fewest digits that tell it, or rounded to `digits`, and an exponent where it is far from 1.

    Source: MariaDB 12.3, dtoa.c, my_gcvt().
    """
    if not value:
        return "-0" if str(value)[0] == "-" else "0"
    if value - value != 0:
        raise ValueError(f"{value} is no number")
    mantissa, _, exponent = (repr(value) if digits is None else f"{value:.{digits - 1}e}").partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    figures = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = figures.lstrip("0")
    point -= len(figures) - len(stripped)
    figures = stripped.rstrip("0")
    if point not in PLAIN_EXPONENTS and not 0 < point < len(figures):
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{figures}"
    if len(figures) <= point:
        return f"{sign}{figures.ljust(point, '0')}"
    return f"{sign}{figures[:point]}.{figures[point:]}"


def _fixed(value: float, scale: int) -> str:
    """A number with so many digits behind the point: its fewest that tell it, or fewer, rounded.

    Source: MariaDB 12.3, dtoa.c, my_fcvt().
    """
    if value - value != 0:
        raise ValueError(f"{value} is no number")
    shortest = Decimal(repr(value))
    exponent = shortest.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent >= -scale:
        plain = format(shortest, "f").partition(".")
        return plain[0] + (f".{plain[2].ljust(scale, '0')}" if scale else "")
    return f"{value:.{scale}f}"


def _with_digits(text: Text, stored: int, wanted: int) -> Text:
    """With as many digits of a second as a column has that got more of them."""
    if wanted <= stored:
        return text
    more = b"" if stored else b"."
    return lambda data: text(data) + more + b"0" * (wanted - stored)


def _timestamp(column: Column, kind: SqlType, time_zone_s: int) -> Text:
    read = kind_of(column).convert(column)
    byte_order = "little" if column.has_old_format and not column.scale else "big"

    def text(data: bytes) -> bytes:
        plain = str(read(data))
        if not plain.startswith(_ZERO_TIME) and time_zone_s:
            seconds = int.from_bytes(data[:4], byte_order) + time_zone_s  # type: ignore[arg-type]
            days, clock = divmod(seconds, _DAY_S)
            year, month, day = civil_date(days)
            date = f"{year:04}-{month:02}-{day:02}"
            plain = f"{date} {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}{plain[len(_ZERO_TIME) :]}"
        return plain.encode()

    return _with_digits(text, column.scale, kind.scale or 0)


def _label(column: Column, kind: SqlType, shown: TextSettings) -> Text:
    charset = wanted_charset(kind, shown.charset) or "utf8mb4"
    charset = "utf8mb4" if kind.charset == "binary" else charset  # of bytes nobody knows letters: as they were written
    labels = [encoded(label, charset) for label in kind.labels]
    if column.kind is ValueKind.ENUM:
        known = (b"", *labels)

        def label(data: bytes) -> bytes:
            number = int.from_bytes(data, "little")
            if number >= len(known):
                raise ValueError(f"label {number} of {len(labels)}")
            return known[number]

        return label

    comma = encoded(",", charset)

    def joined(data: bytes) -> bytes:
        bits = int.from_bytes(data, "little")
        if bits >> len(labels):
            raise ValueError(f"set {bits:#x} of {len(labels)} labels")
        return comma.join(label for number, label in enumerate(labels) if bits >> number & 1)

    return joined


def is_copied(stored: str | None, wanted: str | None) -> bool:
    """Whether text of a character set is sent as it is stored."""
    return wanted in (None, "binary", stored) or (stored, wanted) == ("utf8mb3", "utf8mb4")


def _converted(column: Column, wanted: str | None) -> Text:
    """Text of a column in another character set."""
    stored = column.charset or "utf8mb4"
    is_packed = column.is_compressed
    if is_packed:
        read = kind_of(column).convert(column)
        return lambda data: encoded(str(read(data)), stored if wanted in (None, "binary") else wanted)
    if is_copied(stored, wanted):
        return bytes
    assert wanted is not None
    if stored in SINGLE_BYTE:
        table = byte_texts(stored, wanted)
        return lambda data: b"".join([table[byte] for byte in data])
    return lambda data: encoded(_decoded(data, stored), wanted)


@functools.cache
def byte_texts(stored: str, wanted: str) -> tuple[bytes, ...]:
    """What each byte of a character set of single bytes is in another one."""
    return tuple(encoded(_decoded(bytes((byte,)), stored), wanted) for byte in range(256))


def _decoded(data: bytes, charset: str) -> str:
    try:
        return decode_text(data, charset)
    except UnicodeDecodeError:
        return data.decode(CODECS[charset] or "latin-1", "replace").replace("\ufffd", "?")


def encoded(text: str, charset: str) -> bytes:
    """Text in a character set, with `?` for what it does not have."""
    codec = CODECS.get(charset)
    if codec is None:
        raise ValueError(f"character set {charset} cannot be written")
    if charset == "utf8mb3" and max(text, default="") > "\uffff":
        text = "".join(letter if letter <= "\uffff" else "?" for letter in text)
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        if charset == "latin1":
            return b"".join(_latin1(letter) for letter in text)
        return text.encode(codec, "replace")


def _latin1(letter: str) -> bytes:
    """cp1252, with the controls of Latin-1 in its holes."""
    try:
        return letter.encode("cp1252")
    except UnicodeEncodeError:
        return letter.encode("latin-1") if letter in "\x81\x8d\x8f\x90\x9d" else b"?"
