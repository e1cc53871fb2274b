"""The ranges of keys that a condition leaves: only rows in them are read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.sqltext.expression import Literal, Operation
from ibbmaster.sqltext.literals import Value
from ibbmaster.tables.fold.kept_rows import Interval, successor

RANGES_MAX = 10_000
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key. `encode` raises ValueError: the column cannot hold a constant."""

    slot: SqlValue
    encode: Callable[[Value], bytes]
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """In order, without overlap; `is_exact`: a row is wanted exactly if its key is in one of them."""

    intervals: tuple[Interval, ...]
    is_exact: bool


def ranges_of(condition: Any, parts: Sequence[KeyPart]) -> KeyRanges:
    whole: Interval = (b"", None)
    if condition is None:
        return KeyRanges((whole,), is_exact=True)
    return _Narrowing(parts).ranges(condition, 0, b"")


@dataclass(frozen=True, slots=True)
class _Narrowing:
    parts: Sequence[KeyPart]

    def ranges(self, condition: Any, depth: int, prefix: bytes) -> KeyRanges:
        """Ranges of keys with a prefix, the bytes of the first columns."""
        scope: Interval = (prefix, successor(prefix))
        unknown = KeyRanges((scope,), is_exact=False)
        match condition:
            case Literal(value=int() as value):
                return KeyRanges((scope,) if value else (), is_exact=True)
            case Operation("AND", operands):
                return self._all(operands, depth, prefix)
            case Operation("OR", operands):
                found = [self.ranges(operand, depth, prefix) for operand in operands]
                return _checked(_union([one for each in found for one in each.intervals]), found, scope)
            case Operation("NOT", (operand,)):
                inner = self.ranges(operand, depth, prefix)
                return KeyRanges(_without(scope, inner.intervals), is_exact=True) if inner.is_exact else unknown
            case Operation("IN", (left, *values)):
                return self.ranges(
                    Operation("OR", tuple(Operation("=", (left, value)) for value in values)), depth, prefix
                )
            case Operation("BETWEEN", (left, low, high)):
                both = (Operation(">=", (left, low)), Operation("<=", (left, high)))
                return self._all(both, depth, prefix)
            case Operation("IS NULL", (SqlValue() as slot,)) if any(part.slot == slot for part in self.parts):
                return KeyRanges((), is_exact=True)
            case Operation(sign, (Literal() as constant, SqlValue() as slot)) if sign in _FLIPPED:
                return self.ranges(Operation(_FLIPPED[sign], (slot, constant)), depth, prefix)
            case Operation(sign, (SqlValue() as slot, Literal(value=value, charset=None))) if (
                sign in _FLIPPED and value is not None
            ):
                if depth < len(self.parts) and self.parts[depth].slot == slot:
                    try:
                        return KeyRanges(self._compared(sign, value, self.parts[depth], prefix), is_exact=True)
                    except ValueError:
                        return unknown
        return unknown

    def _all(self, operands: Sequence[Any], depth: int, prefix: bytes) -> KeyRanges:
        """AND: behind a column with a given value, the next one narrows further."""
        flat = list(_flattened(operands))
        for number, operand in enumerate(flat):
            match operand:
                case Operation("=", (SqlValue() as slot, Literal(value=value, charset=None))) if (
                    value is not None and depth < len(self.parts) and self.parts[depth].slot == slot
                ):
                    try:
                        longer = prefix + self.parts[depth].encode(value)
                    except ValueError:
                        continue
                    rest = flat[:number] + flat[number + 1 :]
                    if not rest:
                        return KeyRanges(((longer, successor(longer)),), is_exact=True)
                    return self._all(rest, depth + 1, longer)
        found = [self.ranges(operand, depth, prefix) for operand in flat]
        intervals: tuple[Interval, ...] = ((prefix, successor(prefix)),)
        for one in found:
            intervals = _intersection(intervals, one.intervals)
        return KeyRanges(intervals, is_exact=all(one.is_exact for one in found))

    @staticmethod
    def _compared(sign: str, value: Value, part: KeyPart, prefix: bytes) -> tuple[Interval, ...]:
        first = prefix + part.encode(value)
        behind, end = successor(first), successor(prefix)
        if part.is_descending:
            sign = _FLIPPED[sign]
        before: Interval = (prefix, first)
        after: tuple[Interval, ...] = () if behind is None else ((behind, end),)
        match sign:
            case "=":
                return ((first, behind),)
            case ">":
                return after
            case ">=":
                return ((first, end),)
            case "<":
                return _present([before])
            case "<=":
                return ((prefix, behind),)
        return (*_present([before]), *after)


def _flattened(operands: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for operand in operands:
        if isinstance(operand, Operation) and operand.operator == "AND":
            found += _flattened(operand.operands)
        else:
            found.append(operand)
    return found


def _checked(intervals: tuple[Interval, ...], found: Sequence[KeyRanges], scope: Interval) -> KeyRanges:
    if len(intervals) > RANGES_MAX:
        return KeyRanges((scope,), is_exact=False)
    return KeyRanges(intervals, is_exact=all(one.is_exact for one in found))


def _present(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    return tuple(one for one in intervals if one[1] is None or one[0] < one[1])


def _rank(end: bytes | None) -> tuple[bool, bytes]:
    return end is None, end or b""


def _union(intervals: list[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for first, end in sorted(_present(intervals), key=lambda one: one[0]):
        if merged and (merged[-1][1] is None or first <= merged[-1][1]):
            merged[-1] = merged[-1][0], max(merged[-1][1], end, key=_rank)
        else:
            merged.append((first, end))
    return tuple(merged)


def _intersection(one: Sequence[Interval], other: Sequence[Interval]) -> tuple[Interval, ...]:
    found: list[Interval] = []
    left, right = 0, 0
    while left < len(one) and right < len(other):
        first, end = max(one[left][0], other[right][0]), min(one[left][1], other[right][1], key=_rank)
        found.append((first, end))
        if one[left][1] == end:
            left += 1
        else:
            right += 1
    return _present(found)


def _without(scope: Interval, taken: Sequence[Interval]) -> tuple[Interval, ...]:
    found: list[Interval] = []
    start = scope[0]
    for first, end in taken:
        found.append((start, first))
        if end is None:
            return _present(found)
        start = end
    return _present([*found, (start, scope[1])])
