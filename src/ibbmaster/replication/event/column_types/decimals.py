"""DECIMAL values of rows. Layout: protocol/event/rows.md."""

import decimal
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.sqltext import literals
from ..rows.attributes import is_unsigned
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Value
from . import kind as kinds
from .kind import SqlType

DIGITS_MAX = 65
SCALE_MAX = 38
WORD_DIGITS = 9  # four bytes hold nine digits ...
PART_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # ... and of fewer digits
WIDE_DIGITS = 38  # of a number of 128 bits: DataFrames have no larger ones
DIGITS = Context(prec=2 * DIGITS_MAX, rounding=decimal.ROUND_HALF_UP)
_EXACT = Context(prec=2 * DIGITS_MAX)  # the usual one rounds to 28 digits
_WIDE = Context(prec=4 * DIGITS_MAX)


class Decimals(kinds.Number):
    """Since MySQL 5.0; the metadata is digits and scale."""

    values = {ColumnType.NEWDECIMAL: ValueKind.DECIMAL}
    metadata_sizes = {ColumnType.NEWDECIMAL: 2}
    big_endian = frozenset(metadata_sizes)
    grammar = kinds.Grammar.FRACTION
    family = "DECIMAL"
    has_scale = True
    compares_size = True
    is_exact = True
    keeps_default = False

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        digits, scale = raw
        if not 0 < digits <= DIGITS_MAX or scale > min(digits, SCALE_MAX):
            raise EventError(f"{where} is DECIMAL({digits},{scale})")
        return kinds.Layout(column_type, digits, scale)

    def fixed_size(self, column: Column) -> int:
        return decimal_size(column.size, column.scale)

    def keeps_values(self, old: Column, new: Column) -> bool:
        has_sign = old.is_unsigned or not new.is_unsigned
        is_wide = new.scale >= old.scale and new.size - new.scale >= old.size - old.scale
        return new.kind is old.kind and bool(has_sign) and is_wide

    def convert(self, column: Column) -> Convert:
        return decimal_reader(column.size, column.scale)

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        digits, scale = declared.length or 10, declared.scale
        if not 0 < digits <= DIGITS_MAX or scale > min(digits, SCALE_MAX):
            raise ConfigurationError(f"{declared.where}: DECIMAL({digits},{scale}) does not exist")
        encode = _encoder(digits, scale)
        return kinds.WrittenType(ColumnType.NEWDECIMAL, bytes([digits, scale]), encode, is_unsigned(declared.text))

    def size_of(self, sql: SqlType) -> int | None:
        return sql.length

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        return self.word, column.size, column.scale

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(precision=sql.length, scale=sql.scale or 0)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        return f"{scaled(kinds.decimal_of(value), sql.scale or 0):f}"

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        encode = _encoder(column.size, column.scale)
        return encode(int.from_bytes(value, "big") if isinstance(value, bytes) else value)

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        """Only with no more digits after the point than the column."""
        if not isinstance(value, Decimal):
            return value if isinstance(value, int) and not sql.is_zerofill else None
        _, digits, exponent = value.as_tuple()
        is_exact = isinstance(exponent, int) and not any(digits[max(len(digits) + exponent + (sql.scale or 0), 0) :])
        return value if is_exact and not sql.is_zerofill else None

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        read = self.convert(column)
        scale = sql.scale or 0
        more = ("" if column.scale else ".") + "0" * (scale - column.scale) if scale > column.scale else ""
        width = kinds.zeros_of(sql, (sql.length or 10) + bool(scale))

        def text(data: bytes) -> bytes:
            return f"{read(data):f}{more}".encode().rjust(width, b"0")

        return text

    def fitted(self, value: Value, column: Column) -> Value:
        if (number := kinds.number_of(value)) is None:
            return None
        found = rounded(number, column.scale)
        return found if found.copy_abs() < 10 ** (column.size - column.scale) else None

    def result(self, sql: SqlType) -> kinds.ResultType:
        scale = sql.scale or 0
        return kinds.ResultType(self.codes[0], (sql.length or 10) + bool(scale) + (not sql.is_unsigned), scale)

    def digits(self, sql: SqlType) -> int:
        return sql.length or 10

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        return f"decimal({column.size},{column.scale})" if column.size <= WIDE_DIGITS else "string"

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        if frame_type.startswith("decimal"):
            return kinds.RowReading("DECIMAL", column.size, column.scale)
        return super().reading(column, frame_type)

    def line_op(self, column: Column) -> tuple[str, int, int]:
        return "DECIMAL", column.size, column.scale

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        scale = sql.scale or 0
        zeros = kinds.zeros_of(sql, (sql.length or 10) + bool(scale))
        return "DECIMAL", column.size, column.scale, max(scale, column.scale), zeros


def scaled(value: Decimal, scale: int) -> Decimal:
    """With `scale` digits after the point, halves away from zero."""
    return value.quantize(Decimal(1).scaleb(-scale), context=DIGITS)


def rounded(number: Decimal, scale: int) -> Decimal:
    """The same, and without a sign at zero."""
    found = number.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP, context=_WIDE)
    return found if found else abs(found)


def digit_groups(digits: int, scale: int) -> list[int]:
    whole = digits - scale
    counts = [whole % WORD_DIGITS] if whole % WORD_DIGITS else []
    counts += [WORD_DIGITS] * (whole // WORD_DIGITS + scale // WORD_DIGITS)
    return counts + ([scale % WORD_DIGITS] if scale % WORD_DIGITS else [])


def decimal_size(digits: int, scale: int) -> int:
    return sum(PART_SIZES[count] for count in digit_groups(digits, scale))


def decimal_reader(digits: int, scale: int) -> Callable[[bytes], Decimal]:
    """Big-endian groups of digits, the first bit inverted, negative ones all. Source: MariaDB 12.3, bin2decimal()."""
    layout = []
    size = 0
    for count in digit_groups(digits, scale):
        layout.append((size, size + PART_SIZES[count], 10**count))
        size += PART_SIZES[count]
    sign_bit = 1 << (8 * size - 1)
    all_bits = (1 << 8 * size) - 1

    def read(data: bytes) -> Decimal:
        packed = int.from_bytes(data, "big") ^ sign_bit
        is_negative = bool(packed & sign_bit)
        if is_negative:
            packed ^= all_bits
        plain = packed.to_bytes(size, "big")
        value = 0
        for start, end, limit in layout:
            part = int.from_bytes(plain[start:end], "big")
            if part >= limit:
                raise ValueError(f"decimal {data.hex()} has a group above {limit - 1}")
            value = value * limit + part
        return Decimal((int(is_negative and value > 0), tuple(map(int, str(value))), -scale))

    return read


def _encoder(digits: int, scale: int) -> Encode:
    """Source: MariaDB 12.3, decimal.c, decimal2bin()."""
    counts, size, limit = digit_groups(digits, scale), decimal_size(digits, scale), 10**digits

    def encode(value: object) -> bytes:
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number") from None
        scaled = number.scaleb(scale, _EXACT)
        if not number.is_finite() or scaled != scaled.to_integral_value(context=_EXACT) or scaled.copy_abs() >= limit:
            raise ValueError(f"{value} does not fit into DECIMAL({digits},{scale})")
        text = str(abs(int(scaled))).zfill(digits)
        packed, start = b"", 0
        for count in counts:
            packed += int(text[start : start + count]).to_bytes(PART_SIZES[count], "big")
            start += count
        plain = int.from_bytes(packed, "big") ^ (1 << (8 * size - 1))
        if scaled < 0:
            plain ^= (1 << 8 * size) - 1
        return plain.to_bytes(size, "big")

    return encode


KINDS = (Decimals("decimal", ColumnType.NEWDECIMAL, ColumnType.DECIMAL, names="numeric dec", ddl_names="fixed number"),)
