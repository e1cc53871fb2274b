"""From a resolved expression to a scalar, and from there to SQL: functions of ours that SQLite calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.replication.wire.response import FieldType
from ibbmaster.sqltext.expression import Call, Cast, Literal, Operation, SystemVariable, UserVariable
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.sqltext.operators import JOINED
from ibbmaster.sqltext.printing import KNOWN_FUNCTIONS
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from . import functions, kinds, operators, values
from .comparing import as_shown, sort_key
from .judged import expect_function, expect_judged
from .kinds import Family, ValueType
from .scalars import Row, Scalar, SqlValue, apply, as_truth, constant
from .session_facts import CALLS, CLOCKS, DATES, SESSION_FUNCTIONS, USER_TEXT_MAX, QuerySession, is_of_session

COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "<=>", "IN", "BETWEEN", "LIKE"))
NESTING_MAX = 60
OF_SESSION = words(
    "version database schema user session_user system_user current_user connection_id unix_timestamp last_insert_id "
    "row_count"
)


class SqlFunctions(Protocol):
    """Keeps functions and parameters of a statement, and names them."""

    def function(self, compute: Callable[..., Any], count: int) -> str: ...

    def parameter(self, value: Any) -> str: ...

    def key_column(self, slot: SqlValue) -> str | None:
        """With the sort key of a column of a table; None for other slots."""


@dataclass(slots=True)
class Compiler:
    session: QuerySession
    slots: list[SqlValue] = field(default_factory=list)
    depth: int = 0

    def scalar(self, node: Any) -> Scalar:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise not_supported("expressions nested so deeply")
        try:
            return self._scalar(node)
        finally:
            self.depth -= 1

    def _scalar(self, node: Any) -> Scalar:
        match node:
            case SqlValue():
                return self._slot(node)
            case Literal(value=value, charset=charset, written=written):
                return self._literal(value, charset, written)
            case UserVariable() | SystemVariable():
                return self._variable(node)
            case Operation(operator=operator, operands=operands):
                return self._operation(operator, operands)
            case Cast():
                inner = self.scalar(node.value)
                kind = "unsigned" if node.kind == "integer" and node.is_unsigned else node.kind
                expect_function(f"CAST {kind}", [inner])
                return operators.cast_as(inner, node, self.session.collation)
            case Call():
                found = self._call(node)
                if found.is_constant:
                    self.session.evaluator.counted(found.value)
                return found
        raise not_supported(f"{type(node).__name__.lower()} in an expression")

    def _slot(self, slot: SqlValue) -> Scalar:
        if slot in self.slots:
            index = self.slots.index(slot)
        else:
            index = len(self.slots)
            self.slots.append(slot)
        return Scalar(slot.type, lambda row: row[index], slot=slot)

    def _literal(self, value: Any, charset: str | None = None, written: str = "") -> Scalar:
        match value:
            case None:
                return constant(kinds.NULL, None, "NULL")
            case int():
                if value < -(1 << 63):
                    raise not_supported(f"the number {value}")
                digits = len(str(abs(value)))
                kind = kinds.integer(digits, length=len(str(value)), is_nullable=False, is_unsigned=value >= 1 << 63)
                field_ = FieldType.LONG if digits <= 9 else FieldType.LONGLONG
                name = "truth" if not written else "int" if value < 1 << 63 else "wide int"
                return constant(replace(kind, field=field_), value, name)
            case Decimal():
                scale = values.scale_of(value)
                digits = max(len(value.as_tuple().digits), scale + 1)
                return constant(kinds.decimal(digits, scale, is_nullable=False), value, "decimal")
            case float() if value - value != 0:
                raise not_supported("a number so large")
            case float():
                text = values.number_text(value, kinds.FLOATING)
                return constant(kinds.real(is_nullable=False, length=len(text)), value, "real")
            case bytes():
                name = "hex" if written[:1] in "xX" else "hybrid"
                return constant(kinds.data(len(value), is_nullable=False), value, name)
        if charset not in (None, "utf8mb4", "utf8mb3"):
            raise not_supported(f"_{charset} in a query over tables of the log")
        return constant(kinds.text(len(value), self.session.collation, is_nullable=False), str(value), "text")

    def _variable(self, node: UserVariable | SystemVariable) -> Scalar:
        value = self.session.evaluator.evaluate(node)
        kind = self._literal(value).type.computed(strength=3, is_nullable=True)
        is_of_user = isinstance(node, UserVariable)
        literal = f"@{kind.kind.value.lower()}" if is_of_user else ""
        match value:
            case int() if is_of_user:
                kind = replace(kinds.integer(19, length=20), field=FieldType.LONGLONG)
            case int() if isinstance(node, SystemVariable) and self.session.evaluator.is_switch(node):
                kind = replace(kinds.integer(1, length=1), field=FieldType.LONGLONG)
                literal = "switch"
            case int():
                kind = kinds.integer(20, length=21, is_unsigned=True)
            case float() if not is_of_user:
                kind = kinds.real(decimals=6, length=21)
            case str() if not is_of_user:
                kind = replace(kind, collation="utf8mb3_general_ci")
            case str() | bytes() if is_of_user:
                kind = replace(kind, length=USER_TEXT_MAX, is_blob=True)
        return constant(kind, value, literal)

    def _operation(self, operator: str, operands: Sequence[Any]) -> Scalar:
        match operator:
            case "INTERVAL":
                raise not_supported("INTERVAL in a query")
            case "ROW":
                raise RefusedError(1241, "21000", "Operand should contain 1 column(s)")
        given = [self.scalar(operand) for operand in operands]
        first = given[0]
        if operator not in COMPARISONS and operator != JOINED:
            expect_function(operator, given)
        match operator:
            case "+" | "-" | "*" | "/" | "DIV" | "MOD":
                found = first
                for other in given[1:]:
                    found = operators.arithmetic(operator, found, other, self.session.division_digits)
                return found
            case _ if operator == JOINED:
                return functions.call("concat", "concat", given, self.session.collation)
            case "NEGATIVE":
                return operators.negative(first)
            case "=" | "!=" | "<" | "<=" | ">" | ">=" | "<=>":
                return operators.compared(operator, first, given[1])
            case "AND" | "OR":
                return operators.junction(operator, given)
            case "NOT":
                return operators.inverted(first)
            case "IS NULL":
                return operators.is_null(first)
            case "IS TRUE" | "IS FALSE":
                return operators.is_truth(first, operator == "IS TRUE")
            case "BETWEEN":
                return operators.between(*given)
            case "IN":
                return operators.member(first, given[1:])
            case "LIKE":
                return operators.like(first, given[1], given[2] if len(given) > 2 else None)
            case "CASE":
                return operators.chosen(given[1:-1:2], [*given[2:-1:2], given[-1]])
            case "CASE OF":
                tests = [operators.compared("=", first, one) for one in given[1:-1:2]]
                return operators.chosen(tests, [*given[2:-1:2], given[-1]])
        raise not_supported(f"{operator} over columns of a table")

    def _call(self, call: Call) -> Scalar:
        name = call.name
        if not call.is_read:
            raise not_supported(f"{call.written}() with such arguments")
        if call.database is not None:
            raise not_supported(f"{call.database}.{call.written}(), a function of a database")
        if name in CLOCKS or name in DATES:
            return self._clock(call)
        if functions.is_function(name):
            given = [self.scalar(argument) for argument in call.arguments]
            return functions.call(name, call.written, given, self.session.collation)
        if name not in SESSION_FUNCTIONS and name not in KNOWN_FUNCTIONS:
            database = self.session.database
            path = f"{database}.{call.written}" if database else call.written
            raise RefusedError(1305, "42000", f"FUNCTION {path} does not exist")
        if name not in OF_SESSION or not is_of_session(call):
            raise not_supported(f"{call.written}() over columns of a table")
        value = self.session.evaluator.evaluate(call)
        kind = _type_of_call(name)
        if kind is None:
            kind = self._literal(value).type.computed(strength=3)
            kind = replace(kind, collation="utf8mb3_general_ci") if kind.kind is Family.TEXT else kind
        return constant(kind, value)

    def _clock(self, call: Call) -> Scalar:
        if not is_of_session(call):
            raise not_supported(f"{call.written}() of such digits")
        text = str(self.session.evaluator.evaluate(call))
        digits = len(text.partition(".")[2])
        field_, *_ = CALLS.get(call.name, (FieldType.TIMESTAMP,))
        match field_:
            case FieldType.DATE:
                return constant(kinds.date(is_nullable=False), text)
            case FieldType.TIME:
                return constant(kinds.duration(digits, is_nullable=False), parse_duration(text))
        kind = kinds.moment(digits, is_nullable=False)
        if field_ is FieldType.TIMESTAMP and Difference.NOW_IS_TIMESTAMP.holds(self.session.version):
            kind = replace(kind, field=field_)
        return constant(kind, text)


def _type_of_call(name: str) -> ValueType | None:
    """Unless it depends on the value."""
    if name not in CALLS:
        return None
    field_, length, flags = CALLS[name]
    is_nullable = not flags & kinds.NOT_NULL
    if field_ is FieldType.VAR_STRING:
        return kinds.text(length, "utf8mb3_general_ci", strength=3, is_nullable=is_nullable)
    kind = kinds.integer(length, length=length, is_unsigned=bool(flags & kinds.UNSIGNED), is_nullable=is_nullable)
    return replace(kind, field=field_)


def emit_scalar(scalar: Scalar, slots: Sequence[SqlValue], registry: SqlFunctions) -> str:
    """As SQLite holds values; `slots` are those of its row."""
    if scalar.slot is not None and _is_same(scalar.slot.type, scalar.type):
        return scalar.slot.sql
    store = values.storing(scalar.type)
    if scalar.is_constant:
        value = scalar.value
        return registry.parameter(value if value is None or store is None else store(value))
    loads = [values.loading(slot.type) for slot in slots]
    name = registry.function(_function(scalar.run, loads, store), len(slots))
    return f"{name}({', '.join(slot.sql for slot in slots)})"


def _is_same(one: ValueType, other: ValueType) -> bool:
    return (one.kind, one.scale, one.is_wide) == (other.kind, other.scale, other.is_wide)


def _function(
    run: Callable[[Row], Any], loads: Sequence[values.Convert | None], store: values.Convert | None
) -> Callable[..., Any]:
    if store is None and not any(loads):
        return lambda *row: run(row)
    wanted = [(index, load) for index, load in enumerate(loads) if load is not None]

    def compute(*row: Any) -> Any:
        if wanted:
            given = list(row)
            for index, load in wanted:
                if given[index] is not None:
                    given[index] = load(given[index])
            row = tuple(given)
        value = run(row)
        return value if value is None or store is None else store(value)

    return compute


@dataclass(slots=True)
class Emitter:
    session: QuerySession
    registry: SqlFunctions

    def scalar(self, node: Any) -> tuple[Scalar, list[SqlValue]]:
        compiler = Compiler(self.session)
        return compiler.scalar(node), compiler.slots

    def value(self, node: Any) -> tuple[str, ValueType]:
        scalar, slots = self.scalar(node)
        return emit_scalar(scalar, slots, self.registry), scalar.type

    def shown(self, node: Any) -> tuple[str, ValueType]:
        """As `value`, of a column of a result, without digits that it does not show."""
        scalar, slots = self.scalar(node)
        if scalar.kind is Family.NULL and isinstance(node, UserVariable):
            return "NULL", replace(kinds.data(USER_TEXT_MAX), is_blob=True)
        scalar = as_shown(scalar)
        return emit_scalar(scalar, slots, self.registry), scalar.type

    def key(self, node: Any) -> str:
        scalar, slots = self.scalar(node)
        scalar = as_shown(scalar)
        if scalar.slot is not None and scalar.kind is Family.TEXT:
            found = self.registry.key_column(scalar.slot)
            if found is not None:
                return found
        return emit_scalar(sort_key(scalar), slots, self.registry)

    def condition(self, node: Any) -> str:
        """SQLite itself compares values that it orders as MariaDB does."""
        match node:
            case Operation(operator="AND", operands=operands):
                return " AND ".join(f"({self.condition(operand)})" for operand in operands)
            case Operation(operator=("=" | "<" | "<=" | ">" | ">=") as operator, operands=(left, right)):
                native = self._native(operator, left, right)
                if native is not None:
                    return native
        scalar, slots = self.scalar(node)
        expect_function("NOT", [scalar])
        if scalar.slot is not None and scalar.kind is Family.INT and not scalar.type.is_wide:
            return scalar.slot.sql
        return emit_scalar(apply(kinds.truth(), int, as_truth(scalar)), slots, self.registry)

    def _native(self, operator: str, left: Any, right: Any) -> str | None:
        (one, first), (other, second) = self.scalar(left), self.scalar(right)
        if one.slot is None and other.slot is None:
            return None
        expect_judged(operator, one, other)
        kind = one.type
        if kind.kind is Family.TEXT and other.kind is Family.TEXT:
            if one.slot is None or other.slot is None:
                return None
            if kind.collation != other.type.collation or kind.charset != other.type.charset:
                return None
            keys = self.registry.key_column(one.slot), self.registry.key_column(other.slot)
            return None if None in keys else f"{keys[0]} {operator} {keys[1]}"
        if kind.kind is not other.kind or kind.kind not in (Family.INT, Family.DATE, Family.TIME, Family.DECIMAL):
            return None
        if kind.is_wide or other.type.is_wide or (kind.kind is Family.DECIMAL and kind.scale != other.type.scale):
            return None
        sides = emit_scalar(one, first, self.registry), emit_scalar(other, second, self.registry)
        return f"{sides[0]} {operator} {sides[1]}"
