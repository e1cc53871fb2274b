"""SAVEPOINT and ROLLBACK as a log has them between the row events of a group."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from ibbmaster.sqltext.cursor import END, Cursor
from ibbmaster.sqltext.token import tokens


class SavepointStep(NamedTuple):
    """SAVEPOINT `name`, or a rollback to it; a rollback without a name undoes all of the group.

    `name` is as a server compares it: without regard to case, accents and blanks at its end.
    """

    is_rollback: bool
    name: str | None


def savepoint_step(sql: str, sql_mode: int = 0) -> SavepointStep | None:
    """Which of the two a statement is; None if it is neither."""
    cursor = Cursor(tokens(sql, sql_mode))
    if cursor.takes_words("SAVEPOINT"):
        name = cursor.name()
        return None if name is None else SavepointStep(False, _compared(name))
    if not cursor.takes_words("ROLLBACK"):
        return None
    cursor.takes_words("WORK")
    if not cursor.takes_words("TO"):
        return SavepointStep(True, None)
    if cursor.peek(1) is not END:  # a savepoint may be called `savepoint`
        cursor.takes_words("SAVEPOINT")
    name = cursor.name()
    return None if name is None else SavepointStep(True, _compared(name))


def _compared(name: str) -> str:
    letters = unicodedata.normalize("NFD", name.rstrip(" "))
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).upper()
