"""What a change of rows in statement format does to the rows of a table that are known.

Each row is decided by itself: where the server's answer follows from what is known, the row is changed; where it does
not, the row, or the values it may have got, are in doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.event.rows.charset import charset_of
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.fold.comparing import AlikePart, alike_part, is_text
from ibbmaster.fold.computed import affected, compute, computed_columns
from ibbmaster.fold.contents import StoredRow, TableContents
from ibbmaster.fold.kept_rows import EVERYTHING, Interval
from ibbmaster.fold.key_ranges import KeyPart, ranges_of
from ibbmaster.fold.literals import stored_value
from ibbmaster.fold.row_conversion import time_zone_of
from ibbmaster.fold.row_doubts import ROW, UnknownRows
from ibbmaster.fold.row_expressions import KnownRow, RowExpressions, StatementMoment, now_digits
from ibbmaster.fold.stored import StoredLayout, own_columns, sort_key
from ibbmaster.rows.row_statement import (
    RowFilter,
    RowsChanged,
    RowsGone,
    RowsInserted,
    RowStatement,
    SetColumn,
)
from ibbmaster.schema.expression import NotSimpleError
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import IndexKind, TableKind, TableVersion
from ibbmaster.sqltext.expression import Call, ColumnName, Default, Expression, Literal, Operation
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.sql_mode import NO_AUTO_VALUE_ON_ZERO, SIMULTANEOUS_ASSIGNMENT

LOOKED_AT_MAX = 1 << 22  # rows of one table that statements have looked through
INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
Values = list[bytes | None]


class StatementSession(NamedTuple):
    """What gives a statement its meaning, beside its text.

    Attributes:
        insert_id: the first number that AUTO_INCREMENT has given it; None: none, or the log does not have it.
        increment: between one such number and the next.
        keeps_zero: whether 0 is a number for AUTO_INCREMENT.
        assigns_at_once: whether an UPDATE takes values of before for all that it sets.
        knows_texts: whether texts of other letters than ASCII mean what they say.
    """

    moment: StatementMoment
    insert_id: int | None = None
    increment: int = 1
    keeps_zero: bool = False
    assigns_at_once: bool = False
    knows_texts: bool = True


def session_of(statement: LoggedStatement, timestamp: int, insert_id: int | None) -> StatementSession:
    """What gives a logged statement its meaning; `timestamp` is of its event, in seconds."""
    moment = StatementMoment(
        timestamp * 10**6 + statement.microseconds, bool(statement.microseconds), time_zone_of(statement)
    )
    names = {charset_of(number or 0) for number in (statement.client_collation, statement.connection_collation)}
    return StatementSession(
        moment,
        insert_id,
        statement.auto_increment,
        keeps_zero=bool(statement.sql_mode & NO_AUTO_VALUE_ON_ZERO),
        assigns_at_once=bool(statement.sql_mode & SIMULTANEOUS_ASSIGNMENT),
        knows_texts=len(names) == 1 or names <= {"utf8mb3", "utf8mb4"},
    )


@dataclass(slots=True)
class FollowedRows:
    """What became of rows.

    Attributes:
        rows: rows of before and after, in order; None: it is gone. An INSERT is none of these.
        untold: the columns whose values are not known in some of these.
        is_ordered: whether that is the order in which the server has done it, where it matters.
        is_whole: whether that is all, and no row beyond may have been removed, or changed.
    """

    rows: list[tuple[Values, Values | None]] = field(default_factory=list)
    untold: set[int] = field(default_factory=set)
    is_ordered: bool = True
    is_whole: bool = True


def can_be_followed(table: TableVersion) -> bool:
    """Whether statements on a table are followed row by row at all."""
    return (
        table.kind is TableKind.BASE
        and not table.is_versioned
        and not table.periods
        and not any(column.is_hidden or column.period is not None for column in table.columns)
    )


def change_rows(
    contents: TableContents, statement: RowStatement, session: StatementSession, reason: UnknownRows
) -> FollowedRows:
    """Do to the rows of a table what a statement has done.

    Raises:
        NotSimpleError: nothing of it can be determined; then nothing has changed.
        InexactRowsError: the rows contradict it.
    """
    change = _Change(contents, session, reason)
    match statement:
        case RowsInserted():
            return change.insert(statement)
        case RowsChanged():
            return change.update(statement)
        case RowsGone():
            return change.delete(statement)


class _Row(NamedTuple):
    key: bytes
    values: Values
    unknown: set[int]


class _Updated(NamedTuple):
    """A row, its values now, and the columns that have been decided, or may be others."""

    row: _Row
    values: Values
    decided: set[int]
    untold: set[int]


class _Change:
    def __init__(self, contents: TableContents, session: StatementSession, reason: UnknownRows) -> None:
        self._contents, self._session, self._reason = contents, session, reason
        self._table = contents.table
        self._layout: StoredLayout = contents.layouts.add(own_columns(self._table))
        self._expressions = RowExpressions(
            self._table, self._layout.columns, session.moment, knows_texts=session.knows_texts
        )
        self._index = row_key(self._table)
        self._key = set() if self._index is None else {part.column_id for part in self._index.parts}
        self._places = {column.name.lower(): place for place, column in enumerate(self._table.columns)}
        self._computed = list(computed_columns(self._table, self._layout))

    # Which rows -------------------------------------------------------------------------------

    def _rows(self, where: Expression | None) -> tuple[list[_Row], list[_Row], tuple[Interval, ...], bool]:
        """The rows that meet a condition; those that may; the ranges of keys they are in, and if all in these do.

        Raises:
            NotSimpleError: there are too many to look at.
        """
        condition = self._expressions.condition(where)
        ranges = ranges_of(where, self._key_parts())
        met: list[_Row] = []
        doubted: list[_Row] = []
        places = [place for one in ranges.intervals for place in self._contents.kept.places(self._contents.number, one)]
        self._contents.looked_at += len(places)
        if self._contents.looked_at > LOOKED_AT_MAX:
            raise NotSimpleError("too many rows to look at")
        for place in places:
            row = self._row(place)
            try:
                if condition(KnownRow(row.values, row.unknown)):
                    met.append(row)
            except NotSimpleError:
                doubted.append(row)
        return met, doubted, ranges.intervals, ranges.is_exact

    def _row(self, place: int) -> _Row:
        values = self._contents.values_at(place)
        if self._index is None:
            return _Row(b"", values, set(self._contents.unknown_columns))
        key = self._key_of(values)
        return _Row(key, values, self._contents.unknown_of(key))

    def _key_of(self, values: Values) -> bytes:
        plan = self._contents.key_plan(self._layout)
        assert plan is not None
        return plan.key(*self._layout.row(values))

    def _key_parts(self) -> list[KeyPart]:
        """Of integers alone: others compare by more than their bytes."""
        parts = [] if self._index is None else self._index.parts
        found = []
        for part in parts:
            place = self._layout.places[part.column_id]
            column = self._layout.columns[place]
            make = sort_key(column, is_descending=part.is_descending)

            def encode(value: Value, column: object = column, make: object = make) -> bytes:
                if column.type.word not in INTEGERS or not isinstance(value, int):  # type: ignore[attr-defined]
                    raise ValueError("compared value by value")
                data = stored_value(column.column, column.type, value)  # type: ignore[attr-defined]
                assert data is not None
                return make(data)  # type: ignore[operator, no-any-return]

            found.append(KeyPart(self._table.columns[place].name, encode, part.is_descending))
        return found

    # DELETE -----------------------------------------------------------------------------------

    def delete(self, statement: RowsGone) -> FollowedRows:
        contents, chosen = self._contents, statement.chosen
        met, doubted, intervals, is_exact = self._rows(chosen.where)
        changes = FollowedRows(is_ordered=True, is_whole=self._are_known(intervals))
        if chosen.is_limited or chosen.is_ignoring:
            met, doubted = [], met + doubted
        self._expect_key(doubted)
        changes.is_whole &= not doubted
        changes.rows = [(row.values, None) for row in met]
        changes.untold = {column for row in met for column in row.unknown}
        if chosen.where is None and not doubted and not chosen.is_limited and not chosen.is_ignoring:
            contents.clear(self._reason.gtid)
            return changes
        contents.delete(self._layout, [self._layout.row(row.values) for row in met])
        for row in doubted:
            contents.doubt_row(row.key, [ROW], self._reason)
        if is_exact and not chosen.is_limited and not chosen.is_ignoring and contents.is_doubtful:
            self._clear(intervals)
        return changes

    def _are_known(self, intervals: Sequence[Interval]) -> bool:
        """Whether it is known which rows there are in these ranges of keys."""
        return all(self._contents.unknown_in(one, ()) is None for one in intervals)

    def _clear(self, intervals: Sequence[Interval]) -> None:
        """There is no row in these ranges of keys."""
        doubts = self._contents.doubts
        for first, end in intervals:
            inside = [key for key in doubts.rows if first <= key and (end is None or key < end)]
            for key in inside:
                doubts.gone(key)
            if self._is_whole_key(first, end):
                doubts.gone(first)

    def _is_whole_key(self, first: bytes, end: bytes | None) -> bool:
        """Whether an interval is that of one key; keys of integers have eight bytes for each."""
        return self._index is not None and len(first) == 8 * len(self._index.parts) and end is not None

    def _expect_key(self, doubted: Sequence[object]) -> None:
        if doubted and self._index is None:
            raise NotSimpleError("rows without a key that may be others")

    # UPDATE -----------------------------------------------------------------------------------

    def update(self, statement: RowsChanged) -> FollowedRows:
        contents, chosen = self._contents, statement.chosen
        touched = self._touched(statement.assignments)
        moves = bool(touched & self._key)
        met, doubted, intervals, _ = self._rows(chosen.where)
        is_whole = self._are_known(intervals) and not doubted
        if chosen.is_limited or chosen.is_ignoring:
            met, doubted = [], met + doubted
        self._expect_key(doubted)
        if moves and not is_whole:
            raise NotSimpleError("keys of rows that are in doubt change")
        new = [self._updated(row, statement.assignments) for row in met]
        if moves and any(one.untold & self._key for one in new):
            raise NotSimpleError("keys of rows change in a way that is not known")
        if self._index is None and any(one.untold for one in new):
            raise NotSimpleError("rows without a key that may be others")
        changes = FollowedRows(is_whole=is_whole)
        self._apply(self._ordered(new, chosen, changes), changes, moves=moves)
        for row in doubted:
            contents.doubt_row(row.key, touched, self._reason)
        return changes

    def _apply(self, new: Sequence[_Updated], changes: FollowedRows, *, moves: bool) -> None:
        contents, layout = self._contents, self._layout
        changed = [one for one in new if one.values != one.row.values or one.decided & one.row.unknown]
        before = [layout.row(one.row.values) for one in changed]
        after = [layout.row(one.values) for one in changed]
        if moves:
            reasons = [self._reasons(one.row) for one in changed]
            contents.delete(layout, before)
            contents.insert(layout, after)
            for one, known in zip(changed, reasons, strict=True):
                for column in one.row.unknown - one.decided:
                    contents.doubt_row(self._key_of(one.values), [column], known.get(column, self._reason))
        elif contents.is_doubtful:
            for one, old, image in zip(changed, before, after, strict=True):
                contents.update(layout, [old], [image], one.decided)
        elif changed:
            contents.update(layout, before, after)
        for one in new:
            if one.untold:
                contents.doubt_row(self._key_of(one.values), one.untold, self._reason)
        changes.rows += [(one.row.values, one.values) for one in changed]
        changes.untold |= {column for one in new for column in one.row.unknown | one.untold}
        changes.is_whole &= not any(one.untold for one in new)

    def _reasons(self, row: _Row) -> dict[int, UnknownRows]:
        """Why values of a row are not known."""
        return {**self._contents.unknown_columns, **self._contents.doubts.rows.get(row.key, {})}

    def _touched(self, assignments: Sequence[SetColumn]) -> set[int]:
        """The columns that an UPDATE may change.

        Raises:
            NotSimpleError: a column of it is not known.
        """
        columns = self._layout.columns
        places = {self._expect_place(one.column) for one in assignments}
        places |= {place for place, known in enumerate(self._table.columns) if known.on_update is not None}
        places |= {one.place for one in affected(self._computed, places)}
        return {columns[place].id for place in places}

    def _expect_place(self, name: str) -> int:
        place = self._places.get(name)
        if place is None or self._table.columns[place].expression is not None:
            raise NotSimpleError(f"column {name}")
        return place

    def _updated(self, row: _Row, assignments: Sequence[SetColumn]) -> _Updated:
        """What an UPDATE makes of a row."""
        columns = self._layout.columns
        values, unknown = list(row.values), set(row.unknown)
        decided, untold, given = set[int](), set[int](), set[int]()
        for one in assignments:
            place = self._expect_place(one.column)
            number = columns[place].id
            given.add(place)
            source = KnownRow(row.values, row.unknown) if self._session.assigns_at_once else KnownRow(values, unknown)
            try:
                values[place] = self._expressions.assigned(place, one.value)(source)
            except NotSimpleError:
                untold.add(number)
                unknown.add(number)
                decided.discard(number)
            else:
                decided.add(number)
                unknown.discard(number)
                untold.discard(number)
        is_sure = any(
            values[place] != row.values[place] and columns[place].id in decided - row.unknown for place in given
        )
        if is_sure or untold or decided & row.unknown:
            self._refresh(values, decided, untold, given, is_sure=is_sure)
        made = affected(self._computed, {place for place, one in enumerate(columns) if one.id in decided | untold})
        lost = {column.id for column in compute(made, self._layout, values, (row.unknown | untold) - decided)}
        decided |= {one.column.id for one in made} - lost
        return _Updated(row, values, decided, untold | lost)

    def _refresh(self, values: Values, decided: set[int], untold: set[int], given: set[int], *, is_sure: bool) -> None:
        """ON UPDATE: of a row that has changed, or may have."""
        for place, known in enumerate(self._table.columns):
            if known.on_update is None or place in given:
                continue
            digits = now_digits(known.on_update)
            try:
                if digits is None or not is_sure:
                    raise NotSimpleError("a row that may have changed")
                values[place] = self._expressions.now(place, digits)
                decided.add(known.id)
            except NotSimpleError:
                untold.add(known.id)

    def _ordered(self, new: list[_Updated], chosen: RowFilter, changes: FollowedRows) -> list[_Updated]:
        """In the order in which the server has changed rows, as far as ORDER BY says it."""
        changes.is_ordered = False
        if len(chosen.order) != 1 or not isinstance(chosen.order[0][0], ColumnName):
            return new
        ((name, is_descending),) = chosen.order
        assert isinstance(name, ColumnName)
        place = self._places.get(name.parts[-1].lower())
        if place is None or self._layout.columns[place].type.word not in INTEGERS:
            return new
        column = self._layout.columns[place].column
        read = kind_of(column).convert(column)
        numbers = [None if (data := one.row.values[place]) is None else read(data) for one in new]
        if None in numbers or len(set(numbers)) < len(numbers):
            return new
        changes.is_ordered = True
        order = sorted(range(len(new)), key=lambda number: numbers[number], reverse=is_descending)  # type: ignore[arg-type, return-value]
        return [new[number] for number in order]

    # INSERT -----------------------------------------------------------------------------------

    def insert(self, statement: RowsInserted) -> FollowedRows:
        if statement.rows is None:
            raise NotSimpleError("rows of a query")
        rows = list(self._given(statement, statement.rows))
        if statement.is_replacing or statement.on_duplicate is not None:
            return self._put(statement, rows)
        if statement.is_ignoring:
            rows = list(self._not_there(rows))
        if self._index is None and any(untold for _, untold in rows):
            raise NotSimpleError("rows without a key that may be others")
        self._add(rows)
        return FollowedRows()

    def _not_there(self, rows: Sequence[tuple[Values, set[int]]]) -> Iterator[tuple[Values, set[int]]]:
        """The rows of an INSERT IGNORE that are added: those whose key no row has.

        Raises:
            NotSimpleError: a server may leave out others.
        """
        table, contents = self._table, self._contents
        is_checked = table.foreign_keys or table.checks or table.partitioning or any(one.check for one in table.columns)
        if is_checked or any(untold for _, untold in rows):
            raise NotSimpleError("rows that may be left out")
        if not any(one.kind in (IndexKind.PRIMARY, IndexKind.UNIQUE) for one in table.indexes):
            yield from rows
            return
        self._expect_one_key(rows)
        seen = set[bytes]()
        for values, untold in rows:
            key = self._key_of(values)
            is_there = key in seen or contents.kept.place(contents.number, key) is not None
            if not is_there and contents.may_have(key):
                raise NotSimpleError("rows that may be there, or not")
            seen.add(key)
            if not is_there:
                yield values, untold

    def _expect_one_key(self, rows: Sequence[tuple[Values, set[int]]]) -> None:
        """See that rows of before are found by the bytes of their key, and by no other key.

        Raises:
            NotSimpleError: one may be found otherwise.
        """
        if self._index is None:
            raise NotSimpleError("rows without a key")
        unique = [one for one in self._table.indexes if one.kind in (IndexKind.PRIMARY, IndexKind.UNIQUE)]
        for index in unique:
            places = [self._layout.places[part.column_id] for part in index.parts]
            is_own = {part.column_id for part in index.parts} == self._key
            columns = [self._layout.columns[place] for place in places]
            if is_own and not any(map(is_text, columns)):
                continue
            if any(part.length is not None for part in index.parts) or any(untold for _, untold in rows):
                raise NotSimpleError("rows that may be found by another key")
            self._expect_apart(rows, places, [] if is_own else [column.id for column in columns])

    def _expect_apart(
        self, rows: Sequence[tuple[Values, set[int]]], places: Sequence[int], unknown: Sequence[int]
    ) -> None:
        """See that no row of another key has the values of a new row at these places."""
        try:
            alike = [alike_part(self._layout.columns[place]) for place in places]
        except ValueError as error:
            raise NotSimpleError(str(error)) from None
        new: dict[tuple[bytes, ...], bytes] = {}
        for values, _ in rows:
            if (found := _alike_values(values, places, alike)) is not None:
                new[found] = self._key_of(values)
        if not new:
            return
        if (len(new) < len(rows) and len(rows) > 1) or self._contents.unknown_in(EVERYTHING, unknown) is not None:
            raise NotSimpleError("rows that may be found by another key")
        for row in self._rows(None)[0]:
            found = _alike_values(row.values, places, alike)
            if found is not None and new.get(found, row.key) != row.key:
                raise NotSimpleError("a row that is found by another key")

    def _add(self, rows: Sequence[tuple[Values, set[int]]]) -> None:
        contents = self._contents
        contents.insert(self._layout, [self._layout.row(values) for values, _ in rows])
        for values, untold in rows:
            if untold:
                contents.doubt_row(self._key_of(values), untold, self._reason)

    def _given(
        self, statement: RowsInserted, rows: Sequence[Sequence[Expression]]
    ) -> Iterator[tuple[Values, set[int]]]:
        """The values of each row, and the columns of which they are not known.

        Raises:
            NotSimpleError: of a column of the key, or of the number that AUTO_INCREMENT gives.
        """
        shown = [one.name.lower() for one in self._table.columns if not one.is_invisible]
        names = shown if statement.columns is None else statement.columns
        places = [self._places.get(name) for name in names]
        if None in places or len(set(places)) < len(places):
            raise NotSimpleError("columns that are not known")
        numbers = self._numbers(len(rows), places, rows)
        for number, row in zip(numbers, rows, strict=True):
            if len(row) != len(places) and (row or statement.columns is not None):
                raise NotSimpleError("a row of another length")
            yield self._row_of(
                {place: one for place, one in zip(places, row, strict=False) if place is not None}, number
            )

    def _numbers(
        self, count: int, places: Sequence[int | None], rows: Sequence[Sequence[Expression]]
    ) -> list[int | None]:
        """What AUTO_INCREMENT gives each row.

        Raises:
            NotSimpleError: that cannot be determined.
        """
        place = next((place for place, one in enumerate(self._table.columns) if one.is_auto_increment), None)
        if place is None:
            return [None] * count
        at = places.index(place) if place in places else None
        made = [at is None or at >= len(row) or self._is_made(row[at]) for row in rows]
        if not any(made):
            return [None] * count
        if not all(made) or self._session.insert_id is None:
            raise NotSimpleError("numbers of AUTO_INCREMENT")
        return [self._session.insert_id + number * self._session.increment for number in range(count)]

    def _is_made(self, value: Expression) -> bool:
        """Whether AUTO_INCREMENT gives a number in place of a value.

        Raises:
            NotSimpleError: that cannot be determined.
        """
        match value:
            case Default() | Literal(value=None):
                return True
            case Literal(value=int() as number):
                return number == 0 and not self._session.keeps_zero
            case Literal(value=str() as text) if text.isascii() and text.isdecimal() and text[0] != "0":
                return False
        raise NotSimpleError("a number that may be 0")

    def _row_of(self, given: dict[int, Expression], number: int | None) -> tuple[Values, set[int]]:
        columns = self._layout.columns
        values: Values = [None] * len(columns)
        untold: set[int] = set()
        nothing = KnownRow(values, {column.id for column in columns})
        for place, known in enumerate(self._table.columns):
            if known.expression is not None:
                if not isinstance(given.get(place, Default()), Default):
                    raise NotSimpleError("a value for a generated column")
                continue
            try:
                if known.is_auto_increment and number is not None:
                    values[place] = self._encoded(place, number)
                elif place in given:
                    values[place] = self._expressions.assigned(place, given[place])(nothing)
                else:
                    values[place] = self._expressions.default(place)
            except NotSimpleError:
                if known.id in self._key or known.is_auto_increment:
                    raise
                untold.add(known.id)
        for column in compute(self._computed, self._layout, values, untold):
            if column.id in self._key:
                raise NotSimpleError("a generated column of the key")
            untold.add(column.id)
        return values, untold

    def _encoded(self, place: int, number: int) -> bytes | None:
        column = self._layout.columns[place]
        try:
            return stored_value(column.column, column.type, number)
        except ValueError as error:
            raise NotSimpleError(str(error)) from None

    # REPLACE, ON DUPLICATE KEY UPDATE ---------------------------------------------------------

    def _put(self, statement: RowsInserted, rows: Sequence[tuple[Values, set[int]]]) -> FollowedRows:
        """Rows that take the place of others, or change them, where one of the same key is there."""
        contents = self._contents
        self._expect_one_key(rows)
        if statement.is_ignoring:
            raise NotSimpleError("rows that may be left out")
        keys = [self._key_of(values) for values, _ in rows]
        changes = FollowedRows(is_whole=not any(map(self._may_have, keys)))
        if len(set(keys)) < len(keys) or not (changes.is_whole or statement.is_replacing):
            raise NotSimpleError("rows that may be there, or not")
        new: list[tuple[Values, set[int]]] = []
        updated: list[_Updated] = []
        removed: list[StoredRow] = []
        for key, (values, untold) in zip(keys, rows, strict=True):
            place = contents.kept.place(contents.number, key)
            if place is None:
                new.append((values, untold))
                continue
            old = self._row(place)
            if statement.is_replacing:
                removed.append(self._layout.row(old.values))
                changes.untold |= old.unknown
                changes.rows.append((old.values, None))
                new.append((values, untold))
            else:
                assert statement.rows is not None
                given = self._given_trees(statement, statement.rows[keys.index(key)])
                decided = [self._with_values(one, given) for one in statement.on_duplicate or ()]
                if self._touched(decided) & self._key:
                    raise NotSimpleError("keys of rows change")
                updated.append(self._updated(old, decided))
        if removed:
            contents.delete(self._layout, removed)
        self._add(new)
        self._apply(updated, changes, moves=False)
        return changes

    def _may_have(self, key: bytes) -> bool:
        """Whether it is not known if a row of a key is there."""
        return self._contents.kept.place(self._contents.number, key) is None and self._contents.may_have(key)

    def _given_trees(self, statement: RowsInserted, row: Sequence[Expression]) -> dict[str, Expression]:
        """What each column was given, by its name."""
        shown = tuple(one.name.lower() for one in self._table.columns if not one.is_invisible)
        return dict(zip(shown if statement.columns is None else statement.columns, row, strict=False))

    def _with_values(self, assignment: SetColumn, given: dict[str, Expression]) -> SetColumn:
        """With what VALUES() means in it."""
        match assignment.value:
            case Call(name="values" | "value", arguments=(ColumnName(parts=(name,)),)) if (
                name.lower() == assignment.column and name.lower() in given
            ):
                return SetColumn(column=assignment.column, value=given[name.lower()])
        return SetColumn(column=assignment.column, value=self._substituted(assignment.value, given))

    def _substituted(self, value: Expression, given: dict[str, Expression]) -> Expression:
        match value:
            case Call(name="values" | "value", arguments=(ColumnName(parts=(name,)),)):
                found = given.get(name.lower())
                word = self._layout.columns[self._expect_place(name.lower())].type.word
                is_plain = isinstance(found, Literal) and (found.value is None or type(found.value) is int)
                if found is None or not is_plain or word not in INTEGERS:
                    raise NotSimpleError("a value that a column may have changed")
                return found
            case Operation(operator=sign, operands=operands):
                return Operation(sign, tuple(self._substituted(one, given) for one in operands))
            case Call(arguments=(_, *_) as arguments):
                inside = tuple(self._substituted(one, given) for one in arguments)
                return Call(value.name, value.written, inside, value.database, value.is_read)
        return value


def _alike_values(values: Values, places: Sequence[int], alike: Sequence[AlikePart]) -> tuple[bytes, ...] | None:
    """What a unique index compares; None for a row that has NULL there.

    Raises:
        NotSimpleError: others may be equal by their collation.
    """
    found = []
    for place, part in zip(places, alike, strict=True):
        data = values[place]
        if data is None:
            return None
        made = part(data)
        if made is None:
            raise NotSimpleError("texts that may be equal to others by their collation")
        found.append(made)
    return tuple(found)
