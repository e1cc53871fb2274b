"""Values of rows as cells of a DataFrame: as text, or as what the type of a column takes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal

from ibbmaster.event.rows.changes import ABSENT, Image
from ibbmaster.event.rows.column import Column, TableSchema

Cell = object
ToCell = Callable[[object], Cell]
EPOCH = datetime.date(1970, 1, 1).toordinal()
SECOND_US = 1_000_000
DAY_US = 86400 * SECOND_US


def text_of(value: object) -> str | None:
    """A value as text: bytes as 0x and hexadecimal digits, a vector as JSON, the rest as MariaDB shows it."""
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
    """Name and text of each column an image has; columns it leaves out are not in it."""
    if image is None:
        return None
    return {
        column.name: text_of(value) for column, value in zip(schema.columns, image, strict=True) if value is not ABSENT
    }


def cell_reader(column: Column, spark_type: str) -> ToCell:
    """How a value of a column becomes a cell of a type that `shape.column_type` gave for it."""
    match spark_type:
        case "date":
            return date_cell
        case "timestamp" | "timestamp_ntz":
            return moment_cell
        case text if text.startswith("decimal("):
            return lambda value: Decimal(value) if isinstance(value, int) else value
        case "string":
            return text_of
        case "array<float>":
            return lambda value: list(value) if isinstance(value, tuple) else None
    return lambda value: value


def date_cell(value: object) -> int | None:
    """A date as days since 1970; None for what is no day, as 0000-00-00."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.date.fromisoformat(value[:10]).toordinal() - EPOCH
    except ValueError:
        return None


def moment_cell(value: object) -> int | None:
    """A date and time as microseconds since 1970-01-01 00:00:00; None for what is none, as a clock of 24:00:00."""
    days = date_cell(value)
    if days is None:
        return None
    text = str(value)
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if hour > 23 or minute > 59 or second > 59:
        return None
    seconds = (hour * 60 + minute) * 60 + second
    return days * DAY_US + seconds * SECOND_US + int(text[20:].ljust(6, "0"))
