"""Cutting an SQL text into tokens. Work is linear in the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError

TOKENS_MAX = 10_000
NEAR_SIZE = 80  # characters of the statement an error shows

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|/\*(?!!).*?\*/|\#[^\n]*|--(?:\s[^\n]*|$))
  | (?P<conditional>/\*!\d*|\*/)
  | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+(?:[eE][+-]?\d+)?(?![\w$])|0[xX][0-9a-fA-F]+(?![\w$]))
  | (?P<system>@@)
  | (?P<user>@(?:`[^`]*`|'[^']*'|"[^"]*"|[\w.$]+))
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<word>[\w$]+)
  | (?P<sign>:=|<=>|<=|>=|<>|!=|\|\||&&|[-+*/%(),.=<>;!])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class SqlError(IbbMasterError):
    """The text is no statement that is understood; `near` is where that shows."""

    def __init__(self, near: str, line_no: int) -> None:
        super().__init__(near, line_no)
        self.near = near
        self.line_no = line_no


class Token(NamedTuple):
    """One token; `start` and `end` are places in the statement."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(sql: str) -> list[Token]:
    """Cut a statement; spaces and comments are left out, the content of conditional comments is kept.

    Raises:
        SqlError: a quote is not closed, a letter has no meaning, or there are too many tokens.
    """
    tokens: list[Token] = []
    offset = 0
    while offset < len(sql):
        match = _TOKEN.match(sql, offset)
        if match is None or len(tokens) >= TOKENS_MAX:
            raise error_at(sql, offset)
        kind = str(match.lastgroup)
        if kind not in ("space", "conditional"):
            tokens.append(Token(kind, match[0], match.start(), match.end()))
        offset = match.end()
    return tokens


def error_at(sql: str, offset: int) -> SqlError:
    """What MariaDB says of a statement that makes no sense from `offset` on."""
    return SqlError(sql[offset : offset + NEAR_SIZE], sql.count("\n", 0, offset) + 1)


def unquote(text: str) -> str:
    """The content of a quoted text or name."""
    quote, inner = text[0], text[1:-1]
    if quote == "`":
        return inner.replace("``", "`")
    inner = inner.replace(quote * 2, quote)
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), inner)
