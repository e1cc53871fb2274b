"""Tables as values: what SHOW lists and information_schema has, chosen from and cut to size; their values as texts."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.replication.wire.response import ColumnDefinition, ResultSet
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.table_name import in_pieces

RowValues = Sequence[Value]
PATTERN_MAX = 10_000  # letters of a pattern
_NUMBER = re.compile(r"\s*([+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,3})?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Relation:
    """Columns and rows; `rows` is read once. While `is_open`, computing the rows takes memory."""

    columns: tuple[ColumnDefinition, ...]
    rows: Iterable[RowValues] = ()
    is_open: bool = False

    def limited(self, limit: tuple[int, int | None] | None) -> Relation:
        """`limit`: how many rows to leave out, and how many to keep at most."""
        if limit is None:
            return self
        first, count = limit
        last = None if count is None else min(first + count, sys.maxsize)
        return replace(self, rows=itertools.islice(self.rows, min(first, sys.maxsize), last))

    def result(self, status: int, *, is_binary: bool = False, codec: str = "utf-8") -> ResultSet:
        return ResultSet(columns=self.columns, rows=_encoded(self.rows, codec), status=status, is_binary=is_binary)


def _encoded(rows: Iterable[RowValues], codec: str) -> Iterator[tuple[bytes | None, ...]]:
    if codec == "utf-8":
        return (tuple(map(bytes_of, row)) for row in rows)
    return (tuple(bytes_of(value, codec) for value in row) for row in rows)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether texts are LIKE a pattern, in any case. Raises RefusedError: it is too long."""
    if len(pattern) > PATTERN_MAX:
        raise not_supported(f"LIKE of more than {PATTERN_MAX} letters")
    pieces = [""]
    letters = iter(pattern.lower())
    for letter in letters:
        if letter == "%":
            pieces.append("")
        else:
            plain = next(letters, letter) if letter == "\\" else letter
            pieces[-1] += "." if letter == "_" else re.escape(plain)
    matches = in_pieces(pieces).fullmatch
    return lambda text: matches(text.lower()) is not None


def text_of(value: Value) -> str:
    """As a client gets it; bytes that are no UTF-8 keep their places."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case float():
            text = repr(value).removesuffix(".0")
            return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def bytes_of(value: Value, codec: str = "utf-8") -> bytes | None:
    """With `?` for letters that the codec lacks."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return text_of(value).encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        return text_of(value).encode(codec, "replace")


def integer_of(value: Value) -> int | None:
    """A value as a rounded integer; a text counts up to its first other character. Raises RefusedError: it is too
    large."""
    number = value
    if isinstance(value, str | bytes):
        match = _NUMBER.match(text_of(value))
        number = float(match[1]) if match else 0.0
    if isinstance(number, float | Decimal) and not -(2**64) < number < 2**64:
        raise RefusedError(1690, "22003", f"BIGINT value is out of range in '{str(value)[:64]}'")
    if isinstance(number, Decimal):
        return int(number + Decimal("0.5").copy_sign(number))
    assert not isinstance(number, str | bytes)
    return round(number) if isinstance(number, float) else number
