"""Walking over the tokens of DDL: names, texts and expressions as SQL that any session reads alike."""

from collections.abc import Iterable, Mapping

from ibbmaster.schema.clause import CharsetClause, NotUnderstoodError
from ibbmaster.schema.expression_text import plain_expression
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.sql_mode import HIGH_NOT_PRECEDENCE, PIPES_AS_CONCAT
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import LITERALS, Token, TokenKind, tokens

SHOWN = 60  # characters of a statement in an error
_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


def written(tokens: Iterable[Token]) -> str:
    """Tokens as SQL under sql_mode '', a space where one or more of them, or comments, stood."""
    parts: list[str] = []
    for token in tokens:
        parts.append(f" {token.written}" if token.is_spaced and parts else token.written)
    return "".join(parts)


def written_expression(tokens: Iterable[Token], sql_mode: int) -> str:
    """As `written`, where operators mean what they do under this sql_mode."""
    found = list(tokens)
    joins = sql_mode & PIPES_AS_CONCAT and any(token.is_sign("||") for token in found)
    negates = sql_mode & HIGH_NOT_PRECEDENCE and any(token.is_word("NOT") for token in found)
    return plain_expression(written(found), sql_mode) if joins or negates else written(found)


def named_in(expression: str) -> set[str]:
    """What may be names of columns in an expression, in lower case."""
    found = list(tokens(expression))
    return {
        token.text.lower()
        for token, following in zip(found, [*found[1:], Token(TokenKind.SIGN, "")], strict=True)
        if token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and not following.is_sign("("))
    }


def with_new_names(expression: str, names: Mapping[str, str]) -> str:
    """An expression in which columns have new names, by the old ones in lower case."""
    found = list(tokens(expression))
    for index, token in enumerate(found):
        following = found[index + 1] if index + 1 < len(found) else Token(TokenKind.SIGN, "")
        is_name = token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and not following.is_sign("("))
        if is_name and not following.is_sign(".") and token.text.lower() in names:
            found[index] = Token(TokenKind.NAME, names[token.text.lower()], token.is_spaced)
    return written(found)


def fail(cursor: Cursor, expected: str) -> NotUnderstoodError:
    """What stands where something else was expected."""
    found = written([cursor.peek(distance) for distance in range(6)]).strip()
    return NotUnderstoodError(f"{found[:SHOWN]!r} where {expected} was expected")


def expect_name(cursor: Cursor) -> str:
    name = cursor.name()
    if name is None:
        raise fail(cursor, "a name")
    return name


def expect_column(cursor: Cursor) -> str:
    """A column's name where it may stand behind those of its table and database, which the server has compared."""
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
    """A text; texts after each other are one, and a character set in front says how it was written."""
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
    """CHARACTER SET, CHAR SET or CHARSET and a name; None if that does not come."""
    if not (
        cursor.takes_words("CHARACTER", "SET") or cursor.takes_words("CHAR", "SET") or cursor.takes_words("CHARSET")
    ):
        return None
    return expect_option(cursor)


def takes_collation(cursor: Cursor) -> str | None:
    """COLLATE and a name; None if that does not come."""
    return expect_option(cursor) if cursor.takes_words("COLLATE") else None


def takes_database_charset(cursor: Cursor) -> CharsetClause | None:
    """[DEFAULT] CHARACTER SET or COLLATE; None if neither comes."""
    if cursor.peek().is_word("DEFAULT") and cursor.peek(1).is_word("CHARACTER", "CHAR", "CHARSET", "COLLATE"):
        cursor.take()
    if (charset := takes_charset(cursor)) is not None:
        return CharsetClause(charset=charset)
    if (collation := takes_collation(cursor)) is not None:
        return CharsetClause(collation=collation)
    return None


def merged(first: CharsetClause, second: CharsetClause) -> CharsetClause:
    """Both, the second one where both say something."""
    return CharsetClause(
        charset=second.charset or first.charset,
        collation=second.collation or first.collation,
        is_binary=second.is_binary or first.is_binary,
    )


def expect_option(cursor: Cursor) -> str:
    """A value after an equals sign that may be left out: a word, a text or a number."""
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
    """What may stand after DEFAULT: a literal, an expression in brackets, or a call; `database` is of sequences."""
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
            opening = cursor.peek()
            inside = _with_sequences(cursor.bracketed(), database)
            found += [opening, *inside, Token(TokenKind.SIGN, ")")]
            continue
        is_joined = not token.is_spaced and (token.is_sign(".") or last.is_sign("."))
        is_text = token.kind in LITERALS and last.kind in (TokenKind.WORD, TokenKind.TEXT)
        if not (is_joined or is_text):
            return written(found)
        found.append(cursor.take())


def _takes_sequence(cursor: Cursor, database: str) -> str | None:
    """The next or last value of a sequence, as a call with its whole name; None if it does not come."""
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
    """An expression whose sequences have their whole names, wherever it is read."""
    cursor, found = Cursor(expression), list[Token]()
    while not cursor.is_at_end:
        is_spaced = cursor.peek().is_spaced
        sequence = _takes_sequence(cursor, database)
        found.append(cursor.take() if sequence is None else Token(TokenKind.WORD, sequence, is_spaced))
    return found


def takes_now(cursor: Cursor) -> str | None:
    """The present moment, as a server prints it; None if it does not come."""
    if not cursor.peek().is_word(*_NOW):
        return None
    cursor.take()
    inside = cursor.bracketed()
    precision = inside[0].text if inside and inside[0].text != "0" else ""
    return f"current_timestamp({precision})"
