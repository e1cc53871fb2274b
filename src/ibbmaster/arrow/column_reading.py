"""How the values of a column are read by the kernel, and what its numbers mean."""

from dataclasses import dataclass, replace

from ibbmaster.event.column_types.net import INET4_SIZE, INET6_SIZE, UUID_SIZE
from ibbmaster.event.column_types.registry import kind_of
from ibbmaster.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.event.rows.charset import letters_of
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.number import decimal_size
from ibbmaster.kernel.fields import LineOp, RowOp, TextOp

WIDE_DIGITS = 38  # of a number of 128 bits
PLAIN_SCALE = 6  # with more digits Arrow writes small decimals as 1E-7
CASTS = {("int", "bigint"), ("float", "double")}
INTEGER_DIGITS = {"int": 10, "bigint": 19}
UTF8_CHARSETS = ("utf8mb4", "utf8mb3")
OF_NUMBERS = (ValueKind.INTEGER, ValueKind.YEAR, ValueKind.BIT, ValueKind.ENUM, ValueKind.SET)
OF_CLOCKS = {ValueKind.DATETIME: LineOp.DATETIME, ValueKind.TIMESTAMP: LineOp.TIMESTAMP, ValueKind.TIME: LineOp.TIME}
SHOWN = {  # values that the kernel writes as text, and how many bytes they have
    ValueKind.UUID: (TextOp.UUID, UUID_SIZE),
    ValueKind.INET4: (TextOp.INET4, INET4_SIZE),
    ValueKind.INET6: (TextOp.INET6, INET6_SIZE),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read: the kernel's step, and what its numbers are.

    Attributes:
        what: number, text, or bytes; shown: bytes of which the kernel makes what `text_op` says; code: a number
            that encodes a value; value: bytes that do.
    """

    op: RowOp
    first: int
    second: int
    what: str


def reading_of(column: Column, spark_type: str) -> Reading:
    """How the values of a column become cells of a type that `shape.column_type` gave for it.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    kind = kind_of(column)
    size = kind.fixed_size(column)
    match column.kind:
        case ValueKind.FLOAT:
            return Reading(RowOp.FLOAT if column.is_single_precision else RowOp.DOUBLE, 0, 0, "number")
        case ValueKind.YEAR:
            return Reading(RowOp.YEAR, 0, 0, "number")
        case ValueKind.DECIMAL if spark_type.startswith("decimal"):
            return Reading(RowOp.DECIMAL, column.size, column.scale, "number")
        case ValueKind.DATE if spark_type == "date":
            return Reading(RowOp.DATE, 0, 0, "number")
        case ValueKind.DATETIME if spark_type != "string" and not column.has_old_format:
            return Reading(RowOp.DATETIME, column.scale, 0, "number")
        case ValueKind.TIMESTAMP if spark_type != "string" and not column.has_old_format:
            return Reading(RowOp.TIMESTAMP, column.scale, 0, "number")
    if size is None:
        return Reading(RowOp.RAW_PREFIXED, kind.length_size(column), 0, _string_of(column))
    match column.kind:
        case ValueKind.INTEGER:
            return Reading(RowOp.INTEGER, size, int(not column.is_unsigned), "number")
        case ValueKind.BIT:
            return Reading(RowOp.BIG_ENDIAN, size, 0, "number")
        case ValueKind.ENUM | ValueKind.SET:
            return Reading(RowOp.INTEGER, size, 0, "code")
        case ValueKind.TIME if not column.has_old_format:
            return Reading(RowOp.RAW_FIXED, size, 0, "shown")
    return Reading(RowOp.RAW_FIXED, size, 0, "value")


def text_op(column: Column) -> tuple[TextOp, int]:
    """How the kernel shows values as text: with these digits of a second, or of these bytes at most."""
    return SHOWN.get(column.kind) or (TextOp.TIME, column.scale)


def _string_of(column: Column) -> str:
    """What the bytes of a string are to become."""
    if column.is_compressed:
        return "value"
    if column.kind is ValueKind.TEXT:
        charset = column.charset or "utf8mb4"
        return "text" if charset in UTF8_CHARSETS or letters_of(charset) is not None else "value"
    if column.kind in SHOWN:
        return "shown"
    return "bytes" if column.kind in (ValueKind.BINARY, ValueKind.GEOMETRY) else "value"


def text_reading_of(column: Column) -> Reading:
    """How the values of a column are read that become text.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    match column.kind:
        case ValueKind.FLOAT:
            return raw_reading_of(column)
        case ValueKind.DECIMAL if column.size <= WIDE_DIGITS and column.scale <= PLAIN_SCALE:
            return reading_of(column, "decimal")
    reading = reading_of(column, "string")
    return replace(reading, what="value") if reading.what == "bytes" else reading


def raw_reading_of(column: Column) -> Reading:
    """How the values of a column are read that are converted one by one.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    kind = kind_of(column)
    size = kind.fixed_size(column)
    if size is None:
        return Reading(RowOp.RAW_PREFIXED, kind.length_size(column), 0, "value")
    return Reading(RowOp.RAW_FIXED, size, 0, "value")


def line_reading_of(column: Column) -> Reading:
    """How the values of a column are read that become pieces of a line: most stay where they are.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    if column.kind in OF_NUMBERS:
        return reading_of(column, "string")
    return raw_reading_of(column)


def line_op(column: Column) -> tuple[LineOp, int, int]:
    """How the kernel writes the values of a column that `line_reading_of` has read, with its arguments.

    Which labels or letters there are is for the caller to say; SIDE: the reference writes them.
    """
    match column.kind:
        case ValueKind.INTEGER:
            return LineOp.INTEGER, int(not column.is_unsigned), 0
        case ValueKind.YEAR | ValueKind.BIT:
            return LineOp.INTEGER, 0, 0
        case ValueKind.DECIMAL:
            return LineOp.DECIMAL, column.size, column.scale
        case ValueKind.DATE:
            return LineOp.DATE, 0, 0
        case ValueKind.DATETIME | ValueKind.TIMESTAMP | ValueKind.TIME if not column.has_old_format:
            return OF_CLOCKS[column.kind], column.scale, ord(" ")
        case ValueKind.UUID | ValueKind.INET4 | ValueKind.INET6:
            return LineOp[column.kind.name], SHOWN[column.kind][1], 0
        case ValueKind.ENUM:
            return LineOp.CHOICE, 0, 0
        case ValueKind.TEXT if not column.is_compressed:
            charset = column.charset or "utf8mb4"
            if charset in UTF8_CHARSETS:
                return LineOp.UTF8, 0, 0
            return (LineOp.SIDE if letters_of(charset) is None else LineOp.LETTERS), 0, 0
        case ValueKind.BINARY | ValueKind.GEOMETRY if not column.is_compressed:
            is_filled = column.is_fixed_length and column.charset == "binary"
            return LineOp.BASE64, column.size if is_filled else 0, 0
    return LineOp.SIDE, 0, 0


def can_cast(found: str, wanted: str) -> bool:
    """Whether Arrow makes cells of one of Spark's types cells of another, each the same value."""
    if (found, wanted) in CASTS:
        return True
    if not wanted.startswith("decimal("):
        return False
    digits, scale = map(int, wanted[8:-1].split(","))
    if found.startswith("decimal("):
        own_digits, own_scale = map(int, found[8:-1].split(","))
        return own_scale <= scale and own_digits - own_scale <= digits - scale
    return INTEGER_DIGITS.get(found, digits + 1) <= digits - scale


def size_of(reading: Reading) -> int:
    """Bytes of a value, or of its length."""
    match reading.op:
        case RowOp.FLOAT:
            return 4
        case RowOp.DOUBLE:
            return 8
        case RowOp.YEAR:
            return 1
        case RowOp.DATE:
            return 3
        case RowOp.DATETIME:
            return 5 + FRACTION_SIZES[reading.first]
        case RowOp.TIMESTAMP:
            return 4 + FRACTION_SIZES[reading.first]
        case RowOp.DECIMAL:
            return decimal_size(reading.first, reading.second)
        case _:
            return reading.first
