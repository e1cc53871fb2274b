"""Whether a type that was told of a column is the one that was logged, by its number or in the words of SQL."""

from __future__ import annotations

import re

from ibbmaster.event.rows.column import Column, ColumnType
from ibbmaster.schema.table_map import CODES
from ibbmaster.schema.type_clause import INTEGERS

_IN_STRINGS = (ColumnType.ENUM, ColumnType.SET)  # a TABLE_MAP has them as STRING, and their own number after it
_SCALED = (ColumnType.TIME2, ColumnType.DATETIME2, ColumnType.TIMESTAMP2)
_SAME_WORDS = {"integer": "int", "numeric": "decimal", "dec": "decimal", "boolean": "tinyint"}
_TYPE = re.compile(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(.*)", re.DOTALL)


def is_same_type(logged: Column, told: int | str) -> bool:
    """Whether a type is that of the column.

    A number is that of a TABLE_MAP. A text is SQL, as `decimal(10,2)` or `INT UNSIGNED NOT NULL`; what it leaves out
    is not compared, nor are lengths of texts, which depend on a character set, and widths of integers, which only show.
    """
    if isinstance(told, int):
        return told == logged.type or (told == ColumnType.STRING and logged.type in _IN_STRINGS)
    found = _TYPE.fullmatch(told.lower())
    if found is None:
        return False
    word = _SAME_WORDS.get(found[1], found[1])
    if logged.type not in CODES.get(word, ()):
        return False
    if word in INTEGERS and logged.is_unsigned is not None and logged.is_unsigned != ("unsigned" in found[4].split()):
        return False
    return found[2] is None or _has_digits(logged, int(found[2]), int(found[3] or 0))


def _has_digits(logged: Column, first: int, second: int) -> bool:
    """Whether the numbers in brackets after a type are those of the column."""
    if logged.type == ColumnType.NEWDECIMAL:
        return (logged.size, logged.scale) == (first, second)
    if logged.type in _SCALED:
        return logged.scale == first
    return logged.type != ColumnType.BIT or logged.size == first
