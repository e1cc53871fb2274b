"""QUERY events as servers write them, with what a statement needs of its session. Source: recorded from MariaDB
10.11.19 and 11.8.6; tests/interop/test_testkit.py compares their events with these."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise

from ibbmaster.api.statements import CHARSETS, Origin, is_of_transaction
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.replication.event.query import (
    STATUS_ALTER_FLAGS,
    STATUS_CATALOG,
    STATUS_COLLATIONS,
    STATUS_INVOKER,
    STATUS_TIME_ZONE,
    STATUS_XID,
)
from ibbmaster.replication.event.rows.charset import UCA_1400, UCA_1400_CHARSETS, UCA_1400_STEP
from ibbmaster.replication.event.statement.logged import (
    STATUS_CHARSET,
    STATUS_FLAGS,
    STATUS_MICROSECONDS,
    STATUS_SQL_MODE,
)
from ibbmaster.replication.event.types import EventFlag
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import Token, TokenKind, tokens
from ibbmaster.versions import Difference, version_number

OBJECTS = (  # after CREATE, ALTER and DROP
    *("TABLE", "DATABASE", "SCHEMA", "TRIGGER", "FUNCTION", "PROCEDURE", "EVENT", "PACKAGE", "VIEW", "INDEX"),
    *("USER", "ROLE", "SERVER", "SEQUENCE"),
)
OLD_DEFAULTS = {"utf8mb3": 33, "ucs2": 35, "utf8mb4": 45, "utf16": 54, "utf32": 60}  # collations, smallest first
NEW_DEFAULTS = {name: UCA_1400 + UCA_1400_STEP * number for number, name in enumerate(UCA_1400_CHARSETS)}

SESSION = (
    bytes([STATUS_FLAGS])
    + struct.pack("<I", 1 << 24)  # explicit_defaults_for_timestamp
    + bytes([STATUS_SQL_MODE])
    # STRICT_TRANS_TABLES, ERROR_FOR_DIVISION_BY_ZERO, NO_AUTO_CREATE_USER, NO_ENGINE_SUBSTITUTION
    + struct.pack("<Q", 1 << 21 | 1 << 26 | 1 << 28 | 1 << 30)
    + bytes([STATUS_CATALOG, 3])
    + b"std"
)
NEW_CHARSETS = struct.pack("<BHHH", STATUS_CHARSET, *3 * [NEW_DEFAULTS["utf8mb4"]])
COLLATIONS = bytes([STATUS_COLLATIONS, len(OLD_DEFAULTS)]) + b"".join(
    struct.pack("<HH", old, NEW_DEFAULTS[name]) for name, old in OLD_DEFAULTS.items()
)
TIME_ZONE = bytes([STATUS_TIME_ZONE, 6]) + b"SYSTEM"
INVOKER = bytes([STATUS_INVOKER, 4]) + b"root" + bytes([9]) + b"localhost"

ATOMIC = ("TABLE", "INDEX", "VIEW", "TRIGGER", "SEQUENCE")  # a crash undoes their DDL, by its number
DEFINED = ("VIEW", "TRIGGER", "FUNCTION", "PROCEDURE", "EVENT", "PACKAGE", "ROLE")
CHARSET_WORDS = ("ASCII", "UNICODE", "BYTE", "NATIONAL", "NCHAR", "NVARCHAR")
BARE_CLOCKS = ("CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME")  # they need no brackets
CLOCKS = (*BARE_CLOCKS, "NOW", "CURTIME")
ZONED = (*CLOCKS, "CURDATE", "CURRENT_DATE", "SYSDATE", "FROM_UNIXTIME")  # functions that depend on the time zone
TIMED = (*CLOCKS, "UTC_TIMESTAMP", "UTC_TIME")  # and those with parts of a second
INDEX_SORTS = ("BTREE", "HASH", "RTREE")
OBJECT_WITHIN = 24  # words


def is_new(server_version: str) -> bool:
    """Default collations are of UCA 14.0, and GTID events name the thread."""
    return Difference.UCA_1400_IS_DEFAULT.holds(version_number(server_version))


def query_event(
    sql: str,
    origin: Origin,
    catalog: SchemaCatalog,
    *,
    is_new: bool,
    microseconds: int = 0,
    number: int | None = None,
    alter: bytes = b"",
    error_code: int = 0,
) -> bytes:
    """The QUERY event of a statement that root runs after `catalog`, with the `number` of atomic DDL, or a part of an
    `alter` of two phases. Raises EventError: no replica could run it."""
    statement = _Statement(sql, origin.database, catalog)
    is_zoned, is_timed = statement.needs(is_new=is_new)
    status = (
        SESSION
        + (COLLATIONS if is_new and statement.names_charset() else b"")
        + (NEW_CHARSETS if is_new else CHARSETS)
        + (TIME_ZONE if is_zoned else b"")
        + (INVOKER if statement.has_invoker else b"")
        + (bytes([STATUS_MICROSECONDS]) + microseconds.to_bytes(3, "little") if is_timed else b"")
        + (bytes([STATUS_XID]) + struct.pack("<Q", number) if number is not None and statement.is_atomic else b"")
        + (bytes([STATUS_ALTER_FLAGS]) + alter if alter else b"")
    )
    run_in = replace(origin, database=statement.database)
    return run_in.query(sql, status=status, error_code=error_code, flags=statement.flags)


class _Statement:
    def __init__(self, sql: str, database: str, catalog: SchemaCatalog) -> None:
        self._words = Cursor(tokens(sql)).rest()
        self._catalog = catalog
        cursor = Cursor(self._words)
        self.database = database
        self._verb = cursor.take().text.upper()
        self._replaces = cursor.takes_words("OR", "REPLACE")
        self._is_temporary = self._has_definer = False
        self._object = ""
        for _ in range(0 if is_of_transaction(sql) else OBJECT_WITHIN):
            token = cursor.take()
            self._is_temporary |= token.is_word("TEMPORARY")
            self._has_definer |= token.is_word("DEFINER") and cursor.peek().is_sign("=")
            if token.is_word(*OBJECTS):
                self._object = token.text.upper()
                break
        cursor.pass_condition()
        if self._is_of_database:
            self.database = cursor.name() or database
        elif self._object == "INDEX":
            while not cursor.is_at_end and not cursor.take().is_word("ON"):
                pass
        self._table = cursor.table(database) if self._object in ("TABLE", "INDEX", "SEQUENCE") else None
        self._is_partitioning = self._verb == "ALTER" and cursor.peek(1).is_word("PARTITION")

    @property
    def _is_of_database(self) -> bool:
        return self._verb in ("CREATE", "ALTER", "DROP") and self._object in ("DATABASE", "SCHEMA")

    @property
    def is_atomic(self) -> bool:
        if self._verb == "DROP":
            return self._object in (*ATOMIC, "DATABASE", "SCHEMA") and not self._is_temporary
        if self._verb == "ALTER":
            return self._object in ("TABLE", "VIEW") and not self._is_partitioning
        selects = self._object == "TABLE" and any(token.is_word("SELECT") for token in self._words)
        return self._verb in ("CREATE", "RENAME") and self._object in ATOMIC and not selects

    @property
    def has_invoker(self) -> bool:
        """Definitions may run as its user, who also grants."""
        if self._verb in ("GRANT", "REVOKE"):
            return any(token.is_word("ON") for token in self._words)
        return self._verb == "CREATE" and self._object in DEFINED and not self._has_definer

    @property
    def flags(self) -> EventFlag:
        """Flags of the header: a replica is not to USE the database; temporary tables may be concerned."""
        found = EventFlag(0)
        if self._is_of_database or self._verb in ("COMMIT", "ROLLBACK", "SAVEPOINT", "XA"):
            found |= EventFlag.SUPPRESS_USE
        tables = self._catalog.tables
        drops = self._object in ("TABLE", "SEQUENCE") and (
            self._verb == "DROP" or (self._replaces and self._table in tables)
        )
        empties = self._is_of_database and self._verb == "DROP" and any(key[0] == self.database for key in tables)
        return found | EventFlag.THREAD_SPECIFIC if drops or empties or self._is_temporary else found

    def names_charset(self) -> bool:
        """Whether it names a character set without a collation, and so depends on the session's default."""
        cursor = Cursor(self._words)
        while not cursor.is_at_end:
            if self._takes_charset(cursor):
                return True
        return False

    def _takes_charset(self, cursor: Cursor) -> bool:
        token, after = cursor.take(), cursor.peek()
        if token.is_word("CHARSET") or (token.is_word("CHARACTER") and cursor.takes_words("SET")):
            cursor.takes_sign("=")
            cursor.take()
            return not cursor.peek().is_word("COLLATE")
        if token.is_word("USING"):
            return cursor.peek(1).is_sign(")") and not after.is_word(*INDEX_SORTS)
        if token.is_word("CAST"):
            return bool(self._object) and _casts_to_text(cursor.bracketed())
        is_introducer = token.kind is TokenKind.WORD and token.text.startswith("_") and after.kind is TokenKind.TEXT
        return is_introducer or (self._object == "TABLE" and token.is_word(*CHARSET_WORDS))

    def needs(self, *, is_new: bool) -> tuple[bool, bool]:
        """Whether its functions or the defaults of an altered table need the time zone, and parts of a second."""
        if self._object:
            return self._needs_of_table(is_new=is_new)
        calls = [
            token.text.upper()
            for token, after in zip(self._words, [*self._words[1:], None], strict=True)
            if token.is_word(*BARE_CLOCKS, "CURRENT_DATE")
            or (token.kind is TokenKind.WORD and after is not None and after.is_sign("("))
        ]
        return any(call in ZONED for call in calls), any(call in TIMED for call in calls)

    def _needs_of_table(self, *, is_new: bool) -> tuple[bool, bool]:
        alters = self._verb == "ALTER" or self._object == "INDEX"
        found = self._catalog.tables.get(self._table) if alters and self._table is not None else None
        is_zoned = is_timed = False
        for column in found.columns if isinstance(found, TableVersion) else ():
            kind = BY_NAME[column.type.word]
            if kind.has_day and kind.is_clock and column.default not in (None, "NULL"):
                is_now = column.default.startswith("current_timestamp")
                is_zoned |= is_now == (not kind.is_zoned)
                is_whole = column.default == "current_timestamp()" and kind.is_zoned
                is_timed |= is_now and (is_new or not is_whole)
        return is_zoned, is_timed


def _casts_to_text(inside: list[Token]) -> bool:
    return any(token.is_word("AS") and after.is_word("CHAR", "VARCHAR") for token, after in pairwise(inside))
