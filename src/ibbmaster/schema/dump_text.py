"""Cuts a dump, or any SQL script, into statements, piece by piece."""

import re
from collections.abc import Iterable, Iterator

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext.token import tokens

STATEMENT_SIZE_MAX = 1 << 30
SHOWN = 60

# A statement before its semicolon; stops before a text or comment that does not end.
#: Groups are atomic and not possessive: Python up to 3.11.4 ends possessive ones too early (python/cpython#106052).
_INSIDE = re.compile(
    r"""(?>(?: [^'"`;/\#-]++
      | '[^'\\]*+(?>(?:(?:\\.|'')[^'\\]*+)*)'
      | "[^"\\]*+(?>(?:(?:\\.|"")[^"\\]*+)*)"
      | `(?>(?:[^`]|``)*)`
      | /\*(?>(?:[^*]|\*(?!/))*)\*/ | /(?!\*)
      | \#[^\n]*+ | --(?=\s|\Z)[^\n]*+ | -
    )*)""",
    re.VERBOSE | re.DOTALL,
)
_BETWEEN = re.compile(r"(?>(?:\s++|--(?=\s)[^\n]*+\n|\#[^\n]*+\n)*)")
_DELIMITER = re.compile(r"DELIMITER\s+(?P<delimiter>\S+)[^\n]*\n", re.IGNORECASE)
_LAST_DELIMITER = re.compile(r"^[^\S\n]*DELIMITER\s+;[^\S\n]*(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)
_USE = re.compile(r"USE\s+(?:`(?:[^`]|``)+`|[^\s`;]+)[^\S\n]*(?=\n)", re.IGNORECASE)  # its line may end it
LINE_SIZE_MAX = 1 << 10  # a longer line is no USE and no DELIMITER


def statements_of(pieces: Iterable[str], *, ends_in_routines: bool = False) -> Iterator[str]:
    """The texts between semicolons, with the comments before them, without routines between DELIMITER lines, the last
    of which may be missing if it `ends_in_routines`. Raises ConfigurationError: a statement is cut or too long."""
    return _Cutter(pieces, ends_in_routines=ends_in_routines).statements()


def _is_whole(statement: str) -> bool:
    depth = 0
    for token in tokens(statement):
        depth += token.is_sign("(") - token.is_sign(")")
    return depth == 0


class _Cutter:
    """Text read as far as needed: up to `_start` it was returned, up to `_at` examined."""

    def __init__(self, pieces: Iterable[str], *, ends_in_routines: bool) -> None:
        self._pieces = iter(pieces)
        self._ends_in_routines = ends_in_routines
        self._text = ""
        self._start = self._at = 0
        self._end = 0
        self._is_all = False

    def statements(self) -> Iterator[str]:
        while self._finds_begin():
            if (use := _USE.match(self._text, self._at, self._end)) is not None:
                yield use[0]
                self._start = self._at = use.end()
            elif (delimiter := _DELIMITER.match(self._text, self._at, self._end)) is not None:
                self._at = delimiter.end() - 1
                if delimiter["delimiter"] == ";":
                    self._start = self._at
                else:
                    self._pass_routines()
            else:
                yield self._statement()

    def _finds_begin(self) -> bool:
        while True:
            self._pass(_BETWEEN)
            has_line = self._end - self._at > LINE_SIZE_MAX or self._text.find("\n", self._at, self._end) >= 0
            if self._at < self._end and (has_line or self._is_all):
                return True
            if not self._reads_more():
                return False

    def _statement(self) -> str:
        begin = self._text[self._at : self._at + 4 * SHOWN]
        while True:
            self._pass(_INSIDE)
            if self._at < self._end and self._text[self._at] == ";":
                found = self._text[self._start : self._at]
                self._start = self._at = self._at + 1
                return found
            problem = None
            if len(self._text) - self._start > STATEMENT_SIZE_MAX:
                problem = f"a statement of more than {STATEMENT_SIZE_MAX} characters"
            elif not self._reads_more():
                found = self._text[self._start : self._at]
                if self._at == self._end and _is_whole(found):
                    self._start = self._at
                    return found
                problem = "the text ends inside a statement"
            if problem is not None:
                raise ConfigurationError(f"{problem}: {' '.join(begin.split())[:SHOWN]!r}")

    def _pass_routines(self) -> None:
        """Go behind the line that makes a semicolon the delimiter again."""
        while (found := _LAST_DELIMITER.search(self._text, self._at, self._end)) is None:
            if self._reads_more():
                continue
            if not self._ends_in_routines:
                raise ConfigurationError("the text ends behind a DELIMITER line, expected 'DELIMITER ;' later")
            break
        self._start = self._at = len(self._text) if found is None else found.end()

    def _pass(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at, self._end)
        assert match is not None  # they match nothing, too
        self._at = match.end()

    def _reads_more(self) -> bool:
        if self._is_all:
            return False
        parts = [self._text[self._start :]]
        size = len(parts[0])
        wanted = 2 * size + 1
        while size < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                self._is_all = True
                break
            parts.append(piece)
            size += len(piece)
        self._text = "".join(parts)
        self._at -= self._start
        self._start = 0
        self._end = size if self._is_all else self._text.rfind("\n") + 1
        return True
