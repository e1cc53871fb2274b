"""FLOAT and DOUBLE."""

import math
import struct
from decimal import Decimal
from typing import Any

from ibbmaster.errors import EventError
from ibbmaster.sqltext import literals
from ..rows.attributes import is_unsigned
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Value
from . import kind as kinds
from .decimals import scaled
from .kind import SqlType

FLOAT_DIGITS = 6  # that a FLOAT is shown with
ANY_DECIMALS = 31  # of numbers without a fixed scale
PLAIN_EXPONENTS = range(-14, 16)  # places of the point in numbers without an exponent


class Floating(kinds.Number):
    """IEEE 754, little-endian; the metadata is their size."""

    grammar = kinds.Grammar.FRACTION
    key = "FLOATING"

    def __init__(
        self, word: str, code: ColumnType, layout: str, width: int, *, names: str = "", ddl_names: str
    ) -> None:
        super().__init__(word, code, names=names, ddl_names=ddl_names)
        self.values, self.metadata_sizes = {code: ValueKind.FLOAT}, {code: 1}  # type: ignore[misc]
        self.family, self.frame = code.name, word
        self.binary, self.width = struct.Struct(layout), width
        self.size, self.is_short = self.binary.size, self.binary.size == 4

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        if metadata != self.binary.size:
            raise EventError(f"{where} has floats of {metadata} bytes")
        return kinds.Layout(column_type)

    def keeps_values(self, old: Column, new: Column) -> bool:
        if new.kind is not old.kind or (4 if new.is_single_precision else 8) < self.binary.size:
            return False
        if new.is_unsigned and not old.is_unsigned:
            return False
        return not new.size or (old.size, old.scale, old.type) == (new.size, new.scale, new.type)

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        sign = super().declare(column, declared)
        if declared.length is None or "," not in (declared.inside or ""):
            return sign
        return {**sign, "size": declared.length, "scale": declared.scale}  # values are rounded to these

    def convert(self, column: Column) -> Convert:
        unpack = self.binary.unpack
        return lambda data: unpack(data)[0]

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        size = bytes([self.binary.size])
        return kinds.WrittenType(self.codes[0], size, self._encode, is_unsigned(declared.text))

    def _encode(self, value: object) -> bytes:
        try:
            return bytes(self.binary.pack(float(value)))  # type: ignore[arg-type]
        except (OverflowError, TypeError, struct.error):
            raise ValueError(f"{value!r} does not fit") from None

    def shows_alike(self, column: Column, old: SqlType, new: SqlType) -> bool:
        return (old.word, old.scale) == (new.word, new.scale)

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(precision=sql.length or self.width, scale=sql.scale)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        number = kinds.decimal_of(value)
        if sql.scale is not None:
            return f"{scaled(number, sql.scale):f}"
        text = f"{float(number):.6g}" if self.is_short else repr(float(number)).removesuffix(".0")
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else text

    def kept_literal(self, sql: SqlType, value: kinds.Literal, written: str) -> str:
        """Source: MariaDB 11.8, field.cc, truncate_double()."""
        number = float(kinds.decimal_of(value))
        if sql.scale is not None:
            whole, unit = math.floor(number), 10.0**sql.scale
            number = whole + round((number - whole) * unit) / unit
        return repr(self.narrowed(number))

    def narrowed(self, value: float) -> float:
        return float(self.binary.unpack(self.binary.pack(value))[0])

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return self._encode(int.from_bytes(value, "big") if isinstance(value, bytes) else value)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        read, scale = self.convert(column), sql.scale
        now = FLOATS.get(sql.word, self)
        zeros, digits = kinds.zeros_of(sql, sql.length or now.width), FLOAT_DIGITS if now.is_short else None

        def text(data: bytes) -> bytes:
            value = read(data)
            assert isinstance(value, float)
            plain = floating_text(value, digits=digits) if scale is None else fixed_text(value, scale)
            return plain.encode().rjust(zeros, b"0")

        return text

    def fitted(self, value: Value, column: Column) -> Value:
        return None if (number := kinds.number_of(value)) is None else self.narrowed(float(number))

    def result(self, sql: SqlType) -> kinds.ResultType:
        if sql.scale is None:
            return kinds.ResultType(self.codes[0], self.width, ANY_DECIMALS)
        return kinds.ResultType(self.codes[0], sql.length or self.width, sql.scale)

    def digits(self, sql: SqlType) -> int:
        return 17

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        if frame_type == "string":
            return super().reading(column, frame_type)
        return kinds.RowReading(self.codes[0].name)

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        return ("FIXED", 0, 0, 0, 0) if is_binary and sql.word == self.word else None


def floating_text(value: float, *, digits: int | None) -> str:
    """The fewest digits that identify it, or rounded to `digits`; far from 1 an exponent. Source: MariaDB 12.3,
    my_gcvt()."""
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


def fixed_text(value: float, scale: int) -> str:
    """The fewest digits that identify it, up to `scale` after the point. Source: MariaDB 12.3, dtoa.c, my_fcvt()."""
    if value - value != 0:
        raise ValueError(f"{value} is no number")
    shortest = Decimal(repr(value))
    exponent = shortest.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent >= -scale:
        plain = format(shortest, "f").partition(".")
        return plain[0] + (f".{plain[2].ljust(scale, '0')}" if scale else "")
    return f"{value:.{scale}f}"


FLOAT = Floating("float", ColumnType.FLOAT, "<f", 12, ddl_names="float4")
DOUBLE = Floating("double", ColumnType.DOUBLE, "<d", 22, names="real", ddl_names="float8")
KINDS = (FLOAT, DOUBLE)
FLOATS = {kind.word: kind for kind in KINDS}
