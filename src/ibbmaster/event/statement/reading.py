"""Walking over the tokens of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ibbmaster.event.statement.token import StatementToken, TokenKind, placed_tokens

END = StatementToken(TokenKind.SIGN, "")  # behind the last token


class Cursor:
    """Takes one token after the other; a long statement is cut only as far as it is read."""

    def __init__(self, tokens: Iterable[StatementToken]) -> None:
        self._source = iter(tokens)
        self._ahead: list[StatementToken] = []

    def peek(self, distance: int = 0) -> StatementToken:
        """The token that comes next, or one behind it; `END` where there is none."""
        while len(self._ahead) <= distance:
            self._ahead.append(next(self._source, END))
        return self._ahead[distance]

    def take(self) -> StatementToken:
        token = self.peek()
        del self._ahead[0]
        return token

    def takes_words(self, *words: str) -> bool:
        """Skip these words if all of them come next."""
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
        """Skip any of these words, as often as they come."""
        while self.peek().is_word(*words):
            self.take()

    def pass_condition(self) -> bool:
        """Skip IF EXISTS or IF NOT EXISTS; whether it was there."""
        return self.takes_words("IF", "EXISTS") or self.takes_words("IF", "NOT", "EXISTS")

    @property
    def is_at_end(self) -> bool:
        return self.peek() is END

    def rest(self) -> list[StatementToken]:
        """All that is left."""
        found = []
        while not self.is_at_end:
            found.append(self.take())
        return found

    def name(self) -> str | None:
        """A name; None if none comes."""
        if self.peek().kind not in (TokenKind.WORD, TokenKind.NAME):
            return None
        return self.take().text

    def table(self, database: str) -> str | None:
        """The name of a table as `database.table`; None if none comes."""
        first = self.name()
        if first is None:
            return None
        if not self.takes_sign("."):
            return f"{database}.{first}"
        second = self.name()
        return None if second is None else f"{first}.{second}"

    def bracketed(self) -> list[StatementToken]:
        """What is in the brackets that open here; nothing if none do."""
        found: list[StatementToken] = []
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
    """A cursor that knows where in the text of the statement it is."""

    def __init__(self, sql: str, sql_mode: int = 0) -> None:
        self.sql = sql
        self._spans: list[tuple[int, int]] = []  # of all tokens that were cut
        super().__init__(self._noted(sql, sql_mode))

    def _noted(self, sql: str, sql_mode: int) -> Iterator[StatementToken]:
        for token, start, end in placed_tokens(sql, sql_mode):
            self._spans.append((start, end))
            yield token

    def _taken(self) -> int:
        return len(self._spans) - sum(token is not END for token in self._ahead)

    @property
    def start(self) -> int:
        """Where the next token begins; the end of the text if there is none."""
        return len(self.sql) if self.is_at_end else self._spans[self._taken()][0]

    @property
    def end(self) -> int:
        """Where the last one that was taken ends."""
        taken = self._taken()
        return self._spans[taken - 1][1] if taken else 0


def parts_of(tokens: Sequence[StatementToken]) -> Iterator[list[StatementToken]]:
    """What is between the commas that are in no brackets."""
    part: list[StatementToken] = []
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


def outside_brackets(tokens: Iterable[StatementToken]) -> Iterator[StatementToken]:
    """The tokens that are in no brackets; an opening bracket itself is one of them."""
    depth = 0
    for token in tokens:
        depth -= token.is_sign(")")
        if not depth and not token.is_sign(")"):
            yield token
        depth += token.is_sign("(")
