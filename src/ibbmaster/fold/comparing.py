"""Comparing values of a column with constants, as a primary does it, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.event.rows.column import ValueKind
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.fold.contents import InexactRowsError
from ibbmaster.fold.literals import stored_value
from ibbmaster.fold.stored import StoredColumn, is_padded
from ibbmaster.fold.value_texts import TextSettings, text_of
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import loose_moment, parse_duration

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_CASE_ALONE = re.compile(  # collations that compare ASCII by its letters, of whatever case
    r"(?:latin1_(?:swedish|general)|ascii_general|(?:utf8mb[34]_)?(?:general|unicode|unicode_520|uca1400))"
    r"_(?:nopad_)?(?:a[is]_)?ci"
)
_NUMBERS = (ValueKind.INTEGER, ValueKind.YEAR, ValueKind.DECIMAL, ValueKind.BIT, ValueKind.FLOAT)
_DATES = (ValueKind.DATE, ValueKind.DATETIME, ValueKind.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Comparable:
    """How stored values of a column, and constants, become what compares as they do.

    `of_constant` raises ValueError for what the column is not compared with here. `has_order`:
    also for less and greater.
    """

    of_stored: Callable[[bytes], Any]
    of_constant: Callable[[Value], Any]
    has_order: bool = True


def comparable(column: StoredColumn, *, is_key: bool, time_zone_s: int) -> Comparable:
    """How values of a column compare; texts of a key by their bytes.

    Raises:
        RefusedError: they follow a collation.
    """
    kind = column.column.kind
    if kind in _NUMBERS:
        return _numbers(column)
    if kind in _DATES:
        text = text_of(column.column, column.type, TextSettings(None, time_zone_s))
        return Comparable(lambda data: _moment(text(data).decode()), _constant_moment)
    if kind is ValueKind.TIME:
        text = text_of(column.column, column.type, TextSettings())
        return Comparable(lambda data: _duration(text(data).decode()), _constant_duration)
    if kind is ValueKind.TEXT:
        return _texts(column, is_key=is_key)
    if kind in (ValueKind.ENUM, ValueKind.SET):
        return Comparable(bytes, lambda value: stored_value(column.column, column.type, value), has_order=False)
    if kind in (ValueKind.UUID, ValueKind.INET4, ValueKind.INET6):
        return Comparable(bytes, lambda value: stored_value(column.column, column.type, value))
    text = text_of(column.column, column.type, TextSettings())
    return Comparable(text, _constant_bytes)


AlikePart = Callable[[bytes], bytes | None]
"""Makes stored values that compare as equal the same bytes; None where others may be equal, too."""


def is_text(column: StoredColumn) -> bool:
    """Whether its values compare by a collation, as texts."""
    return column.type.collation is not None and not column.type.labels


def alike_part(column: StoredColumn) -> AlikePart:
    """What makes the values of a column that are equal the same bytes.

    Raises:
        InexactRowsError: the collation of its texts is none that is known here.
    """
    if not is_text(column):
        return bytes
    collation = column.type.collation or ""
    trimmed = (lambda data: data.rstrip(b" ")) if is_padded(column.type) else bytes
    if collation.endswith("_bin"):
        return trimmed
    if _CASE_ALONE.fullmatch(collation) is None:
        raise InexactRowsError(f"texts of {collation} are compared")
    return lambda data: trimmed(data).upper() if data.isascii() and data.decode().isprintable() else None


def _numbers(column: StoredColumn) -> Comparable:
    read = kind_of(column.column).convert(column.column)
    return Comparable(read, _constant_real if column.column.kind is ValueKind.FLOAT else _constant_number)


def _texts(column: StoredColumn, *, is_key: bool) -> Comparable:
    charset, collation = column.column.charset or "utf8mb4", column.type.collation or ""
    text = text_of(column.column, column.type, TextSettings())

    def of_constant(value: Value) -> bytes:
        found = stored_value(column.column, column.type, value if isinstance(value, bytes) else str(value))
        assert found is not None
        return found

    if is_key and is_padded(column.type):
        return Comparable(lambda data: text(data).rstrip(b" "), lambda value: of_constant(value).rstrip(b" "))
    if is_key:
        return Comparable(text, of_constant)
    if not collation.endswith("_bin"):
        raise not_supported(f"comparing column {column.column.name}, whose collation is {collation}")
    if collation.endswith("nopad_bin") or charset not in ("utf8mb4", "utf8mb3", "ascii", "latin1"):
        return Comparable(text, of_constant, has_order=charset in ("utf8mb4", "utf8mb3", "ascii", "latin1"))
    return Comparable(lambda data: _Padded(text(data)), lambda value: _Padded(of_constant(value)))


class _Padded:
    """A text that is compared as if spaces followed it."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data.rstrip(b" ")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Padded) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __lt__(self, other: _Padded) -> bool:
        size = max(len(self._data), len(other._data))
        return self._data.ljust(size) < other._data.ljust(size)

    def __gt__(self, other: _Padded) -> bool:
        return other < self

    def __le__(self, other: _Padded) -> bool:
        return not other < self

    def __ge__(self, other: _Padded) -> bool:
        return not self < other


def _constant_number(value: Value) -> int | float | Decimal:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError(f"{value!r} is no number")
        try:
            return Decimal(value.strip())
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number") from None
    assert value is not None
    return value


def _constant_real(value: Value) -> float:
    """As a floating number is compared: 0.1 is the one that is nearest to it."""
    return float(_constant_number(value))


def _moment(text: str) -> str:
    """A date and time with all of its digits, so that texts compare as times do."""
    if len(text) == 10:
        return f"{text} 00:00:00.000000"
    head, _, fraction = text.partition(".")
    return f"{head}.{fraction.ljust(6, '0')}"


def _constant_moment(value: Value) -> str:
    return loose_moment(str(value)).text


def _duration(text: str) -> int:
    """A TIME in microseconds."""
    found = parse_duration(text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    return found


def _constant_duration(value: Value) -> int:
    return _duration(str(value).strip())


def _constant_bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
