"""Statements answered at once, without the disk, and answers that sessions share: replicas and CDC clients send such
ones before a dump. Others need a thread."""

import functools
from collections.abc import Sequence
from itertools import chain

from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import ResultSet, Row, SharedResultSet
from ibbmaster.rows.expr.session_facts import SESSION_FUNCTIONS
from ibbmaster.sqltext.expression import Call, Expression, Literal, SystemVariable, UserVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.token import SqlError
from . import statement as verbs
from .relation import matcher
from .settings import BINLOG_STATE, FROM_THE_DISK, SystemValue
from .sql import parse
from .table_columns import SYSTEM_DATABASES

IMMEDIATE_SIZE_MAX = 1024  # bytes of a text that may be answered at once
READ_BY = ("sql_mode", "character_set_client")  # they change how the next statement is read
POSITION = UserVariable("ibb_position")  # setting it looks into the log
STATEMENTS_KEPT = 256  # texts
ANSWERS_KEPT = 256
SIZE_MAX = 1024  # letters and bytes of the values of an answer that is kept, and of its rows
_CALLS = SESSION_FUNCTIONS - {"binlog_gtid_pos"}

Key = tuple[bytes, tuple[Value | SystemValue, ...], tuple[type, ...]]


@functools.lru_cache(STATEMENTS_KEPT)
def immediate_statements(sql: str, version: int, sql_mode: int = 0) -> tuple[verbs.Statement, ...] | None:
    """The statements of a text if all are answered at once; None if in doubt. `version`, `sql_mode`: as in `parse`."""
    if len(sql) > IMMEDIATE_SIZE_MAX or not sql.strip(" \t\r\n;"):
        return None
    try:
        statements = tuple(parse(sql, version=version, sql_mode=sql_mode))
    except (SqlError, RefusedError):
        return None
    if len(statements) > 1 and any(map(_changes_reading, statements)):
        return None
    return statements if all(map(_is_immediate, statements)) else None


def _changes_reading(statement: verbs.Statement) -> bool:
    return isinstance(statement, verbs.Set) and any(
        not isinstance(one, verbs.Assignment) or (isinstance(one.target, SystemVariable) and one.target.name in READ_BY)
        for one in statement.assignments
    )


def _is_immediate(statement: verbs.Statement) -> bool:
    match statement:
        case verbs.Set(assignments=assignments):
            return all(
                _is_quick(item.value) and item.target != POSITION and not _is_binlog_state(item.target)
                for item in assignments
                if isinstance(item, verbs.Assignment)
            )
        case verbs.Select(values=items):
            return items is not None and all(_is_quick(item.node) for item in items)
        case verbs.Show(what="VARIABLES", pattern=str() as pattern, where=None):
            return not any(map(matcher(pattern), FROM_THE_DISK))
        case verbs.Transaction(has_snapshot=has_snapshot):
            return not has_snapshot
        case verbs.Use(database=database):
            return database.lower() in SYSTEM_DATABASES
        case verbs.Nothing() | verbs.Kill() | verbs.Show(what="PROCESSLIST", where=None):
            return True  # the last two help where others hold all threads
    return False


def _is_binlog_state(target: UserVariable | SystemVariable) -> bool:
    return isinstance(target, SystemVariable) and target.name == BINLOG_STATE


def _is_quick(expression: Expression) -> bool:
    match expression:
        case Literal() | UserVariable():
            return True
        case SystemVariable(name=name):
            return name not in FROM_THE_DISK
        case Call(name=name, arguments=arguments):
            return name in _CALLS and all(map(_is_quick, arguments))
    return False


def key_of(sql: bytes, values: Sequence[Value | SystemValue]) -> Key:
    """1 and TRUE are the same value, and have other columns."""
    return sql, tuple(values), tuple(map(type, values))


class KnownAnswers:
    def __init__(self) -> None:
        self._kept: dict[Key, SharedResultSet] = {}

    def find(self, key: Key) -> SharedResultSet | None:
        return self._kept.get(key)

    def keep(self, key: Key, answer: ResultSet, rows: tuple[Row, ...]) -> SharedResultSet:
        shared = SharedResultSet(
            columns=answer.columns, rows=rows, status=answer.status, warning_count=answer.warning_count
        )
        _, values, _ = key  # with LIMIT 0 they are in no row
        size = sum(len(value) for value in (*values, *chain.from_iterable(rows)) if isinstance(value, str | bytes))
        if size <= SIZE_MAX:
            if len(self._kept) >= ANSWERS_KEPT:
                self._kept.clear()  # frequent ones are there again soon
            self._kept[key] = shared
        return shared
