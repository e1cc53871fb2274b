"""Quotes around texts and names, and the meaning of backslashes."""

import functools
import re
from collections.abc import Mapping

from .sql_mode import NO_BACKSLASH_ESCAPES

#: The meaning of letters behind a backslash; others mean themselves.
ESCAPES: Mapping[str, str] = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "Z": "\x1a",
    "%": "\\%",  # LIKE wants the backslash
    "_": "\\_",
}
_PLAIN = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})
_IN_EXPRESSIONS = {**_PLAIN, ord("'"): "\\'"}
_IN_DEFINITIONS = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0", "\n": "\\n", "\r": "\\r"})


@functools.cache
def _folded(quote: str, has_escapes: bool) -> re.Pattern[str]:
    return re.compile(rf"\\(.)|{quote}{quote}" if has_escapes else rf"(?!)()|{quote}{quote}", re.DOTALL)


def unescaped(inner: str, quote: str, sql_mode: int = 0) -> str:
    """The meaning of the text between two quotes, ' or "."""
    has_escapes = not sql_mode & NO_BACKSLASH_ESCAPES
    if quote not in inner and not (has_escapes and "\\" in inner):
        return inner
    return _folded(quote, has_escapes).sub(
        lambda match: quote if match[1] is None else ESCAPES.get(match[1], match[1]), inner
    )


def unquoted(text: str, sql_mode: int = 0) -> str:
    """The content of '…', "…", N'…' or `…`."""
    if text[0] in "nN":
        text = text[1:]
    quote, inner = text[0], text[1:-1]
    return inner.replace("``", "`") if quote == "`" else unescaped(inner, quote, sql_mode)


def quoted(text: str) -> str:
    """A text as SQL under sql_mode ''."""
    return f"'{text.translate(_PLAIN)}'"


def quoted_in_expression(text: str) -> str:
    """As a server prints texts in expressions."""
    return f"'{text.translate(_IN_EXPRESSIONS)}'"


def quoted_text(text: str) -> str:
    """As a server prints comments, labels and defaults."""
    return f"'{text.translate(_IN_DEFINITIONS)}'"


def quoted_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
