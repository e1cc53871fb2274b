"""Statements that are answered at once: they take neither the disk nor long.

Those that replicas and CDC clients send before a dump are among them. What is not is no
slower: it only keeps nobody else waiting.
"""

from __future__ import annotations

import functools

from ibbmaster.dialogue.information_schema import SYSTEM_DATABASES
from ibbmaster.dialogue.matching import matcher
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.sql_token import SqlError
from ibbmaster.dialogue.statement import (
    Assignment,
    Call,
    Expression,
    Literal,
    Nothing,
    Select,
    Set,
    Show,
    Statement,
    SystemVariable,
    Transaction,
    Use,
    UserVariable,
)
from ibbmaster.dialogue.variables import FROM_THE_DISK

LIGHT_SIZE_MAX = 1024  # bytes of a text that may be light
POSITION = UserVariable("ibb_position")  # to be set, it is looked for in the log
STATEMENTS_KEPT = 256  # texts
_CALLS = frozenset(
    ("connection_id", "current_timestamp", "current_user", "database", "now", "unix_timestamp", "user", "version")
)


@functools.lru_cache(STATEMENTS_KEPT)
def light_statements(sql: bytes, version: int) -> tuple[Statement, ...] | None:
    """The statements of a text if all are light; None if in doubt. `version` is as in `parse`.

    Every replica says the same: what one of them has said is understood already.
    """
    if len(sql) > LIGHT_SIZE_MAX or not sql.strip(b" \t\r\n;"):
        return None
    try:
        statements = tuple(parse(sql.decode("utf-8", "surrogateescape"), version=version))
    except (SqlError, RefusedError):
        return None
    return statements if all(map(is_light, statements)) else None


def is_light(statement: Statement) -> bool:
    """Whether a statement is answered at once, whatever is in the log; False if in doubt."""
    match statement:
        case Set(assignments=assignments):
            return all(
                _is_light(item.value) and item.target != POSITION
                for item in assignments
                if isinstance(item, Assignment)
            )
        case Select(items=items, tables=(), where=None, group_by=(), having=None, order_by=()):
            return all(_is_light(item.expression) for item in items)
        case Show(what="VARIABLES", pattern=str() as pattern, where=None):
            return not any(map(matcher(pattern), FROM_THE_DISK))
        case Transaction(has_snapshot=has_snapshot):
            return not has_snapshot
        case Use(database=database):
            return database.lower() in SYSTEM_DATABASES
        case Nothing():
            return True
        case _:
            return False


def _is_light(expression: Expression) -> bool:
    match expression:
        case Literal() | UserVariable():
            return True
        case SystemVariable(name=name):
            return name not in FROM_THE_DISK
        case Call(name=name, arguments=arguments):
            return name in _CALLS and all(map(_is_light, arguments))
        case _:
            return False
