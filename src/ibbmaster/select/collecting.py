"""Aggregates for SQLite: sums, extremes, and one value out of several."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ibbmaster.expr import values
from ibbmaster.expr.weights import key_of
from ibbmaster.wire.refusal import not_supported


class SumExact:
    """SUM of numbers as they are stored."""

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

    def finalize(self) -> bytes | None:
        if not self._count:
            return None
        return (self._sum + values._BIAS).to_bytes(values.DECIMAL_BYTES, "big")


class AvgExact(SumExact):
    """AVG of exact numbers."""

    def finalize(self) -> bytes | None:
        if not self._count:
            return None
        total = Decimal(self._sum).scaleb(-self._scale, values.EXACT)
        found = values.divided(total, self._count, self._wanted)
        assert found is not None
        return values.store_decimal(found, values.scale_of_quotient(self._scale, 0, self._wanted))


class SumReal:
    """SUM of floating numbers, one after the other."""

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


class FirstRow:
    """The value of the first row of a group."""

    def __init__(self) -> None:
        self._value: Any = None
        self._is_there = False

    def step(self, value: Any) -> None:
        if not self._is_there:
            self._value, self._is_there = value, True

    def finalize(self) -> Any:
        return self._value


class SameRow(FirstRow):
    """The value of every row of a group; an error where they differ."""

    def step(self, value: Any) -> None:
        super().step(value)
        if value != self._value:
            raise ALIKE


#: By name: how many arguments they have, and what makes one.
AGGREGATES: dict[str, tuple[int, Callable[[], Any]]] = {
    "sum_real": (1, SumReal),
    "avg_real": (1, AvgReal),
    "min_text": (3, extreme_text(is_greatest=False)),
    "max_text": (3, extreme_text(is_greatest=True)),
    "first_row": (1, FirstRow),
    "same_row": (1, SameRow),
    "sum_exact": (3, SumExact),
    "avg_exact": (3, AvgExact),
}
