"""What generated columns and defaults give, where that hangs on no session; of all others nothing is said.

A constant, a column, + - * of numbers, MOD and DIV, IFNULL, COALESCE, CONCAT.
"""

from __future__ import annotations

import contextlib
import decimal
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.event.column_types.decimals import DIGITS_MAX
from ibbmaster.event.column_types.registry import kind_of
from ibbmaster.event.rows.charset import character_size
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.event.rows.value import Value
from ibbmaster.expr import kinds
from ibbmaster.expr.compiling import Compiler
from ibbmaster.expr.emitting import NO_SQLITE
from ibbmaster.expr.kinds import Type
from ibbmaster.expr.scalars import Scalar, Slot
from ibbmaster.expr.session_functions import QuerySession
from ibbmaster.expr.walking import children, mapped
from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation
from ibbmaster.sqltext.token import SqlError
from ibbmaster.wire.refusal import RefusedError, not_supported
from ibbmaster.wire.response import COLLATION_DEFAULT, ColumnDefinition, FieldType

Evaluate = Callable[[Mapping[str, Value]], Value]
"""Takes the values of columns by their names in lower case."""

TEXT_SIZE_MAX = 1 << 16  # characters
OPERANDS_MAX = 250  # of one sum
TAKEN_KINDS = (ValueKind.TEXT, ValueKind.INTEGER, ValueKind.DECIMAL)  # of columns
_OPERATIONS = frozenset(("NEGATIVE", "+", "-", "*", "MOD", "DIV"))
_FUNCTIONS = frozenset(("concat", "mod", "ifnull", "coalesce"))
_DIGITS = {1: 3, 2: 5, 3: 8, 4: 10, 8: 19}  # of integers, by their size
_EXACT = decimal.Context(prec=4 * DIGITS_MAX)
_NUMBER = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(-?\d{2,3}:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FLOAT = struct.Struct("<f")


class NotSimpleError(IbbMasterError):
    """What an expression gives cannot be determined here; the text says why."""


class _NoSession:
    """What stands here for a session, which says nothing."""

    def evaluate(self, expression: Any) -> Any:
        raise not_supported("a value of the session")

    def collation_of(self, charset: str) -> str:
        return str(self.evaluate(charset))

    is_switch = evaluate

    def counted(self, value: Any) -> Any:
        return value


_SESSION = QuerySession(
    evaluator=_NoSession(),
    database="",
    collation="utf8mb4_general_ci",
    charset="utf8mb4",
    collation_id=COLLATION_DEFAULT,
    time_zone_s=0,
    division_digits=4,
    version=110800,
    is_binary=False,
)


def constant(text: str, column: Column) -> Value:
    """What a column holds that is given an expression without columns.

    Raises:
        NotSimpleError: it cannot be determined.
    """
    match _read(text):
        case Literal(charset=None) as literal:
            value = _literal(literal, text)
        case Operation(operator=operator, operands=(Literal(value=str() as value),)) if operator[:8] == "LITERAL ":
            pass
        case expression:
            value = _compiled(expression, text, {})[0].value
    return stored(value, column)


def formula(text: str, columns: Mapping[str, Column], target: Column) -> tuple[frozenset[str], Evaluate]:
    """What computes a generated column: the columns it takes, in lower case, and how.

    `columns` are those of its table, by name in lower case. What is computed raises NotSimpleError
    for values that the column could not hold.

    Raises:
        NotSimpleError: the expression is not simple.
    """
    read = _read(text)
    if isinstance(read, Literal):
        fixed = constant(text, target)
        return frozenset(), lambda values: fixed
    scalar, names = _compiled(read, text, columns)
    if isinstance(read, ColumnName) and not _is_alike(columns[names[0]], target):
        raise NotSimpleError(f"({text}) changes the type of {names[0]}")

    def compute(values: Mapping[str, Value]) -> Value:
        try:
            return stored(scalar.run([values[name] for name in names]), target)
        except RefusedError as refused:
            raise NotSimpleError(refused.err.text) from None

    return frozenset(names), compute


def _is_alike(one: Column, other: Column) -> bool:
    """Whether a value goes from one column into another without being rounded or read in a time zone."""
    numbers = (ValueKind.INTEGER, ValueKind.DECIMAL)
    if one.kind in numbers and other.kind in numbers:
        return True
    return one.kind is other.kind and one.type == other.type and one.scale == other.scale and one.labels == other.labels


def _compiled(expression: Expression, text: str, columns: Mapping[str, Column]) -> tuple[Scalar, list[str]]:
    """What computes an expression, and the columns that it takes."""

    def known(node: Any) -> Slot | None:
        if not isinstance(node, ColumnName):
            return None
        name = node.parts[-1].lower()
        if name not in columns or columns[name].kind not in TAKEN_KINDS:
            raise _not_simple(text)
        return Slot(name, _type_of(columns[name]))

    if not _hangs_on_nothing(expression):
        raise _not_simple(text)
    compiler = Compiler(_SESSION, NO_SQLITE)
    try:
        scalar = compiler.scalar(mapped(expression, known))
    except RefusedError:
        raise _not_simple(text) from None
    return scalar, [slot.sql for slot in compiler.slots]


def _hangs_on_nothing(node: Expression) -> bool:
    """Whether every session computes the same."""
    match node:
        case Literal(charset=None) | ColumnName(parts=(_,)):
            return True
        case Operation(operator=operator, operands=operands):
            is_known = operator in _OPERATIONS and len(operands) <= OPERANDS_MAX
        case Call(name=name, database=None, is_read=True):
            is_known = name in _FUNCTIONS
        case _:
            return False
    return is_known and all(map(_hangs_on_nothing, children(node)))


def _type_of(column: Column) -> Type:
    definition = ColumnDefinition(name=column.name, column_type=FieldType.VAR_STRING, length=column.size)
    if column.kind is ValueKind.INTEGER:
        digits = _DIGITS[kind_of(column).fixed_size(column) or 8]
        found = kinds.integer(digits, length=digits, is_unsigned=bool(column.is_unsigned))
    elif column.kind is ValueKind.DECIMAL:
        found = kinds.decimal(column.size, column.scale)
    else:
        found = kinds.text(column.size, "utf8mb4_general_ci")
    return kinds.changed(found, column=definition)


def _literal(literal: Literal, text: str) -> Value:
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
    raise _not_simple(text)


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
