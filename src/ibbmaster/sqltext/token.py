"""Cuts SQL into tokens under an sql_mode, in linear time: `tokenize` a client's text, which may be wrong, `tokens` a
logged statement, where a text without an end runs to the end. Callers decode texts first."""

import enum
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError
from ibbmaster.versions import Difference
from .quoting import quoted, quoted_name, unescaped
from .sql_mode import ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES

TOKENS_MAX = 10_000  # of a text that a client sends
PLACEHOLDER = "?"  # of a prepared statement
NEAR_SIZE = 80  # characters of the statement in an error
MYSQL_VERSIONS = range(50700, 100000)  # of /*! comments for MySQL alone
NEVER = 999999  # the number of a comment that no server runs

_LETTER = r"[0-9A-Za-z_$\u0080-\ud7ff\ue000-\U0010ffff]"
_NAME = re.compile(f"(?P<word>{_LETTER}+)")
_CONDITION = re.compile(r"/\*(M?)!(!?)([0-9]{5,6})?")
_COMMENT_BORDER = re.compile(r"/\*|\*/")


class TokenKind(enum.StrEnum):
    WORD = "word"  # a key word, or a name without quotes
    NAME = "quoted"  # in quotes
    TEXT = "text"
    NUMBER = "number"
    HEX = "hex"
    BITS = "bits"
    USER = "user"  # @ and a name, perhaps in quotes: a variable, or the host of an account
    SYSTEM = "system"  # the two @ of a variable
    SIGN = "sign"


LITERALS = (TokenKind.TEXT, TokenKind.HEX, TokenKind.BITS)  # behind the name of a character set


class Token(NamedTuple):
    kind: TokenKind
    text: str  # of texts and names without quotes, of `@name` the name
    is_spaced: bool = False  # a space, or a comment, stands before it
    start: int = 0
    end: int = 0

    def is_word(self, *words: str) -> bool:
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_sign(self, sign: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text == sign

    @property
    def is_name(self) -> bool:
        return self.kind in (TokenKind.WORD, TokenKind.NAME)

    @property
    def word(self) -> str:
        """In capitals; empty for other tokens, so that no text looks like a key word."""
        return self.text.upper() if self.kind in (TokenKind.WORD, TokenKind.SIGN) else ""

    @property
    def written(self) -> str:
        """The token as SQL under sql_mode ''."""
        match self.kind:
            case TokenKind.TEXT:
                return quoted(self.text)
            case TokenKind.NAME:
                return quoted_name(self.text)
            case TokenKind.USER:
                return f"@{self.text if _NAME.fullmatch(self.text) else quoted_name(self.text)}"
        return self.text


class SqlError(IbbMasterError):
    """The text makes no sense from `near` on."""

    def __init__(self, near: str, line_no: int) -> None:
        super().__init__(near, line_no)
        self.near = near
        self.line_no = line_no


class UnreadSqlError(SqlError):
    """SQL in a form that is not read here."""

    def __init__(self, what: str) -> None:
        super().__init__(what, 1)
        self.what = what


@dataclass(frozen=True, slots=True)
class SqlTokens:
    sql: str
    tokens: list[Token]
    cuts: list[tuple[int, int]]  # places of conditional comments: their marks, or all of one that is not run
    sql_mode: int = 0
    end: int = 0  # where the text goes on

    def text_between(self, start: int, end: int) -> str:
        """The part of the text that is run, as written."""
        pieces = []
        for cut_start, cut_end in self.cuts:
            if start <= cut_start < end:
                pieces.append(self.sql[start:cut_start])
                start = cut_end
        return "".join(pieces) + self.sql[start:end]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def tokens(sql: str, sql_mode: int = 0, version: int | None = None) -> Iterator[Token]:
    """The tokens of a logged statement, cut on demand. The content of `/*! … */` and `/*M! … */` is code, as what did
    not run is logged as comments; the server's `version` decides on those that only older servers run."""
    return _Cutter(sql, sql_mode, version, is_logged=True).tokens()


def tokenize(sql: str, *, version: int = 0, sql_mode: int = 0, start: int = 0, is_one: bool = False) -> SqlTokens:
    """Cut a client's statements from `start` on, without spaces and comments; with `is_one` only the next one, which
    may change the meaning of others. Servers of version NNNNNN (10.11.19 is 101119) and later run the content of
    `/*!NNNNNN … */` and `/*M!NNNNNN … */`, without a number all do; from 50700 on numbers count only with M. Older
    servers run `/*!!NNNNNN … */`, if they know that form. Raises SqlError: a quote or comment is not closed, a letter
    has no meaning, or there are too many tokens. Source: MariaDB 10.11 and 11.8, as they answer."""
    cutter = _Cutter(sql, sql_mode, version, is_logged=False, start=start)
    found: list[Token] = []
    end = len(sql)
    for token in cutter.tokens():
        if len(found) >= TOKENS_MAX:
            raise error_at(sql, token.start)
        if is_one and token.is_sign(";") and (found or start):
            if found:
                end = token.end
                break
            continue
        found.append(token)
    return SqlTokens(sql, found, cutter.cuts, sql_mode, end)


def error_at(sql: str, offset: int) -> SqlError:
    return SqlError(sql[offset : offset + NEAR_SIZE], sql.count("\n", 0, offset) + 1)


@functools.cache
def _pattern(sql_mode: int) -> re.Pattern[str]:
    escapes = "" if sql_mode & NO_BACKSLASH_ESCAPES else r"|\\."
    plain = "" if sql_mode & NO_BACKSLASH_ESCAPES else r"\\"
    single, double = (f"{quote}(?>(?:[^{quote}{plain}]++{escapes}|{quote}{quote})*)" for quote in "'\"")
    back = "`(?>(?:[^`]++|``)*)"
    bracketed, sign = "(?!)", r"\[\]"
    if sql_mode & MSSQL:
        bracketed, sign = r"\[(?>(?:[^\]]++|\]\])*)", r"\]"
    return re.compile(
        rf"""
        (?P<space>[\t-\r\ ]++|\#[^\n]*+|--(?=[\x00-\x20\x7f]|\Z)[^\n]*+|/\*(?!M?!).*?\*/)
      | (?P<word>(?![0-9]|[xXbBnN]'){_LETTER}++)
      | (?P<plain>[(),;])
      | (?P<comment>/\*)
      | (?P<hex>[xX]'[0-9a-fA-F]*'|0x[0-9a-fA-F]+(?!{_LETTER}))
      | (?P<bits>[bB]'[01]*'|0b[01]+(?!{_LETTER}))
      | (?P<text>[nN]?{single}'|{double}")
      | (?P<number>[0-9]++\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?
          |[0-9]+(?:[eE][-+]?[0-9]+)?(?!{_LETTER}))
      | (?P<system>@@)
      | (?P<user>@(?:{back}`|{single}'|{double}"|(?:{_LETTER}|\.)+))
      | (?P<quoted>{back}`|{bracketed}\])
      | (?P<other_word>{_LETTER}+)
      | (?P<open>[nN]?{single}|{double}|{back}|{bracketed})
      | (?P<sign>:=|<=>|<=|>=|<>|!=|\|\||&&|<<|>>|[-+*/%(),.=<>;!&|^~@?:{{}}{sign}])
      | (?P<other>.)
        """,
        re.VERBOSE | re.DOTALL,
    )


class _Cutter:
    def __init__(self, sql: str, sql_mode: int, version: int | None, *, is_logged: bool, start: int = 0) -> None:
        self._sql = sql
        self._sql_mode = sql_mode
        self._version = version
        self._is_logged = is_logged
        self._start = start
        self._open_conditions = 0
        self.cuts: list[tuple[int, int]] = []

    def tokens(self) -> Iterator[Token]:
        sql, offset, is_spaced = self._sql, self._start, False
        find = _pattern(self._sql_mode & (NO_BACKSLASH_ESCAPES | MSSQL)).match
        next_of_name = None  # a dot directly after a name, or the word after that: no number begins there
        while (match := (next_of_name and next_of_name(sql, offset)) or find(sql, offset)) is not None:
            group, end = match.lastgroup, match.end()
            if group == "space":
                offset, is_spaced, next_of_name = end, True, None
                continue
            if group == "comment" or (self._open_conditions and sql.startswith("*/", offset)):
                offset, is_spaced, next_of_name = self._passed_mark(offset), True, None
                continue
            kind = _AS_WRITTEN.get(group)
            if kind is None:
                token = self._token(group, match, is_spaced)
                kind = token.kind
            else:
                token = Token(kind, match[0], is_spaced, offset, end)
            yield token
            if next_of_name is _POINT:
                next_of_name = _WORD
            elif kind is _KIND_WORD or kind is _KIND_NAME:
                next_of_name = _POINT if sql.startswith(".", end) else None
            else:
                next_of_name = None
            offset, is_spaced = end, False
        if self._open_conditions and not self._is_logged:
            raise error_at(sql, offset)

    def _token(self, group: str | None, match: re.Match[str], is_spaced: bool) -> Token:
        start, end = match.span()
        text = match[0]
        match group:
            case "hex":
                kind = TokenKind.HEX
                if text[1] == "'" and len(text) % 2 == 0 and not self._is_logged:
                    raise error_at(self._sql, start)
            case "text" | "quoted":
                kind, text = self._in_quotes(text, len(text) - 1)
            case "user":
                kind, text = TokenKind.USER, text[1:]
                if text[0] in "'\"`":
                    _, text = self._in_quotes(text, len(text) - 1)
            case _ if not self._is_logged:
                raise error_at(self._sql, start)
            case "open":
                kind, text = self._in_quotes(text, len(text))
            case _:
                kind = TokenKind.SIGN
        return Token(kind, text, is_spaced, start, end)

    def _in_quotes(self, text: str, end: int) -> tuple[TokenKind, str]:
        start = text[0] in "nN"
        quote, inner = text[start], text[start + 1 : end]
        if quote in "`[":
            quote = "]" if quote == "[" else quote
            return TokenKind.NAME, inner.replace(quote * 2, quote)
        if quote == '"' and self._sql_mode & ANSI_QUOTES:
            return TokenKind.NAME, inner.replace('""', '"')
        return TokenKind.TEXT, unescaped(inner, quote, self._sql_mode)

    def _passed_mark(self, start: int) -> int:
        condition = _CONDITION.match(self._sql, start)
        if not self._sql.startswith("/*", start):
            self._open_conditions -= 1
            end = start + 2
        elif condition is not None and (end := self._begin_of_code(condition)):
            self._open_conditions += 1
        else:
            end = self._end_of_comment(start, nests=condition is not None)
        if condition is not None or end == start + 2:
            self.cuts.append((start, end))
        return end

    def _begin_of_code(self, condition: re.Match[str]) -> int:
        """Of a conditional comment; 0 if it is not run."""
        number = int(condition[3] or 0)
        version = self._version or 0
        if condition[2] and (self._is_logged or Difference.REVERSED_COMMENTS.holds(version)):
            is_run = not number or number > (version or Difference.REVERSED_COMMENTS.since)
            return condition.end() if is_run else 0
        if condition[2]:
            return condition.start(2)
        if self._is_logged:
            return condition.end() if number != NEVER else 0
        is_run = number <= version and (bool(condition[1]) or number not in MYSQL_VERSIONS)
        return condition.end() if is_run else 0

    def _end_of_comment(self, start: int, *, nests: bool) -> int:
        depth = 0
        for border in _COMMENT_BORDER.finditer(self._sql, start):
            depth = depth - 1 if border[0] == "*/" else depth + 1 if nests else 1
            if depth == 0:
                return border.end()
        if self._is_logged:
            return len(self._sql)
        raise error_at(self._sql, start)


_WORD = _NAME.match
_POINT = re.compile(r"(?P<plain>\.)").match
_AS_WRITTEN: dict[str | None, TokenKind] = {
    "word": TokenKind.WORD,
    "other_word": TokenKind.WORD,
    "plain": TokenKind.SIGN,
    "sign": TokenKind.SIGN,
    "number": TokenKind.NUMBER,
    "bits": TokenKind.BITS,
    "system": TokenKind.SYSTEM,
}
_KIND_WORD, _KIND_NAME = TokenKind.WORD, TokenKind.NAME  # looked up once
