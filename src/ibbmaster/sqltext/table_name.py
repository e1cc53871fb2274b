"""Names of tables and patterns for several: read from options and printed in backquotes where needed, as
`shop.eu`.orders; what is printed can be an option."""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError
from .quoting import quoted_name, unquoted

_NEEDS_QUOTES = re.compile(r"[`.,*?=]|\A\s|\s\Z")
_PART = r"(`(?:[^`]|``)+`|[^`.][^.]*)"
_NAME = re.compile(rf"{_PART}\.{_PART}", re.DOTALL)
_QUOTED = re.compile(r"(?<![^.,=\s])`(?:[^`]|``)*`")  # inside a name, a backquote is a letter
_TEXT_MAX = 80  # characters of a text in an error


class TableName(NamedTuple):
    """Of a table or a program, without quotes."""

    database: str
    name: str

    def __str__(self) -> str:
        return printed_table(self.database, self.name)

    @property
    def sql(self) -> str:
        return f"{quoted_name(self.database)}.{quoted_name(self.name)}"


class TablePattern(NamedTuple):
    """As they are written: `*` means any letters and `?` one, but in backquotes."""

    database: str
    name: str

    def __str__(self) -> str:
        return ".".join(self)

    @property
    def has_wildcard(self) -> bool:
        return any(not part.startswith("`") and {"*", "?"} & set(part) for part in self)

    def takes(self, name: TableName) -> bool:
        return _takes(self, name)


def printed_name(name: str) -> str:
    return quoted_name(name) if _NEEDS_QUOTES.search(name) else name


@functools.lru_cache(maxsize=1024)
def printed_table(database: str, name: str) -> str:
    """Cached for callers that ask with each row."""
    return f"{printed_name(database)}.{printed_name(name)}"


def parse_name(text: str) -> str:
    """Perhaps in backquotes. Raises ConfigurationError: it has a dot, and no backquotes."""
    found = re.fullmatch(_PART, text.strip(), re.DOTALL)
    if found is None:
        raise ConfigurationError(f"{text[:_TEXT_MAX]!r} is not a name: put backquotes around one with a dot")
    return _plain(found[0])


@functools.lru_cache(maxsize=1024)
def parse_table_name(text: str) -> TableName:
    """Of `database.table`. Raises ConfigurationError: it is something else."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise _unread(text, "the name of a table", "shop.orders")
    return TableName(_plain(found[1]), _plain(found[2]))


@functools.lru_cache(maxsize=1024)
def parse_table_pattern(text: str) -> TablePattern:
    """As `parse_table_name`, with wildcards outside of backquotes."""
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise _unread(text, "a pattern for tables", "'shop.*'")
    return TablePattern(found[1], found[2])


def divided(text: str, sign: str) -> list[str]:
    """The parts of a text between commas or another sign, without spaces around them; in backquotes it is a letter."""
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    ends = [place for place, letter in enumerate(masked) if letter == sign]
    return [
        text[start:end].strip() for start, end in zip([0, *(one + 1 for one in ends)], [*ends, len(text)], strict=True)
    ]


@functools.lru_cache(maxsize=4096)
def _takes(pattern: TablePattern, name: TableName) -> bool:
    return matches(pattern.database, name.database) and matches(pattern.name, name.name)


def matches(pattern: str, name: str) -> bool:
    return _expression(pattern).fullmatch(name) is not None


@functools.lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    if pattern.startswith("`"):
        return re.compile(re.escape(unquoted(pattern)))
    return in_pieces(["".join("." if one == "?" else re.escape(one) for one in part) for part in pattern.split("*")])


def in_pieces(pieces: Sequence[str]) -> re.Pattern[str]:
    """Pieces of a pattern with any letters between; each matches where it is found first, in linear time."""
    first, *others = pieces
    if others:
        first += "".join(f"(?>.*?{piece})" for piece in others[:-1]) + f".*{others[-1]}"
    return re.compile(first, re.DOTALL)


def _plain(part: str) -> str:
    return unquoted(part) if part.startswith("`") else part


def _unread(text: str, what: str, example: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text[:_TEXT_MAX]!r} is not {what}: expected database.table, as {example}; put backquotes around a "
        "name with a dot, as `shop.eu`.orders"
    )
