"""Engines whose tables do not have the rows that a log says are put into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import Token

NO_ENGINE_SUBSTITUTION = 1 << 30  # of sql_mode; without it a server that lacks an engine takes another one
BLACKHOLE = "BLACKHOLE"
MERGED = frozenset(("MERGE", "MRG_MYISAM"))
ELSEWHERE = frozenset(("FEDERATED", "FEDERATEDX", "SPIDER", "CONNECT", "OQGRAPH", "SPHINX"))
QUERY = ("SELECT", "WITH", "VALUES", "AS")


class EngineOption(NamedTuple):
    """What the options of a CREATE or ALTER TABLE say of its engine.

    Attributes:
        name: in capitals; None if they do not say it.
        union: the tables of a MERGE table, as `database.table`.
    """

    name: str | None = None
    union: tuple[str, ...] = ()


NO_ENGINE = EngineOption()


def engine_option(part: Sequence[Token], database: str) -> EngineOption:
    """The engine in some options of a table, up to a query or to partitions."""
    cursor = Cursor(part)
    name: str | None = None
    union: tuple[str, ...] = ()
    while not cursor.is_at_end and not cursor.peek().is_word(*QUERY, "PARTITION"):
        if cursor.takes_words("ENGINE") or cursor.takes_words("TYPE"):
            cursor.takes_sign("=")
            name = cursor.take().text.upper()
        elif cursor.takes_words("UNION"):
            cursor.takes_sign("=")
            union = tables_of_union(Cursor(cursor.bracketed()), database)
        elif cursor.peek().is_sign("("):
            cursor.bracketed()
        else:
            cursor.take()
    return EngineOption(name, union)


def tables_of_union(cursor: Cursor, database: str) -> tuple[str, ...]:
    """The tables that stand in the brackets of UNION=(…)."""
    found = []
    while (table := cursor.table(database)) is not None:
        found.append(table)
        cursor.takes_sign(",")
    return tuple(found)


def rows_are_elsewhere(engine: str) -> str | None:
    """Why nobody can tell the rows of a table by what a log puts into it; None if its engine keeps them itself."""
    if engine.upper() in MERGED:
        return "a MERGE table has the rows of the tables in its UNION"
    if engine.upper() in ELSEWHERE:
        return f"its engine {engine} has its rows elsewhere"
    return None
