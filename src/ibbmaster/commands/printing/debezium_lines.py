"""Changes in the envelope of Debezium's MariaDB connector, as JSON without schemas, a row a line: docs/printing.md.
Values have the connector's default forms."""

import base64
import datetime
import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from ibbmaster import __version__
from ibbmaster.api.group import Row, UndecodableValue
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.column import Column, TableSchema, ValueKind
from .content import ChangeLines, GroupContent, RowItem
from .json_lines import json_text, json_value

OPERATIONS = {"insert": "c", "update": "u", "delete": "d"}
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY_US = 86_400_000_000
MILLISECONDS_MAX = 3  # digits of a second of a DATETIME in milliseconds
NEAR_ZERO = "0000"
TEMPLATE = Path(__file__).with_name("envelope.json").read_text().replace("$version", __version__)
# The envelope as JSON in pieces: each second one names a value.
ENVELOPE = re.split(r'"\$(\w+)"', json_text(json.loads(TEMPLATE)))
LINE = "".join(f"%({piece})s" if place % 2 else piece for place, piece in enumerate(ENVELOPE))  # has no %


class DebeziumLines(ChangeLines):
    """Statements have no line."""

    def __init__(self, file_name: Callable[[int], str], *, keeps_bytes: bool = False) -> None:
        """`file_name` names a file by its number."""
        super().__init__(keeps_bytes=keeps_bytes)
        self._file_name = file_name

    def lines(self, content: GroupContent, start: LogPosition) -> Iterator[str]:
        head, second = content.head, content.timestamp
        known = {
            "milliseconds": second * 10**3,
            "microseconds": second * 10**6,
            "nanoseconds": second * 10**9,
            "server_id": head.gtid.server_id,
            "gtid": str(head.gtid),
            "file": self._file_name(start.file_no),
            "position": start.offset,
        }
        texts = {name: json_text(value) for name, value in known.items()}
        for number, (table, change) in enumerate(item for item in content.items() if isinstance(item, RowItem)):
            texts |= {"database": json_text(table.database), "table": json_text(table.table), "row": str(number)}
            texts |= {"before": _row(table, change.before), "after": _row(table, change.after)}
            texts["operation"] = f'"{OPERATIONS[change.kind]}"'
            yield LINE % texts


def _row(table: TableSchema, row: Row | None) -> str:
    """Columns that the image lacks are null."""
    return json_text(
        None if row is None else {one.name: connect_value(one, row.get(one.name)) for one in table.columns}
    )


def connect_value(column: Column, value: object) -> object:
    if value is None:
        return None
    convert = None if isinstance(value, UndecodableValue) else _OF_KIND.get(column.kind)
    return json_value(value) if convert is None else convert(column, value)


def form_of(column: Column) -> str:
    """How kernels write a column: "number" of a date that may be NULL, "zoned" text, "bytes", "raw" if only the
    reference can, "unscaled" and "bits"; else as in other formats."""
    if column.kind in _OF_KIND and column.has_old_format:
        return "raw"
    match column.kind:
        case ValueKind.DATE | ValueKind.DATETIME:
            return "number" if column.is_nullable else "raw"  # without NULL, no date is 0
        case ValueKind.TIMESTAMP:
            return "zoned"
        case ValueKind.BINARY if not column.is_compressed:
            return "bytes"
        case ValueKind.BIT:
            return "bits"
        case ValueKind.DECIMAL:
            return "unscaled"
    return "raw" if column.kind in _OF_KIND else ""


def has_clock(column: Column) -> bool:
    return column.kind is ValueKind.DATETIME


def _bits(column: Column, value: object) -> object:
    assert isinstance(value, int)
    return bool(value) if column.size == 1 else _base64(value.to_bytes((column.size + 7) // 8, "little"))


def _decimal(column: Column, value: object) -> str:
    assert isinstance(value, Decimal)
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return _base64(number.to_bytes(size, "big", signed=True))


def _date(column: Column, value: object) -> int | None:
    """DATE: days since 1970; DATETIME: milliseconds or microseconds."""
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        return None if column.is_nullable else 0
    microseconds = (moment - EPOCH) // MICROSECOND
    if not has_clock(column):
        return microseconds // DAY_US
    return microseconds // 1000 if column.scale <= MILLISECONDS_MAX else microseconds


def _timestamp(column: Column, value: object) -> str | None:
    text = str(value)
    if text.startswith(NEAR_ZERO):
        return None if column.is_nullable else f"{EPOCH:%Y-%m-%dT%H:%M:%SZ}"
    return f"{text.replace(' ', 'T')}Z"


def _time(column: Column, value: object) -> int:
    text = str(value)
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    microseconds = ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 10**6 + int(fraction.ljust(6, "0") or 0)
    return -microseconds if text.startswith("-") else microseconds


def _bytes(column: Column, value: object) -> object:
    if not isinstance(value, bytes):
        return json_value(value)
    return _base64(value.ljust(column.size, b"\0") if column.is_fixed_length else value)


def _geometry(column: Column, value: object) -> dict[str, object]:
    assert isinstance(value, bytes)
    return {"srid": int.from_bytes(value[:4], "little") or None, "wkb": _base64(value[4:])}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_OF_KIND: Mapping[ValueKind, Callable[[Column, object], object]] = {
    ValueKind.BIT: _bits,
    ValueKind.DECIMAL: _decimal,
    ValueKind.DATE: _date,
    ValueKind.DATETIME: _date,
    ValueKind.TIMESTAMP: _timestamp,
    ValueKind.TIME: _time,
    ValueKind.BINARY: _bytes,
    ValueKind.GEOMETRY: _geometry,
}
