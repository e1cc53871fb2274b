"""What sql_mode can be: its parts as bits and as names, and those that stand for several."""

from __future__ import annotations

import functools

#: In the order of their bits, which is the one they are shown in.
MODES = (
    *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "IGNORE_BAD_TABLE_OPTIONS"),
    *("ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL"),
    *("DB2", "MAXDB", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "ANSI"),
    *("NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"),
    *("NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL"),
    *("NO_AUTO_CREATE_USER", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH"),
    *("EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL"),
)
_BITS = {name: 1 << number for number, name in enumerate(MODES)}

REAL_AS_FLOAT = _BITS["REAL_AS_FLOAT"]
PIPES_AS_CONCAT = _BITS["PIPES_AS_CONCAT"]  # || joins texts
ANSI_QUOTES = _BITS["ANSI_QUOTES"]  # "…" is a name
IGNORE_SPACE = _BITS["IGNORE_SPACE"]  # COUNT (*) is a call
NO_UNSIGNED_SUBTRACTION = _BITS["NO_UNSIGNED_SUBTRACTION"]
ORACLE = _BITS["ORACLE"]
MSSQL = _BITS["MSSQL"]  # […] is a name
NO_BACKSLASH_ESCAPES = _BITS["NO_BACKSLASH_ESCAPES"]
HIGH_NOT_PRECEDENCE = _BITS["HIGH_NOT_PRECEDENCE"]  # NOT binds as ! does
NO_ENGINE_SUBSTITUTION = _BITS["NO_ENGINE_SUBSTITUTION"]  # without it a server that lacks an engine takes another
PAD_CHAR_TO_FULL_LENGTH = _BITS["PAD_CHAR_TO_FULL_LENGTH"]
EMPTY_STRING_IS_NULL = _BITS["EMPTY_STRING_IS_NULL"]
TIME_ROUND_FRACTIONAL = _BITS["TIME_ROUND_FRACTIONAL"]

_OTHER_PRODUCT = "PIPES_AS_CONCAT ANSI_QUOTES IGNORE_SPACE NO_KEY_OPTIONS NO_TABLE_OPTIONS NO_FIELD_OPTIONS"
_STANDS_FOR = {
    "ANSI": "REAL_AS_FLOAT PIPES_AS_CONCAT ANSI_QUOTES IGNORE_SPACE",
    "ORACLE": f"{_OTHER_PRODUCT} NO_AUTO_CREATE_USER SIMULTANEOUS_ASSIGNMENT",
    "MSSQL": _OTHER_PRODUCT,
    "DB2": _OTHER_PRODUCT,
    "MAXDB": f"{_OTHER_PRODUCT} NO_AUTO_CREATE_USER",
    "POSTGRESQL": _OTHER_PRODUCT,
    "MYSQL40": "HIGH_NOT_PRECEDENCE",
    "MYSQL323": "HIGH_NOT_PRECEDENCE",
    "TRADITIONAL": "STRICT_TRANS_TABLES STRICT_ALL_TABLES NO_ZERO_IN_DATE NO_ZERO_DATE ERROR_FOR_DIVISION_BY_ZERO "
    "NO_AUTO_CREATE_USER NO_ENGINE_SUBSTITUTION",
}


@functools.lru_cache(256)
def sql_mode_of(text: str) -> int:
    """The bits of names between commas, with those that they stand for.

    Raises ValueError: a name is none; its text is that name as it was written.

    Source: MariaDB 10.11 and 11.8, as they answer.
    """
    found = 0
    for word in filter(None, text.split(",")):
        name = word.upper()
        if name not in _BITS:
            raise ValueError(word)
        found |= _BITS[name]
        for other in _STANDS_FOR.get(name, "").split():
            found |= _BITS[other]
    return found


def sql_mode_text(sql_mode: int) -> str:
    """The names of bits, as `@@sql_mode` shows them."""
    return ",".join(name for name, bit in _BITS.items() if sql_mode & bit)
