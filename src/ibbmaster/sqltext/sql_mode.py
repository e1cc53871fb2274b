"""The parts of sql_mode as bits and as names: a row each in `sql_mode.tsv`."""

import functools

from ibbmaster.facts import rows_of

_STANDS_FOR = dict(rows_of("ibbmaster.sqltext", "sql_mode"))
MODES = tuple(_STANDS_FOR)  # in the order of their bits
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


@functools.lru_cache(256)
def sql_mode_of(text: str) -> int:
    """The bits of names between commas, and of what they imply. Raises ValueError. Source: answers of MariaDB 10.11,
    11.8."""
    found = 0
    for word in filter(None, text.split(",")):
        name = word.upper()
        if name not in _BITS:
            raise ValueError(word)
        found |= _BITS[name]
        for other in _STANDS_FOR[name].split():
            found |= _BITS[other]
    return found


def sql_mode_text(sql_mode: int) -> str:
    return ",".join(name for name, bit in _BITS.items() if sql_mode & bit)
