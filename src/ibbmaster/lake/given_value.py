"""A value as people write it for a column: the same for each engine."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

from ibbmaster.errors import ConfigurationError

INTEGERS = {"int": 31, "bigint": 63}  # bits beside the sign
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
Given = str | bytes | int | float | Decimal | datetime.date


def parse_value(column: str, kind: str, text: str) -> Given:
    """What a text means as a value of a column of a Spark type: bytes as 0x…, moments in UTC if they name no zone.

    Raises:
        ConfigurationError: it is no value of that type.
    """
    try:
        return _parsed(kind, text)
    except (ValueError, InvalidOperation, OverflowError):
        raise ConfigurationError(f"column {column} is {kind}, and {text[:60]!r} is no value of that type") from None


def _parsed(kind: str, text: str) -> Given:
    if kind == "string":
        return text
    if kind == "binary":
        return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
    if kind in INTEGERS:
        number = int(text)
        if not -(1 << INTEGERS[kind]) <= number < 1 << INTEGERS[kind]:
            raise ValueError(text)
        return number
    if kind in ("float", "double"):
        return float(text)
    if (match := _DECIMAL.fullmatch(kind)) is not None:
        digits, scale = int(match[1]), int(match[2])
        exact = Decimal(text).quantize(Decimal(1).scaleb(-scale))
        if exact != Decimal(text) or exact.adjusted() >= digits - scale:
            raise ValueError(text)
        return exact
    if kind == "date":
        return datetime.date.fromisoformat(text)
    if kind.startswith("timestamp"):
        moment = datetime.datetime.fromisoformat(text)
        if kind == "timestamp":
            return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).astimezone(datetime.UTC)
        if moment.tzinfo is None:
            return moment
    raise ValueError(text)
