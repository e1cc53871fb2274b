"""Functions of the session and its clock, and what a session has set that answers depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ibbmaster.expr import kinds
from ibbmaster.expr.kinds import Type
from ibbmaster.expr.scalars import Scalar, constant
from ibbmaster.expr.session_facts import CALLS, is_of_session
from ibbmaster.sqltext.expression import Call, Expression, SystemVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType


class SessionValues(Protocol):
    """What says the values of one session."""

    def evaluate(self, expression: Expression) -> Value: ...

    def is_switch(self, variable: SystemVariable) -> bool: ...

    def collation_of(self, charset: str) -> str: ...

    def counted(self, value: Value) -> Value: ...


@dataclass(frozen=True, slots=True)
class QuerySession:
    """What a session has set that answers depend on."""

    evaluator: SessionValues
    database: str  # the default one
    collation: str  # of literals
    charset: str | None  # that texts are sent in
    collation_id: int
    time_zone_s: int
    division_digits: int
    version: int
    is_binary: bool


OF_SESSION = words(
    "version database schema user session_user system_user current_user connection_id unix_timestamp found_rows "
    "last_insert_id row_count"
)


def type_of(name: str) -> Type | None:
    """The type of a function of the session, where that does not depend on its value."""
    if name not in CALLS:
        return None
    field_, length, flags = CALLS[name]
    is_nullable = not flags & kinds.NOT_NULL
    if field_ is FieldType.VAR_STRING:
        return kinds.text(length, "utf8mb3_general_ci", strength=3, is_nullable=is_nullable)
    kind = kinds.integer(length, length=length, is_unsigned=bool(flags & kinds.UNSIGNED), is_nullable=is_nullable)
    return kinds.changed(kind, field=field_)


def clock(call: Call, session: QuerySession) -> Scalar:
    """Now, the date, the time of day, and both in UTC."""
    if not is_of_session(call):
        raise not_supported(f"{call.written}() of such digits")
    text = str(session.evaluator.evaluate(call))
    digits = len(text.partition(".")[2])
    field, *_ = CALLS.get(call.name, (FieldType.TIMESTAMP,))
    match field:
        case FieldType.DATE:
            return constant(kinds.date(is_nullable=False), text)
        case FieldType.TIME:
            return constant(kinds.duration(digits, is_nullable=False), parse_duration(text))
    kind = kinds.moment(digits, is_nullable=False)
    if field is FieldType.TIMESTAMP and Difference.NOW_IS_TIMESTAMP.holds(session.version):
        kind = kinds.changed(kind, field=field)
    return constant(kind, text)
