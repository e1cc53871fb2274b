"""From a resolved expression to a scalar, and from there to SQL that SQLite computes with a function of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from ibbmaster.dialogue.describing import CALLS
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.query import functions, kinds, moments, operators, values
from ibbmaster.query.kinds import EXACT_NAMES, Kind, Type
from ibbmaster.query.scalars import (
    Row,
    Scalar,
    Slot,
    apply,
    as_exact,
    as_integer,
    as_moment,
    as_real,
    as_shown,
    as_text,
    as_truth,
    cast_to,
    comparable,
    constant,
    sort_key,
)
from ibbmaster.query.tree import Cast
from ibbmaster.sqltext.expression import Call, Literal, Operation, SystemVariable, UserVariable
from ibbmaster.sqltext.operators import JOINED
from ibbmaster.sqltext.token import words
from ibbmaster.versions import Difference
from ibbmaster.wire.response import FieldType

SHIFTS = {"date_add": 1, "adddate": 1, "date_sub": -1, "subdate": -1}
NESTING_MAX = 60


@dataclass(frozen=True, slots=True)
class QuerySession:
    """What a session has set that answers depend on."""

    evaluator: Evaluator
    collation: str  # of literals
    charset: str | None  # that texts are sent in
    collation_id: int
    time_zone_s: int
    division_digits: int
    version: int
    is_binary: bool


@dataclass(frozen=True, slots=True, eq=False)
class PlannedQuery:
    """A query in an expression, as SQL with its columns; `outer` are the columns of queries around it that it names."""

    sql: str
    types: tuple[Type, ...]
    is_single: bool  # whether it has one row at most for certain
    outer: frozenset[Slot] = frozenset()


class SqlFunctions(Protocol):
    """What keeps functions and parameters of a statement for SQLite."""

    def function(self, compute: Callable[..., Any], count: int) -> str:
        """The name that SQLite calls a function by."""

    def parameter(self, value: Any) -> str:
        """How SQL names a value."""

    def key_column(self, slot: Slot) -> str | None:
        """A column that holds the sort key of another one, if that is one of a table."""


@dataclass(slots=True)
class Compiler:
    """Makes scalars of one expression; `slots` are what it needs of a row."""

    session: QuerySession
    registry: SqlFunctions
    slots: list[Slot] = field(default_factory=list)
    depth: int = 0

    def scalar(self, node: Any) -> Scalar:
        """
        Raises:
            RefusedError: the expression is not computed here as MariaDB does it.
        """
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise not_supported("expressions nested so deeply")
        try:
            return self._scalar(node)
        finally:
            self.depth -= 1

    def _scalar(self, node: Any) -> Scalar:
        match node:
            case Slot():
                return self._slot(node)
            case Literal(value=value, charset=charset):
                return self._literal(value, charset)
            case UserVariable() | SystemVariable():
                return self._variable(node)
            case Operation(operator=operator, operands=operands):
                return self._operation(operator, operands)
            case Cast():
                return self._cast(node)
            case Call():
                return self._call(node)
            case PlannedQuery():
                return self._slot(self.value_of(node))
        raise not_supported(f"{type(node).__name__.lower()} in an expression")

    def _slot(self, slot: Slot) -> Scalar:
        if slot in self.slots:
            index = self.slots.index(slot)
        else:
            index = len(self.slots)
            self.slots.append(slot)
        return Scalar(slot.type, lambda row: row[index], slot=slot)

    def _literal(self, value: Any, charset: str | None = None) -> Scalar:
        match value:
            case None:
                return constant(kinds.NULL, None)
            case bool():
                return constant(kinds.truth(is_nullable=False), int(value))
            case int():
                digits = len(str(abs(value)))
                kind = kinds.integer(digits, length=len(str(value)), is_nullable=False, is_unsigned=value >= 1 << 63)
                field_ = FieldType.LONG if digits <= 9 else FieldType.LONGLONG
                return constant(kinds.changed(kind, field=field_), value)
            case Decimal():
                scale = values.scale_of(value)
                digits = max(len(value.as_tuple().digits), scale + 1)
                kind = kinds.decimal(digits, scale, is_nullable=False)
                return constant(kind, value)
            case float():
                text = values.number_text(value, kinds.FLOATING)
                return constant(kinds.real(is_nullable=False, length=len(text)), value)
            case bytes():
                return constant(kinds.data(len(value), is_nullable=False), value)
        if charset not in (None, "utf8mb4", "utf8mb3"):
            raise not_supported(f"_{charset} in a query over tables of the log")
        return constant(kinds.text(len(value), self.session.collation, is_nullable=False), str(value))

    def _variable(self, node: UserVariable | SystemVariable) -> Scalar:
        value = self.session.evaluator.evaluate(node)
        found = self._literal(value)
        if isinstance(node, UserVariable) or isinstance(value, str):
            return constant(found.type.computed(strength=3, is_nullable=True), found.value)
        return found

    # Operators --------------------------------------------------------------------------------

    def _operation(self, operator: str, operands: Sequence[Any]) -> Scalar:
        match operator:
            case "IN" if isinstance(operands[1], PlannedQuery):
                return self._slot(self._membership(operands[0], operands[1]))
            case "EXISTS":
                (query,) = operands
                return self._slot(Slot(f"(EXISTS ({query.sql}))", kinds.truth(is_nullable=False)))
            case "+" | "-" if any(_is_interval(operand) for operand in operands):
                return self._shifted(operator, operands)
            case "COLLATE":
                return self._collated(operands[0], str(operands[1].value))
            case "ROW":
                raise RefusedError(1241, "21000", "Operand should contain 1 column(s)")
            case ":=":
                raise not_supported("assignments in a query over tables")
        if operator.startswith("LITERAL "):
            return self._moment_literal(operator.removeprefix("LITERAL "), str(operands[0].value))
        given = [self.scalar(operand) for operand in operands]
        first = given[0]
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
            case "~":
                return operators.inverted_bits(first)
            case "&" | "|" | "^" | "<<" | ">>":
                return operators.bits(operator, first, given[1])
            case "=" | "!=" | "<" | "<=" | ">" | ">=" | "<=>":
                return operators.compared(operator, first, given[1])
            case "AND" | "OR":
                return operators.junction(operator, given)
            case "XOR":
                return operators.exclusive(first, given[1])
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
            case "BINARY":
                return self._binary(first)
        raise not_supported(f"{operator} over columns of a table")

    def _binary(self, value: Scalar) -> Scalar:
        if value.type.charset not in (None, "utf8mb4", "utf8mb3", "ascii"):
            raise not_supported("BINARY of such texts")
        kind = kinds.data(value.type.length * 4, is_nullable=value.type.is_nullable)
        return apply(
            kind,
            lambda text: text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"),
            as_text(value),
        )

    def _collated(self, operand: Any, name: str) -> Scalar:
        found = self.scalar(operand)
        name = re.sub("^utf8_", "utf8mb3_", name)
        collation = name if "_" in name and not name.startswith("uca1400") else f"utf8mb4_{name}"
        if found.type.kind not in kinds.TEXTS or (found.type.charset or "utf8mb4") != collation.split("_")[0]:
            raise not_supported(f"COLLATE {name} of such values")
        text = as_text(found)
        kind = found.type.computed(collation=collation, strength=0, kind=Kind.TEXT)
        return Scalar(kind, text.run, text.is_constant)

    def _shifted(self, operator: str, operands: Sequence[Any]) -> Scalar:
        value, interval = operands[0], operands[1]
        if _is_interval(value):
            value, interval = interval, value
        amount, unit = interval.operands
        return moments.shifted(self.scalar(value), self.scalar(amount), str(unit.value), 1 if operator == "+" else -1)

    def _moment_literal(self, word: str, text: str) -> Scalar:
        if word == "TIME":
            duration = values.parsed_duration(text)
            if duration is None:
                raise not_supported(f"TIME {text[:40]!r}")
            return constant(kinds.duration(min(len(text.partition(".")[2]), 6), is_nullable=False), duration)
        found = values.parsed_moment(text)
        if found is None or (word == "DATE") != (len(found) == 10):
            raise not_supported(f"{word} {text[:40]!r}")
        if word == "DATE":
            return constant(kinds.date(is_nullable=False), found)
        return constant(kinds.moment(min(len(text.partition(".")[2]), 6), is_nullable=False), found)

    def _membership(self, left: Any, query: PlannedQuery) -> Slot:
        """x IN (SELECT …), and (x, y) IN (SELECT …)"""
        wanted = left.operands if isinstance(left, Operation) and left.operator == "ROW" else (left,)
        if len(query.types) != len(wanted):
            raise RefusedError(1241, "21000", f"Operand should contain {len(wanted)} column(s)")
        needles, stacks = [], []
        for no, (node, kind) in enumerate(zip(wanted, query.types, strict=True)):
            outside = Compiler(self.session, self.registry)
            inside = Compiler(self.session, self.registry)
            one, other = comparable(outside.scalar(node), inside.scalar(Slot(f"q.o{no}", kind)))
            needles.append(emit_scalar(one, outside.slots, self.registry))
            stacks.append(emit_scalar(other, inside.slots, self.registry))
        needle = needles[0] if len(needles) == 1 else f"({', '.join(needles)})"
        return Slot(f"({needle} IN (SELECT {', '.join(stacks)} FROM ({query.sql}) AS q))", kinds.truth())

    def value_of(self, query: PlannedQuery) -> Slot:
        """The only value of a query in brackets."""
        if len(query.types) != 1:
            raise RefusedError(1241, "21000", "Operand should contain 1 column(s)")
        (kind,) = query.types
        sql = f"({query.sql})" if query.is_single else f"(SELECT only_row(q.o0) FROM ({query.sql}) AS q)"
        return Slot(sql, kind.computed(is_nullable=True))

    # Calls ------------------------------------------------------------------------------------

    def _call(self, call: Call) -> Scalar:
        name = call.name
        if call.database is not None:
            raise not_supported(f"{call.database}.{call.written}()")
        if name in SHIFTS and len(call.arguments) == 2 and _is_interval(call.arguments[1]):
            return self._shifted("+" if SHIFTS[name] > 0 else "-", call.arguments)
        if name == "unix_timestamp" and call.arguments:
            return self._unix_timestamp(self.scalar(call.arguments[0]))
        if name == "from_unixtime":
            return self._from_unixtime([self.scalar(argument) for argument in call.arguments])
        if name in ("now", "current_timestamp", "localtime", "localtimestamp", "sysdate"):
            return self._now(call)
        if name in ("curdate", "current_date"):
            text = values.moment_text(self._now_us, 0)
            assert text is not None
            return constant(kinds.date(is_nullable=False), text[:10])
        if name in ("charset", "collation") and len(call.arguments) == 1:
            return self._named_charset(name, self.scalar(call.arguments[0]).type)
        if functions.is_function(name):
            given = [self.scalar(argument) for argument in call.arguments]
            return functions.call(name, call.written, given, self.session.collation)
        if not Evaluator.is_function(name) and name not in _KNOWN:
            database = self.session.evaluator.who.database
            path = f"{database}.{call.written}" if database else call.written
            raise RefusedError(1305, "42000", f"FUNCTION {path} does not exist")
        if any(not isinstance(argument, Literal) for argument in call.arguments) or name not in _OF_SESSION:
            raise not_supported(f"{call.written}() over columns of a table")
        value = self.session.evaluator.evaluate(call)
        return constant(self._type_of_session(name) or self._literal(value).type.computed(strength=3), value)

    @staticmethod
    def _type_of_session(name: str) -> Type | None:
        """The type of a function of the session, where that does not depend on its value."""
        if name not in CALLS:
            return None
        field_, length, flags = CALLS[name]
        is_nullable = not flags & kinds.NOT_NULL
        if field_ is FieldType.VAR_STRING:
            return kinds.text(length, "utf8mb3_general_ci", strength=3, is_nullable=is_nullable)
        kind = kinds.integer(length, length=length, is_unsigned=bool(flags & kinds.UNSIGNED), is_nullable=is_nullable)
        return kinds.changed(kind, field=field_)

    @staticmethod
    def _named_charset(name: str, kind: Type) -> Scalar:
        """CHARSET() and COLLATION() of a text."""
        if kind.kind not in kinds.TEXTS or kind.collation is None:
            raise not_supported(f"{name.upper()}() of such values")
        collation = "utf8mb3_general_ci" if kind.collation == EXACT_NAMES else kind.collation
        found = collation.split("_")[0] if name == "charset" else collation
        return constant(kinds.text(64, "utf8mb3_general_ci", strength=3), found)

    @property
    def _now_us(self) -> int:
        return self.session.evaluator.now_us + self.session.time_zone_s * values.SECOND

    def _now(self, call: Call) -> Scalar:
        digits = 0
        if call.arguments:
            (argument,) = call.arguments
            if not isinstance(argument, Literal) or argument.value not in range(7):
                raise not_supported(f"{call.written}() of such digits")
            digits = int(str(argument.value))
        kind = kinds.moment(digits, is_nullable=False)
        if Difference.NOW_IS_TIMESTAMP.holds(self.session.version):
            kind = kinds.changed(kind, field=FieldType.TIMESTAMP)
        return constant(kind, values.moment_text(self._now_us, digits))

    def _unix_timestamp(self, value: Scalar) -> Scalar:
        moment = as_moment(value)
        digits = value.type.decimals if value.type.kind is Kind.DATETIME else 0
        zone = self.session.time_zone_s

        def seconds(one: str) -> Any:
            if not one.strip("0-: ."):
                return 0
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

    def _from_unixtime(self, given: list[Scalar]) -> Scalar:
        number = given[0]
        if number.type.kind is not Kind.INT or len(given) > 2:
            raise not_supported("FROM_UNIXTIME of such values")
        kind = kinds.moment(0)
        if Difference.NOW_IS_TIMESTAMP.holds(self.session.version):
            kind = kinds.changed(kind, field=FieldType.TIMESTAMP)
        zone = self.session.time_zone_s

        def moment(seconds: int) -> str | None:
            if not 0 <= seconds < (1 << 31) - 1:
                if seconds < 0:
                    return None
                raise not_supported("FROM_UNIXTIME after 2038")
            return values.moment_text((seconds + zone) * values.SECOND, 0)

        found = apply(kind, moment, number)
        if len(given) == 2:
            return functions.call("date_format", "date_format", [found, given[1]], self.session.collation)
        return found

    # CAST -------------------------------------------------------------------------------------

    def _cast(self, cast: Cast) -> Scalar:
        value = self.scalar(cast.value)
        is_nullable = value.type.is_nullable
        if value.type.kind is Kind.OPAQUE:
            raise not_supported("CAST of such values")
        match cast.kind:
            case "integer":
                return self._to_integer(value, is_unsigned=cast.is_unsigned)
            case "decimal":
                digits, scale = cast.length or 10, cast.scale or 0
                if digits > 65 or scale > 38 or scale > digits:
                    raise not_supported("CAST to such a DECIMAL")
                limit = Decimal(10) ** (digits - scale)

                def fit(number: Decimal | int) -> Decimal:
                    found = values.rounded(number, scale)
                    if abs(found) < limit:
                        return found
                    most = values.EXACT.subtract(limit, Decimal(1).scaleb(-scale))
                    return most if found > 0 else values.EXACT.minus(most)

                return apply(kinds.decimal(digits, scale, is_nullable=is_nullable), fit, as_exact(value))
            case "double":
                if cast.length is not None:
                    raise not_supported("CAST AS DOUBLE of so many digits")
                return apply(kinds.real(is_nullable=is_nullable, length=22), lambda number: number, as_real(value))
            case "char" | "varchar" | "using":
                return self._to_text(value, cast)
            case "binary":
                if cast.length is not None:
                    raise not_supported("CAST AS BINARY(n)")
                found = self._binary(value)
                length = value.type.length * (4 if value.type.kind in kinds.TEXTS else 1)
                return Scalar(kinds.changed(found.type, length=length), found.run, found.is_constant)
            case "date":
                return functions.call("date", "date", [value], self.session.collation)
            case "datetime":
                digits = cast.length or 0
                if value.type.kind is Kind.TEXT and not value.is_constant:
                    raise not_supported("texts of a table as dates")
                if digits < (value.type.decimals if value.type.kind is Kind.DATETIME else 0):
                    raise not_supported("CAST to fewer digits of a second")
                return apply(kinds.moment(digits), lambda one: values.fitted_moment(one, digits), as_moment(value))
            case "time":
                if cast.length is not None:
                    raise not_supported("CAST AS TIME(n)")
                if value.type.decimals and value.type.kind is not Kind.TIME:
                    raise not_supported("CAST to fewer digits of a second")
                if value.type.kind is Kind.TIME:
                    if value.type.decimals:
                        raise not_supported("CAST to fewer digits of a second")
                    return value
                return functions.call("time", "time", [value], self.session.collation)
        raise not_supported(f"CAST AS {cast.kind.upper()}")

    def _to_integer(self, value: Scalar, *, is_unsigned: bool) -> Scalar:
        own = value.type
        if own.kind in kinds.REALS:
            length = 21
        elif own.kind is Kind.DECIMAL:
            length = own.length
        else:
            length = own.length
        kind = Type(
            kind=Kind.INT, length=length, digits=20 if is_unsigned else 19, is_unsigned=is_unsigned,
            field=FieldType.LONGLONG if length > 9 or own.kind in kinds.REALS else FieldType.LONG,
            is_nullable=own.is_nullable,
        )  # fmt: skip

        def fit(number: int) -> int:
            if is_unsigned:
                if own.kind in (Kind.DECIMAL, *kinds.REALS) and number < 0:
                    if own.kind is Kind.DECIMAL:
                        return 0
                    raise not_supported("a negative number AS UNSIGNED")
                if number >= 1 << 64:
                    return (1 << 64) - 1
                return number % (1 << 64)
            if number >= 1 << 63:
                if own.kind is Kind.INT:
                    return number - (1 << 64)
                return (1 << 63) - 1
            return max(number, -(1 << 63))

        return apply(kind, fit, as_integer(value))

    def _to_text(self, value: Scalar, cast: Cast) -> Scalar:
        own = value.type
        charset = {None: "utf8mb4", "utf8": "utf8mb3"}.get(cast.charset, cast.charset)
        if charset not in ("utf8mb4", "utf8mb3") or own.kind in (Kind.BYTES, Kind.BIT):
            raise not_supported("CAST to texts of such a kind")
        length = own.length if cast.length is None else cast.length
        is_named = cast.charset is not None
        collation = f"{charset}_general_ci" if is_named else self.session.collation
        if Difference.UCA_1400_IS_DEFAULT.holds(self.session.version) and is_named:
            collation = f"{charset}_uca1400_ai_ci"
        known = (charset, "utf8mb3", "utf8mb4") if is_named else (collation.split("_")[0], "utf8mb3")
        if own.kind in kinds.TEXTS and (own.charset or "utf8mb4") not in known:
            raise not_supported("CAST of texts of another character set")
        size = cast.length

        def cut(text: str) -> str:
            if charset == "utf8mb3" and not text.isascii() and max(text) > "\uffff":
                raise not_supported("a letter that utf8mb3 does not have")
            return text if size is None else text[:size]

        kind = kinds.text(length, collation, strength=2, is_nullable=True)
        return apply(kinds.changed(kind, charset="utf8mb3" if charset == "utf8mb3" else None), cut, as_text(value))


_OF_SESSION = words(
    "version database schema user session_user system_user current_user connection_id unix_timestamp found_rows "
    "last_insert_id row_count"
)
#: Functions that a server has, beside those that are computed anywhere here.
_KNOWN = words(
    "json_extract json_value json_query json_unquote regexp_replace regexp_substr str_to_date sec_to_time lead lag "
    "time_to_sec time_format from_days makedate maketime period_add period_diff yearweek addtime subtime timediff "
    "timestamp timestampadd convert_tz rand uuid sleep get_lock release_lock insert soundex space strcmp format conv "
    "bin oct unhex to_base64 from_base64 sha2 aes_encrypt compress bit_count bit_length ord char quote export_set "
    "make_set find_in_set nextval lastval inet_aton inet_ntoa json_valid json_length json_keys json_array json_object "
    "degrees radians sin cos tan asin acos atan atan2 cot pi log row_number rank dense_rank first_value last_value"
)


def _is_interval(node: Any) -> bool:
    return isinstance(node, Operation) and node.operator == "INTERVAL"


# SQL ------------------------------------------------------------------------------------------


def emit_scalar(scalar: Scalar, slots: Sequence[Slot], registry: SqlFunctions) -> str:
    """SQL of a scalar's values as SQLite holds them; `slots` are what its row has."""
    if (
        scalar.slot is not None
        and scalar.slot.type.kind is scalar.type.kind
        and _is_same(scalar.slot.type, scalar.type)
    ):
        return scalar.slot.sql
    store = values.storing(scalar.type)
    if scalar.is_constant:
        value = scalar.value
        return registry.parameter(value if value is None or store is None else store(value))
    loads = [values.loading(slot.type) for slot in slots]
    return (
        f"{registry.function(_function(scalar.run, loads, store), len(slots))}({', '.join(slot.sql for slot in slots)})"
    )


def _is_same(one: Type, other: Type) -> bool:
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
    """Makes SQL of resolved expressions."""

    session: QuerySession
    registry: SqlFunctions

    def scalar(self, node: Any) -> tuple[Scalar, list[Slot]]:
        compiler = Compiler(self.session, self.registry)
        return compiler.scalar(node), compiler.slots

    def value(self, node: Any, kind: Type | None = None) -> tuple[str, Type]:
        """SQL of a value, and its type; or as a value of a type that holds it."""
        scalar, slots = self.scalar(node)
        if kind is not None:
            if scalar.type.kind is Kind.NULL:
                return "NULL", kind
            if _is_same(scalar.type, kind) and scalar.slot is not None:
                return scalar.slot.sql, kind
            scalar = cast_to(scalar, kind)
        return emit_scalar(scalar, slots, self.registry), scalar.type

    def fitted(self, node: Any, kind: Type) -> tuple[str, Type]:
        """SQL of a value that goes into a column of a type, which may be too narrow for it."""
        scalar, slots = self.scalar(node)
        if scalar.type.kind not in (kind.kind, Kind.NULL):
            raise not_supported(f"{scalar.type.kind.value} in a column of {kind.kind.value}")

        def check(value: Any) -> Any:
            if kind.kind is Kind.TEXT and len(value) > kind.length:
                raise not_supported(f"a text longer than its column, which has {kind.length} letters")
            if kind.field is FieldType.LONG and not -(1 << 31) <= value < 1 << 31:
                raise not_supported("a number out of the range of its column")
            return value

        return emit_scalar(apply(kind, check, cast_to(scalar, kind)), slots, self.registry), kind

    def key(self, node: Any) -> str:
        """SQL of what orders and groups values."""
        scalar, slots = self.scalar(node)
        scalar = as_shown(scalar)
        if scalar.slot is not None and scalar.type.kind is Kind.TEXT:
            found = self.registry.key_column(scalar.slot)
            if found is not None:
                return found
        return emit_scalar(sort_key(scalar), slots, self.registry)

    def condition(self, node: Any) -> str:
        """SQL of a condition; what SQLite compares as MariaDB does, it compares itself."""
        match node:
            case Operation(operator="AND", operands=operands):
                return " AND ".join(f"({self.condition(operand)})" for operand in operands)
            case Operation(operator=("=" | "<" | "<=" | ">" | ">=") as operator, operands=(left, right)):
                native = self._native(operator, left, right)
                if native is not None:
                    return native
        scalar, slots = self.scalar(node)
        truth = as_truth(scalar)
        found = Scalar(kinds.truth(), apply(kinds.truth(), int, truth).run, truth.is_constant)
        if scalar.slot is not None and scalar.type.kind is Kind.INT and not scalar.type.is_wide:
            return scalar.slot.sql
        return emit_scalar(found, slots, self.registry)

    def _native(self, operator: str, left: Any, right: Any) -> str | None:
        (one, first), (other, second) = self.scalar(left), self.scalar(right)
        if one.slot is None and other.slot is None:
            return None
        kind = one.type
        if kind.kind is Kind.TEXT and other.type.kind is Kind.TEXT:
            if one.slot is None or other.slot is None:
                return None
            if kind.collation != other.type.collation or kind.charset != other.type.charset:
                return None
            keys = self.registry.key_column(one.slot), self.registry.key_column(other.slot)
            return None if None in keys else f"{keys[0]} {operator} {keys[1]}"
        if kind.kind is not other.type.kind or kind.kind not in (Kind.INT, Kind.DATE, Kind.TIME, Kind.DECIMAL):
            return None
        if kind.is_wide or other.type.is_wide or (kind.kind is Kind.DECIMAL and kind.scale != other.type.scale):
            return None
        sides = emit_scalar(one, first, self.registry), emit_scalar(other, second, self.registry)
        return f"{sides[0]} {operator} {sides[1]}"
