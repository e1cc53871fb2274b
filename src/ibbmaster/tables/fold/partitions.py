"""The partition of a row, and what ALTER TABLE does to rows of partitions, which no event shows.

It follows RANGE, LIST and HASH over integers and dates, with usual functions. A row in another partition than its
values say, after EXCHANGE … WITHOUT VALIDATION, makes the table unknown.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ibbmaster.replication.event.column_types.integer import YEAR
from ibbmaster.replication.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.rows.effects import PartitionStep
from ibbmaster.rows.expr.formulas import NotSimpleError
from ibbmaster.rows.expr.partition_values import INT64_MAX, Compute, Value, Values, compiled, whole
from ibbmaster.schema.expression_text import definition_expression
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.partition_text import partition_name, split_partitions
from ibbmaster.schema.reading import written
from ibbmaster.sqltext.cursor import Cursor, parts_of
from ibbmaster.sqltext.expression import ColumnName, Expression
from ibbmaster.sqltext.moment import Moment, loose_moment
from ibbmaster.sqltext.token import SqlError, Token, tokens
from .contents import TableContents
from .stored import InexactRowsError, StoredLayout, own_columns

PARTITIONS_MAX = 8192
ROWS_AT_A_TIME = 1 << 10

FindPartition = Callable[[Values], str]
"""Takes the stored values of a row; gives the name of its partition in lower case.

Raises:
    InexactRowsError: that cannot be told.
"""


_MAXVALUE = object()  # more than every value


def move_rows(step: PartitionStep, tables: Sequence[TableContents], before: TableVersion, after: TableVersion) -> None:
    """Do with rows of a table, whose versions are `before` and `after`, and perhaps of another, what an ALTER TABLE of
    partitions did. Raises InexactRowsError: rows or values are unknown; NotUnderstoodError: so is the partitioning."""
    contents = tables[0]
    if len(tables) == 1:
        if not step.names:
            contents.clear()
        elif not _keeps_current_rows(before, step):
            contents.remove(_places_in(contents, before, step.names))
        return
    other = tables[1]
    _expect_alike(contents, other)
    leaving = array("q") if step.is_joined else _places_in(contents, before, step.names)
    coming = array("q", other.kept.places(other.number))
    find = partition_finder(after if step.is_joined else before, _layout_of(contents), ())
    if any(find(other.values_at(place)) not in step.names for place in coming):
        raise InexactRowsError("a row is in a partition that its values do not say")
    contents.remove(leaving)
    other.clear()
    _put(contents, other, coming)
    _put(other, contents, leaving)


def _keeps_current_rows(table: TableVersion, step: PartitionStep) -> bool:
    return step.is_dropped and (table.partitioning or "").upper().startswith("SYSTEM_TIME")


def _expect_alike(contents: TableContents, other: TableContents) -> None:
    if contents.unknown_columns or other.unknown_columns:
        raise InexactRowsError("values of a column are not known")
    types = [[(column.type, column.is_nullable) for column in one.table.columns] for one in (contents, other)]
    if types[0] != types[1]:
        raise InexactRowsError("the two have other columns")


def _layout_of(contents: TableContents) -> StoredLayout:
    return contents.layouts.add(own_columns(contents.table))


def _places_in(contents: TableContents, table: TableVersion, names: Sequence[str]) -> array[int]:
    find = partition_finder(table, _layout_of(contents), contents.unknown_columns)
    if strange := set(names) - set(names_of_partitions(table)):
        raise InexactRowsError(f"{min(strange)} is none of its partitions")
    places = contents.kept.places(contents.number)
    return array("q", (place for place in places if find(contents.values_at(place)) in names))


def _put(target: TableContents, source: TableContents, places: Sequence[int]) -> None:
    layout = _layout_of(target)
    for start in range(0, len(places), ROWS_AT_A_TIME):
        some = places[start : start + ROWS_AT_A_TIME]
        target.insert(layout, [layout.row(source.values_at(place)) for place in some])


# Partitions -----------------------------------------------------------------------------------


def partition_finder(table: TableVersion, layout: StoredLayout, unknown: Collection[int] = ()) -> FindPartition:
    """`unknown` has ids of columns without known values. Raises InexactRowsError: the partitioning is not followed."""
    if table.partitioning is None:
        raise InexactRowsError("it has no partitions")
    head, parts = split_partitions(table.partitioning)
    cursor = Cursor(head)
    is_linear = cursor.takes_words("LINEAR")
    method = cursor.take().text.upper()
    is_of_columns = cursor.takes_words("COLUMNS")
    if method not in ("RANGE", "LIST", "HASH"):
        raise InexactRowsError(f"partitions by {method} are not followed")
    compute = _Columns(table, layout, unknown)
    inside = cursor.bracketed()
    keys = [compute.of(written(one)) for one in (parts_of(inside) if is_of_columns else [inside])]
    if method == "HASH":
        return _hashed(keys[0], names_of_partitions(table), is_linear=is_linear)
    bounds = [(partition_name(one), _values(one, len(keys))) for one in parts]
    found = _ranged(keys, bounds) if method == "RANGE" else _listed(keys, bounds)
    _expect_comparable(bounds, compute.kinds)
    return found


def names_of_partitions(table: TableVersion) -> list[str]:
    """In lower case, in order. Raises InexactRowsError: there are too many, or none."""
    head, parts = split_partitions(table.partitioning or "")
    if parts:
        return [partition_name(one) for one in parts]
    cursor = Cursor(head)
    while not cursor.is_at_end and not cursor.peek().is_sign("("):
        cursor.take()
    cursor.bracketed()
    return [f"p{number}" for number in range(_count(cursor))]


def _count(cursor: Cursor) -> int:
    if not cursor.takes_words("PARTITIONS"):
        return 1
    text = cursor.take().text
    if not text.isdecimal() or not 0 < int(text[:9]) <= PARTITIONS_MAX:
        raise InexactRowsError(f"{text} partitions")
    return int(text)


def _hashed(key: Compute, names: Sequence[str], *, is_linear: bool) -> FindPartition:
    mask = (1 << (len(names) - 1).bit_length()) - 1

    def find(values: Values) -> str:
        value = key(values)
        with _as_inexact():
            number = -INT64_MAX if value is None else whole(value)
        if not is_linear:
            return names[abs(number) % len(names)]
        place = number & mask
        return names[place if place < len(names) else number & (mask >> 1)]

    return find


def _ranged(keys: Sequence[Compute], bounds: Sequence[tuple[str, list[tuple[object, ...]]]]) -> FindPartition:
    def find(values: Values) -> str:
        found = _ordered(key(values) for key in keys)
        for name, limit in ends:
            if found < limit:
                return name
        raise InexactRowsError("a row is in no partition")

    if any(len(limits) != 1 for _, limits in bounds):
        raise InexactRowsError("a partition without a bound")
    ends = [(name, _ordered(limits[0])) for name, limits in bounds]
    return find


def _listed(keys: Sequence[Compute], bounds: Sequence[tuple[str, list[tuple[object, ...]]]]) -> FindPartition:
    known = {one: name for name, listed in bounds for one in listed}
    other = next((name for name, listed in bounds if not listed), None)

    def find(values: Values) -> str:
        name = known.get(tuple(key(values) for key in keys), other)
        if name is None:
            raise InexactRowsError("a row is in no partition")
        return name

    return find


def _ordered(values: Iterable[object]) -> list[tuple[int, Any]]:
    return [(0, 0) if one is None else (2, 0) if one is _MAXVALUE else (1, one) for one in values]


def _values(partition: str, count: int) -> list[tuple[object, ...]]:
    """One bound, or a list; nothing for DEFAULT."""
    cursor = Cursor(tokens(partition))
    cursor.takes_words("PARTITION")
    cursor.name()
    if cursor.takes_words("DEFAULT"):
        return []
    if cursor.takes_words("VALUES", "LESS", "THAN"):
        if cursor.takes_words("MAXVALUE"):
            return [(_MAXVALUE,)]
        return [tuple(_constant(one) for one in parts_of(cursor.bracketed()))]
    if not cursor.takes_words("VALUES", "IN"):
        raise InexactRowsError(f"partition {partition[:60]!r} says no values")
    listed = parts_of(cursor.bracketed())
    if count == 1:
        return [(_constant(one),) for one in listed if not (len(one) == 1 and one[0].is_word("DEFAULT"))]
    return [tuple(_constant(part) for part in parts_of(Cursor(one).bracketed())) for one in listed]


def _constant(part: Sequence[Token]) -> object:
    if len(part) == 1 and part[0].is_word("MAXVALUE"):
        return _MAXVALUE
    return _followed(_read(written(part)), {})(())


def _expect_comparable(
    bounds: Sequence[tuple[str, list[tuple[object, ...]]]], kinds: Sequence[type[int] | type[Moment]]
) -> None:
    for _, listed in bounds:
        for values in listed:
            if len(values) != len(kinds):
                raise InexactRowsError(f"a bound of {len(values)} values")
            for one, kind in zip(values, kinds, strict=True):
                if not (one is None or one is _MAXVALUE or isinstance(one, kind)):
                    raise InexactRowsError(f"bound {one} is compared with values of another kind")


# Expressions ----------------------------------------------------------------------------------


class _Columns:
    """Compiles expressions over columns; `kinds` are the types of their values, in order."""

    def __init__(self, table: TableVersion, layout: StoredLayout, unknown: Collection[int]) -> None:
        self._known: dict[str, Compute] = {}
        self.kinds: list[type[int] | type[Moment]] = []
        self._days: set[str] = set()
        for known in table.columns:
            place = layout.places.get(known.id)
            if place is None or known.id in unknown or known.expression is not None:
                continue
            column = layout.columns[place].column
            kind = BY_NAME[known.type.word]
            has_day = kind.has_day and not kind.is_zoned
            if kind.is_integer or kind is YEAR or has_day:
                self._known[known.name.lower()] = _column(place, kind_of(column).convert(column))
                self._days |= {known.name.lower()} if has_day else set()

    def of(self, text: str) -> Compute:
        """Raises InexactRowsError: the expression is not followed."""
        read = _read(text)
        has_day = isinstance(read, ColumnName) and read.parts[-1].lower() in self._days
        self.kinds.append(Moment if has_day else int)
        return _followed(read, self._known)


def _column(place: int, convert: Callable[[bytes], object]) -> Compute:
    def compute(values: Values) -> Value:
        data = values[place]
        if data is None:
            return None
        value = convert(data)
        return value if isinstance(value, int) else loose_moment(str(value))

    return compute


def _read(text: str) -> Expression:
    try:
        return definition_expression(text)
    except SqlError as error:
        raise InexactRowsError(f"partitions by {text[:60]} are not followed: {error}") from None


def _followed(expression: Expression, columns: dict[str, Compute]) -> Compute:
    def compute(values: Values) -> Value:
        with _as_inexact():
            return found(values)
        raise AssertionError

    with _as_inexact():
        found = compiled(expression, columns)
    return compute


@contextlib.contextmanager
def _as_inexact() -> Iterator[None]:
    try:
        yield
    except NotSimpleError as error:
        raise InexactRowsError(str(error)) from None
