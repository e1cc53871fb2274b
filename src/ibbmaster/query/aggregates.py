"""Aggregates and windows: their types, and what computes them for SQLite."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.query import kinds, values
from ibbmaster.query.kinds import REALS, Kind, Type
from ibbmaster.query.scalars import Scalar, Slot, as_exact, as_real, as_text, is_ordered_by_sqlite, sort_key
from ibbmaster.query.tree import Aggregate, Window
from ibbmaster.query.weights import key_of
from ibbmaster.sqltext.expression import Call, Literal
from ibbmaster.wire.response import FieldType

if TYPE_CHECKING:
    from ibbmaster.query.compiling import Emitter

CONCAT_MAX = 1 << 20  # group_concat_max_len
KEPT_MAX = 16 << 20  # bytes of all that is collected at a time
_SPREADS = {
    "std": (False, True),
    "stddev": (False, True),
    "stddev_pop": (False, True),
    "stddev_samp": (True, True),
    "variance": (False, False),
    "var_pop": (False, False),
    "var_samp": (True, False),
}
COUNT = Type(kind=Kind.INT, length=21, digits=19, field=FieldType.LONGLONG, is_nullable=False)


def aggregate_slot(
    node: Aggregate, emitter: Emitter, tables: int, *, is_stable: bool = False, is_grouped: bool = False
) -> Slot:
    """An aggregate as SQL; `is_stable`: a server meets the rows of a group in the order in which they are here.

    `is_grouped`: there is GROUP BY, so that a server may keep sums in a table.

    Raises:
        RefusedError: it is not computed here as MariaDB does it.
    """
    name = node.name
    if name == "count":
        return _count(node, emitter)
    if name == "group_concat":
        return _group_concat(node, emitter, tables)
    if len(node.arguments) != 1:
        raise RefusedError(1064, "42000", f"{name.upper()} takes one argument")
    scalar, slots = emitter.scalar(node.arguments[0])
    from ibbmaster.query.compiling import emit_scalar

    registry = emitter.registry
    distinct = "DISTINCT " if node.is_distinct else ""
    kind = scalar.type
    if name in ("min", "max"):
        if kind.kind in (Kind.ENUM, Kind.SET):
            scalar = Scalar(kind.computed(kind=Kind.TEXT, labels=(), field=None), as_text(scalar).run)
        return _extreme(name, scalar, slots, emitter, is_stable=is_stable)
    if kind.kind in (Kind.OPAQUE, Kind.NULL):
        raise not_supported(f"{name.upper()} of {kind.kind.value}")
    is_real = kind.kind in REALS or kind.kind in (Kind.TEXT, Kind.BYTES)
    if name in _SPREADS:
        decimals = min(_decimals(kind) + emitter.session.division_digits, kinds.FLOATING)
        found = kinds.real(decimals=decimals)
        if decimals < kinds.FLOATING:
            found = kinds.changed(found, length=17 + decimals)
        return Slot(f"{name}_of({distinct}{emit_scalar(_stored_real(scalar), slots, registry)})", found)
    if name not in ("sum", "avg"):
        raise not_supported(f"{name.upper()} over tables of the log")
    if is_real:
        found = kinds.real(decimals=_decimals(kind) if name == "sum" else min(_decimals(kind) + 4, 31))
        if found.decimals < kinds.FLOATING:
            found = kinds.changed(found, length=17 + found.decimals)
        sql = emit_scalar(_stored_real(scalar), slots, registry)
        return Slot(f"{name}_real({distinct}{sql})", found)
    if is_grouped and kind.fraction > kind.decimals:
        raise not_supported(f"{name.upper()} of a quotient in groups")
    exact = as_exact(scalar)
    scale = kind.scale
    stored = Scalar(kinds.changed(kinds.decimal(65, kind.decimals), fraction=scale), exact.run, exact.is_constant)
    sql = emit_scalar(stored, slots, registry)
    if name == "sum":
        found = kinds.decimal(min(kinds.numeric_digits(kind) + 22, 65), kind.decimals)
        found = kinds.changed(found, fraction=scale)
        return Slot(f"sum_exact({sql}, {scale}, {scale})" if not distinct else f"sum_once(DISTINCT {sql})", found)
    more = emitter.session.division_digits
    found = kinds.decimal(min(kinds.numeric_digits(kind) + more, 65), min(kind.decimals + more, 38))
    found = kinds.changed(found, fraction=values.scale_of_quotient(scale, 0, more))
    return Slot(f"avg_exact({sql}, {scale}, {more})" if not distinct else _no_distinct(name), found)


def _no_distinct(name: str) -> str:
    raise not_supported(f"{name.upper()}(DISTINCT …)")


def _stored_real(scalar: Scalar) -> Scalar:
    """A floating number as SQLite has it."""
    number = as_real(scalar)
    slot = scalar.slot if scalar.type.kind in REALS else None
    return Scalar(kinds.real(), number.run, number.is_constant, slot)


def _decimals(kind: Type) -> int:
    return kinds.FLOATING if kind.kind in (Kind.TEXT, Kind.BYTES) else kind.decimals


def _count(node: Aggregate, emitter: Emitter) -> Slot:
    if not node.arguments:
        return Slot("count(*)", COUNT)
    if not node.is_distinct:
        if len(node.arguments) > 1:
            raise RefusedError(1064, "42000", "COUNT takes one argument")
        sql, _ = emitter.value(node.arguments[0])
        return Slot(f"count({sql})", COUNT)
    if len(node.arguments) > 1:
        raise not_supported("COUNT(DISTINCT …) of several expressions")
    return Slot(f"count(DISTINCT {emitter.key(node.arguments[0])})", COUNT)


def _extreme(name: str, scalar: Scalar, slots: list[Slot], emitter: Emitter, *, is_stable: bool) -> Slot:
    from ibbmaster.query.compiling import emit_scalar

    kind = scalar.type
    if kind.kind in (Kind.OPAQUE, Kind.BIT):
        raise not_supported(f"{name.upper()} of such values")
    if kind.kind is Kind.NULL or (kind.kind is Kind.FLOAT and kind.column is None):
        raise not_supported(f"{name.upper()} of such values")
    sql = emit_scalar(scalar, slots, emitter.registry)
    field = kind.field
    if kind.column is not None and kind.kind not in kinds.TEXTS:
        field = FieldType(kind.column.column_type)
    elif kind.kind is Kind.INT and not kind.is_truth:
        field = FieldType.LONGLONG
    found = kind.computed(is_nullable=True, field=field)
    if kind.kind is Kind.DOUBLE and kind.decimals >= kinds.FLOATING:
        found = kinds.changed(found, length=23)
    if is_ordered_by_sqlite(kind):
        return Slot(f"{name}({sql})", found)
    sort_key(Scalar(kind, lambda row: row[0]))
    return Slot(f"{name}_text({sql}, {emitter.registry.parameter(kind.collation)}, {int(is_stable)})", found)


def _group_concat(node: Aggregate, emitter: Emitter, tables: int) -> Slot:
    from ibbmaster.query.compiling import emit_scalar
    from ibbmaster.query.functions import call

    registry = emitter.registry
    if not node.order_by and tables > 1:
        raise not_supported("GROUP_CONCAT without ORDER BY over several tables")
    scalar, slots = emitter.scalar(
        node.arguments[0] if len(node.arguments) == 1 else Call("concat", "concat", tuple(node.arguments))  # type: ignore[arg-type]
    )
    if scalar.type.kind in (Kind.BYTES, Kind.BIT, Kind.OPAQUE):
        raise not_supported("GROUP_CONCAT of bytes")
    text = call("concat", "concat", [scalar], emitter.session.collation)
    sql = emit_scalar(text, slots, registry)
    key = "NULL"
    if node.is_distinct:
        key = (
            emitter.key(node.arguments[0]) if len(node.arguments) == 1 else emit_scalar(sort_key(text), slots, registry)
        )
    orders = "".join("-" if order.is_descending else "+" for order in node.order_by)
    keys = "".join(f", {emitter.key(order.node)}" for order in node.order_by if not isinstance(order.node, Literal))
    if any(isinstance(order.node, Literal) for order in node.order_by):
        raise not_supported("GROUP_CONCAT … ORDER BY a number")
    form = registry.parameter(orders)
    limit = emitter.session.evaluator.settings.value("group_concat_max_len")
    length = int(str(limit)) if isinstance(limit, int) else CONCAT_MAX
    found = Type(
        kind=Kind.TEXT, length=length * 4, collation=text.type.collation, strength=2, is_blob=True, field=FieldType.BLOB
    )  # fmt: skip
    separator = registry.parameter(node.separator)
    return Slot(f"concat_of({sql}, {key}, {separator}, {form}, {length}{keys})", found)


def window_slot(window: Window, emitter: Emitter) -> Slot:
    """A function over a window as SQL.

    Raises:
        RefusedError: it is not computed here as MariaDB does it.
    """
    function = window.function
    parts = []
    if window.partition_by:
        parts.append("PARTITION BY " + ", ".join(emitter.key(node) for node in window.partition_by))
    if window.order_by:
        keys = [emitter.key(key.node) + (" DESC" if key.is_descending else "") for key in window.order_by]
        parts.append("ORDER BY " + ", ".join(keys))
    over = f" OVER ({' '.join([*parts, window.frame]).strip()})"
    if isinstance(function, Aggregate):
        if function.name not in ("count", "sum", "avg", "min", "max") or function.is_distinct:
            raise not_supported(f"{function.name.upper()} over a window")
        slot = aggregate_slot(function, emitter, 1)
        if "_text(" in slot.sql:
            raise not_supported("MIN and MAX of texts over a window")
        return Slot(slot.sql + over, slot.type)
    name = function.name
    if name in ("row_number", "rank", "dense_rank"):
        return Slot(f"{name}(){over}", kinds.changed(COUNT, length=21, is_nullable=False))
    if name in ("lag", "lead", "first_value", "last_value"):
        value, kind = emitter.value(function.arguments[0])
        more = ""
        if len(function.arguments) > 1:
            offset = function.arguments[1]
            if not isinstance(offset, Literal) or not isinstance(offset.value, int) or len(function.arguments) > 2:
                raise not_supported(f"{name.upper()} with such arguments")
            more = f", {offset.value}"
        return Slot(f"{name}({value}{more}){over}", kind.computed(is_nullable=True, field=_own_field(kind)))
    raise not_supported(f"{function.written}() over a window")


def _own_field(kind: Type) -> FieldType | None:
    if kind.column is not None and kind.kind not in kinds.TEXTS:
        return FieldType(kind.column.column_type)
    return kind.field


# Computed -------------------------------------------------------------------------------------


class SumExact:
    """SUM of numbers as they are stored; also over windows."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0
        self._scale = 0
        self._wanted = 0

    def step(self, data: bytes | None, scale: int, wanted: int) -> None:
        self._scale, self._wanted = scale, wanted  # of AVG, the digits that its division adds
        if data is not None:
            self._sum += int.from_bytes(data, "big") - values._BIAS
            self._count += 1

    def inverse(self, data: bytes | None, scale: int, wanted: int) -> None:
        if data is not None:
            self._sum -= int.from_bytes(data, "big") - values._BIAS
            self._count -= 1

    def value(self) -> bytes | None:
        if not self._count:
            return None
        return (self._sum + values._BIAS).to_bytes(values.DECIMAL_BYTES, "big")

    finalize = value


class AvgExact(SumExact):
    """AVG of exact numbers."""

    def value(self) -> bytes | None:
        if not self._count:
            return None
        total = Decimal(self._sum).scaleb(-self._scale, values.EXACT)
        found = values.divided(total, self._count, self._wanted)
        assert found is not None
        return values.store_decimal(found, values.scale_of_quotient(self._scale, 0, self._wanted))

    finalize = value


class SumReal:
    """SUM of floating numbers, one after the other."""

    def __init__(self) -> None:
        self._values: list[float] = []
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


def spread(name: str) -> type:
    """STDDEV and VARIANCE as MariaDB computes them: by one pass of a recurrence."""
    is_sample, is_root = _SPREADS[name]

    class Spread:
        def __init__(self) -> None:
            self._count, self._mean, self._square = 0, 0.0, 0.0

        def step(self, value: float | None) -> None:
            if value is None:
                return
            self._count += 1
            if self._count == 1:
                self._mean = value
                return
            before = self._mean
            self._mean = before + (value - before) / self._count
            self._square += (value - before) * (value - self._mean)

        def finalize(self) -> float | None:
            if self._count <= is_sample:
                return None
            found: float = self._square / (self._count - is_sample)
            return found**0.5 if is_root else found

    return Spread


def extreme_text(is_greatest: bool) -> type:
    """MIN and MAX of texts: the first one of those that compare alike."""

    class Extreme:
        def __init__(self) -> None:
            self._text: str | None = None
            self._key = self._tied = b""
            self._make: Callable[[str], bytes] | None = None

        def step(self, text: str | None, collation: str, is_stable: int) -> None:
            if text is None:
                return
            if self._make is None:
                self._make = key_of(collation)
            key = self._make(text)
            if key == self._key and text != self._text and not is_stable:
                self._tied = key
            if self._text is None or (key > self._key if is_greatest else key < self._key):
                self._text, self._key = text, key

        def finalize(self) -> str | None:
            if self._tied and self._tied == self._key:
                raise ALIKE
            return self._text

    return Extreme


ALIKE = not_supported("choosing one of several texts that compare alike")


class SumOnce(SumExact):
    """SUM(DISTINCT …)"""

    def step(self, data: bytes | None) -> None:  # type: ignore[override]
        super().step(data, 0, 0)

    def finalize(self) -> bytes | None:
        return self.value()


class _OneValue:
    """One value out of a group; the aggregates below say which."""

    def __init__(self) -> None:
        self._value: Any = None
        self._is_there = False

    def finalize(self) -> Any:
        return self._value


class SameRow(_OneValue):
    """The value of any row of a group, where all of them have the same."""

    def step(self, value: Any) -> None:
        if not self._is_there:
            self._value, self._is_there = value, True
        elif value != self._value:
            raise ALIKE


class FirstRow(_OneValue):
    """The value of the first row of a group."""

    def step(self, value: Any) -> None:
        if not self._is_there:
            self._value, self._is_there = value, True


class OnlyRow(_OneValue):
    """The value of the only row of a query in brackets."""

    def step(self, value: Any) -> None:
        if self._is_there:
            raise RefusedError(1242, "21000", "Subquery returns more than 1 row")
        self._value, self._is_there = value, True


class ConcatOf:
    """GROUP_CONCAT."""

    def __init__(self) -> None:
        self._rows: list[tuple[tuple[Any, ...], str, Any]] = []
        self._separator = ","
        self._orders = ""
        self._limit = CONCAT_MAX
        self._size = 0

    def step(self, text: str | None, key: Any, separator: str, orders: str, limit: int, *keys: Any) -> None:
        self._separator, self._orders, self._limit = separator, orders, limit
        if text is None:
            return
        self._size += len(text) + 100
        if self._size > KEPT_MAX:
            raise RefusedError(1041, "HY000", "Out of memory: GROUP_CONCAT collects too much")
        self._rows.append((keys, text, key))

    def finalize(self) -> str | None:
        if not self._rows:
            return None
        rows = self._rows
        for no in reversed(range(len(self._orders))):
            rows.sort(
                key=lambda row: (row[0][no] is not None, row[0][no] if row[0][no] is not None else 0),
                reverse=self._orders[no] == "-",
            )
        if rows[0][2] is not None:
            seen: dict[Any, str] = {}
            for _, text, key in rows:
                seen.setdefault(key, text)
            texts = list(seen.values())
        else:
            texts = [text for _, text, _ in rows]
        found = self._separator.join(texts)
        if len(found.encode("utf-8", "surrogateescape")) > self._limit:
            raise not_supported("GROUP_CONCAT of more than group_concat_max_len")
        return found
