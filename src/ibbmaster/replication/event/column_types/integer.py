"""Whole numbers: TINYINT to BIGINT, BIT and YEAR."""

from decimal import Decimal

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.sqltext import literals
from ..rows.attributes import is_unsigned
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Reader, Value
from . import kind as kinds
from .decimals import DIGITS, Decimals, rounded
from .kind import ColumnKind, SqlType

YEAR_ZERO = 1900
SHORT_YEAR = 2  # digits of YEAR(2); any other YEAR(n) is YEAR(4)
ZEROS_MAX = 95  # in front of a number, that a kernel writes


def integer_range(column: Column) -> tuple[int, int]:
    bits = 8 * INTEGER_SIZES[ColumnType(column.type)]
    return (0, (1 << bits) - 1) if column.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


class Integer(kinds.Number):
    """TINYINT to BIGINT, little-endian."""

    is_integer = True
    is_exact = True
    grammar = kinds.Grammar.NUMBER
    family = "INT"
    keeps_default = False

    def __init__(
        self, word: str, code: ColumnType, size: int, widths: tuple[int, int], digits: int, names: str
    ) -> None:
        """`widths` to show, with and without a sign; `digits` of the largest value with a sign."""
        super().__init__(word, code, names=names)
        self.values = {code: ValueKind.INTEGER}
        self.size = self.key_size = size
        self.widths, self.digits_max = widths, digits

    def convert(self, column: Column) -> Convert:
        is_signed = not column.is_unsigned
        return lambda data: int.from_bytes(data, "little", signed=is_signed)

    def keeps_values(self, old: Column, new: Column) -> bool:
        low, high = integer_range(old)
        if new.kind is ValueKind.INTEGER:
            new_low, new_high = integer_range(new)
            return new_low <= low and high <= new_high
        if new.type in Decimals.values:
            limit = 10 ** (new.size - new.scale)
            return high < limit and -low < limit and (low == 0 or not new.is_unsigned)
        return False

    def reader(self, column: Column) -> Reader:
        size, is_signed, from_bytes = self.key_size, not column.is_unsigned, int.from_bytes

        def read(data: bytes, offset: int) -> tuple[Value, int]:
            end = offset + size
            if end > len(data):
                raise ValueError(f"an integer of {size} bytes runs over the end of the rows")
            return from_bytes(data[offset:end], "little", signed=is_signed), end

        return read

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType | None:
        if declared.word == SERIAL:
            return None
        has_no_sign = is_unsigned(declared.text)
        encode = _integer_encoder(self.key_size, is_signed=not has_no_sign)
        return kinds.WrittenType(self.codes[0], b"", encode, has_no_sign)

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        return self.word, self.widths[bool(column.is_unsigned)], column.scale or None

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        is_longer = sql.is_unsigned and self.key_size in (3, 8)
        return kinds.TypeSizes(precision=self.digits_max - (self.key_size == 3) + is_longer, scale=0)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        digits = str(int(kinds.decimal_of(value).quantize(Decimal(1), context=DIGITS)))
        return digits.zfill(sql.length or 0) if sql.is_zerofill else digits

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return _integer_encoder(self.key_size, is_signed=not column.is_unsigned)(kinds.whole_of(value))

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        return value if isinstance(value, int) and not sql.is_zerofill else None

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        is_signed, width = not column.is_unsigned, kinds.zeros_of(sql, sql.length or 0)
        if not width:
            return lambda data: b"%d" % int.from_bytes(data, "little", signed=is_signed)
        return lambda data: (b"%d" % int.from_bytes(data, "little", signed=is_signed)).rjust(width, b"0")

    def fitted(self, value: Value, column: Column) -> Value:
        if (number := kinds.number_of(value)) is None:
            return None
        whole = int(rounded(number, 0))
        low, high = integer_range(column)
        return whole if low <= whole <= high else None

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(self.codes[0], sql.length or self.widths[sql.is_unsigned])

    def digits(self, sql: SqlType) -> int:
        return self.digits_max + (sql.is_unsigned and self.key_size in (3, 8))

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        bits = 8 * self.key_size - (not column.is_unsigned)
        return "int" if bits < 32 else "bigint" if bits < 64 else "decimal(20,0)"

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        return kinds.RowReading("INTEGER", self.key_size, int(not column.is_unsigned))

    def line_op(self, column: Column) -> tuple[str, int, int]:
        return "INTEGER", int(not column.is_unsigned), 0

    def key_op(self, column: Column) -> str:
        return "UNSIGNED" if column.is_unsigned else "SIGNED"

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        is_signed, zeros = int(not column.is_unsigned), kinds.zeros_of(sql, sql.length or 0)
        if is_binary:
            return "NUMBER", is_signed, BINARY_SIZES[sql.word], 0, 0
        return ("INTEGER", is_signed, zeros, 0, 0) if zeros <= ZEROS_MAX else None


class Bit(ColumnKind):
    """Big-endian in as few bytes as possible."""

    values = {ColumnType.BIT: ValueKind.BIT}
    metadata_sizes = {ColumnType.BIT: 2}
    zero = "0"
    family = "BIT"
    line = ("INTEGER", 0, 0)
    compares_size = True

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        bits = (metadata >> 8) * 8 + (metadata & 0xFF)
        if bits > 64 or metadata & 0xFF > 7:
            raise EventError(f"{where} has bit metadata {metadata:#06x}")
        return kinds.Layout(column_type, bits)

    def fixed_size(self, column: Column) -> int:
        return (column.size + 7) // 8

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is ValueKind.BIT and new.size >= old.size

    def convert(self, column: Column) -> Convert:
        return lambda data: int.from_bytes(data, "big")

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        bits = 1 if declared.length is None else declared.length
        if not 1 <= bits <= 64:
            raise ConfigurationError(f"{declared.where}: BIT({bits}) does not exist")
        return kinds.WrittenType(ColumnType.BIT, bytes([bits % 8, bits // 8]), _bit_encoder(bits))

    def length_of(self, written: int | None) -> int | None:
        return written or 1

    def size_of(self, sql: SqlType) -> int | None:
        return sql.length

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        return self.word, column.size, None

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(precision=sql.length)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        return f"b'{int(kinds.decimal_of(value)):b}'"

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        is_number = isinstance(value, int | float | Decimal)
        return _bit_encoder(column.size)(value if is_number else kinds.bytes_of(value))

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        size = _bit_bytes(sql)
        return lambda data: data.rjust(size, b"\0")

    def fitted(self, value: Value, column: Column) -> Value:
        whole = -1 if (number := kinds.number_of(value)) is None else int(rounded(number, 0))
        return whole if 0 <= whole < 1 << column.size else None

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.BIT, sql.length or 1, flags=("UNSIGNED",))

    def digits(self, sql: SqlType) -> int:
        return sql.length or 1

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        return "bigint" if column.size < 64 else "decimal(20,0)"

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        return kinds.RowReading("BIG_ENDIAN", self.fixed_size(column))

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        return kinds.COPY if self.fixed_size(column) == _bit_bytes(sql) else None


class Year(ColumnKind):
    """Years since 1900 in one byte, or 0 for the zero year."""

    values = {ColumnType.YEAR: ValueKind.YEAR}
    has_sign = True
    is_number = True
    zero = "0"
    family = "YEAR"
    size = key_size = 1
    frame = "int"
    line = ("INTEGER", 0, 0)

    def convert(self, column: Column) -> Convert:
        return lambda data: data[0] + YEAR_ZERO if data[0] else 0

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        return kinds.WrittenType(ColumnType.YEAR, b"", _encode_year, is_unsigned=True)

    def length_of(self, written: int | None) -> int | None:
        return written if written == SHORT_YEAR else 4

    def derived(self, column: Column, unit: int | None) -> tuple[str, int | None, int | None]:
        return self.word, 4, column.scale or None

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        year = int(kinds.decimal_of(value))
        return f"{year and _long_year(year):04}"

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        if not isinstance(value, str):
            return _encode_year(int.from_bytes(value, "big") if isinstance(value, bytes) else value)
        year = kinds.whole_of(value)
        return _encode_year(_long_year(year) if len(value) < 3 else year)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        if sql.length == SHORT_YEAR:
            return lambda data: b"%02d" % (data[0] % 100)
        return lambda data: b"%04d" % (YEAR_ZERO + data[0] if data[0] else 0)

    def fitted(self, value: Value, column: Column) -> Value:
        whole = -1 if (number := kinds.number_of(value)) is None else int(rounded(number, 0))
        return whole if whole == 0 or 1901 <= whole <= 2155 else None

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.YEAR, sql.length or 4, flags=("UNSIGNED", "ZEROFILL"))

    def digits(self, sql: SqlType) -> int:
        return 4

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        return kinds.RowReading("YEAR")

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        if not is_binary:
            return "YEAR", SHORT_YEAR if sql.length == SHORT_YEAR else 4, 0, 0, 0
        return ("YEAR_NUMBER", 0, 0, 0, 0) if sql.length != SHORT_YEAR else None


def _bit_bytes(sql: SqlType) -> int:
    """Of a shown value, even if it was stored when the column was narrower."""
    return ((sql.length or 1) + 7) // 8


def _long_year(number: int) -> int:
    return number if number > 99 else number + (2000 if number < 70 else 1900)


def _integer_encoder(size: int, *, is_signed: bool) -> Encode:
    def encode(value: object) -> bytes:
        try:
            number = int(value)  # type: ignore[call-overload]
            return int(number).to_bytes(size, "little", signed=is_signed)
        except OverflowError:
            raise ValueError(f"{value!r} does not fit into {size} bytes") from None
        except TypeError:
            raise ValueError(f"{value!r} is no number") from None

    return encode


def _bit_encoder(bits: int) -> Encode:
    def encode(value: object) -> bytes:
        number = int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)  # type: ignore[call-overload]
        return kinds.bounded(number, bits).to_bytes((bits + 7) // 8, "big")

    return encode


def _encode_year(value: object) -> bytes:
    year = int(value)  # type: ignore[call-overload]
    if year and not 1901 <= year <= 2155:
        raise ValueError(f"{year} is no YEAR")
    return bytes([year - YEAR_ZERO if year else 0])


SERIAL = "serial"  # a declaration: BIGINT UNSIGNED and more
TINYINT, _, _, INT, BIGINT = INTEGERS = (
    Integer("tinyint", ColumnType.TINY, 1, (4, 3), 3, "int1 boolean bool"),
    Integer("smallint", ColumnType.SHORT, 2, (6, 5), 5, "int2"),
    Integer("mediumint", ColumnType.INT24, 3, (9, 8), 8, "middleint int3"),
    Integer("int", ColumnType.LONG, 4, (11, 10), 10, "int4 integer"),
    Integer("bigint", ColumnType.LONGLONG, 8, (20, 20), 19, f"int8 {SERIAL}"),
)
INTEGER_SIZES = {kind.codes[0]: kind.key_size for kind in INTEGERS}
BINARY_SIZES = {kind.word: 4 if kind.key_size == 3 else kind.key_size for kind in INTEGERS}
YEAR = Year("year", ColumnType.YEAR)
KINDS = (*INTEGERS, Bit("bit", ColumnType.BIT), YEAR)
