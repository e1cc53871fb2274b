"""Cutting an SQL text into tokens. Work is linear in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError

TOKENS_MAX = 10_000
PLACEHOLDER = "?"  # of a prepared statement
NEAR_SIZE = 80  # characters of the statement an error shows
MYSQL_VERSIONS = range(50700, 100000)  # of /*! comments that are meant for MySQL alone

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*|--(?:\s[^\n]*|$))
  | (?P<comment>/\*)
  | (?P<close>\*/)
  | (?P<hex>[xX]'(?:[0-9a-fA-F]{2})*'|0x[0-9a-fA-F]+(?![\w$]))
  | (?P<bits>[bB]'[01]*'|0b[01]+(?![\w$]))
  | (?P<text>[nN]?'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+")
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?(?![\w$]))
  | (?P<system>@@)
  | (?P<user>@(?:`[^`]*`|'[^']*'|"[^"]*"|[\w.$]+))
  | (?P<quoted>`(?:[^`]++|``)*+`)
  | (?P<word>[\w$]+)
  | (?P<sign>:=|<=>|<=|>=|<>|!=|\|\||&&|<<|>>|[-+*/%(),.=<>;!&|^~@?:\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONDITION = re.compile(r"/\*(M?)!(\d{5,6})?", re.ASCII)
_COMMENT_BORDER = re.compile(r"/\*|\*/")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class SqlError(IbbMasterError):
    """The text is no statement that is understood; `near` is where that shows."""

    def __init__(self, near: str, line_no: int) -> None:
        super().__init__(near, line_no)
        self.near = near
        self.line_no = line_no


class SqlToken(NamedTuple):
    """One token; `start` and `end` are places in the statement."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SqlTokens:
    """A text in pieces. `cuts` are the places of conditional comments: their marks, or all of one not executed."""

    sql: str
    tokens: list[SqlToken]
    cuts: list[tuple[int, int]]

    def text_between(self, start: int, end: int) -> str:
        """What was executed of a part of the text, as it was written."""
        pieces = []
        for cut_start, cut_end in self.cuts:
            if start <= cut_start < end:
                pieces.append(self.sql[start:cut_start])
                start = cut_end
        return "".join(pieces) + self.sql[start:end]


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def tokenize(sql: str, *, version: int = 0, has_ansi_quotes: bool = False) -> SqlTokens:
    """Cut a text; spaces and comments are left out. With `has_ansi_quotes` "a" is a name, as `a` is.

    What is in `/*!NNNNNN … */` and `/*M!NNNNNN … */` is executed by servers of that version
    (10.11.19 is 101119) and later, without a number by all; but MySQL's numbers from 50700 on only
    without M.

    Raises:
        SqlError: a quote or comment is not closed, a letter has no meaning, or there are too many tokens.

    Source: MariaDB 10.11 and 11.8, as they answer.
    """
    tokens: list[SqlToken] = []
    cuts: list[tuple[int, int]] = []
    open_conditions = 0
    offset = 0
    while offset < len(sql):
        match = _TOKEN.match(sql, offset)
        if match is None or len(tokens) >= TOKENS_MAX:
            raise error_at(sql, offset)
        end = match.end()
        match match.lastgroup:
            case "space":
                pass
            case "comment":
                condition = _CONDITION.match(sql, offset)
                if condition is not None and _is_executed(condition, version):
                    open_conditions += 1
                    end = condition.end()
                    cuts.append((offset, end))
                else:
                    end = _end_of_comment(sql, offset, nests=condition is not None)
                    if condition is not None:
                        cuts.append((offset, end))
            case "close" if open_conditions:
                open_conditions -= 1
                cuts.append((offset, end))
            case "close":
                raise error_at(sql, offset)
            case "text" if has_ansi_quotes and match[0][0] == '"':
                tokens.append(SqlToken("quoted", _as_name(match[0]), offset, end))
            case kind:
                tokens.append(SqlToken(str(kind), match[0], offset, end))
        offset = end
    if open_conditions:
        raise error_at(sql, offset)
    return SqlTokens(sql, tokens, cuts)


def _as_name(text: str) -> str:
    """A name in double quotes as one in backquotes."""
    return "`" + text[1:-1].replace('""', '"').replace("`", "``") + "`"


def _is_executed(condition: re.Match[str], version: int) -> bool:
    if condition[2] is None:
        return True
    number = int(condition[2])
    return number <= version and (bool(condition[1]) or number not in MYSQL_VERSIONS)


def _end_of_comment(sql: str, start: int, *, nests: bool) -> int:
    if not nests:
        end = sql.find("*/", start + 2)
        if end < 0:
            raise error_at(sql, start)
        return end + 2
    depth = 0
    for border in _COMMENT_BORDER.finditer(sql, start):
        depth += 1 if border[0] == "/*" else -1
        if depth == 0:
            return border.end()
    raise error_at(sql, start)


def error_at(sql: str, offset: int) -> SqlError:
    """What MariaDB says of a statement that makes no sense from `offset` on."""
    return SqlError(sql[offset : offset + NEAR_SIZE], sql.count("\n", 0, offset) + 1)


def unquote(text: str) -> str:
    """The content of a quoted text or name."""
    if text[0] in "nN":
        text = text[1:]
    quote, inner = text[0], text[1:-1]
    if quote == "`":
        return inner.replace("``", "`")
    inner = inner.replace(quote * 2, quote)
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), inner)
