"""How the values of a column are read by the kernel, and what its numbers stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ibbmaster.event.rows import temporal
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.number import decimal_size
from ibbmaster.event.rows.temporal import FRACTION_SIZES
from ibbmaster.event.rows.value import INTEGER_SIZES, SHORT_LENGTH_MAX
from ibbmaster.kernel.fields import RowOp

WIDE_DIGITS = 38  # of a number of 128 bits
PLAIN_SCALE = 6  # with more digits Arrow writes small decimals as 1E-7
UTF8_CHARSETS = ("utf8mb4", "utf8mb3", "ascii")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read: the kernel's step, and what its numbers are."""

    op: RowOp
    first: int
    second: int
    what: str  # number, text, bytes; code: a number that stands for a value; value: bytes that do


def reading_of(column: Column, spark_type: str) -> Reading:
    """How the values of a column become cells of a type that `shape.column_type` gave for it.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    size = column.size
    match column.type:
        case ColumnType.TINY | ColumnType.SHORT | ColumnType.INT24 | ColumnType.LONG | ColumnType.LONGLONG:
            return Reading(RowOp.INTEGER, INTEGER_SIZES[ColumnType(column.type)], int(not column.is_unsigned), "number")
        case ColumnType.FLOAT:
            return Reading(RowOp.FLOAT, 0, 0, "number")
        case ColumnType.DOUBLE:
            return Reading(RowOp.DOUBLE, 0, 0, "number")
        case ColumnType.BIT:
            return Reading(RowOp.BIG_ENDIAN, (size + 7) // 8, 0, "number")
        case ColumnType.YEAR:
            return Reading(RowOp.YEAR, 0, 0, "number")
        case ColumnType.NEWDECIMAL if spark_type.startswith("decimal"):
            return Reading(RowOp.DECIMAL, size, column.scale, "number")
        case ColumnType.NEWDECIMAL:
            return Reading(RowOp.RAW_FIXED, decimal_size(size, column.scale), 0, "value")
        case ColumnType.ENUM | ColumnType.SET:
            return Reading(RowOp.INTEGER, size, 0, "code")
        case ColumnType.DATE | ColumnType.NEWDATE if spark_type == "date":
            return Reading(RowOp.DATE, 0, 0, "number")
        case ColumnType.DATETIME2 if spark_type != "string":
            return Reading(RowOp.DATETIME, column.scale, 0, "number")
        case ColumnType.TIMESTAMP2 if spark_type != "string":
            return Reading(RowOp.TIMESTAMP, column.scale, 0, "number")
    fixed = _fixed_size(column)
    if fixed is not None:
        return Reading(RowOp.RAW_FIXED, fixed, 0, "value")
    what = "value"
    if column.type not in (ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED):
        if column.kind is ValueKind.TEXT and (column.charset or "utf8mb4") in UTF8_CHARSETS:
            what = "text"
        elif column.kind in (ValueKind.BINARY, ValueKind.GEOMETRY):
            what = "bytes"
    return Reading(RowOp.RAW_PREFIXED, _length_size(column), 0, what)


def text_reading_of(column: Column) -> Reading:
    """How the values of a column are read that become text.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    match column.type:
        case ColumnType.FLOAT:
            return Reading(RowOp.RAW_FIXED, 4, 0, "value")
        case ColumnType.DOUBLE:
            return Reading(RowOp.RAW_FIXED, 8, 0, "value")
        case ColumnType.NEWDECIMAL if column.size <= WIDE_DIGITS and column.scale <= PLAIN_SCALE:
            return reading_of(column, "decimal")
    reading = reading_of(column, "string")
    return replace(reading, what="value") if reading.what == "bytes" else reading


def _fixed_size(column: Column) -> int | None:
    """Bytes of a temporal value; None for strings."""
    digits = column.scale
    sizes = {
        ColumnType.DATE: 3,
        ColumnType.NEWDATE: 3,
        ColumnType.TIME2: 3 + FRACTION_SIZES[digits],
        ColumnType.DATETIME2: 5 + FRACTION_SIZES[digits],
        ColumnType.TIMESTAMP2: 4 + FRACTION_SIZES[digits],
        ColumnType.TIME: temporal.OLD_TIME_SIZES[digits],
        ColumnType.DATETIME: temporal.OLD_DATETIME_SIZES[digits],
        ColumnType.TIMESTAMP: 4 + FRACTION_SIZES[digits],
    }
    return sizes.get(ColumnType(column.type)) if column.type in ColumnType.__members__.values() else None


def _length_size(column: Column) -> int:
    match column.type:
        case ColumnType.STRING | ColumnType.VARCHAR | ColumnType.VAR_STRING | ColumnType.VARCHAR_COMPRESSED:
            return 1 if column.size <= SHORT_LENGTH_MAX else 2
        case ColumnType.BLOB | ColumnType.BLOB_COMPRESSED | ColumnType.GEOMETRY:
            return column.size
    raise ValueError("values of this type cannot be read")


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
