"""Values of generated columns and defaults: of constants, columns, + - *, MOD and DIV, IFNULL, COALESCE and CONCAT."""

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.replication.event.column_types.integer import Integer
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.replication.wire.response import COLLATION_DEFAULT, ColumnDefinition, FieldType
from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation, children, mapped
from ibbmaster.sqltext.token import SqlError
from . import kinds
from .compiling import Compiler
from .kinds import ValueType
from .scalars import Scalar, SqlValue
from .session_facts import QuerySession

Evaluate = Callable[[Mapping[str, Value]], Value]
"""Takes values of columns by lower-case name."""

TEXT_SIZE_MAX = 1 << 16  # characters
OPERANDS_MAX = 250  # of one sum
_OPERATIONS = frozenset(("NEGATIVE", "+", "-", "*", "MOD", "DIV"))
_FUNCTIONS = frozenset(("concat", "mod", "ifnull", "coalesce"))
_NUMBER = re.compile(r"[+-]?\d{1,65}(?:\.\d{1,38})?", re.ASCII)


class NotSimpleError(IbbMasterError):
    """The value is not known here; the text says why."""


class _NoSession:
    def evaluate(self, expression: Any) -> Any:
        raise not_supported("a value of the session")

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
    """Of an expression without columns. Raises NotSimpleError: it is not known here."""
    match _read(text):
        case Literal(charset=None) as literal:
            value = _literal(literal, text)
        case Operation(operator=operator, operands=(Literal(value=str() as value),)) if operator[:8] == "LITERAL ":
            pass
        case expression:
            value = _compiled(expression, text, {})[0].value
    return stored(value, column)


def formula(text: str, columns: Mapping[str, Column], target: Column) -> tuple[frozenset[str], Evaluate]:
    """The columns, in lower case, that a generated column takes, and the function that computes it, which raises
    NotSimpleError for values that the column cannot hold. Raises NotSimpleError: the expression is not simple."""
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
    """Whether a value fits into another column without rounding and time zones."""
    if kind_of(one).is_exact and kind_of(other).is_exact:
        return True
    return one.kind is other.kind and one.type == other.type and one.scale == other.scale and one.labels == other.labels


def _compiled(expression: Expression, text: str, columns: Mapping[str, Column]) -> tuple[Scalar, list[str]]:

    def known(node: Any) -> SqlValue | None:
        if not isinstance(node, ColumnName):
            return None
        name = node.parts[-1].lower()
        if (column := columns.get(name)) is None or not (kind_of(column).is_exact or column.kind is ValueKind.TEXT):
            raise _not_simple(text)
        return SqlValue(name, _type_of(column))

    if not _hangs_on_nothing(expression):
        raise _not_simple(text)
    compiler = Compiler(_SESSION)
    try:
        scalar = compiler.scalar(mapped(expression, known))
    except RefusedError:
        raise _not_simple(text) from None
    return scalar, [slot.sql for slot in compiler.slots]


def _hangs_on_nothing(node: Expression) -> bool:
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


def _type_of(column: Column) -> ValueType:
    definition = ColumnDefinition(name=column.name, column_type=FieldType.VAR_STRING, length=column.size)
    kind = kind_of(column)
    if isinstance(kind, Integer):
        digits = kind.digits_max
        found = kinds.integer(digits, length=digits, is_unsigned=bool(column.is_unsigned))
    elif kind.is_exact:
        found = kinds.decimal(column.size, column.scale)
    else:
        found = kinds.text(column.size, "utf8mb4_general_ci")
    return replace(found, column=definition)


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
    if len(text) <= TEXT_SIZE_MAX:
        with contextlib.suppress(SqlError):
            return definition_expression(text)
    raise _not_simple(text)


def stored(value: Value, column: Column) -> Value:
    """Raises NotSimpleError: the column cannot hold the value as it is."""
    if value is None:
        return None
    found = kind_of(column).fitted(value, column)
    if found is None:
        raise NotSimpleError(f"{value!r} as {column.type_name}")
    return found
