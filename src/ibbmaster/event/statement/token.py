"""Cutting a logged statement into tokens, under the sql_mode it ran in.

What a server has logged was a statement that it understood, so nothing here is an error: a text
that does not end runs to the end of the statement. Comments are left out, but the content of
`/*! … */` and `/*M! … */` is code: those that the server did not run are logged as plain comments.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

ANSI_QUOTES = 1 << 2  # of sql_mode: "…" is a name
MSSQL = 1 << 10  # […] is a name
NO_BACKSLASH_ESCAPES = 1 << 20
OLDEST_REVERSED = 130000  # the first version that knows /*!! … */: what an older one has run has none

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class TokenKind(enum.Enum):
    """What a token is."""

    WORD = "word"  # a key word or a name without quotes, also a number
    NAME = "name"  # in quotes
    TEXT = "text"
    SIGN = "sign"


class StatementToken(NamedTuple):
    """One token; `text` is without quotes. `is_spaced`: a space, or a comment, stands before it."""

    kind: TokenKind
    text: str
    is_spaced: bool = False

    def is_word(self, *words: str) -> bool:
        """Whether this is one of some key words, which are given in capitals."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_sign(self, sign: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text == sign


@functools.cache
def _pattern(sql_mode: int) -> re.Pattern[str]:
    texts = r"(?:[^']|'')*" if sql_mode & NO_BACKSLASH_ESCAPES else r"(?:[^'\\]|\\.|'')*"
    doubled = texts.replace("'", '"')
    bracketed = r"|\[(?:[^\]]|\]\])*\]?" if sql_mode & MSSQL else ""
    return re.compile(
        rf"""
        (?P<space>\s+|/\*(?!M?!(?!999999)).*?(?:\*/|\Z)|\#[^\n]*|--(?=\s|\Z)[^\n]*)
      | (?P<code>/\*M?!!?(?:\d{{5,6}})?)
      | (?P<text>'{texts}'?)
      | (?P<double>"{doubled}"?)
      | (?P<name>`(?:[^`]|``)*`?{bracketed})
      | (?P<word>[\w$\u0080-\U0010ffff]+)
      | (?P<sign>.)
        """,
        re.VERBOSE | re.DOTALL,
    )


def tokens(sql: str, sql_mode: int = 0, version: int | None = None) -> Iterator[StatementToken]:
    """The tokens of a statement, one by one: of a long one only those are cut that the caller takes.

    `version` is of the server that ran it, as 110806; it decides on comments that only older ones run.
    """
    return (token for token, _, _ in placed_tokens(sql, sql_mode, version))


def placed_tokens(sql: str, sql_mode: int = 0, version: int | None = None) -> Iterator[tuple[StatementToken, int, int]]:
    """The same, each with where it begins in the statement and where it ends."""
    find = _pattern(sql_mode & (NO_BACKSLASH_ESCAPES | MSSQL)).match
    offset, depth = 0, 0
    is_spaced = False
    while (match := find(sql, offset)) is not None:
        text, group = match[0], match.lastgroup
        if depth and text == "*" and sql.startswith("*/", offset):
            depth, offset, is_spaced = depth - 1, offset + 2, True
            continue
        offset = match.end()
        if group in ("space", "code"):
            if group == "code" and _is_for_older(text, version):
                end = sql.find("*/", offset)
                offset = len(sql) if end < 0 else end + 2
            else:
                depth += group == "code"
            is_spaced = True
            continue
        if group == "word":
            yield StatementToken(TokenKind.WORD, text, is_spaced), match.start(), offset
        elif group == "sign":
            yield StatementToken(TokenKind.SIGN, text, is_spaced), match.start(), offset
        elif group == "name" or (group == "double" and sql_mode & ANSI_QUOTES):
            yield StatementToken(TokenKind.NAME, _inside(text), is_spaced), match.start(), offset
        else:
            inner = _unescaped(_inside(text), sql_mode)
            yield StatementToken(TokenKind.TEXT, inner, is_spaced), match.start(), offset
        is_spaced = False


def _is_for_older(opening: str, version: int | None) -> bool:
    """Whether a comment is code for servers older than its number alone, and this one is not."""
    _, _, number = opening.partition("!!")
    return number.isdecimal() and int(number) <= (version or OLDEST_REVERSED)


def _inside(text: str) -> str:
    """What is between quotes, a doubled quote taken once."""
    quote = "]" if text[0] == "[" else text[0]
    inner = text[1:-1] if len(text) > 1 and text.endswith(quote) else text[1:]
    return inner.replace(quote * 2, quote)


def _unescaped(text: str, sql_mode: int) -> str:
    if sql_mode & NO_BACKSLASH_ESCAPES:
        return text
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
