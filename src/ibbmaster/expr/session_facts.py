"""What MariaDB has as functions of a session, its primary and the clock: what they take, and the columns they give.

Every session loads this, a replica's too.
"""

from __future__ import annotations

from collections.abc import Mapping

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
CLOCKS = {  # what is shown of a moment, and whether in UTC
    "now": (moment.moment_text, False),
    "current_timestamp": (moment.moment_text, False),
    "localtime": (moment.moment_text, False),
    "localtimestamp": (moment.moment_text, False),
    "sysdate": (moment.moment_text, False),
    "utc_timestamp": (moment.moment_text, True),
    "current_time": (moment.time_of_day_text, False),
    "curtime": (moment.time_of_day_text, False),
    "utc_time": (moment.time_of_day_text, True),
}
DATES = {"curdate": False, "current_date": False, "utc_date": True}
USERS = ("user", "session_user", "system_user")

#: Functions whose column does not depend on their value: type, length (of texts in letters), flags.
CALLS: Mapping[str, tuple[FieldType, int, int]] = {
    "binlog_gtid_pos": (FieldType.LONG_BLOB, 16_777_216, 0),
    "charset": (FieldType.VAR_STRING, 64, 0),
    "collation": (FieldType.VAR_STRING, 64, 0),
    "connection_id": (FieldType.LONG, 10, NUMBER | UNSIGNED),
    "count": (FieldType.LONGLONG, 21, NUMBER),
    "curdate": (FieldType.DATE, 10, NUMBER),
    "current_date": (FieldType.DATE, 10, NUMBER),
    "current_time": (FieldType.TIME, 8, NUMBER),
    "current_user": (FieldType.VAR_STRING, 384, 0),
    "curtime": (FieldType.TIME, 8, NUMBER),
    "database": (FieldType.VAR_STRING, 64, 0),
    "found_rows": (FieldType.LONGLONG, 21, NUMBER),
    "last_insert_id": (FieldType.LONGLONG, 21, NUMBER | UNSIGNED),
    "master_gtid_wait": (FieldType.LONG, 2, NUMBER),
    "row_count": (FieldType.LONGLONG, 21, NUMBER),
    "schema": (FieldType.VAR_STRING, 64, 0),
    "session_user": (FieldType.VAR_STRING, 384, 0),
    "system_user": (FieldType.VAR_STRING, 384, 0),
    "timediff": (FieldType.TIME, 10, BINARY),
    "unix_timestamp": (FieldType.LONGLONG, 17, BINARY),
    "user": (FieldType.VAR_STRING, 384, 0),
    "utc_date": (FieldType.DATE, 10, NUMBER),
    "utc_time": (FieldType.TIME, 8, NUMBER),
    "utc_timestamp": (FieldType.DATETIME, 19, NUMBER),
}
#: Functions of the session: the least and the most arguments.
OF_THE_SESSION: Mapping[str, tuple[int, int]] = {
    "binlog_gtid_pos": (2, 2),
    "connection_id": (0, 0),
    "current_role": (0, 0),
    "current_user": (0, 0),
    "database": (0, 0),
    "found_rows": (0, 0),
    "last_insert_id": (0, 1),
    "master_gtid_wait": (1, 2),
    "row_count": (0, 0),
    "schema": (0, 0),
    "unix_timestamp": (0, 0),
    "version": (0, 0),
}
SESSION_FUNCTIONS = frozenset((*OF_THE_SESSION, *CLOCKS, *DATES, *USERS))


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
