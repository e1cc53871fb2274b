"""Values of rows as cells: as text, or in the type of a column."""

import datetime
import json
from collections.abc import Callable
from decimal import Decimal

from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.temporal import moment_reader
from ibbmaster.replication.event.rows.changes import ABSENT, Image
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.rows.value import Reader, Value, fixed
from ibbmaster.rows.expr.column_casts import Convert
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.moment import Moment

EPOCH = datetime.date(1970, 1, 1).toordinal()
SECOND_US = 1_000_000
DAY_US = 86400 * SECOND_US


def completed_columns(schema: TableSchema, version: TableVersion | None) -> int:
    """The columns, a bit each, that an update without them leaves unchanged: all that no server computes; without a
    definition, the primary key."""
    if version is None or version.undefined_because:
        return sum(1 << number for number in schema.primary_key)
    known = zip(range(len(schema.columns)), version.columns, strict=False)
    return sum(1 << number for number, column in known if column.expression is None and column.period is None)


def completed(before: Image, after: Image, columns: int) -> Image:
    """The second image of an update, with the first one's values in these columns."""
    return tuple(
        old if new is ABSENT and columns >> number & 1 else new
        for number, (old, new) in enumerate(zip(before, after, strict=True))
    )


def text_of(value: object) -> str | None:
    """Bytes as 0x and hexadecimal digits, a vector as JSON, the rest as MariaDB shows it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, tuple):
        return json.dumps(value)
    return str(value)


def image_as_map(schema: TableSchema, image: Image | None) -> dict[str, str | None] | None:
    if image is None:
        return None
    return {
        column.name: text_of(value) for column, value in zip(schema.columns, image, strict=True) if value is not ABSENT
    }


def cell_reader(column: Column, spark_type: str) -> Reader:
    """Reads values as cells of a type of `shape.column_type`. Raises ValueError: its type is unreadable."""
    kind = kind_of(column)
    match spark_type:
        case "date" | "timestamp" | "timestamp_ntz":
            size, read_moment = kind.fixed_size(column), moment_reader(column)
            to_cell = day_cell if spark_type == "date" else moment_cell
            assert size is not None
            return fixed(size, lambda data: to_cell(read_moment(data)))
        case "decimal(20,0)":
            return _mapped(kind.reader(column), lambda value: Decimal(str(value)))
        case "string":
            return _mapped(kind.reader(column), text_of)
        case "array<float>":
            return _mapped(kind.reader(column), list)  # type: ignore[arg-type]  # of a tuple
    return kind.reader(column)


def converting_reader(column: Column, convert: Convert | None, spark_type: str) -> Reader:
    """Reads cells of another type, through the values of another column; errors as `cell_reader`."""
    to_cell = value_cell(spark_type)
    return _mapped(
        kind_of(column).reader(column), to_cell if convert is None else lambda value: to_cell(convert(value))
    )


def value_cell(spark_type: str) -> Callable[[Value], object]:
    match spark_type:
        case "date":
            return lambda value: None if value is None else day_cell(_moment_of_text(str(value)))
        case "timestamp" | "timestamp_ntz":
            return lambda value: None if value is None else moment_cell(_moment_of_text(str(value)))
        case "decimal(20,0)":
            return lambda value: Decimal(value) if isinstance(value, int) else value
        case "string":
            return text_of
        case "array<float>":
            return lambda value: list(value) if isinstance(value, tuple) else value
    return lambda value: value


def _moment_of_text(text: str) -> Moment:
    day, _, clock = text.partition(" ")
    clock, _, fraction = clock.partition(".")
    numbers = [*map(int, day.split("-")), *(map(int, clock.split(":")) if clock else (0, 0, 0))]
    return Moment._make((*numbers, int(fraction.ljust(6, "0"))))


def _mapped(read: Reader, to_cell: Callable[[Value], object]) -> Reader:
    def read_cell(data: bytes, offset: int) -> tuple[object, int]:
        value, end = read(data, offset)
        return to_cell(value), end

    return read_cell


def day_cell(moment: Moment) -> int | None:
    """Days since 1970; None for no date, as 0000-00-00."""
    try:
        return datetime.date(moment.year, moment.month, moment.day).toordinal() - EPOCH
    except ValueError:
        return None


def moment_cell(moment: Moment) -> int | None:
    """Microseconds since 1970-01-01 00:00:00; None for no moment, as a clock of 24:00:00."""
    days = day_cell(moment)
    if days is None or moment.hour > 23 or moment.minute > 59 or moment.second > 59:
        return None
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return days * DAY_US + seconds * SECOND_US + moment.microsecond
