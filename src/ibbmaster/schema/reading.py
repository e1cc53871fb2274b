"""Reads tokens of DDL: names, texts and expressions as SQL of the same meaning in any session."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ibbmaster.sqltext.cursor import END, Cursor
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.sql_mode import HIGH_NOT_PRECEDENCE, PIPES_AS_CONCAT
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import LITERALS, Token, TokenKind, tokens
from .clause import CharsetClause, NotUnderstoodError
from .expression_text import plain_expression

SHOWN = 60  # characters of a statement in an error
_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


def written(tokens: Iterable[Token]) -> str:
    """As SQL under sql_mode '', with a space for spaces and comments."""
    found = list(tokens)
    return "".join(f" {one.written}" if one.is_spaced and place else one.written for place, one in enumerate(found))


def written_expression(tokens: Iterable[Token], sql_mode: int) -> str:
    """As `written`, for operators that depend on sql_mode."""
    found = list(tokens)
    joins = sql_mode & PIPES_AS_CONCAT and any(token.is_sign("||") for token in found)
    negates = sql_mode & HIGH_NOT_PRECEDENCE and any(token.is_word("NOT") for token in found)
    return plain_expression(written(found), sql_mode) if joins or negates else written(found)


def _names_in(found: Sequence[Token]) -> Iterator[tuple[int, Token, Token]]:
    """Possible names of columns, each with its place and the next token."""
    for place, (token, following) in enumerate(itertools.pairwise([*found, END])):
        if token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and not following.is_sign("(")):
            yield place, token, following


def named_in(expression: str) -> set[str]:
    return {token.text.lower() for _, token, _ in _names_in(list(tokens(expression)))}


def with_new_names(expression: str, names: Mapping[str, str]) -> str:
    """`names` are by old ones in lower case."""
    found = list(tokens(expression))
    for place, token, following in _names_in(found):
        if not following.is_sign(".") and token.text.lower() in names:
            found[place] = Token(TokenKind.NAME, names[token.text.lower()], token.is_spaced)
    return written(found)


def fail(cursor: Cursor, expected: str) -> NotUnderstoodError:
    found = written([cursor.peek(distance) for distance in range(6)]).strip()
    return NotUnderstoodError(f"{found[:SHOWN]!r} where {expected} was expected")


def expect_name(cursor: Cursor) -> str:
    name = cursor.name()
    if name is None:
        raise fail(cursor, "a name")
    return name


def expect_column(cursor: Cursor) -> str:
    """Perhaps behind table and database, which the server has compared."""
    cursor.takes_sign(".")  # .c is c
    name = expect_name(cursor)
    for _ in range(2):
        if cursor.takes_sign("."):
            name = expect_name(cursor)
    return name


def expect_table(cursor: Cursor, database: str) -> TableName:
    cursor.takes_sign(".")  # .t is t
    first = expect_name(cursor)
    if not cursor.takes_sign("."):
        return TableName(database, first)
    return TableName(first, expect_name(cursor))


def expect_text(cursor: Cursor) -> str:
    """Consecutive texts are one; a character set in front says how it was written."""
    if cursor.peek().kind is TokenKind.WORD and cursor.peek(1).kind is TokenKind.TEXT:
        cursor.take()
    if cursor.peek().kind is not TokenKind.TEXT:
        raise fail(cursor, "a text")
    text = cursor.take().text
    while cursor.peek().kind is TokenKind.TEXT:
        text += cursor.take().text
    return text


def expect_words(cursor: Cursor, *words: str) -> None:
    if not cursor.takes_words(*words):
        raise fail(cursor, " ".join(words))


def expect_number(cursor: Cursor) -> int:
    token = cursor.take()
    if not (token.text.isascii() and token.text.isdecimal() and len(token.text) <= 20):
        raise NotUnderstoodError(f"{token.text[:SHOWN]!r} where a number was expected")
    return int(token.text)


def expect_brackets(cursor: Cursor) -> list[Token]:
    if not cursor.peek().is_sign("("):
        raise fail(cursor, "'('")
    return cursor.bracketed()


def takes_charset(cursor: Cursor) -> str | None:
    """After CHARACTER SET, CHAR SET or CHARSET."""
    names = (("CHARACTER", "SET"), ("CHAR", "SET"), ("CHARSET",))
    return expect_option(cursor) if any(cursor.takes_words(*words) for words in names) else None


def takes_collation(cursor: Cursor) -> str | None:
    return expect_option(cursor) if cursor.takes_words("COLLATE") else None


def takes_database_charset(cursor: Cursor) -> CharsetClause | None:
    """[DEFAULT] CHARACTER SET or COLLATE."""
    if cursor.peek().is_word("DEFAULT") and cursor.peek(1).is_word("CHARACTER", "CHAR", "CHARSET", "COLLATE"):
        cursor.take()
    if (charset := takes_charset(cursor)) is not None:
        return CharsetClause(charset=charset)
    if (collation := takes_collation(cursor)) is not None:
        return CharsetClause(collation=collation)
    return None


def merged(first: CharsetClause, second: CharsetClause) -> CharsetClause:
    """Where they differ, the second."""
    return CharsetClause(
        charset=second.charset or first.charset,
        collation=second.collation or first.collation,
        is_binary=second.is_binary or first.is_binary,
    )


def expect_option(cursor: Cursor) -> str:
    """After an optional equals sign: a word, a text or a number."""
    cursor.takes_sign("=")
    sign = "-" if cursor.takes_sign("-") else ""
    token = cursor.take()
    if token.kind is TokenKind.SIGN:
        raise NotUnderstoodError(f"{token.text!r} where a value was expected")
    if cursor.peek().is_sign(".") and token.text.isdecimal():
        cursor.take()
        return f"{sign}{token.text}.{cursor.take().text}"
    return sign + token.text


def take_value(cursor: Cursor, database: str = "", sql_mode: int = 0) -> str:
    """After DEFAULT: a literal, an expression in brackets, or a call; `database` is that of sequences."""
    if (now := takes_now(cursor)) is not None:
        return now
    if cursor.peek().is_sign("("):
        return f"({written_expression(_with_sequences(cursor.bracketed(), database), sql_mode)})"
    found: list[Token] = []
    while cursor.peek().is_sign("-") or cursor.peek().is_sign("+"):
        found.append(cursor.take())
    if (sequence := _takes_sequence(cursor, database)) is not None:
        return sequence
    if cursor.peek().kind is TokenKind.SIGN and not cursor.peek().is_sign("."):
        raise fail(cursor, "a value")
    found.append(cursor.take())
    while True:
        last, token = found[-1], cursor.peek()
        if token.is_sign("(") and last.is_name:
            found += [cursor.peek(), *_with_sequences(cursor.bracketed(), database), Token(TokenKind.SIGN, ")")]
            continue
        is_joined = not token.is_spaced and (token.is_sign(".") or last.is_sign("."))
        is_text = token.kind in LITERALS and last.kind in (TokenKind.WORD, TokenKind.TEXT)
        if not (is_joined or is_text):
            return written(found)
        found.append(cursor.take())


def _takes_sequence(cursor: Cursor, database: str) -> str | None:
    """The next or last value of a sequence, as a call with its full name."""
    if cursor.takes_words("NEXT", "VALUE", "FOR"):
        function, sequence = "nextval", expect_table(cursor, database)
    elif cursor.takes_words("PREVIOUS", "VALUE", "FOR"):
        function, sequence = "lastval", expect_table(cursor, database)
    elif cursor.peek().is_word("NEXTVAL", "LASTVAL") and cursor.peek(1).is_sign("("):
        function = cursor.take().text.lower()
        sequence = expect_table(Cursor(cursor.bracketed()), database)
    else:
        return None
    return f"{function}({'.'.join(quoted_name(part) for part in sequence if part)})"


def _with_sequences(expression: list[Token], database: str) -> list[Token]:
    cursor, found = Cursor(expression), list[Token]()
    while not cursor.is_at_end:
        is_spaced = cursor.peek().is_spaced
        sequence = _takes_sequence(cursor, database)
        found.append(cursor.take() if sequence is None else Token(TokenKind.WORD, sequence, is_spaced))
    return found


def takes_now(cursor: Cursor) -> str | None:
    if not cursor.peek().is_word(*_NOW):
        return None
    cursor.take()
    inside = cursor.bracketed()
    precision = inside[0].text if inside and inside[0].text != "0" else ""
    return f"current_timestamp({precision})"
