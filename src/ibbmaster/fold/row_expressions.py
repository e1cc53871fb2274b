"""Conditions and values of a logged statement over the rows of one table: as the server had them, or not at all.

What cannot be determined raises NotSimpleError, for the row of which it cannot.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.event.rows.value import Value
from ibbmaster.fold.comparing import alike_part, comparable, is_text
from ibbmaster.fold.literals import stored_value
from ibbmaster.fold.stored import StoredColumn
from ibbmaster.schema.expression import NotSimpleError, compiled, stored
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sqltext.expression import Call, ColumnName, Default, Expression, Literal, Operation
from ibbmaster.sqltext.literals import literal_value
from ibbmaster.sqltext.moment import moment_text, parse_moment

BLOB_SIZES = {"tiny": (1 << 8) - 1, "medium": (1 << 24) - 1, "long": (1 << 32) - 1}
BLOB_SIZE = (1 << 16) - 1
_OF_ASCII = ("utf8mb4", "utf8mb3", "utf8", "latin1", "ascii")  # character sets that have it as it is
NOW = ("now", "current_timestamp", "localtime", "localtimestamp")
TIME_HOURS_MAX = 838
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": operator.eq,
}
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!=", "<=>": "<=>"}
_EQUAL = ("=", "!=", "<=>")
_NUMBERS = (ValueKind.INTEGER, ValueKind.DECIMAL)
_MOMENTS = (ValueKind.DATE, ValueKind.DATETIME, ValueKind.TIMESTAMP)
_PLAIN_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_PLAIN_MOMENT = re.compile(r"[1-9]\d{3}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?", re.ASCII)
_PLAIN_TIME = re.compile(r"-?\d\d{1,2}:[0-5]\d:[0-5]\d(?:\.\d{1,6})?", re.ASCII)


class StatementMoment(NamedTuple):
    """When a statement began, in microseconds since 1970, and its session's time zone; None: it is not known.

    `has_fraction`: the log has the part of the second.
    """

    microseconds: int
    has_fraction: bool
    time_zone_s: int | None


@dataclass(frozen=True, slots=True)
class KnownRow:
    """The stored values of a row, in the order of the table's own columns, and the ids of those that are not known."""

    values: Sequence[bytes | None]
    unknown: Collection[int] = ()


Condition = Callable[[KnownRow], bool | None]
"""None is SQL's UNKNOWN. Raises NotSimpleError for a row of which that cannot be determined."""
Assigned = Callable[[KnownRow], bytes | None]
"""What a column stores."""


class RowExpressions:
    """Makes functions of the expressions of one statement over a version of a table.

    `columns` are the table's own as they lie; `knows_texts`: texts of other letters than ASCII mean what they say.
    """

    def __init__(
        self, table: TableVersion, columns: Sequence[StoredColumn], moment: StatementMoment, *, knows_texts: bool = True
    ) -> None:
        self._places = {column.name.lower(): place for place, column in enumerate(table.columns)}
        self._known = table.columns
        self._stored = columns
        self._moment = moment
        self._knows_texts = knows_texts
        self._plain = {
            known.name.lower(): column.column
            for known, column in zip(table.columns, columns, strict=True)
            if not known.type.is_zerofill
        }

    # Conditions -------------------------------------------------------------------------------

    def condition(self, expression: Expression | None) -> Condition:
        """Whether a row meets a condition; without one, each does."""
        if expression is None:
            return lambda row: True
        try:
            return self._condition(expression)
        except NotSimpleError as error:
            return _raising(error)

    def _condition(self, expression: Expression) -> Condition:
        match expression:
            case Operation("AND", operands):
                return _all_of([self.condition(operand) for operand in operands])
            case Operation("OR", operands):
                return _any_of([self.condition(operand) for operand in operands])
            case Operation("NOT", (operand,)):
                return _not(self.condition(operand))
            case Operation("IS NULL", (ColumnName() as name,)):
                return self._is_null(name)
            case Operation("IN", (left, *values)):
                return _any_of([self._compared("=", left, value) for value in values])
            case Operation("LIKE", (ColumnName() as name, Literal(value=str(), charset=None) as pattern)):
                return self._like(self._place(name), pattern)
            case Operation("BETWEEN", (left, low, high)):
                return _all_of([self._compared(">=", left, low), self._compared("<=", left, high)])
            case Operation(sign, (left, right)) if sign in _COMPARED:
                return self._compared(sign, left, right)
        return _truth(self._value(expression))

    def _is_null(self, name: ColumnName) -> Condition:
        place = self._place(name)
        known = self._known[place]
        if not known.is_nullable and (known.is_auto_increment or self._stored[place].column.kind in _MOMENTS):
            raise NotSimpleError("IS NULL means something else for this column")
        read = self._read(place)
        return lambda row: read(row) is None

    def _like(self, place: int, pattern: Literal) -> Condition:
        """Whether a text is as a pattern says, letter by letter; spaces at its end count."""
        self._expect_plain(pattern)
        column, read = self._stored[place], self._read(place)
        text = str(pattern.value)
        if not is_text(column) or "\\" in text or not text.isascii():
            raise NotSimpleError("LIKE of this pattern")
        alike = _alike(column)
        if alike(b"a") not in (b"a", b"A"):
            raise NotSimpleError("LIKE by this collation")
        is_any_case = alike(b"a") == b"A"
        parts = [".*" if letter == "%" else "." if letter == "_" else re.escape(letter) for letter in text]
        found = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if is_any_case else 0))

        def like(row: KnownRow) -> bool | None:
            data = read(row)
            if data is None:
                return None
            if not data.isascii() or not data.decode().isprintable():
                raise NotSimpleError("LIKE over other letters than ASCII")
            return found.fullmatch(data.decode()) is not None

        return like

    def _compared(self, sign: str, left: Expression, right: Expression) -> Condition:
        if isinstance(left, Literal) and isinstance(right, ColumnName):
            sign, left, right = _FLIPPED[sign], right, left
        if isinstance(left, ColumnName) and isinstance(right, Literal) and self._is_of_kind(left, right.value):
            return self._with_constant(sign, self._place(left), right)
        if isinstance(left, ColumnName) and isinstance(right, ColumnName):
            one, other = self._stored[self._place(left)], self._stored[self._place(right)]
            if is_text(one) and one.type.collation == other.type.collation and sign in _EQUAL:
                alike, first, second = _alike(one), self._read(self._place(left)), self._read(self._place(right))
                return _comparison(
                    sign, lambda row: _compared_text(alike, first(row)), lambda row: _compared_text(alike, second(row))
                )
        return _numeric(sign, self._value(left), self._value(right))

    def _is_of_kind(self, name: ColumnName, value: Value | None) -> bool:
        """Whether a column is compared with a constant by the values of the column, not as numbers."""
        return self._stored[self._place(name)].column.kind not in _NUMBERS or value is None

    def _with_constant(self, sign: str, place: int, literal: Literal) -> Condition:
        column, read = self._stored[place], self._read(place)
        if literal.value is None:
            return (lambda row: read(row) is None) if sign == "<=>" else (lambda row: None)
        self._expect_plain(literal)
        kind, value = column.column.kind, literal.value
        if is_text(column) and (sign in _EQUAL or not (column.type.collation or "").endswith("_bin")):
            if sign not in _EQUAL or not isinstance(value, str):
                raise NotSimpleError("texts in their order, or beside numbers")
            alike, wanted = _alike(column), _compared_text(_alike(column), _constant(column, value))
            return _comparison(sign, lambda row: _compared_text(alike, read(row)), lambda row: wanted)
        if not self._is_exact(column, value):
            raise NotSimpleError(f"{value!r} beside a {column.type.word}")
        try:
            found = comparable(column, is_key=False, time_zone_s=self._moment.time_zone_s or 0)
            constant = found.of_constant(value)
        except (RefusedError, ValueError) as error:
            raise NotSimpleError(str(error)) from None
        if sign not in _EQUAL and not (found.has_order and kind in (*_MOMENTS, ValueKind.TIME, ValueKind.TEXT)):
            raise NotSimpleError("an order of its values")
        of_stored = found.of_stored

        def compare(row: KnownRow) -> Any:
            data = read(row)
            return None if data is None else of_stored(data)

        return _comparison(sign, compare, lambda row: constant)

    def _is_exact(self, column: StoredColumn, value: object) -> bool:
        """Whether a constant is compared with a column as it is written."""
        match column.column.kind:
            case ValueKind.DATE | ValueKind.DATETIME:
                return isinstance(value, str) and _is_moment(value)
            case ValueKind.TIMESTAMP:
                return isinstance(value, str) and _is_moment(value) and self._moment.time_zone_s is not None
            case ValueKind.TIME:
                return isinstance(value, str) and _is_time(value)
            case ValueKind.ENUM:
                labels = column.type.labels
                return value in labels and len({label.casefold() for label in labels}) == len(labels)
            case ValueKind.TEXT:
                return isinstance(value, str) and value.isascii()
            case ValueKind.BINARY:
                return isinstance(value, bytes) or (isinstance(value, str) and value.isascii())
            case ValueKind.UUID | ValueKind.INET4 | ValueKind.INET6:
                return isinstance(value, str)
        return False

    # Values -----------------------------------------------------------------------------------

    def assigned(self, place: int, expression: Expression) -> Assigned:
        """What a column stores that is given an expression."""
        try:
            return self._assigned(place, expression)
        except NotSimpleError as error:
            return _raising(error)

    def _assigned(self, place: int, expression: Expression) -> Assigned:
        known, column = self._known[place], self._stored[place]
        match expression:
            case Default():
                value = self.default(place)
                return lambda row: value
            case Call(name="default", arguments=(ColumnName() as name,)) if self._place(name) == place:
                value = self.default(place)
                return lambda row: value
            case ColumnName():
                source = self._place(expression)
                read, is_nullable = self._read(source), known.is_nullable
                if self._known[source].type == known.type:
                    return lambda row: _expect_nullable(read(row), is_nullable)
                if self._stored[source].column.kind not in _NUMBERS or column.column.kind not in _NUMBERS:
                    raise NotSimpleError("a value of another type")
        if (digits := _digits_of_now(expression)) is not None:
            data = self.now(place, digits)
            return lambda row: data
        compute, zone_s = self._value(expression), self._moment.time_zone_s
        return lambda row: storable(compute(row), known, column, zone_s)

    def default(self, place: int) -> bytes | None:
        """What a column stores that is given nothing.

        Raises:
            NotSimpleError: that cannot be determined.
        """
        known, column = self._known[place], self._stored[place]
        text = known.default
        if known.is_auto_increment or known.expression is not None or known.period is not None:
            raise NotSimpleError("a value that the server makes")
        if text is None:
            return storable(None, known, column, None)
        if (digits := now_digits(text)) is not None:
            return self.now(place, digits)
        try:
            value = literal_value(text)
            if column.column.kind is ValueKind.TIMESTAMP and value is not None:
                raise NotSimpleError("a TIMESTAMP in the time zone of the session that has made the column")
            return None if value is None else stored_value(column.column, column.type, value)
        except ValueError as error:
            raise NotSimpleError(str(error)) from None

    def now(self, place: int, digits: int) -> bytes:
        """The moment of the statement, as a column stores it.

        Raises:
            NotSimpleError: that cannot be determined.
        """
        column, moment = self._stored[place], self._moment
        kind = column.column.kind
        zone_s = 0 if kind is ValueKind.TIMESTAMP else moment.time_zone_s
        is_date = kind is ValueKind.DATE
        if kind not in _MOMENTS or zone_s is None or digits > column.column.scale:
            raise NotSimpleError("the present moment in this column")
        if digits and not moment.has_fraction:
            raise NotSimpleError("the part of a second")
        unit = 10 ** (6 - digits)
        text = moment_text(moment.microseconds // unit * unit + zone_s * 10**6, column.column.scale)
        data = stored_value(column.column, column.type, text[:10] if is_date else text)
        assert data is not None
        return data

    # Columns ----------------------------------------------------------------------------------

    def _place(self, name: ColumnName) -> int:
        place = self._places.get(name.parts[-1].lower())
        if place is None:
            raise NotSimpleError(f"column {name.parts[-1]}")
        return place

    def _read(self, place: int) -> Assigned:
        number, name = self._known[place].id, self._known[place].name

        def read(row: KnownRow) -> bytes | None:
            if number in row.unknown:
                raise NotSimpleError(f"column {name}, which is not known")
            return row.values[place]

        return read

    def _value(self, expression: Expression) -> Callable[[KnownRow], Value]:
        expression = _with_constants(expression)
        self._expect_plain(expression)
        taken, compute = compiled(expression, self._plain)
        inputs = []
        for name in taken:
            column = self._stored[self._places[name]].column
            inputs.append((name, self._read(self._places[name]), kind_of(column).convert(column)))

        def value(row: KnownRow) -> Value:
            found: dict[str, Value] = {}
            for name, read, convert in inputs:
                data = read(row)
                found[name] = None if data is None else convert(data)
            return compute(found)

        return value

    def _expect_plain(self, expression: Expression) -> None:
        """
        Raises:
            NotSimpleError: a text in it may be another one for the server.
        """
        match expression:
            case Literal(value=str() as text, charset=None) if text.isascii():
                return
            case Literal(value=str() as text, charset=charset) if charset or not self._knows_texts or "\ufffd" in text:
                raise NotSimpleError("a text of which not every letter is known")
            case Operation(operands=operands):
                for operand in operands:
                    self._expect_plain(operand)
            case Call(arguments=arguments):
                for argument in arguments:
                    self._expect_plain(argument)


def now_digits(text: str) -> int | None:
    """The digits of a second of the present moment, as a default has it; None if it is something else."""
    match = re.fullmatch(r"current_timestamp(?:\((\d?)\))?", text.lower())
    return None if match is None else int(match[1] or 0)


def _digits_of_now(expression: Expression) -> int | None:
    match expression:
        case Call(name=name, arguments=(), database=None, is_read=True) if name in NOW:
            return 0
        case Call(name=name, arguments=(Literal(value=int() as digits),), database=None) if name in NOW:
            return digits if 0 <= digits <= 6 else None
    return None


def _with_constants(expression: Expression) -> Expression:
    """With plain texts, and the value of NAME_CONST, which stands for a variable of a procedure."""
    match expression:
        case Literal(value=str() as text, charset=charset) if charset in _OF_ASCII and text.isascii():
            return Literal(text)
        case Call(name="name_const", arguments=(_, Literal(charset=None) as value), database=None):
            return value
        case Operation(operator=sign, operands=operands):
            return Operation(sign, tuple(map(_with_constants, operands)))
        case Call(arguments=(_, *_) as arguments):
            return Call(
                expression.name,
                expression.written,
                tuple(map(_with_constants, arguments)),
                expression.database,
                expression.is_read,
            )
    return expression


def storable(value: Value, known: TableColumn, column: StoredColumn, zone_s: int | None) -> bytes | None:
    """What a column stores of a value, where no server has to judge how.

    Raises:
        NotSimpleError: the value is none of the column's as it stands.
    """
    if value is None:
        return _expect_nullable(None, known.is_nullable)
    shape = column.column
    if isinstance(value, bytes) and shape.kind is ValueKind.TEXT and value.isascii():
        value = value.decode()
    if isinstance(value, str):
        value = _text_value(value, shape, zone_s)
    is_negative = isinstance(value, int | Decimal) and value < 0
    is_number = shape.kind is ValueKind.TIMESTAMP and not isinstance(value, str)
    if shape.is_compressed or (is_negative and known.type.is_unsigned) or is_number:
        raise NotSimpleError(f"{value!r} as {known.type.word}")
    if shape.kind is ValueKind.FLOAT and known.type.length is not None:
        raise NotSimpleError("a rounded FLOAT")
    found = value if shape.kind is ValueKind.TIMESTAMP else stored(value, shape)
    try:
        data = stored_value(shape, column.type, found)  # type: ignore[arg-type]
    except ValueError as error:
        raise NotSimpleError(str(error)) from None
    if data is None or len(data) > _size_max(known, shape):
        raise NotSimpleError(f"{len(data or b'')} bytes as {known.type.word}")
    return data


def _text_value(text: str, shape: Column, zone_s: int | None) -> str:
    """A text that stands for a value of a column, as it is kept in it.

    Raises:
        NotSimpleError: a server may make something else of it.
    """
    match shape.kind:
        case ValueKind.INTEGER if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            return text
        case ValueKind.DECIMAL | ValueKind.FLOAT if re.fullmatch(r"-?\d{1,30}(?:\.\d{1,30})?", text, re.ASCII):
            return text
        case ValueKind.DATE if _is_moment(text) and not text[10:].strip(" 0:."):
            return text[:10]
        case ValueKind.DATETIME if _is_moment(text):
            return text
        case ValueKind.TIMESTAMP if _is_moment(text) and zone_s is not None:
            microseconds = (parse_moment(text) or 0) - zone_s * 10**6
            has_room = len(text.partition(".")[2]) <= shape.scale
            if has_room and 10**6 <= microseconds < (1 << 31) * 10**6 - 10**6:
                return moment_text(microseconds, shape.scale)
        case ValueKind.TIME if _is_time(text):
            return text
        case ValueKind.ENUM if text in (shape.labels or ()):
            return text
        case ValueKind.SET if all(part in (shape.labels or ()) for part in text.split(",")):
            return text
        case ValueKind.TEXT | ValueKind.BINARY | ValueKind.UUID | ValueKind.INET4 | ValueKind.INET6:
            return text
    raise NotSimpleError(f"{text[:20]!r} as {shape.type_name}")


def _size_max(known: TableColumn, shape: Column) -> int:
    """The most bytes that a column has, where nothing else has looked at that."""
    word = known.type.word
    if word.endswith(("text", "blob")):
        return BLOB_SIZES.get(word[:-4], BLOB_SIZE)
    return shape.size if shape.kind is ValueKind.BINARY else BLOB_SIZES["long"]


def _expect_nullable(data: bytes | None, is_nullable: bool) -> bytes | None:
    if data is None and not is_nullable:
        raise NotSimpleError("NULL in a column that has none")
    return data


def _is_moment(text: str) -> bool:
    return _PLAIN_MOMENT.fullmatch(text) is not None and parse_moment(text) is not None


def _is_time(text: str) -> bool:
    match = _PLAIN_TIME.fullmatch(text)
    return match is not None and int(text.lstrip("-").partition(":")[0]) <= TIME_HOURS_MAX and text[:3] != "-00"


def _constant(column: StoredColumn, value: str) -> bytes:
    try:
        data = stored_value(column.column, column.type, value)
    except ValueError as error:
        raise NotSimpleError(str(error)) from None
    assert data is not None
    return data


def _alike(column: StoredColumn) -> Callable[[bytes], bytes | None]:
    try:
        return alike_part(column)
    except ValueError as error:
        raise NotSimpleError(str(error)) from None


def _compared_text(alike: Callable[[bytes], bytes | None], data: bytes | None) -> bytes | None:
    """What compares as a text does.

    Raises:
        NotSimpleError: others may be equal to it.
    """
    if data is None:
        return None
    found = alike(data)
    if found is None:
        raise NotSimpleError("texts that may be equal to others by their collation")
    return found


def _numeric(sign: str, left: Callable[[KnownRow], Value], right: Callable[[KnownRow], Value]) -> Condition:
    """A comparison of numbers; one of them may be a text that is an integer as it stands."""

    def compared(row: KnownRow) -> bool | None:
        one, other = left(row), right(row)
        if isinstance(one, str) and isinstance(other, str):
            raise NotSimpleError("a comparison of texts")
        return _comparison(sign, lambda row: _number(one), lambda row: _number(other))(row)

    return compared


def _number(value: Value) -> int | Decimal | None:
    if isinstance(value, str) and _PLAIN_INTEGER.fullmatch(value):
        return int(value)
    if value is not None and not isinstance(value, int | Decimal):
        raise NotSimpleError("a comparison of what is no number")
    return value


def _comparison(sign: str, left: Callable[[KnownRow], Any], right: Callable[[KnownRow], Any]) -> Condition:
    compare = _COMPARED[sign]

    def compared(row: KnownRow) -> bool | None:
        one, other = left(row), right(row)
        if one is None or other is None:
            return one is other if sign == "<=>" else None
        return bool(compare(one, other))

    return compared


def _truth(value: Callable[[KnownRow], Value]) -> Condition:
    def truth(row: KnownRow) -> bool | None:
        found = value(row)
        if found is None:
            return None
        if not isinstance(found, int | Decimal):
            raise NotSimpleError("the truth of what is no number")
        return bool(found)

    return truth


def _raising(error: NotSimpleError) -> Callable[[KnownRow], Any]:
    def fail(row: KnownRow) -> Any:
        raise NotSimpleError(str(error))

    return fail


def _all_of(conditions: Sequence[Condition]) -> Condition:
    """One that is FALSE decides, whatever the others are."""

    def check(row: KnownRow) -> bool | None:
        found: bool | None = True
        untold: NotSimpleError | None = None
        for condition in conditions:
            try:
                truth = condition(row)
            except NotSimpleError as error:
                untold = error
                continue
            if truth is False:
                return False
            found = None if truth is None else found
        if untold is not None:
            raise untold
        return found

    return check


def _any_of(conditions: Sequence[Condition]) -> Condition:
    """One that is TRUE decides, whatever the others are."""
    return _not(_all_of([_not(condition) for condition in conditions]))


def _not(condition: Condition) -> Condition:
    def check(row: KnownRow) -> bool | None:
        truth = condition(row)
        return None if truth is None else not truth

    return check
