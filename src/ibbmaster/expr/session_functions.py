"""Functions of the session and its clock, and what a session has set that answers depend on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from ibbmaster.expr import functions, kinds, values
from ibbmaster.expr.kinds import EXACT_NAMES, Kind, Type
from ibbmaster.expr.moments import fraction_of
from ibbmaster.expr.scalars import Scalar, apply, as_moment, constant
from ibbmaster.expr.session_facts import CALLS, is_of_session
from ibbmaster.sqltext.expression import Call, Expression, Literal, SystemVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType


class SessionValues(Protocol):
    """What says the values of one session."""

    @property
    def now_us(self) -> int: ...

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


#: Functions that a server has, beside those that are computed anywhere here.
KNOWN = words(
    "json_extract json_value json_query json_unquote regexp_replace regexp_substr str_to_date sec_to_time lead lag "
    "time_to_sec time_format from_days makedate maketime period_add period_diff yearweek addtime subtime timediff "
    "timestamp timestampadd convert_tz rand uuid sleep get_lock release_lock insert soundex space strcmp format conv "
    "bin oct unhex to_base64 from_base64 sha2 aes_encrypt compress bit_count bit_length ord char quote export_set "
    "make_set find_in_set nextval lastval inet_aton inet_ntoa json_valid json_length json_keys json_array json_object "
    "md5 sha1 sha reverse lpad rpad repeat ascii truncate sign pow power sqrt exp ln log10 log2 interval field elt "
    "quarter week weekofyear dayofweek weekday dayofyear microsecond monthname dayname time last_day datediff to_days "
    "timestampdiff date_format extract degrees radians "
    "sin cos tan asin acos atan atan2 cot pi log row_number rank dense_rank first_value last_value"
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


def charset_or_collation(name: str, kind: Type) -> Scalar:
    """CHARSET() and COLLATION() of a value."""
    collation = "utf8mb3_general_ci" if kind.collation == EXACT_NAMES else kind.collation
    if kind.kind not in kinds.TEXTS or collation is None:
        collation = "binary"
    found = collation.split("_")[0] if name == "charset" else collation
    return constant(kinds.text(64, "utf8mb3_general_ci", strength=3), found)


def now_us(session: QuerySession) -> int:
    """Microseconds since 1970, as the session shows them."""
    return session.evaluator.now_us + session.time_zone_s * values.SECOND


def now(call: Call, session: QuerySession) -> Scalar:
    """NOW()"""
    digits = 0
    if call.arguments:
        (argument,) = call.arguments
        if not isinstance(argument, Literal) or argument.value not in range(7):
            raise not_supported(f"{call.written}() of such digits")
        digits = int(str(argument.value))
    kind = kinds.moment(digits, is_nullable=False)
    if Difference.NOW_IS_TIMESTAMP.holds(session.version):
        kind = kinds.changed(kind, field=FieldType.TIMESTAMP)
    return constant(kind, values.moment_text(now_us(session), digits))


CLOCKS = words("curdate current_date curtime current_time utc_date utc_time utc_timestamp")


def clock(call: Call, session: QuerySession) -> Scalar:
    """The date, the time of day, and both in UTC."""
    if not is_of_session(call):
        raise not_supported(f"{call.written}() of such digits")
    text = str(session.evaluator.evaluate(call))
    digits = len(text.partition(".")[2])
    match CALLS[call.name][0]:
        case FieldType.DATE:
            return constant(kinds.date(is_nullable=False), text)
        case FieldType.TIME:
            return constant(kinds.duration(digits, is_nullable=False), values.parsed_duration(text))
    return constant(kinds.moment(digits, is_nullable=False), text)


def unix_timestamp(value: Scalar, session: QuerySession) -> Scalar:
    """UNIX_TIMESTAMP(x)"""
    moment = as_moment(value)
    digits = fraction_of(value) if value.type.kind is Kind.DATETIME or value.is_constant else 0
    zone = session.time_zone_s

    def seconds(one: str) -> Any:
        if not one.strip("0-: ."):
            return None if digits and value.type.field is not FieldType.TIMESTAMP else 0
        if not values.is_calendar(one):
            raise not_supported("UNIX_TIMESTAMP of a day that is in no calendar")
        found = values.microseconds_of(one) - zone * values.SECOND
        if not 0 <= found < (1 << 31) * values.SECOND:
            raise not_supported("UNIX_TIMESTAMP before 1970 or after 2038")
        return Decimal(found).scaleb(-6) if digits else found // values.SECOND

    if digits:
        kind = kinds.changed(kinds.decimal(17 + digits - 5, digits), length=17 + digits)
        return apply(kind, seconds, moment)
    kind = kinds.changed(kinds.integer(17, length=17), field=FieldType.LONGLONG)
    return apply(kind, seconds, moment)


def from_unixtime(given: list[Scalar], session: QuerySession) -> Scalar:
    """FROM_UNIXTIME(x), and with a format."""
    number = given[0]
    if number.type.kind is not Kind.INT or len(given) > 2:
        raise not_supported("FROM_UNIXTIME of such values")
    kind = kinds.moment(0)
    is_timestamp = Difference.NOW_IS_TIMESTAMP.holds(session.version)
    if is_timestamp:
        kind = kinds.changed(kind, field=FieldType.TIMESTAMP)
    zone = session.time_zone_s

    def moment(seconds: int) -> str | None:
        if is_timestamp and not seconds:
            return None  # which a TIMESTAMP does not have
        if not 0 <= seconds < (1 << 31) - 1:
            if seconds < 0:
                return None
            raise not_supported("FROM_UNIXTIME after 2038")
        return values.moment_text((seconds + zone) * values.SECOND, 0)

    found = apply(kind, moment, number)
    if len(given) == 2:
        return functions.call("date_format", "date_format", [found, given[1]], session.collation)
    return found
