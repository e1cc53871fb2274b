"""Answers that many sessions get alike, made once: those that replicas ask for before their dump.

Such an answer has no more of a session than the values in it, where the session has set no system variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ibbmaster.dialogue.variables import SystemValue
from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.response import ResultSet, Row, SharedResultSet

ANSWERS_KEPT = 256
SIZE_MAX = 1024  # letters and bytes of the values of one that is kept, and of its rows

Key = tuple[bytes, tuple[Value | SystemValue, ...], tuple[type, ...]]


def key_of(sql: bytes, values: Sequence[Value | SystemValue]) -> Key:
    """By what an answer is found: 1 and TRUE are the same value, and give other columns."""
    return sql, tuple(values), tuple(map(type, values))


class KnownAnswers:
    """Those of one primary."""

    def __init__(self) -> None:
        self._kept: dict[Key, SharedResultSet] = {}

    def find(self, key: Key) -> SharedResultSet | None:
        """The answer that was kept."""
        return self._kept.get(key)

    def keep(self, key: Key, answer: ResultSet, rows: tuple[Row, ...]) -> SharedResultSet:
        """An answer with these rows, kept unless it is large."""
        shared = SharedResultSet(
            columns=answer.columns, rows=rows, status=answer.status, warning_count=answer.warning_count
        )
        _, values, _ = key  # with LIMIT 0 they are in no row
        size = sum(len(value) for value in (*values, *chain.from_iterable(rows)) if isinstance(value, str | bytes))
        if size <= SIZE_MAX:
            if len(self._kept) >= ANSWERS_KEPT:
                self._kept.clear()  # what is asked for often is there again soon
            self._kept[key] = shared
        return shared
