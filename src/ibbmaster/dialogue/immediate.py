"""Statements that are answered at once: they take neither the disk nor long.

Those that replicas and CDC clients send before a dump are among them. What is not is no
slower: it only keeps no other statement waiting.
"""

from __future__ import annotations

import functools

from ibbmaster.dialogue import statement as verbs
from ibbmaster.dialogue.matching import matcher
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.table_columns import SYSTEM_DATABASES
from ibbmaster.dialogue.variables import FROM_THE_DISK
from ibbmaster.expr.session_facts import SESSION_FUNCTIONS
from ibbmaster.sqltext.expression import Call, Expression, Literal, SystemVariable, UserVariable
from ibbmaster.sqltext.token import SqlError
from ibbmaster.wire.refusal import RefusedError

IMMEDIATE_SIZE_MAX = 1024  # bytes of a text that may be answered at once
READ_BY = ("sql_mode", "character_set_client")  # what says how a statement is read
POSITION = UserVariable("ibb_position")  # to be set, it is looked for in the log
STATEMENTS_KEPT = 256  # texts
_CALLS = SESSION_FUNCTIONS - {"binlog_gtid_pos"}


@functools.lru_cache(STATEMENTS_KEPT)
def immediate_statements(sql: str, version: int, sql_mode: int = 0) -> tuple[verbs.Statement, ...] | None:
    """The statements of a text if all are answered at once; None if in doubt. `version`, `sql_mode`: as in `parse`.
    Every replica says the same: what one of them has said is understood already."""
    if len(sql) > IMMEDIATE_SIZE_MAX or not sql.strip(" \t\r\n;"):
        return None
    try:
        statements = tuple(parse(sql, version=version, sql_mode=sql_mode))
    except (SqlError, RefusedError):
        return None
    if len(statements) > 1 and any(map(_changes_reading, statements)):
        return None
    return statements if all(map(is_immediate, statements)) else None


def _changes_reading(statement: verbs.Statement) -> bool:
    """Whether what follows is read in another way."""
    return isinstance(statement, verbs.Set) and any(
        not isinstance(one, verbs.Assignment) or (isinstance(one.target, SystemVariable) and one.target.name in READ_BY)
        for one in statement.assignments
    )


def is_immediate(statement: verbs.Statement) -> bool:
    """Whether a statement is answered at once, whatever is in the log; False if in doubt."""
    match statement:
        case verbs.Set(assignments=assignments):
            return all(
                _is_immediate(item.value) and item.target != POSITION
                for item in assignments
                if isinstance(item, verbs.Assignment)
            )
        case verbs.Select(values=items):
            return items is not None and all(_is_immediate(item.node) for item in items)
        case verbs.Show(what="VARIABLES", pattern=str() as pattern, where=None):
            return not any(map(matcher(pattern), FROM_THE_DISK))
        case verbs.Transaction(has_snapshot=has_snapshot):
            return not has_snapshot
        case verbs.Use(database=database):
            return database.lower() in SYSTEM_DATABASES
        case verbs.Nothing() | verbs.KillStatement() | verbs.Show(what="PROCESSLIST", where=None):
            return True  # the last two help where others hold all threads
        case _:
            return False


def _is_immediate(expression: Expression) -> bool:
    match expression:
        case Literal() | UserVariable():
            return True
        case SystemVariable(name=name):
            return name not in FROM_THE_DISK
        case Call(name=name, arguments=arguments):
            return name in _CALLS and all(map(_is_immediate, arguments))
        case _:
            return False
