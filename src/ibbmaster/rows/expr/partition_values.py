"""Expressions of partitions: integers, dates, and the usual functions of them."""

from collections.abc import Callable, Mapping, Sequence

from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation
from ibbmaster.sqltext.moment import Moment, days_of, loose_moment
from .formulas import NotSimpleError

DAYS_TO_1970 = 719528  # TO_DAYS of 1970-01-01
INT64_MAX = 1 << 63

Value = int | Moment | None
Values = Sequence[bytes | None]
Compute = Callable[[Values], Value]
"""Takes the stored values of a row. Raises NotSimpleError: the value is not known here."""


def compiled(expression: Expression, columns: Mapping[str, Compute]) -> Compute:
    """Columns are by lower-case name. Raises NotSimpleError: it has another form."""
    match expression:
        case Literal(value=int() | None as value):
            return lambda values: value
        case Literal(value=str() as text):
            moment = _moment(text)
            return lambda values: moment
        case ColumnName(parts=parts) if parts[-1].lower() in columns:
            return columns[parts[-1].lower()]
        case Operation(operator="NEGATIVE", operands=(operand,)):
            negated = compiled(operand, columns)
            return lambda values: None if (value := negated(values)) is None else _bounded(-whole(value))
        case Operation(operator=operator, operands=(first, *others)) if operator in _ARITHMETIC:
            return _calculated(_ARITHMETIC[operator], [compiled(one, columns) for one in (first, *others)])
        case Call(name="mod", arguments=(one, other), is_read=True):
            return _calculated(_remainder, [compiled(one, columns), compiled(other, columns)])
        case Call(name=name, arguments=(operand,), is_read=True, database=None) if name in _FUNCTIONS:
            inner, function = compiled(operand, columns), _FUNCTIONS[name]
            return lambda values: None if (value := inner(values)) is None else function(value)
    raise NotSimpleError("partitions by such an expression are not followed")


def _moment(text: str) -> Moment:
    try:
        return loose_moment(text)
    except ValueError as error:
        raise NotSimpleError(str(error)) from None


def _calculated(apply: Callable[[int, int], int | None], parts: Sequence[Compute]) -> Compute:
    def compute(values: Values) -> Value:
        found: int | None = None
        for number, part in enumerate(parts):
            value = part(values)
            if value is None:
                return None
            found = whole(value) if not number else apply(found or 0, whole(value))
            if found is None:
                return None
            _bounded(found)
        return found

    return compute


def whole(value: Value) -> int:
    """Raises NotSimpleError: it is a date."""
    if not isinstance(value, int):
        raise NotSimpleError("partitions by a date as a number are not followed")
    return value


def _bounded(value: int) -> int:
    if not -INT64_MAX <= value < 2 * INT64_MAX:
        raise NotSimpleError(f"{value} has more than 64 bits")
    return value


def _remainder(one: int, other: int) -> int | None:
    if not other:
        return None
    return abs(one) % abs(other) * (-1 if one < 0 else 1)


def _quotient(one: int, other: int) -> int | None:
    if not other:
        return None
    return abs(one) // abs(other) * (-1 if (one < 0) is not (other < 0) else 1)


_ARITHMETIC: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "MOD": _remainder,
    "DIV": _quotient,
}


def _of_day(read: Callable[[Moment], int]) -> Callable[[Value], Value]:

    def compute(value: Value) -> Value:
        if not isinstance(value, Moment) or not value.month or not value.day:
            raise NotSimpleError("partitions by a date that no calendar has are not followed")
        return read(value)

    return compute


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "to_days": _of_day(lambda moment: days_of(moment.year, moment.month, moment.day) + DAYS_TO_1970),
    "year": _of_day(lambda moment: moment.year),
    "month": _of_day(lambda moment: moment.month),
    "quarter": _of_day(lambda moment: (moment.month + 2) // 3),
    "day": _of_day(lambda moment: moment.day),
    "dayofmonth": _of_day(lambda moment: moment.day),
    "hour": _of_day(lambda moment: moment.hour),
    "abs": lambda value: abs(whole(value)),
}
