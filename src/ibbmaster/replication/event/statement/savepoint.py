"""SAVEPOINT and ROLLBACK as a log has them between the row events of a group."""

import unicodedata
from typing import NamedTuple

from ibbmaster.sqltext.cursor import END, Cursor
from ibbmaster.sqltext.token import Token


class SavepointStep(NamedTuple):
    """SAVEPOINT `name`, or a rollback to it; a rollback without a name undoes the whole group. `name` is normalized as
    a server compares it: without case, accents and blanks at its end."""

    is_rollback: bool
    name: str | None


def savepoint_step(cursor: Cursor) -> SavepointStep | None:
    if cursor.peek().is_word("SAVEPOINT"):
        return _step(cursor.peek(1), is_rollback=False)
    if not cursor.peek().is_word("ROLLBACK"):
        return None
    to = 1 + cursor.peek(1).is_word("WORK")
    if not cursor.peek(to).is_word("TO"):
        return SavepointStep(True, None)
    has_word = cursor.peek(to + 1).is_word("SAVEPOINT") and cursor.peek(to + 2) is not END  # or it is called so
    return _step(cursor.peek(to + 1 + has_word), is_rollback=True)


def _step(name: Token, *, is_rollback: bool) -> SavepointStep | None:
    return SavepointStep(is_rollback, _compared(name.text)) if name.is_name else None


def _compared(name: str) -> str:
    letters = unicodedata.normalize("NFD", name.rstrip(" "))
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).upper()
