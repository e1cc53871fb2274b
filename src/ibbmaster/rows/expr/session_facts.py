"""Functions of a session, its primary and the clock, with their arguments and columns; loaded by every session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ibbmaster.facts import rows_of
from ibbmaster.replication.wire.response import ColumnFlag, FieldType
from ibbmaster.sqltext import moment
from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Expression,
    Literal,
    Star,
    SystemVariable,
    UserVariable,
)
from ibbmaster.sqltext.literals import Value

NOT_NULL, UNSIGNED, BINARY = ColumnFlag.NOT_NULL, ColumnFlag.UNSIGNED, ColumnFlag.BINARY
NUMBER = NOT_NULL | BINARY
USER_TEXT_MAX = 16_777_215  # bytes of a variable of a user
OF_NOW = ("now", "current_timestamp", "localtime", "localtimestamp", "sysdate")
CLOCKS = {  # how they show a moment, and whether in UTC
    **dict.fromkeys(OF_NOW, (moment.moment_text, False)),
    "utc_timestamp": (moment.moment_text, True),
    **dict.fromkeys(("current_time", "curtime"), (moment.time_of_day_text, False)),
    "utc_time": (moment.time_of_day_text, True),
}
DATES = {"curdate": False, "current_date": False, "utc_date": True}
USERS = ("user", "session_user", "system_user")
_FACTS = rows_of("ibbmaster.rows.expr", "session_functions")
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


class SessionValues(Protocol):
    def evaluate(self, expression: Expression) -> Value: ...

    def is_switch(self, variable: SystemVariable) -> bool: ...

    def counted(self, value: Value) -> Value: ...


@dataclass(frozen=True, slots=True)
class QuerySession:
    """The settings that answers depend on."""

    evaluator: SessionValues
    database: str
    collation: str  # of literals
    charset: str | None  # that texts are sent in; None and `binary` send them as they are stored
    collation_id: int  # of columns of texts; with `charset` None they have their own
    time_zone_s: int
    division_digits: int
    version: int  # of the server that is emulated: 101119, 120302
    is_binary: bool
    folds_names: bool = False  # capitals do not matter in names of tables


def is_of_session(expression: Expression) -> bool:
    """Whether the session, its primary or the clock says a value, with nothing computed of it."""
    match expression:
        case Literal(value=int() as value):
            return value >= -(1 << 63)
        case Literal(value=float() as real):
            return real - real == 0
        case Literal() | SystemVariable() | UserVariable() | ColumnName(parts=(_, _, *_)) | Star():
            return True
        case Call(name="unix_timestamp", arguments=(_, *_)):
            return False
        case Call(name=name, arguments=arguments, database=None, is_read=True):
            return name in SESSION_FUNCTIONS and all(map(is_of_session, arguments))
    return False
