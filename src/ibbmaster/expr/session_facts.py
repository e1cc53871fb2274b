"""What MariaDB has as functions of a session, its primary and the clock: what they take, and the columns they give.

Every session loads this, a replica's too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ibbmaster.facts import rows_of
from ibbmaster.sqltext import moment
from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Expression,
    Literal,
    Operation,
    Star,
    SystemVariable,
    UserVariable,
)
from ibbmaster.wire.response import ColumnFlag, FieldType

NOT_NULL, UNSIGNED, BINARY = ColumnFlag.NOT_NULL, ColumnFlag.UNSIGNED, ColumnFlag.BINARY
NUMBER = NOT_NULL | BINARY
_OF_NOW = ("now", "current_timestamp", "localtime", "localtimestamp", "sysdate")
CLOCKS = {  # what is shown of a moment, and whether in UTC
    **dict.fromkeys(_OF_NOW, (moment.moment_text, False)),
    "utc_timestamp": (moment.moment_text, True),
    **dict.fromkeys(("current_time", "curtime"), (moment.time_of_day_text, False)),
    "utc_time": (moment.time_of_day_text, True),
}
DATES = {"curdate": False, "current_date": False, "utc_date": True}
USERS = ("user", "session_user", "system_user")
_FACTS = rows_of("ibbmaster.expr", "session_functions")
#: Functions whose column does not depend on their value: type, length (of texts in letters), flags.
CALLS: Mapping[str, tuple[FieldType, int, int]] = {
    name: (FieldType[kind], int(length), sum(ColumnFlag[flag] for flag in flags.split()))
    for name, _, _, kind, length, flags in _FACTS
    if kind
}
#: Functions of the session: the least and the most arguments.
OF_THE_SESSION: Mapping[str, tuple[int, int]] = {
    name: (int(least), int(most)) for name, least, most, *_ in _FACTS if least
}
SESSION_FUNCTIONS = frozenset(OF_THE_SESSION)


def is_of_session(expression: Expression) -> bool:
    """Whether a value is what the session, its primary or the clock says, with nothing computed of it."""
    match expression:
        case Literal(value=int() as value):
            return value >= -(1 << 63)
        case Literal(value=float() as real):
            return real - real == 0
        case Literal() | SystemVariable() | UserVariable() | ColumnName(parts=(_, _, *_)) | Star():
            return True
        case Operation(operator=":=", operands=(_, value)):
            return is_of_session(value)
        case Call(name="unix_timestamp", arguments=(_, *_)):
            return False
        case Call(name=name, arguments=arguments, database=None, is_read=True):
            return name in SESSION_FUNCTIONS and all(map(is_of_session, arguments))
    return False
