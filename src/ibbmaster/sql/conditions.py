"""WHERE over the rows of one table: conditions as functions of an image."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.fold.comparing import Comparable, comparable
from ibbmaster.fold.contents import InexactRowsError, first_value
from ibbmaster.fold.stored import Span, StoredColumn, StoredLayout
from ibbmaster.schema.model import TableVersion
from ibbmaster.sqltext.expression import ColumnName, Expression, Literal, Operation

Condition = Callable[[bytes, Sequence[Span]], bool | None]
"""Takes an image, and where its values are; None is SQL's UNKNOWN."""

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!=", "<=>": "<=>"}


class RowConditions:
    """Makes functions of conditions over a version of a table."""

    def __init__(self, table: TableVersion, own: Mapping[int, StoredColumn], time_zone_s: int) -> None:
        self._columns = {column.name: column for column in table.columns}
        self._own = own
        self._time_zone_s = time_zone_s

    def of(self, condition: Expression, layout: StoredLayout) -> Condition:
        """A condition as a function of images of a layout.

        Raises:
            RefusedError: it is of a kind that is not answered.
        """
        match condition:
            case Literal(value=int() as value):
                truth = value != 0
                return lambda image, spans: truth
            case Operation("AND", operands):
                return _all_of([self.of(operand, layout) for operand in operands])
            case Operation("OR", operands):
                return _any_of([self.of(operand, layout) for operand in operands])
            case Operation("NOT", (operand,)):
                return _not(self.of(operand, layout))
            case Operation("IS NULL", (ColumnName() as column,)):
                read = self._value(column, layout)
                return lambda image, spans: read(image, spans) is None
            case Operation("BETWEEN", (left, low, high)):
                return _all_of(
                    [self.of(Operation(">=", (left, low)), layout), self.of(Operation("<=", (left, high)), layout)]
                )
            case Operation("IN", (left, *values)):
                return self._in(left, values, layout)
            case Operation(sign, (Literal() as constant, ColumnName() as column)) if sign in _FLIPPED:
                return self._compare(_FLIPPED[sign], column, constant, layout)
            case Operation(sign, (ColumnName() as column, Literal() as constant)) if sign in _FLIPPED:
                return self._compare(sign, column, constant, layout)
            case Operation(sign, _) | Operation(sign):
                raise not_supported(f"{sign} over columns of a table")
        raise not_supported("this condition over columns of a table")

    def _in(self, left: Expression, values: Sequence[Expression], layout: StoredLayout) -> Condition:
        if not isinstance(left, ColumnName) or not all(isinstance(value, Literal) for value in values):
            raise not_supported("IN over columns of a table")
        constants = [value.value for value in values if isinstance(value, Literal)]
        column, found = self._comparable(left, layout)
        wanted = {
            found_value for value in constants if value is not None for found_value in [_constant(column, found, value)]
        }
        read, of_stored = self._value(left, layout), found.of_stored
        otherwise = None if None in constants else False

        def is_in(image: bytes, spans: Sequence[Span]) -> bool | None:
            data = read(image, spans)
            if data is None:
                return None
            return True if of_stored(data) in wanted else otherwise

        return is_in

    def _compare(self, sign: str, name: ColumnName, literal: Literal, layout: StoredLayout) -> Condition:
        read = self._value(name, layout)
        if literal.value is None:
            if sign == "<=>":
                return lambda image, spans: read(image, spans) is None
            return lambda image, spans: None
        column, found = self._comparable(name, layout)
        wanted, of_stored = _constant(column, found, literal.value), found.of_stored
        compare = _COMPARED["=" if sign == "<=>" else sign]
        otherwise = False if sign == "<=>" else None

        def compared(image: bytes, spans: Sequence[Span]) -> bool | None:
            data = read(image, spans)
            return otherwise if data is None else compare(of_stored(data), wanted)

        return compared

    def _comparable(self, name: ColumnName, layout: StoredLayout) -> tuple[StoredColumn, Comparable]:
        known = self._columns[name.parts[-1]]
        place = layout.places.get(known.id)
        stored = self._own[known.id] if place is None else layout.columns[place]
        return stored, comparable(stored, time_zone_s=self._time_zone_s)

    def _value(self, name: ColumnName, layout: StoredLayout) -> Callable[[bytes, Sequence[Span]], bytes | None]:
        """How the stored value of a column is taken out of an image."""
        known = self._columns[name.parts[-1]]
        place = layout.places.get(known.id)
        if place is None:
            try:
                constant = first_value(known, self._own[known.id])
            except InexactRowsError as error:
                raise not_supported(str(error)) from None
            return lambda image, spans: constant

        def take(image: bytes, spans: Sequence[Span]) -> bytes | None:
            span = spans[place]
            return None if span is None else image[span[0] : span[1]]

        return take


def _constant(column: StoredColumn, found: Comparable, value: Any) -> Any:
    try:
        return found.of_constant(value)
    except ValueError:
        raise not_supported(f"comparing column {column.column.name} with {value!r}") from None


def _all_of(conditions: Sequence[Condition]) -> Condition:
    def check(image: bytes, spans: Sequence[Span]) -> bool | None:
        found: bool | None = True
        for condition in conditions:
            truth = condition(image, spans)
            if truth is False:
                return False
            if truth is None:
                found = None
        return found

    return check


def _any_of(conditions: Sequence[Condition]) -> Condition:
    def check(image: bytes, spans: Sequence[Span]) -> bool | None:
        found: bool | None = False
        for condition in conditions:
            truth = condition(image, spans)
            if truth:
                return True
            if truth is None:
                found = None
        return found

    return check


def _not(condition: Condition) -> Condition:
    def check(image: bytes, spans: Sequence[Span]) -> bool | None:
        truth = condition(image, spans)
        return None if truth is None else not truth

    return check
