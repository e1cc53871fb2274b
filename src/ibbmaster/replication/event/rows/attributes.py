"""The attributes after the word of a column's type, as CREATE TABLE writes them: sign, character set, key."""

import itertools

from ibbmaster.sqltext.cursor import Cursor, outside_brackets
from ibbmaster.sqltext.token import TokenKind, tokens

KEY_MARK = " PRIMARY KEY"  # of a column in a key that is written after the columns
_NO_CHARSETS = {"default", "uca1400"}  # DEFAULT, and collations of several Unicode character sets


def attributes_of(declared: str) -> list[str]:
    """Words and numbers of a column's type and attributes, in lower case, outside of strings, quoted names and
    brackets, where they mean something else: COMMENT 'was unsigned', AS (CAST(a AS UNSIGNED))."""
    kinds = (TokenKind.WORD, TokenKind.NUMBER)
    return [token.text.lower() for token in outside_brackets(tokens(declared)) if token.kind in kinds]


def is_unsigned(declared: str) -> bool:
    """Whether numbers have no sign, as also ZEROFILL and SERIAL imply."""
    return not {"unsigned", "zerofill", "serial"}.isdisjoint(attributes_of(declared))


def is_primary_key(declared: str) -> bool:
    """Whether a declared column alone is the key; PRIMARY is optional, except after UNIQUE."""
    found = attributes_of(declared)
    return any(word == "key" and before != "unique" for before, word in itertools.pairwise(["", *found]))


def is_nullable(declared: str) -> bool:
    found = attributes_of(declared)
    return ("not", "null") not in itertools.pairwise(found) and not is_primary_key(declared)


def named_charset(text: str) -> str | None:
    """As a column's type, or the options of a table, name it: directly, or by a collation."""
    cursor = Cursor(outside_brackets(tokens(text)))
    charset = collation = ""
    while not cursor.is_at_end:
        if any(cursor.takes_words(*words) for words in (("CHARSET",), ("CHARACTER", "SET"), ("CHAR", "SET"))):
            charset = charset or _name(cursor)
        elif cursor.takes_words("COLLATE"):
            collation = collation or _name(cursor).partition("_")[0]
        else:
            cursor.take()
    found = next((name for name in (charset, collation) if name and name not in _NO_CHARSETS), None)
    return "utf8mb3" if found == "utf8" else found


def _name(cursor: Cursor) -> str:
    cursor.takes_sign("=")
    return cursor.take().text.lower()
