"""How the kernel reads the values of a column."""

from typing import NamedTuple

from ibbmaster.kernel.fields import LineOp, RowOp, TextOp
from ibbmaster.replication.event.column_types import kind
from ibbmaster.replication.event.column_types.decimals import decimal_size
from ibbmaster.replication.event.column_types.kind import ColumnKind
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.replication.event.rows.column import Column

PLAIN_SCALE = 6  # with more digits Arrow writes small decimals as 1E-7
CASTS = {("int", "bigint"), ("float", "double")}
INTEGER_DIGITS = {"int": 10, "bigint": 19}


class Reading(NamedTuple):
    """A `RowReading` with the kernel's number of the step."""

    op: RowOp
    first: int
    second: int
    what: str


def reading_of(column: Column, spark_type: str) -> Reading:
    """Reads values as cells of a type of `shape.column_type`. Raises ValueError: its type is unreadable."""
    return _reading(kind_of(column).reading(column, spark_type))


def _reading(found: kind.RowReading) -> Reading:
    return Reading(RowOp[found.op], *found[1:])


def text_op(column: Column) -> tuple[TextOp, int]:
    """How the kernel shows values: with these digits of a second, or of these bytes at most."""
    name, argument = kind_of(column).text_op(column)
    return TextOp[name], argument


def text_reading_of(column: Column) -> Reading:
    """Reads values that become text; errors as `reading_of`."""
    frame = kind_of(column).frame_type(column, keeps_zeros=True)
    is_plain = frame.startswith("decimal") and column.scale <= PLAIN_SCALE
    reading = reading_of(column, frame if is_plain else "string")
    return reading._replace(what="value") if reading.what == "bytes" else reading


def raw_reading_of(column: Column) -> Reading:
    """Reads values that are converted one by one; errors as `reading_of`."""
    return _reading(ColumnKind.reading(kind_of(column), column, ""))


def line_reading_of(column: Column) -> Reading:
    """Reads values that become pieces of a line, mostly in place; errors as `reading_of`."""
    reading = reading_of(column, "string")
    return reading if reading.what in ("number", "code") else raw_reading_of(column)


def line_op(column: Column) -> tuple[LineOp, int, int]:
    """How the kernel writes values of `line_reading_of`, with its arguments except labels and letters; SIDE: the
    reference does."""
    name, first, second = kind_of(column).line_op(column)
    return LineOp[name], first, second


def can_cast(found: str, wanted: str) -> bool:
    """Whether Arrow casts cells of one Spark type to another unchanged."""
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
