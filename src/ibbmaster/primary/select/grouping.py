"""Expressions over groups: aggregates, keys, and the choice of one value out of several."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.replication.wire.response import FieldType
from ibbmaster.rows.expr import kinds, values
from ibbmaster.rows.expr.comparing import is_ordered_by_sqlite, sort_key
from ibbmaster.rows.expr.compiling import Emitter, emit_scalar
from ibbmaster.rows.expr.judged import expect_function
from ibbmaster.rows.expr.kinds import REALS, Family, ValueType
from ibbmaster.rows.expr.operators import decimals_of
from ibbmaster.rows.expr.scalars import Scalar, SqlValue, as_exact, as_real
from ibbmaster.rows.expr.weights import key_of
from ibbmaster.sqltext.expression import Aggregate, mapped
from .sources import KnownNames

COUNT = ValueType(kind=Family.INT, length=21, digits=19, field=FieldType.LONGLONG, is_nullable=False)


def aggregate_slot(node: Aggregate, emitter: Emitter, *, is_grouped: bool = False) -> SqlValue:
    """An aggregate as SQL. `is_grouped`: with GROUP BY a server may keep sums in a table."""
    name = node.name
    if name == "count":
        return _count(node, emitter)
    if len(node.arguments) != 1:
        raise RefusedError(1064, "42000", f"{name.upper()} takes one argument")
    scalar, slots = emitter.scalar(node.arguments[0])
    expect_function(name, [scalar])
    registry = emitter.registry
    kind = scalar.type
    if name in ("min", "max"):
        return _extreme(name, scalar, slots, emitter)
    if node.is_distinct:
        raise not_supported(f"{name.upper()}(DISTINCT …)")
    if kind.kind in (*REALS, Family.TEXT, Family.BYTES):
        found = kinds.shown_real(decimals_of(kind) if name == "sum" else decimals_of(kind) + 4)
        number, slot = as_real(scalar), scalar.slot if kind.kind in REALS else None
        sql = emit_scalar(Scalar(kinds.real(), number.run, number.is_constant, slot), slots, registry)
        return SqlValue(f"{name}_real({sql})", found)
    if is_grouped and kind.fraction > kind.decimals:
        raise not_supported(f"{name.upper()} of a quotient in groups")
    exact = as_exact(scalar)
    scale = kind.scale
    stored = Scalar(replace(kinds.decimal(65, kind.decimals), fraction=scale), exact.run, exact.is_constant)
    sql = emit_scalar(stored, slots, registry)
    if name == "sum":
        found = kinds.decimal(min(kinds.numeric_digits(kind) + 22, 65), kind.decimals)
        found = replace(found, fraction=scale)
        return SqlValue(f"sum_exact({sql}, {scale}, {scale})", found)
    more = emitter.session.division_digits
    found = kinds.decimal(min(kinds.numeric_digits(kind) + more, 65), min(kind.decimals + more, 38))
    found = replace(found, fraction=values.scale_of_quotient(scale, 0, more))
    return SqlValue(f"avg_exact({sql}, {scale}, {more})", found)


def _count(node: Aggregate, emitter: Emitter) -> SqlValue:
    if not node.arguments:
        return SqlValue("count(*)", COUNT)
    if not node.is_distinct:
        if len(node.arguments) > 1:
            raise RefusedError(1064, "42000", "COUNT takes one argument")
        sql, kind = emitter.value(node.arguments[0])
        return SqlValue(
            f"count({sql})" if kind.is_nullable else "count(*)", COUNT
        )  # a server does not look at the others
    if len(node.arguments) > 1:
        raise not_supported("COUNT(DISTINCT …) of several expressions")
    return SqlValue(f"count(DISTINCT {emitter.key(node.arguments[0])})", COUNT)


def _extreme(name: str, scalar: Scalar, slots: list[SqlValue], emitter: Emitter) -> SqlValue:
    kind = scalar.type
    sql = emit_scalar(scalar, slots, emitter.registry)
    field = kind.field
    if kind.column is not None and kind.kind not in kinds.TEXTS:
        field = FieldType(kind.column.column_type)
    elif kind.kind is Family.INT and not kind.is_truth:
        field = FieldType.LONGLONG
    elif kind.kind is Family.TEXT and kind.column is None and field is FieldType.STRING:
        field = None
    found = kind.computed(is_nullable=True, field=field)
    if kind.kind is Family.DOUBLE and kind.decimals >= kinds.FLOATING:
        found = replace(found, length=23)
    if is_ordered_by_sqlite(kind):
        return SqlValue(f"{name}({sql})", found)
    sort_key(Scalar(kind, lambda row: row[0]))
    return SqlValue(f"{name}_text({sql}, {emitter.registry.parameter(kind.collation)})", found)


class GroupPlan:
    def __init__(self, emitter: Emitter, scope: KnownNames, keys: list[Any]) -> None:
        self._emitter = emitter
        self._scope = scope
        self._keys = keys

    def of(self, node: Any) -> Any:
        """Raises RefusedError: it depends on columns that differ inside of a group."""
        return mapped(node, self._part)

    def _part(self, node: Any) -> Any:
        for key in self._keys:
            if node == key:
                return self._key_slot(key)
        match node:
            case Aggregate():
                return aggregate_slot(node, self._emitter, is_grouped=bool(self._keys))
            case SqlValue():
                if not all(table.is_listed for table in self._scope.tables):
                    raise not_supported("columns that are not grouped")
                return replace(node, sql=f"first_row({node.sql})")
        return None

    def _key_slot(self, key: Any) -> SqlValue:
        sql, kind = self._emitter.value(key)
        if is_ordered_by_sqlite(kind):
            return key if isinstance(key, SqlValue) else SqlValue(sql, kind)
        return SqlValue(f"same_row({sql})", kind)


class SumExact:
    def __init__(self) -> None:
        self._sum = 0
        self._count = 0
        self._scale = 0
        self._wanted = 0

    def step(self, data: bytes | None, scale: int, wanted: int) -> None:
        self._scale, self._wanted = scale, wanted  # of AVG, the digits that its division adds
        if data is not None:
            self._sum += int.from_bytes(data, "big") - values.BIAS
            self._count += 1

    def finalize(self) -> bytes | None:
        if not self._count:
            return None
        return (self._sum + values.BIAS).to_bytes(values.DECIMAL_BYTES, "big")


class AvgExact(SumExact):
    def finalize(self) -> bytes | None:
        if not self._count:
            return None
        total = Decimal(self._sum).scaleb(-self._scale, values.EXACT)
        found = values.divided(total, self._count, self._wanted)
        assert found is not None
        return values.store_decimal(found, values.scale_of_quotient(self._scale, 0, self._wanted))


class SumReal:
    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0

    def step(self, value: float | None) -> None:
        if value is not None:
            self._sum += value
            self._count += 1

    def finalize(self) -> float | None:
        return self._sum if self._count else None


class AvgReal(SumReal):
    def finalize(self) -> float | None:
        return self._sum / self._count if self._count else None


def extreme_text(is_greatest: bool) -> type:
    """MIN and MAX of texts. Raises RefusedError: several compare alike."""

    class Extreme:
        def __init__(self) -> None:
            self._text: str | None = None
            self._key = self._tied = b""
            self._make: Callable[[str], bytes] | None = None

        def step(self, text: str | None, collation: str) -> None:
            if text is None:
                return
            if self._make is None:
                self._make = key_of(collation)
            key = self._make(text)
            if key == self._key and text != self._text:
                self._tied = key
            if self._text is None or (key > self._key if is_greatest else key < self._key):
                self._text, self._key = text, key

        def finalize(self) -> str | None:
            if self._tied and self._tied == self._key:
                raise ALIKE
            return self._text

    return Extreme


ALIKE = not_supported("choosing one of several texts that compare alike")


class FirstRow:
    def __init__(self) -> None:
        self._value: Any = None
        self._is_there = False

    def step(self, value: Any) -> None:
        if not self._is_there:
            self._value, self._is_there = value, True

    def finalize(self) -> Any:
        return self._value


class SameRow(FirstRow):
    """Raises RefusedError: the values of a group differ."""

    def step(self, value: Any) -> None:
        if not self._is_there:
            super().step(value)
        elif value != self._value:
            raise ALIKE


#: By name: how many arguments they have, and what makes one.
AGGREGATES: dict[str, tuple[int, Callable[[], Any]]] = {
    "sum_real": (1, SumReal),
    "avg_real": (1, AvgReal),
    "min_text": (2, extreme_text(is_greatest=False)),
    "max_text": (2, extreme_text(is_greatest=True)),
    "first_row": (1, FirstRow),
    "same_row": (1, SameRow),
    "sum_exact": (3, SumExact),
    "avg_exact": (3, AvgExact),
}
