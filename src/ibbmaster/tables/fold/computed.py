"""Generated columns that images leave out, computed from other values where that is simple."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.rows.expr.formulas import Evaluate, NotSimpleError, formula
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.reading import named_in
from .stored import StoredColumn, StoredLayout


class ColumnExpression(NamedTuple):
    place: int
    column: StoredColumn
    sources: frozenset[int]  # places of columns that it may name
    inputs: dict[str, int]  # what `compute` takes, by name in lower case
    compute: Evaluate | None

    def value(self, layout: StoredLayout, values: Sequence[bytes | None]) -> bytes | None:
        """Raises NotSimpleError: it is unknown."""
        if self.compute is None:
            raise NotSimpleError(f"the expression of {self.column.column.name}")
        taken: dict[str, Value] = {}
        try:
            for name, place in self.inputs.items():
                data, column = values[place], layout.columns[place].column
                taken[name] = None if data is None else kind_of(column).convert(column)(data)
            found = self.compute(taken)
            return stored_value(self.column.column, self.column.type, found)  # type: ignore[arg-type]
        except ValueError as error:
            raise NotSimpleError(str(error)) from None


def computed_columns(table: TableVersion, layout: StoredLayout) -> Iterator[ColumnExpression]:
    places = {column.name.lower(): layout.places[column.id] for column in table.columns}
    plain = {
        column.name.lower(): layout.columns[layout.places[column.id]].column
        for column in table.columns
        if column.expression is None and not column.type.is_zerofill
    }
    for column in table.columns:
        if column.expression is None:
            continue
        place = layout.places[column.id]
        sources = frozenset(places[name] for name in named_in(column.expression) & places.keys())
        try:
            names, compute = formula(column.expression, plain, layout.columns[place].column)
        except NotSimpleError:
            yield ColumnExpression(place, layout.columns[place], sources, {}, None)
        else:
            yield ColumnExpression(
                place, layout.columns[place], sources, {name: places[name] for name in names}, compute
            )


def affected(columns: Sequence[ColumnExpression], told: Collection[int]) -> list[ColumnExpression]:
    """The columns that depend on those told, also through each other, without these; all by places."""
    changed = set(told)
    found: dict[int, ColumnExpression] = {}
    while True:
        more = {one.place: one for one in columns if one.place not in changed and one.sources & changed}
        if not more:
            return list(found.values())
        found |= more
        changed |= more.keys()


def compute(
    columns: Iterable[ColumnExpression], layout: StoredLayout, values: list[bytes | None], unknown: Collection[int]
) -> Iterator[StoredColumn]:
    """Compute generated columns; those it cannot are NULL, and returned. `unknown` are ids of columns."""
    for one in columns:
        try:
            if any(layout.columns[place].id in unknown for place in one.sources):
                raise NotSimpleError("of what is not known")
            values[one.place] = one.value(layout, values)
        except NotSimpleError:
            values[one.place] = None
            yield one.column
