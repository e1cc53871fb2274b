"""Comparing values of a column with constants of its own family, by what is stored; any other pair is for `query`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.event.rows.column import ValueKind
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.fold.contents import InexactRowsError
from ibbmaster.fold.literals import stored_value
from ibbmaster.fold.stored import StoredColumn, is_padded
from ibbmaster.fold.value_texts import TextSettings, text_of
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import moment_of

_CASE_ALONE = re.compile(  # collations that compare ASCII by its letters, of whatever case
    r"(?:latin1_(?:swedish|general)|ascii_general|(?:utf8mb[34]_)?(?:general|unicode|unicode_520|uca1400))"
    r"_(?:nopad_)?(?:a[is]_)?ci"
)
_DATES = (ValueKind.DATE, ValueKind.DATETIME, ValueKind.TIMESTAMP)
_ADDRESSES = (ValueKind.INET4, ValueKind.INET6)
_BYTE_ORDER = ("utf8mb4", "utf8mb3", "ascii", "latin1")  # character sets whose bytes are in the order of their letters


@dataclass(frozen=True, slots=True)
class Comparable:
    """How stored values of a column, and constants, become what compares as they do.

    `of_constant` raises ValueError for what is of another family.
    """

    of_stored: Callable[[bytes], Any]
    of_constant: Callable[[Value], Any]


def comparable(column: StoredColumn, *, time_zone_s: int = 0) -> Comparable:
    """How values of a column compare.

    Raises:
        RefusedError: not by what is stored.
    """
    kind = column.column.kind
    if kind in (ValueKind.INTEGER, ValueKind.DECIMAL) and not column.type.is_zerofill:
        return Comparable(kind_of(column.column).convert(column.column), partial(_number, column))
    if kind in _DATES:
        text = text_of(column.column, column.type, TextSettings(None, time_zone_s))
        return Comparable(lambda data: _whole(text(data).decode()), partial(_moment, column))
    if kind is ValueKind.UUID:  # in the order in which a server stores them, which is not that of a row event
        text = text_of(column.column, column.type, TextSettings())
        return Comparable(lambda data: _stored_text(column, text(data).decode()), partial(_stored_text, column))
    if kind in _ADDRESSES:
        return Comparable(bytes, partial(_stored_text, column))
    if kind is ValueKind.BINARY and not column.column.is_fixed_length and not column.column.is_compressed:
        return Comparable(text_of(column.column, column.type, TextSettings()), _bytes)
    if kind is ValueKind.TEXT and (column.type.collation or "").endswith("_bin"):
        if column.type.charset not in _BYTE_ORDER:
            raise not_supported(f"comparing column {column.column.name} of {column.type.charset}")
        text, make = text_of(column.column, column.type, TextSettings()), bytes
        if is_padded(column.type):
            make = _Padded  # type: ignore[assignment]
        return Comparable(lambda data: make(text(data)), lambda value: make(_stored_text(column, value)))
    raise not_supported(f"comparing column {column.column.name} by its bytes")


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


def _number(column: StoredColumn, value: Value) -> int | Decimal:
    scale = column.type.scale or 0
    if isinstance(value, Decimal) and column.column.kind is ValueKind.DECIMAL:
        _, digits, exponent = value.as_tuple()
        if isinstance(exponent, int) and not any(digits[max(len(digits) + exponent + scale, 0) :]):
            return value
    if not isinstance(value, int):
        raise ValueError(f"{value!r} beside a number of {scale} digits after the point")  # noqa: TRY004
    return value


def _moment(column: StoredColumn, value: Value) -> str:
    if not isinstance(value, str) or (found := moment_of(value)).hour > 23:
        raise ValueError(f"{value!r} is no date and time")
    digits = column.type.scale or column.type.length or 0
    if column.column.kind is not ValueKind.DATE and f"{found.microsecond:06}"[digits:].strip("0"):
        raise ValueError(f"{value!r} has more than {digits} digits of a second")
    return found.text


def _whole(text: str) -> str:
    """A date and time with all of its digits, so that texts compare as times do."""
    if len(text) == 10:
        return f"{text} 00:00:00.000000"
    head, _, fraction = text.partition(".")
    return f"{head}.{fraction.ljust(6, '0')}"


def _stored_text(column: StoredColumn, value: Value) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")  # noqa: TRY004
    found = stored_value(column.column, column.type, value)
    assert found is not None
    return found


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"{value!r} are no bytes")  # noqa: TRY004
    return value
