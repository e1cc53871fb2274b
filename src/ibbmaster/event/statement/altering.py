"""The clauses of ALTER TABLE that give columns, rows or keys another meaning; others are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.event.statement.definition import (
    ColumnClause,
    ForeignKey,
    is_column,
    parse_column,
    parse_constraint,
)
from ibbmaster.event.statement.engine import NO_ENGINE, EngineOption, engine_option
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.token import Token, TokenKind

UNICODE = ("UTF8", "UTF8MB3", "UTF8MB4", "UTF16", "UTF16LE", "UTF32")  # text of other sets survives in these
PARTITIONING = ("COALESCE", "REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK", "REPAIR", "REMOVE", "PARTITION")
LISTING = (*PARTITIONING, "ORDER", "DROP", "TRUNCATE")  # there may be commas between names
VERBS = ("ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "CONVERT", "TRUNCATE", "DISCARD", "IMPORT", "EXCHANGE")
OPTIONS = frozenset(  # and those that are followed by an equals sign
    (
        *("ORDER", "FORCE", "ENABLE", "DISABLE", "ALGORITHM", "LOCK", "ENGINE", "COMMENT", "AUTO_INCREMENT"),
        *("DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ROW_FORMAT", "WAIT", "NOWAIT", "TYPE", "MIN_ROWS", "MAX_ROWS"),
        *("AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE", "KEY_BLOCK_SIZE", "PACK_KEYS", "STATS_PERSISTENT"),
        *("STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "TRANSACTIONAL", "PAGE_CHECKSUM", "CONNECTION", "SEQUENCE"),
        *("INSERT_METHOD", "UNION", "DATA", "INDEX", "PASSWORD", "TABLESPACE", "ENCRYPTED", "ENCRYPTION_KEY_ID"),
        *("PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "WITHOUT", "WITH", "STORAGE"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    name: str
    definition: ColumnClause


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeColumn:
    """CHANGE, MODIFY, and RENAME COLUMN, which has no definition."""

    name: str
    to: str
    definition: ColumnClause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault:
    """Whether rows that give the column no value have NULL there from now on."""

    name: str
    is_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddForeignKey:
    key: ForeignKey


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVersioning:
    """Old versions of rows are rows, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows:
    """Rows that are there are changed or removed; no event says which. `what` names the clause."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRows:
    """Rows change their table; no event says which."""

    what: str
    other: str
    is_dropped: bool = False  # the other table is gone then
    is_made: bool = False  # the other table was not there before


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEngine:
    engine: EngineOption


Clause = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | SetDefault
    | AddForeignKey
    | DropConstraint
    | AddVersioning
    | ChangeRows
    | MoveRows
    | SetEngine
)


def clauses_of(tokens: Sequence[Token], table: str, database: str, *, ignores: bool) -> tuple[list[Clause], str | None]:
    """The clauses for a table, and its new name if it gets one. With IGNORE rows may go."""
    clauses: list[Clause] = [ChangeRows(what="ALTER IGNORE TABLE")] if ignores else []
    to = None
    verb: Token | None = None
    for part in parts_of(tokens):
        if verb is not None and verb.is_word(*LISTING) and not part[0].is_word(*VERBS, *OPTIONS, *PARTITIONING):
            continue  # one more name
        verb = part[0]
        cursor = Cursor(part)
        if _renames_table(part):
            cursor.take()
            if cursor.peek().is_word("TO", "AS") or cursor.peek().is_sign("="):
                cursor.take()
            to = cursor.table(database)
            if to is None:
                clauses.append(_unknown(part))
            continue
        clauses += _clause(cursor, part, table, database)
    return clauses, to


def _renames_table(part: Sequence[Token]) -> bool:
    return part[0].is_word("RENAME") and not (len(part) > 2 and part[1].is_word("COLUMN", "INDEX", "KEY"))


def _clause(cursor: Cursor, part: Sequence[Token], table: str, database: str) -> list[Clause]:
    verb = cursor.take()
    if verb.kind is not TokenKind.WORD:
        return [_unknown(part)]
    match verb.text.upper():
        case "ADD":
            return _add(cursor, part, table.partition(".")[0])
        case "DROP":
            return _drop(cursor, part)
        case "MODIFY":
            return _column(cursor, part, has_new_name=False)
        case "CHANGE":
            return _column(cursor, part, has_new_name=True)
        case "ALTER":
            return _defaults(cursor)
        case "RENAME" if cursor.takes_words("COLUMN"):
            cursor.pass_condition()
            name, _, to = cursor.name(), cursor.take(), cursor.name()
            return [ChangeColumn(name=name, to=to, definition=None)] if name and to else [_unknown(part)]
        case "RENAME":
            return []
        case "CONVERT":
            return _convert(cursor, part, database)
        case "TRUNCATE" | "DISCARD" | "IMPORT":
            return [ChangeRows(what=_words(part[:2]))]
        case "EXCHANGE":
            return _move(cursor, part, database, "TABLE")
        case word if word in PARTITIONING:
            return []
        case word if word in OPTIONS or cursor.peek().is_sign("="):
            engine = engine_option(part, database)
            return [] if engine == NO_ENGINE else [SetEngine(engine=engine)]
    return [_unknown(part)]


def _add(cursor: Cursor, part: Sequence[Token], database: str) -> list[Clause]:
    if cursor.takes_words("SYSTEM", "VERSIONING"):
        return [AddVersioning()]
    if cursor.peek().is_word("PARTITION"):
        return []
    if not is_column(part[1:]):
        return [AddForeignKey(key=key) for key in parse_constraint(part[1:], database)]
    cursor.pass_words("COLUMN")
    cursor.pass_condition()
    if cursor.peek().is_sign("("):
        return [
            AddColumn(name=one[0].text, definition=parse_column(one[1:]))
            for one in parts_of(cursor.bracketed())
            if is_column(one)
        ]
    name = cursor.name()
    if name is None:
        return [_unknown(part)]
    rest = cursor.rest()
    found: list[Clause] = [AddColumn(name=name, definition=parse_column(rest))]
    return [*found, *(AddForeignKey(key=key) for key in parse_constraint([*_FOREIGN, *rest], database))]


_FOREIGN = (
    Token(TokenKind.WORD, "FOREIGN"),
    Token(TokenKind.WORD, "KEY"),
)  # what a column itself refers to


def _drop(cursor: Cursor, part: Sequence[Token]) -> list[Clause]:
    if cursor.takes_words("SYSTEM", "VERSIONING"):
        return [ChangeRows(what="DROP SYSTEM VERSIONING")]
    if cursor.takes_words("PARTITION"):
        return [ChangeRows(what="DROP PARTITION")]
    if cursor.peek().is_word("PRIMARY", "INDEX", "KEY", "PERIOD"):
        return []
    if cursor.takes_words("FOREIGN", "KEY") or cursor.takes_words("CONSTRAINT"):
        cursor.pass_condition()
        name = cursor.name()
        return [DropConstraint(name=name)] if name else [_unknown(part)]
    if cursor.takes_words("CHECK"):
        return []
    cursor.pass_words("COLUMN")
    cursor.pass_condition()
    name = cursor.name()
    return [DropColumn(name=name)] if name else [_unknown(part)]


def _column(cursor: Cursor, part: Sequence[Token], *, has_new_name: bool) -> list[Clause]:
    cursor.pass_words("COLUMN")
    cursor.pass_condition()
    name = cursor.name()
    to = cursor.name() if has_new_name else name
    if name is None or to is None:
        return [_unknown(part)]
    return [ChangeColumn(name=name, to=to, definition=parse_column(cursor.rest()))]


def _defaults(cursor: Cursor) -> list[Clause]:
    """ALTER [COLUMN] name SET DEFAULT … or DROP DEFAULT; what it says of indexes changes no value."""
    if cursor.peek().is_word("INDEX", "KEY"):
        return []
    cursor.pass_words("COLUMN")
    cursor.pass_condition()
    name = cursor.name()
    if name is None:
        return []
    if cursor.takes_words("DROP", "DEFAULT"):
        return [SetDefault(name=name, is_null=False)]  # a row that gives it nothing is an error, or has a zero
    return [SetDefault(name=name, is_null=cursor.takes_words("SET", "DEFAULT", "NULL"))]


def _convert(cursor: Cursor, part: Sequence[Token], database: str) -> list[Clause]:
    if cursor.peek().is_word("PARTITION", "TABLE"):
        return _move(cursor, part, database, "TABLE")
    cursor.pass_words("TO", "CHARACTER", "SET", "CHARSET")
    is_unicode = cursor.peek().text.upper() in UNICODE
    return [] if is_unicode else [ChangeRows(what=_words(part))]


def _move(cursor: Cursor, part: Sequence[Token], database: str, word: str) -> list[Clause]:
    """EXCHANGE PARTITION p WITH TABLE t, CONVERT PARTITION p TO TABLE t, CONVERT TABLE t TO PARTITION p …."""
    is_dropped = cursor.peek().is_word(word)
    is_made = part[0].is_word("CONVERT") and not is_dropped
    while not cursor.is_at_end and not cursor.takes_words(word):
        cursor.take()
    other = cursor.table(database)
    if other is None:
        return [_unknown(part)]
    return [MoveRows(what=_words(part[:2]), other=other, is_dropped=is_dropped, is_made=is_made)]


def _unknown(part: Sequence[Token]) -> ChangeRows:
    return ChangeRows(what=f"ALTER TABLE … {_words(part)}")


def _words(part: Sequence[Token]) -> str:
    text = " ".join(token.text for token in part)
    return text if len(text) <= 60 else text[:59] + "…"
