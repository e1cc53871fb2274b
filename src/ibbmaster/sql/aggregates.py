"""COUNT, MIN and MAX over the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ibbmaster.fold.comparing import Comparable, comparable
from ibbmaster.fold.contents import TableContents, first_value
from ibbmaster.fold.stored import Span, StoredColumn, StoredLayout
from ibbmaster.fold.value_texts import Text, TextSettings, text_of
from ibbmaster.schema.model import TableColumn
from ibbmaster.sql.conditions import Condition
from ibbmaster.sqltext.expression import Call, Literal, Star
from ibbmaster.work import check_wanted

AGGREGATES = frozenset(("count", "min", "max"))


def counts_rows(call: Call) -> bool:
    """Whether a call counts rows, whatever they hold."""
    return call.name == "count" and isinstance((call.arguments or (None,))[0], Star | Literal)


class _Taking(NamedTuple):
    """How the value of a column is taken out of images of a layout: its place, or what it is in all of them."""

    place: int | None
    constant: bytes | None
    comparable: Comparable | None
    text: Text


class _Sum:
    """One aggregate so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.best: Any = None
        self.stored: bytes | None = None

    def take(self, data: bytes, taking: _Taking) -> None:
        self.count += 1
        if taking.comparable is None:
            return
        value = taking.comparable.of_stored(data)
        if self.best is None or (value < self.best if self.name == "min" else value > self.best):
            self.best, self.stored = value, taking.text(data)


class Aggregates:
    """Calls over columns; None for those that count rows.

    Raises:
        RefusedError: values of a column have no order that is known here.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        columns: Sequence[TableColumn | None],
        contents: TableContents,
        own: Mapping[int, StoredColumn],
        shown: TextSettings,
    ) -> None:
        self._calls = calls
        self._columns = columns
        self._contents = contents
        self._own = own
        self._shown = shown
        self._plans: dict[int, list[_Taking | None]] = {}
        self._plan(contents.layouts.add(list(own.values())))

    def of(
        self, places: Iterable[int], condition: Callable[[StoredLayout], Condition] | None
    ) -> tuple[bytes | None, ...]:
        """The results over rows, of which a condition may leave some out."""
        conditions: dict[int, Condition] = {}
        sums = [_Sum(call.name) for call in self._calls]
        for place in places:
            check_wanted()
            layout_no, image = self._contents.kept.rows.read(place)
            layout = self._contents.layouts[layout_no]
            spans = layout.spans(image)[0]
            if condition is not None:
                if layout_no not in conditions:
                    conditions[layout_no] = condition(layout)
                if conditions[layout_no](image, spans) is not True:
                    continue
            for one, taking in zip(sums, self._plan(layout), strict=True):
                if taking is None:
                    one.count += 1
                elif (data := _value(taking, image, spans)) is not None:
                    one.take(data, taking)
        return tuple(b"%d" % one.count if one.name == "count" else one.stored for one in sums)

    def _plan(self, layout: StoredLayout) -> list[_Taking | None]:
        plan = self._plans.get(layout.number)
        if plan is None:
            pairs = zip(self._calls, self._columns, strict=True)
            plan = [None if column is None else self._taking(call, column, layout) for call, column in pairs]
            self._plans[layout.number] = plan
        return plan

    def _taking(self, call: Call, column: TableColumn, layout: StoredLayout) -> _Taking:
        place = layout.places.get(column.id)
        stored = self._own[column.id] if place is None else layout.columns[place]
        constant = first_value(column, stored) if place is None else None
        found = None
        if call.name != "count":
            found = comparable(stored, time_zone_s=self._shown.time_zone_s)
        return _Taking(place, constant, found, text_of(stored.column, column.type, self._shown))


def _value(taking: _Taking, image: bytes, spans: Sequence[Span]) -> bytes | None:
    if taking.place is None:
        return taking.constant
    span = spans[taking.place]
    return None if span is None else image[span[0] : span[1]]
