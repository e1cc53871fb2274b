"""What a logged statement does to tables, beyond the row events that its group may have.

Names of tables are `database.table`. A statement that is not understood is one that may change
the rows of any table: nothing is skipped because its words are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ibbmaster.event.statement.altering import Clause, clauses_of
from ibbmaster.event.statement.definition import ColumnClause, ForeignKey, parse_definitions
from ibbmaster.event.statement.engine import NO_ENGINE, EngineOption, engine_option
from ibbmaster.sqltext.cursor import Cursor, outside_brackets
from ibbmaster.sqltext.token import Token, tokens

HARMLESS = frozenset(
    (
        *("COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "START", "SET", "GRANT", "REVOKE", "FLUSH", "RESET"),
        *("OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "INSTALL", "UNINSTALL", "LOCK", "UNLOCK", "USE", "SHOW"),
        *("PURGE", "CHANGE", "KILL", "BACKUP", "COMMENT"),
    )
)
OBJECTS = (
    *("TABLE", "DATABASE", "SCHEMA", "TRIGGER", "FUNCTION", "PROCEDURE", "EVENT", "PACKAGE", "VIEW", "INDEX"),
    *("USER", "ROLE", "SERVER", "SEQUENCE"),
)
ROUTINES = ("TRIGGER", "FUNCTION", "PROCEDURE", "EVENT", "PACKAGE")
BETWEEN_TABLES = (
    *("FROM", "USING", "JOIN", "ON", "AS", "LOW_PRIORITY", "QUICK", "IGNORE", "HISTORY", "ORDER", "BY", "LIMIT"),
)
SHOWN = 60  # characters of a statement in a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """CREATE TABLE. `columns` is None if the statement does not name them."""

    table: str
    is_temporary: bool = False
    replaces: bool = False
    is_conditional: bool = False  # IF NOT EXISTS
    columns: dict[str, ColumnClause] | None = None
    like: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    is_versioned: bool = False
    engine: EngineOption = NO_ENGINE
    selects: bool = False  # its rows are those of a query that is part of the statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """DROP TABLE."""

    table: str
    is_temporary: bool = False  # only that is meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """TRUNCATE TABLE."""

    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """DROP DATABASE, or CREATE OR REPLACE DATABASE."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """One table of RENAME TABLE, or ALTER TABLE … RENAME."""

    table: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """ALTER TABLE, but for its RENAME."""

    table: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRoutine:
    """Something that runs statements of its own: a trigger, a function, a procedure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Rows are changed by the statement itself, and no row event says how.

    `tables` is None if it may be any; `adds` if there may be rows where there were none.
    """

    tables: tuple[str, ...] | None
    verb: str
    adds: bool


Operation = Create | Drop | Truncate | DropDatabase | Rename | Alter | CreateRoutine | Write


def operations_of(sql: str, database: str = "", sql_mode: int = 0) -> list[Operation]:
    """What a statement does, in order; nothing for one that changes no table and no row.

    `database` is the one it ran in.
    """
    cursor = Cursor(tokens(sql, sql_mode))
    if cursor.takes_words("SET", "STATEMENT"):
        while not cursor.is_at_end and not cursor.takes_words("FOR"):
            if cursor.peek().is_sign("("):
                cursor.bracketed()
            else:
                cursor.take()
    first = cursor.peek()
    verb = first.text.upper()
    read = _READERS.get(verb)
    if cursor.is_at_end or first.is_word(*HARMLESS):
        return []
    if read is None:
        return [_write_anywhere(sql)]
    cursor.take()
    found = read(cursor, database)
    return [_write_anywhere(sql)] if found is None else found


def _write_anywhere(sql: str) -> Write:
    text = " ".join(sql[: 4 * SHOWN].split())
    return Write(tables=None, verb=text if len(text) <= SHOWN else text[: SHOWN - 1] + "…", adds=True)


Found = list[Operation] | None  # None: it is not understood


def _begin(cursor: Cursor, database: str) -> Found:
    return None if cursor.peek().is_word("NOT") else []  # BEGIN NOT ATOMIC runs statements


def _analyze(cursor: Cursor, database: str) -> Found:
    cursor.pass_words("NO_WRITE_TO_BINLOG", "LOCAL")
    return [] if cursor.peek().is_word("TABLE", "TABLES") else None  # or it runs a statement


def _create(cursor: Cursor, database: str) -> Found:
    replaces = cursor.takes_words("OR", "REPLACE")
    is_temporary = cursor.takes_words("TEMPORARY")
    while not cursor.is_at_end and not cursor.peek().is_word(*OBJECTS):
        cursor.take()  # DEFINER = …, UNIQUE and their like
    kind = cursor.take().text.upper()
    if kind in ROUTINES:
        return [CreateRoutine()]
    is_conditional = cursor.pass_condition()
    if kind in ("DATABASE", "SCHEMA"):
        name = cursor.name()
        return [DropDatabase(database=name)] if replaces and name else []
    if kind != "TABLE":
        return [] if kind else None
    table = cursor.table(database)
    if table is None:
        return None
    columns: dict[str, ColumnClause] | None = None
    foreign_keys: list[ForeignKey] = []
    like = None
    if cursor.takes_words("LIKE"):
        like = cursor.table(database)
    elif cursor.peek().is_sign("(") and not cursor.peek(1).is_word("SELECT", "WITH", "VALUES"):
        inside = cursor.bracketed()
        own = Cursor(inside)
        if own.takes_words("LIKE"):
            like = own.table(database)
        else:
            columns, foreign_keys = parse_definitions(inside, table.partition(".")[0])
    rest = cursor.rest()
    words = " ".join(token.text.upper() for token in rest)
    return [
        Create(
            table=table,
            is_temporary=is_temporary,
            replaces=replaces,
            is_conditional=is_conditional,
            columns=columns,
            like=like,
            foreign_keys=tuple(foreign_keys),
            is_versioned="WITH SYSTEM VERSIONING" in words,
            engine=engine_option(rest, database),
            selects=_has_query(rest),
        )
    ]


def _has_query(rest: list[Token]) -> bool:
    """Whether there is a query behind what CREATE TABLE has in brackets; VALUES in brackets is of a partition."""
    return any(token.is_word("SELECT") for token in rest) or any(
        token.is_word("VALUES") for token in outside_brackets(rest)
    )


def _drop(cursor: Cursor, database: str) -> Found:
    is_temporary = cursor.takes_words("TEMPORARY")
    if cursor.takes_words("DATABASE") or cursor.takes_words("SCHEMA"):
        cursor.pass_condition()
        name = cursor.name()
        return None if name is None else [DropDatabase(database=name)]
    if not cursor.peek().is_word("TABLE", "TABLES"):
        return []
    cursor.take()
    cursor.pass_condition()
    return [Drop(table=table, is_temporary=is_temporary) for table in _tables(cursor, database)] or None


def _tables(cursor: Cursor, database: str) -> Iterator[str]:
    """Names with commas between them."""
    while (table := cursor.table(database)) is not None:
        yield table
        if not cursor.takes_sign(","):
            return


def _truncate(cursor: Cursor, database: str) -> Found:
    cursor.pass_words("TABLE")
    table = cursor.table(database)
    return None if table is None else [Truncate(table=table)]


def _rename(cursor: Cursor, database: str) -> Found:
    if not cursor.peek().is_word("TABLE", "TABLES"):
        return []
    cursor.take()
    cursor.pass_condition()
    found: list[Operation] = []
    while (table := cursor.table(database)) is not None:
        while not cursor.is_at_end and not cursor.takes_words("TO"):
            cursor.take()  # WAIT n
        to = cursor.table(database)
        if to is None:
            return None
        found.append(Rename(table=table, to=to))
        cursor.takes_sign(",")
    return found or None


def _alter(cursor: Cursor, database: str) -> Found:
    cursor.pass_words("ONLINE")
    ignores = cursor.takes_words("IGNORE")
    if not cursor.takes_words("TABLE"):
        return []
    cursor.pass_condition()
    table = cursor.table(database)
    if table is None:
        return None
    if cursor.takes_words("WAIT"):
        cursor.take()
    cursor.pass_words("NOWAIT")
    clauses, to = clauses_of(cursor.rest(), table, database, ignores=ignores)
    found: list[Operation] = [Alter(table=table, clauses=tuple(clauses))]
    return found if to is None else [*found, Rename(table=table, to=to)]


def _insert(verb: str) -> Callable[[Cursor, str], Found]:
    def read(cursor: Cursor, database: str) -> Found:
        cursor.pass_words("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
        table = cursor.table(database)
        return None if table is None else [Write(tables=(table,), verb=verb, adds=True)]

    return read


def _load(cursor: Cursor, database: str) -> Found:
    while not cursor.is_at_end and not cursor.takes_words("INTO", "TABLE"):
        cursor.take()
    table = cursor.table(database)
    return None if table is None else [Write(tables=(table,), verb="LOAD DATA", adds=True)]


def _change(verb: str, *ends: str) -> Callable[[Cursor, str], Found]:
    """UPDATE and DELETE may change each table that they name before a word, which is more than they do."""

    def read(cursor: Cursor, database: str) -> Found:
        tables: dict[str, None] = {}
        while not cursor.is_at_end and not cursor.peek().is_word(*ends):
            table = None if cursor.peek().is_word(*BETWEEN_TABLES) else cursor.table(database)
            if table is None:
                cursor.take()
            else:
                tables[table] = None
        return [Write(tables=tuple(tables), verb=verb, adds=False)] if tables else None

    return read


_READERS: dict[str, Callable[[Cursor, str], Found]] = {
    "BEGIN": _begin,
    "ANALYZE": _analyze,
    "CREATE": _create,
    "DROP": _drop,
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "ALTER": _alter,
    "INSERT": _insert("INSERT"),
    "REPLACE": _insert("REPLACE"),
    "LOAD": _load,
    "UPDATE": _change("UPDATE", "SET"),
    "DELETE": _change("DELETE", "WHERE"),
}
