"""Walks over the tokens of a statement."""

from collections.abc import Iterable, Iterator, Sequence

from .table_name import TableName
from .token import Token, TokenKind, tokens

END = Token(TokenKind.SIGN, "")  # after the last token


class Cursor:
    def __init__(self, tokens: Iterable[Token]) -> None:
        self._source = iter(tokens)
        self._ahead: list[Token] = []

    def peek(self, distance: int = 0) -> Token:
        while len(self._ahead) <= distance:
            self._ahead.append(next(self._source, END))
        return self._ahead[distance]

    def take(self) -> Token:
        token = self.peek()
        del self._ahead[0]
        return token

    def takes_words(self, *words: str) -> bool:
        if not all(self.peek(distance).is_word(word) for distance, word in enumerate(words)):
            return False
        del self._ahead[: len(words)]
        return True

    def takes_sign(self, sign: str) -> bool:
        if not self.peek().is_sign(sign):
            return False
        self.take()
        return True

    def pass_words(self, *words: str) -> None:
        while self.peek().is_word(*words):
            self.take()

    def pass_condition(self) -> bool:
        return self.takes_words("IF", "EXISTS") or self.takes_words("IF", "NOT", "EXISTS")

    @property
    def is_at_end(self) -> bool:
        return self.peek() is END

    def rest(self) -> list[Token]:
        found = []
        while not self.is_at_end:
            found.append(self.take())
        return found

    def name(self) -> str | None:
        if not self.peek().is_name:
            return None
        return self.take().text

    def host(self) -> str | None:
        """The host of an account, behind its user."""
        if self.peek().kind is TokenKind.USER:
            return self.take().text
        return self.take().text if self.takes_sign("@") else None

    def table(self, database: str) -> TableName | None:
        first = self.name()
        if first is None:
            return None
        if not self.takes_sign("."):
            return TableName(database, first)
        second = self.name()
        return None if second is None else TableName(first, second)

    def bracketed(self) -> list[Token]:
        """The tokens in the brackets that open here, if any do."""
        found: list[Token] = []
        if not self.takes_sign("("):
            return found
        depth = 1
        while not self.is_at_end:
            token = self.take()
            depth += token.is_sign("(") - token.is_sign(")")
            if not depth:
                break
            found.append(token)
        return found


class PlacedCursor(Cursor):
    def __init__(self, sql: str, sql_mode: int = 0) -> None:
        self.sql = sql
        self._ends = [0]  # of all tokens so far
        super().__init__(self._noted(sql, sql_mode))

    def _noted(self, sql: str, sql_mode: int) -> Iterator[Token]:
        for token in tokens(sql, sql_mode):
            self._ends.append(token.end)
            yield token

    @property
    def start(self) -> int:
        return len(self.sql) if self.is_at_end else self.peek().start

    @property
    def end(self) -> int:
        return self._ends[-1 - sum(token is not END for token in self._ahead)]


def parts_of(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(") - token.is_sign(")")
        if token.is_sign(",") and not depth:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def outside_brackets(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens outside of brackets, and the opening brackets."""
    depth = 0
    for token in tokens:
        depth -= token.is_sign(")")
        if not depth and not token.is_sign(")"):
            yield token
        depth += token.is_sign("(")
