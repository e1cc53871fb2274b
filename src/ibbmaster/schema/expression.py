"""Values that SQL expressions give, where that is simple and exact; of all others nothing is said.

A constant, a column, + - * of integers and decimals, MOD and DIV of integers, IFNULL, CONCAT of texts
and numbers: what these give does not hang on the session that evaluates them.
"""

from __future__ import annotations

import contextlib
import decimal
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from ibbmaster.errors import IbbMasterError
from ibbmaster.event.rows.charset import character_size
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.event.rows.value import Value
from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation
from ibbmaster.sqltext.token import SqlError

Evaluate = Callable[[Mapping[str, Value]], Value]
"""Takes the values of columns by their names in lower case."""

TEXT_SIZE_MAX = 1 << 16  # characters
OPERANDS_MAX = 250  # of one sum
DIGITS_MAX = 65  # of a DECIMAL
SCALE_MAX = 38
BIGINT_BITS = 64
TAKEN_KINDS = (ValueKind.TEXT, ValueKind.INTEGER, ValueKind.DECIMAL)  # of columns
_EXACT = decimal.Context(prec=4 * DIGITS_MAX)
_NUMBER = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(-?\d{2,3}:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FLOAT = struct.Struct("<f")


class NotSimpleError(IbbMasterError):
    """What an expression gives cannot be determined here; the text says why."""


def constant(text: str, column: Column) -> Value:
    """What a column holds that is given an expression without columns.

    Raises:
        NotSimpleError: it cannot be determined.
    """
    return stored(_Compiler(text, {}).compiled(_read(text))({}), column)


def formula(text: str, columns: Mapping[str, Column], target: Column) -> tuple[frozenset[str], Evaluate]:
    """What computes a generated column: the columns it takes, in lower case, and how.

    `columns` are those of its table, by name in lower case. What is computed raises NotSimpleError
    for values that the column could not hold.

    Raises:
        NotSimpleError: the expression is not simple.
    """
    compiler, read = _Compiler(text, columns), _read(text)
    compute = compiler.compiled(read)
    if isinstance(read, ColumnName):
        (name,) = compiler.taken
        if not _is_alike(columns[name], target):
            raise NotSimpleError(f"({text}) changes the type of {name}")
    return frozenset(compiler.taken), lambda values: stored(compute(values), target)


def _is_alike(one: Column, other: Column) -> bool:
    """Whether a value goes from one column into another without being rounded or read in a time zone."""
    numbers = (ValueKind.INTEGER, ValueKind.DECIMAL)
    if one.kind in numbers and other.kind in numbers:
        return True
    return one.kind is other.kind and one.type == other.type and one.scale == other.scale and one.labels == other.labels


class _Compiler:
    """Makes a function of a tree; `taken` are the columns it names."""

    def __init__(self, text: str, columns: Mapping[str, Column]) -> None:
        self._text = text
        self._columns = columns
        self.taken: set[str] = set()

    def compiled(self, expression: Expression) -> Evaluate:
        """
        Raises:
            NotSimpleError: there is something else in it.
        """
        match expression:
            case Literal(charset=None):
                value = self._literal(expression)
                return lambda values: value
            case Operation(operator=operator, operands=(Literal(value=str() as text),)) if operator[:8] == "LITERAL ":
                return lambda values: text
            case ColumnName(parts=(name,)):
                return self._column(name)
            case Operation(operator="NEGATIVE", operands=(operand,)):
                return _calculated("-", lambda values: 0, self.compiled(operand))
            case Operation(operator=("+" | "-" | "*") as sign, operands=(first, *others)) if len(others) < OPERANDS_MAX:
                found = self.compiled(first)
                for other in others:
                    found = _calculated(sign, found, self.compiled(other))
                return found
            case Operation(operator=("MOD" | "DIV") as sign, operands=(first, second)):
                return _divided(sign, self.compiled(first), self.compiled(second))
            case Call(database=None, is_read=True):
                return self._called(expression.name, expression.arguments)
        raise _not_simple(self._text)

    def _called(self, name: str, arguments: tuple[Expression, ...]) -> Evaluate:
        match name, arguments:
            case "concat", (_, *_):
                return _joined([self.compiled(each) for each in arguments])
            case "mod", (first, second):
                return _divided("MOD", self.compiled(first), self.compiled(second))
            case (("ifnull" | "coalesce"), (_, _, *_)):
                return _first_of([self.compiled(each) for each in arguments])
        raise _not_simple(self._text)

    def _literal(self, literal: Literal) -> Value:
        match literal.value:
            case bytes() as data:
                if literal.written[:1] in "bB" or literal.written[1:2] == "b":
                    return int.from_bytes(data, "big")
                if len(literal.written) % 2 == 0 or literal.written[1] == "'":
                    return data
            case None | str() as value:
                return value
            case number if not literal.written or _NUMBER.fullmatch(literal.written):
                return number
        raise _not_simple(self._text)

    def _column(self, name: str) -> Evaluate:
        key = name.lower()
        if key not in self._columns or self._columns[key].kind not in TAKEN_KINDS:
            raise _not_simple(self._text)
        self.taken.add(key)
        return lambda values: values[key]


def _not_simple(text: str) -> NotSimpleError:
    return NotSimpleError(f"({text if len(text) <= 60 else text[:59] + '…'}) is not computed here")


def _read(text: str) -> Expression:
    """
    Raises:
        NotSimpleError: it is no expression that is understood, or a long one.
    """
    if len(text) <= TEXT_SIZE_MAX:
        with contextlib.suppress(SqlError):
            return definition_expression(text)
    raise _not_simple(text)


def _joined(parts: Sequence[Evaluate]) -> Evaluate:
    def joined(values: Mapping[str, Value]) -> Value:
        found = [part(values) for part in parts]
        return None if None in found else "".join(map(_text, found))

    return joined


def _calculated(sign: str, one: Evaluate, other: Evaluate) -> Evaluate:
    """+, - or * as MariaDB has it: integers of 64 bits, decimals of at most 65 digits; NULL makes NULL."""

    def compute(values: Mapping[str, Value]) -> Value:
        first, second = one(values), other(values)
        if first is None or second is None:
            return None
        if not isinstance(first, int | Decimal) or not isinstance(second, int | Decimal):
            raise NotSimpleError("arithmetic with what is no exact number")
        if isinstance(first, int) and isinstance(second, int):
            result = first + second if sign == "+" else first - second if sign == "-" else first * second
            if not -(1 << BIGINT_BITS - 1) <= result < 1 << BIGINT_BITS:
                raise NotSimpleError(f"{result} has more than {BIGINT_BITS} bits")
            return result
        left, right = Decimal(first), Decimal(second)
        operation = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}[sign]
        exact = operation(left, right)
        digits = len(exact.as_tuple().digits)
        if digits > DIGITS_MAX or -int(exact.as_tuple().exponent) > SCALE_MAX:
            raise NotSimpleError(f"{exact} has more digits than a DECIMAL")
        return exact

    return compute


def _divided(sign: str, one: Evaluate, other: Evaluate) -> Evaluate:
    """MOD or DIV of integers, towards zero: what remains has the sign of what is divided."""

    def compute(values: Mapping[str, Value]) -> Value:
        first, second = one(values), other(values)
        if first is None or second is None:
            return None
        if not isinstance(first, int) or not isinstance(second, int) or not second:
            raise NotSimpleError("a division of what is no integer, or by zero")
        whole = abs(first) // abs(second) * (1 if (first < 0) is (second < 0) else -1)
        return whole if sign == "DIV" else first - whole * second

    return compute


def _first_of(parts: Sequence[Evaluate]) -> Evaluate:
    """The first value that is not NULL, where all are numbers, or all are texts."""

    def compute(values: Mapping[str, Value]) -> Value:
        found = [value for value in (part(values) for part in parts) if value is not None]
        if any(isinstance(value, str) is not isinstance(found[0], str) for value in found):
            raise NotSimpleError("texts beside numbers")
        return found[0] if found else None

    return compute


def _text(value: Value) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str | int):
        return str(value)
    raise NotSimpleError("bytes as text")


def stored(value: Value, column: Column) -> Value:
    """What a column holds that an expression's value is stored in.

    Raises:
        NotSimpleError: the value is not one of the column's as it stands.
    """
    if value is None:
        return None
    found = _stored(value, column)
    if found is None:
        raise NotSimpleError(f"{value!r} as {column.type_name}")
    return found


def _stored(value: Value, column: Column) -> Value:
    """None: that cannot be determined."""
    match column.kind:
        case ValueKind.INTEGER | ValueKind.DECIMAL | ValueKind.FLOAT | ValueKind.BIT | ValueKind.YEAR:
            return _stored_number(value, column)
        case ValueKind.TEXT:
            if not isinstance(value, str | int | Decimal):
                return None
            text = _text(value)
            is_sized = not column.is_blob and not column.is_compressed
            if is_sized and len(text) > column.size // character_size(column.charset or "utf8mb4"):
                return None
            return text.rstrip(" ") if column.is_fixed_length else text
        case ValueKind.BINARY:
            if isinstance(value, str) and value.isascii():
                value = value.encode()
            is_fixed = column.is_fixed_length
            return (value.ljust(column.size, b"\0") if is_fixed else value) if isinstance(value, bytes) else None
    return _stored_text(value, column) if isinstance(value, str) else None


def _stored_number(value: Value, column: Column) -> Value:
    if isinstance(value, bytes) and len(value) <= 8:
        value = int.from_bytes(value, "big")
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip(" ")):
        value = Decimal(value.strip(" "))
    if not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    if column.kind is ValueKind.DECIMAL:
        rounded = _rounded(number, column.scale)
        return rounded if rounded.copy_abs() < 10 ** (column.size - column.scale) else None
    if column.kind is ValueKind.FLOAT:
        return _FLOAT.unpack(_FLOAT.pack(float(number)))[0] if column.is_single_precision else float(number)
    whole = int(_rounded(number, 0))
    if column.kind is ValueKind.BIT:
        return whole if 0 <= whole < 1 << column.size else None
    if column.kind is ValueKind.YEAR:
        return whole if whole == 0 or 1901 <= whole <= 2155 else None
    bits = 8 * (kind_of(column).fixed_size(column) or 0)
    low, high = (0, 1 << bits) if column.is_unsigned else (-(1 << bits - 1), 1 << bits - 1)
    return whole if low <= whole < high else None


def _rounded(number: Decimal, scale: int) -> Decimal:
    rounded = number.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP, context=_EXACT)
    return rounded if rounded else abs(rounded)  # there is no -0


def _stored_text(text: str, column: Column) -> Value:
    """A text that stands for something else."""
    match column.kind:
        case ValueKind.DATE:
            return text if _DATE.fullmatch(text) else None
        case ValueKind.TIME:
            return _with_digits(_TIME.fullmatch(text), column.scale)
        case ValueKind.DATETIME:
            return _with_digits(_DATETIME.fullmatch(text if len(text) > 10 else f"{text} 00:00:00"), column.scale)
        case ValueKind.TIMESTAMP:  # others hang on the time zone of the session
            return _with_digits(_DATETIME.fullmatch(text), column.scale) if text.startswith("0000-00-00") else None
        case ValueKind.ENUM:
            return _label(text, column)
        case ValueKind.SET:
            labels = [_label(part, column) for part in text.split(",")] if text else []
            order = column.labels or ()
            return None if None in labels else ",".join(label for label in order if label in labels)
        case ValueKind.UUID:
            return text.lower() if _UUID.fullmatch(text.lower()) else None
        case ValueKind.INET4:
            parts = text.split(".")
            is_plain = all(part.isdecimal() and part == str(int(part)) and int(part) < 256 for part in parts)
            return text if len(parts) == 4 and is_plain else None
    return "::" if column.kind is ValueKind.INET6 and text == "::" else None


def _label(text: str, column: Column) -> str | None:
    """A label by its text; only one that differs in its case alone is that label, too."""
    labels = column.labels or ()
    if text in labels:
        return text
    alike = [label for label in labels if label.lower() == text.lower()]
    return alike[0] if len(alike) == 1 else None


def _with_digits(match: re.Match[str] | None, scale: int) -> str | None:
    """A time with as many digits of a second as its column has; None if some would be lost."""
    if match is None or len(match[2] or "") > scale:
        return None
    return match[1] + (f".{(match[2] or '').ljust(scale, '0')}" if scale else "")
