"""Types and defaults of columns as a server prints them, in SHOW CREATE TABLE and information_schema alike."""

import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from ibbmaster.schema.expression_text import default_expression_text
from ibbmaster.schema.model import SqlType, TableColumn
from ibbmaster.sqltext.literals import VariableValueError, literal_value
from ibbmaster.sqltext.moment import duration_text, fraction_text, loose_moment, parse_duration
from ibbmaster.sqltext.quoting import quoted, quoted_text
from ibbmaster.versions import Difference

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
DECIMALS = ("decimal",)
REALS = ("float", "double")
BINARIES = ("binary", "varbinary")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
TIMES = ("time", "datetime", "timestamp")

_DIGITS = Context(prec=130, rounding=ROUND_HALF_UP)
_SINGLE = struct.Struct("<f")
_NOW = re.compile(r"(?:current_timestamp|now|localtime|localtimestamp)\s*(?:\(\s*(\d?)\s*\))?", re.IGNORECASE)


def type_text(column_type: SqlType) -> str:
    """COLUMN_TYPE of information_schema: `int(10) unsigned`, `enum('a','b')`."""
    text = column_type.word
    if column_type.word in ("enum", "set"):
        text += "(" + ",".join(map(quoted_text, column_type.labels)) + ")"
    elif column_type.word in TIMES:
        text += f"({column_type.scale})" if column_type.scale else ""
    elif column_type.length is not None:
        scale = "" if column_type.scale is None else f",{column_type.scale}"
        text += f"({column_type.length}{scale})"
    text += " unsigned" if column_type.is_unsigned else ""
    text += " zerofill" if column_type.is_zerofill else ""
    return text + (" /*M!100301 COMPRESSED*/" if column_type.is_compressed else "")


def default_text(column: TableColumn, version: int) -> str | None:
    """What is printed after DEFAULT, and is COLUMN_DEFAULT; None where nothing is."""
    if column.default is None or column.period is not None:
        return None
    written = column.default.strip()
    if written.upper() == "NULL":
        return "NULL"
    if (match := _NOW.fullmatch(written)) is not None:
        return _now(match[1])
    found = _value(written)
    try:
        if column.type.word in (*TEXTS, *BLOBS):  # these are kept as expressions
            return quoted_text(found) if isinstance(found, str) else default_expression_text(written)
        return default_expression_text(written) if found is None else _literal(column.type, found, version)
    except (ValueError, ArithmeticError):
        return written


def kept_literal(column_type: SqlType, written: str) -> str:
    """A literal as a column keeps it; as it is written where that is the same, or not known."""
    word, found = column_type.word, _value(written.strip())
    try:
        if found is None or isinstance(found, bytes):
            return written
        if word in REALS:
            return _kept_real(column_type, float(_decimal(found)))
        if word in ("char", "varchar", *TEXTS):
            text = _text(found)
            return quoted(text.rstrip(" ") if word == "char" else text)
        return _literal(column_type, found, 0) if word in (*INTEGERS, *DECIMALS, "enum", "set") else written
    except (ValueError, ArithmeticError):
        return written


def _kept_real(column_type: SqlType, value: float) -> str:
    """
    Source: MariaDB 11.8, field.cc, truncate_double().
    """
    if column_type.scale is not None:
        whole, unit = math.floor(value), 10.0**column_type.scale
        value = whole + round((value - whole) * unit) / unit
    return repr(_SINGLE.unpack(_SINGLE.pack(value))[0] if column_type.word == "float" else value)


def on_update_text(written: str) -> str:
    """What is printed after ON UPDATE."""
    match = _NOW.fullmatch(written.strip())
    return written if match is None else _now(match[1])


def _now(digits: str | None) -> str:
    return f"current_timestamp({'' if digits in (None, '0') else digits})"


def _value(written: str) -> str | Decimal | bytes | int | None:
    """The value of a literal; None where the default is an expression."""
    if written.startswith("("):
        return None
    try:
        found = literal_value(written)
    except VariableValueError:
        return None
    return Decimal(written.replace(" ", "")) if isinstance(found, float) else found


def _literal(column_type: SqlType, value: str | Decimal | bytes | int, version: int) -> str:
    word = column_type.word
    if word in INTEGERS:
        digits = str(int(_decimal(value).quantize(Decimal(1), context=_DIGITS)))
        return digits.zfill(column_type.length or 0) if column_type.is_zerofill else digits
    if word in DECIMALS:
        return f"{_scaled(_decimal(value), column_type.scale or 0):f}"
    if word in REALS:
        return _real(column_type, _decimal(value))
    if word == "bit":
        return f"b'{int.from_bytes(value, 'big') if isinstance(value, bytes) else int(_decimal(value)):b}'"
    if word == "year":
        return f"{_year(int(_decimal(value))):04}"
    if word in ("date", "datetime", "timestamp"):
        return quoted_text(_moment(word, column_type.scale or 0, _text(value)))
    if word == "time":
        return quoted_text(_duration(column_type.scale or 0, _text(value)))
    if word in BINARIES:
        return _binary(column_type, value, version)
    text = _text(value)
    if word == "enum":
        text = next((label for label in column_type.labels if label.lower() == text.lower().rstrip(" ")), text)
    elif word == "set":
        wanted = {part.lower() for part in text.split(",")}
        text = ",".join(label for label in column_type.labels if label.lower() in wanted)
    return quoted_text(text)


def _decimal(value: str | Decimal | bytes | int) -> Decimal:
    if isinstance(value, bytes):
        return Decimal(int.from_bytes(value, "big"))
    try:
        return Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation:
        raise ValueError(value) from None


def _text(value: str | Decimal | bytes | int) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _scaled(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=_DIGITS)


def _real(column_type: SqlType, value: Decimal) -> str:
    if column_type.scale is not None:
        return f"{_scaled(value, column_type.scale):f}"
    text = f"{float(value):.6g}" if column_type.word == "float" else repr(float(value)).removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text


def _year(number: int) -> int:
    return number if number > 99 or number == 0 else number + (2000 if number < 70 else 1900)


def _moment(word: str, digits: int, text: str) -> str:
    if text.isdecimal():
        text = _from_digits(text)
    moment = loose_moment(text)
    shown = moment.text
    return shown[:10] if word == "date" else shown[:19] + fraction_text(moment.microsecond, digits)


def _from_digits(text: str) -> str:
    """A date, or a date and a time, written as one number."""
    if int(text) == 0:
        return "0000-00-00"
    if len(text) in (6, 12):
        text = ("20" if int(text[:2]) < 70 else "19") + text
    parts = text[:4], text[4:6], text[6:8]
    clock = f" {text[8:10]}:{text[10:12]}:{text[12:14]}" if len(text) == 14 else ""
    return "-".join(parts) + clock


def _duration(digits: int, text: str) -> str:
    if text.isdecimal():
        padded = text.zfill(6)
        text = f"{padded[:-4]}:{padded[-4:-2]}:{padded[-2:]}"
    found = parse_duration(text)
    if found is None:
        raise ValueError(text)
    return duration_text(found, digits)


def _binary(column_type: SqlType, value: str | Decimal | bytes | int, version: int) -> str:
    data = value if isinstance(value, bytes) else _text(value).encode("utf-8", "surrogateescape")
    if column_type.word == "binary":
        data = data.ljust(column_type.length or 1, b"\x00")
    if Difference.HEX_DEFAULTS.holds(version):
        return f"x'{data.hex().upper()}'"
    return quoted_text(data.decode("utf-8", "surrogateescape"))
