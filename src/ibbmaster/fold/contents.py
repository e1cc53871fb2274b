"""The rows of one table, as far as the log was read: changed by row events, and by statements about all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ibbmaster.errors import IbbMasterError
from ibbmaster.event.column_types.floating import FLOAT
from ibbmaster.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.expr.stored_values import stored_value
from ibbmaster.fold.computed import ColumnExpression, affected, compute, computed_columns
from ibbmaster.fold.kept_rows import Interval, KeptRows, successor
from ibbmaster.fold.row_conversion import RowConversion, restoring
from ibbmaster.fold.row_doubts import ROW, RowDoubts, UnknownRows
from ibbmaster.fold.stored import (
    SortKey,
    Span,
    StoredColumn,
    StoredLayout,
    StoredLayouts,
    is_padded,
    own_columns,
    sort_key,
    value_key,
)
from ibbmaster.schema.column_text import kept_literal
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import IndexKind, RowPeriod, SqlType, TableColumn, TableKind, TableVersion
from ibbmaster.schema.session import SchemaSession
from ibbmaster.sqltext.literals import literal_value

LIKE_A_REPLACE = "an image of a REPLACE does not have the defaults of other columns"
DIGEST_SIZE = 16
AN_INSERT, AN_UPDATE = "an INSERT", "an UPDATE"
NOT_WHOLE = "an image is not whole, and the table has no key"
NOT_THERE = "an UPDATE of a row that is not there"
REWRITTEN_AT_A_TIME = 1 << 10  # rows
UNTOLD = SchemaSession()  # of a statement that is not at hand
ENDS_2038, ENDS_2106 = b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"  # of a row that holds now, in seconds
CELLS_MAX = 1 << 12  # rows of which single values are in doubt, before a column is as a whole

StoredRow = tuple[bytes, list[Span]]  # an image, and where its values are


class InexactRowsError(IbbMasterError, ValueError):
    """The log does not tell what became of the rows of a table; the text says why."""


@dataclass(slots=True)
class KeyPlan:
    """How the key of a row is made of its image: the place of each column of the key, and what makes its part."""

    parts: list[tuple[int, SortKey]]

    def key(self, image: bytes, spans: Sequence[Span]) -> bytes:
        """Raises InexactRowsError: the image has no value for a column of the key."""
        found = b""
        for place, make in self.parts:
            span = spans[place]
            if span is None:
                raise InexactRowsError("an image has no value for columns of the key")
            found += make(image[span[0] : span[1]])
        return found


class ChangedRow(NamedTuple):
    """A row after an UPDATE that does not report all of it."""

    values: list[bytes | None]  # stored ones, in the order of a layout
    reported: set[int] | None  # ids of the columns that the UPDATE reports, or that follow from them; None: all of them
    lost: list[StoredColumn]  # generated columns that have another value now, which is not known


class RowWatch(Protocol):
    """What wants to know of every row that a table with a key gets."""

    def note(self, layout: StoredLayout, keys: Sequence[bytes], rows: Sequence[StoredRow]) -> None: ...


@dataclass(slots=True)
class TableContents:
    """The rows of one table from the statement on that made it, through its versions and names.

    Attributes:
        number: the table's generation.
        table: the version that its rows have now.
        layouts: of all images that are kept, by number.
        unknown, unknown_columns: what is not known any more; `unknown` of rows beyond those that are kept.
        is_open: rows that are reported later are kept all the same.
        doubts: about single rows of a table with a key.
        cleared_by: the group that has last removed all rows.
        ends: when rows end that hold now, as the server says it that has inserted the next ones.
        used: numbers of the layouts that its rows have.
        references: what is told of new rows, by the name of the foreign key that it is for.
        scanned: how many rows were looked through for foreign keys.
    """

    kept: KeptRows
    number: int
    table: TableVersion
    layouts: StoredLayouts
    unknown: UnknownRows | None = None
    unknown_columns: dict[int, UnknownRows] = field(default_factory=dict)
    is_open: bool = False
    doubts: RowDoubts = field(default_factory=RowDoubts)
    cleared_by: str = ""
    ends: tuple[bytes, ...] = (ENDS_2038, ENDS_2106)
    used: set[int] = field(default_factory=set)
    references: dict[str, RowWatch] = field(default_factory=dict)
    scanned: int = 0
    _plans: dict[int, KeyPlan | None] = field(default_factory=dict)
    _computed: dict[int, list[ColumnExpression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept.digest_of[self.number] = self._digest_at

    def fork(self, kept: KeptRows) -> TableContents:
        """The same, to go on from by itself."""
        return TableContents(
            kept,
            self.number,
            self.table,
            self.layouts,
            self.unknown,
            dict(self.unknown_columns),
            self.is_open,
            self.doubts.copy(),
            used=set(self.used),
        )

    @property
    def is_keyed(self) -> bool:
        """Whether something tells its rows apart."""
        return row_key(self.table) is not None

    @property
    def has_rows(self) -> bool:
        """Whether something is known of a row, or in doubt."""
        return self.kept.has(self.number) or bool(self.doubts.rows or self.doubts.absent)

    @property
    def is_doubtful(self) -> bool:
        """Whether single rows are known, or are not, beside others."""
        return self.is_open or bool(self.doubts)

    def may_have(self, key: bytes) -> bool:
        """Whether a row of a key may be there that is not kept."""
        return ROW in self.doubts.rows.get(key, ()) or (self.unknown is not None and key not in self.doubts.absent)

    def unknown_of(self, key: bytes) -> set[int]:
        """The columns whose values are not known of a row that is kept."""
        return {*self.unknown_columns, *self.doubts.rows.get(key, ())}

    def unknown_in(self, interval: Interval, columns: Collection[int]) -> UnknownRows | None:
        """Why rows whose keys are in an interval are not known, or their values of columns; None if they are."""
        if self.unknown is not None and self.key_in(interval) is None:
            return self.unknown
        for found in self.doubts.inside(interval) if self.doubts.rows else ():
            for column in (ROW, *columns):
                if column in found:
                    return found[column]
        for column in columns:
            unknown = self.unknown_columns.get(column)
            if unknown is not None:
                return unknown
        return None

    def is_in_doubt(self, columns: Collection[int]) -> bool:
        """Whether some row may be there, or not, or has values of columns that are not known."""
        return self.unknown is not None or any(
            not found.keys().isdisjoint((ROW, *columns)) for found in self.doubts.rows.values()
        )

    def key_in(self, interval: Interval) -> bytes | None:
        """The only key that an interval has; None if there may be several."""
        first, end = interval
        is_one = end is not None and end == successor(first)
        is_key = first in self.doubts.absent or self.kept.place(self.number, first) is not None
        return first if is_one and is_key else None

    def forget(self, reason: UnknownRows, *, is_open: bool) -> None:
        """Nothing is known of any row; of one that is reported later only if it `is_open`."""
        self.unknown = self.unknown or next(
            (one for found in self.doubts.rows.values() for one in found.values()), reason
        )
        self.is_open = is_open and self.is_keyed
        self.doubts.clear()
        self.kept.drop(self.number)

    def doubt_more(self, reason: UnknownRows) -> None:
        """There may be more rows than those that are known."""
        if not self.is_keyed:
            self.forget(reason, is_open=False)
        elif self.unknown is None:
            self.unknown, self.is_open = reason, True
        self.doubts.absent.clear()

    def lose_column(self, column: int, reason: UnknownRows) -> None:
        """The values of a column are not known, in no row."""
        self.unknown_columns.setdefault(column, reason)

    def lose_values(
        self, layout: StoredLayout, row: StoredRow, columns: Collection[StoredColumn], what: str, gtid: str
    ) -> None:
        """Generated columns of a row that is there have values that are not known."""
        for column in columns:
            reason = UnknownRows(gtid, _no_value(what, column))
            plan = None if self.table.is_versioned else self.key_plan(layout)
            if plan is None or len(self.doubts.rows) >= CELLS_MAX:
                self.lose_column(column.id, reason)
            elif column.id not in self.unknown_columns:
                self.doubt_row(plan.key(*row), [column.id], reason)

    def doubt_row(self, key: bytes, columns: Collection[int], reason: UnknownRows) -> None:
        """Values of a row are not known, or, with ROW, whether it is there."""
        if ROW in columns and self.kept.place(self.number, key) is not None:
            self.kept.delete(self.number, [key])
        self.doubts.doubt(key, columns, reason)
        if self.doubts.is_full:
            self.forget(reason, is_open=True)

    def spread_doubts(self, table: TableVersion) -> None:
        """Where only generated columns of `table` are in doubt, in some rows, have them be so in all rows."""
        generated = {column.id for column in table.columns if column.is_computed}
        lost = {column: reason for found in self.doubts.rows.values() for column, reason in found.items()}
        if self.unknown is None and not self.is_open and lost.keys() <= generated:
            for column, reason in lost.items():
                self.lose_column(column, reason)
            self.doubts.clear()

    def key_plan(self, layout: StoredLayout) -> KeyPlan | None:
        """How keys are made of images of a layout; None for a table without a key."""
        if layout.number not in self._plans:
            index = row_key(self.table)
            plan = None
            if index is not None:
                parts = []
                for part in index.parts:
                    place = layout.places[part.column_id]
                    column = layout.columns[place]
                    parts.append((place, sort_key(column, is_descending=part.is_descending)))
                plan = KeyPlan(parts)
            self._plans[layout.number] = plan
        return self._plans[layout.number]

    # Changes of rows --------------------------------------------------------------------------

    def insert(self, layout: StoredLayout, rows: Sequence[StoredRow]) -> None:
        """Add rows, given as whole images and where their values are. Raises InexactRowsError: a row of the same key is
        there."""
        rows = [row for row in rows if self._is_current(layout, *row, self.ends)]
        if self.table.kind is TableKind.SEQUENCE:
            self.kept.drop(self.number)  # it has one row, and every event says which
            rows = rows[-1:]
        self.used.add(layout.number)
        places = self.kept.rows.append(layout.number, (image for image, _ in rows))
        plan = self.key_plan(layout)
        if plan is None:
            self.kept.add(self.number, [self._digest(layout, *row) for row in rows], places)
        else:
            keys = [plan.key(*row) for row in rows]
            if not self.kept.insert(self.number, keys, places):
                raise InexactRowsError("an INSERT of a key that is there already")
            if self.is_doubtful:
                for key in keys:
                    self.doubts.report(key)
            self._note(layout, keys, rows)

    def delete(self, layout: StoredLayout, rows: Sequence[StoredRow]) -> None:
        """Remove rows, given as images that have at least the key. Raises InexactRowsError: one of them is not
        there."""
        rows = [row for row in rows if self._is_current(layout, *row)]
        plan = self.key_plan(layout)
        if plan is None:
            is_there = all(self.kept.remove(self.number, self._digest(layout, *row)) for row in rows)
        elif self.is_doubtful:
            is_there = all(self._remove(plan.key(*row)) for row in rows)
        else:
            is_there = self.kept.delete(self.number, [plan.key(*row) for row in rows])
        if not is_there:
            raise InexactRowsError("a DELETE of a row that is not there")

    def _remove(self, key: bytes) -> bool:
        """Remove a row where some are in doubt; False if it is not there."""
        is_kept = self.kept.place(self.number, key) is not None
        if is_kept:
            self.kept.delete(self.number, [key])
        elif not self.may_have(key):
            return False
        self.doubts.gone(key)
        return True

    def _replace(self, layout: StoredLayout, key: bytes, after: StoredRow, reported: Collection[int] | None) -> None:
        """A row has other values where some are in doubt. Raises InexactRowsError: it is not there."""
        if self.kept.place(self.number, key) is None:
            if not self.may_have(key):
                raise InexactRowsError("an UPDATE of a row that is not there")
            self.insert(layout, [after])
            return
        self.kept.move(self.number, [key], self.kept.rows.append(layout.number, [after[0]]))
        self.doubts.report(key, reported)
        self._note(layout, [key], [after])

    def update(
        self,
        layout: StoredLayout,
        rows: Sequence[StoredRow],
        after: Sequence[StoredRow],
        reported: Collection[int] | None = None,
    ) -> None:
        """Change rows, given as images before that have at least the key, and whole images after.

        `reported` are the columns that the change reports, by their ids; None: all of them.

        Raises InexactRowsError: one of them is not there, or gets the key of another one.
        """
        plan = self.key_plan(layout)
        self.used.add(layout.number)
        pairs = list(zip(rows, after, strict=True))
        if plan is None or self.table.is_versioned:
            for before, new in pairs:
                self._update_one(layout, before, new)
            return
        keys = [plan.key(*row) for row in rows]
        new_keys = [plan.key(*row) for row in after]
        if keys == new_keys and self.is_doubtful:
            for key, new in zip(keys, after, strict=True):
                self._replace(layout, key, new, reported)
            return
        if keys == new_keys:
            places = self.kept.rows.append(layout.number, (image for image, _ in after))
            if not self.kept.move(self.number, keys, places):
                raise InexactRowsError("an UPDATE of a row that is not there")
            self._note(layout, keys, after)
            return
        for before, new, key, new_key in zip(rows, after, keys, new_keys, strict=True):
            untold = self.unknown_of(key) - set(reported) if self.is_doubtful and reported is not None else set()
            reasons = {**self.unknown_columns, **self.doubts.rows.get(key, {})}
            self._update_one(layout, before, new)
            for column in untold:
                self.doubts.doubt(new_key, [column], reasons[column])

    def _note(self, layout: StoredLayout, keys: Sequence[bytes], rows: Sequence[StoredRow]) -> None:
        for notes in self.references.values():
            notes.note(layout, keys, rows)

    def _update_one(self, layout: StoredLayout, before: StoredRow, after: StoredRow) -> None:
        if self.key_plan(layout) is None and self._is_current(layout, *before) and self._is_current(layout, *after):
            (place,) = self.kept.rows.append(layout.number, [after[0]])
            digests = self._digest(layout, *before), self._digest(layout, *after)
            if not self.kept.replace(self.number, *digests, place):
                raise InexactRowsError("an UPDATE of a row that is not there")
            return
        self.delete(layout, [before])
        self.insert(layout, [after])

    def before_image(self, layout: StoredLayout, image: bytes, spans: list[Span]) -> list[bytes | None]:
        """The stored values of the row that an image without all of its columns means, in the order of a layout. Raises
        InexactRowsError: it is not there, or one of its values is not known."""
        plan = self.key_plan(layout)
        if plan is None:
            raise InexactRowsError(NOT_WHOLE)
        place = self.kept.place(self.number, plan.key(image, spans))
        if place is None:
            raise InexactRowsError(NOT_THERE)
        layout_no, old = self.kept.rows.read(place)
        return self.values_in(layout, self.layouts[layout_no], old)

    def generated_places(self, layout: StoredLayout) -> frozenset[int]:
        """The places of columns that others make: images may leave them out."""
        return frozenset(layout.places[column.id] for column in self.table.columns if column.is_computed)

    def uncertain_places(self, layout: StoredLayout) -> frozenset[int]:
        """The places of columns of which an INSERT may have NULL where rows have a value. Source: MariaDB 10.11.18,
        11.8.6 and 11.8.9 log so the VIRTUAL columns of system-versioned tables under MINIMAL."""
        if not self.table.is_versioned:
            return frozenset()
        columns = self.table.columns
        return frozenset(layout.places[one.id] for one in columns if one.expression is not None and not one.is_stored)

    def completed(self, layout: StoredLayout, after: StoredRow) -> StoredRow | None:
        """The whole row of an image that leaves out generated columns; None if what they hold hangs on other things."""
        values, wanted = values_of(*after), self._computed_of(layout)
        if any(one.compute is None for one in wanted) or list(compute(wanted, layout, values, ())):
            return None
        return layout.row(values)

    def updated(
        self,
        layout: StoredLayout,
        before: StoredRow,
        present: Collection[int],
        after: StoredRow,
        given: Collection[int],
    ) -> ChangedRow:
        """What an UPDATE makes of a row, whose images have values at the places `present`, and `given`.

        Generated columns that no image has keep what they hold, unless what makes them has changed.

        Raises InexactRowsError: the row is not there, or one of its values is not known.

        Source: MariaDB 11.8.9 has no generated column in images of UPDATE and DELETE; 11.8.6 and 10.11.19 have.
        """
        ids = [column.id for column in layout.columns]
        missing = set(range(len(ids))) - set(present)
        reported = {ids[place] for place in given}
        if not missing:
            values, unknown = values_of(*before), set[int]()
        elif missing <= self.generated_places(layout):
            values, unknown = self._with_generated(layout, before, missing)
            reported |= {ids[place] for place in present}
        else:
            values, unknown = self.before_image(layout, *before), self._unknown_of(layout, before)
        unknown -= {ids[place] for place in present}
        new = values_of(*after)
        changed = {place for place in given if values[place] != new[place] or ids[place] in unknown}
        for place in given:
            values[place] = new[place]
        unknown -= reported
        columns = self._computed_of(layout)
        made = {one.place: one for one in affected(columns, changed) if one.place not in given}
        made |= {one.place: one for one in columns if one.column.id in unknown}
        lost = self._compute(layout, values, made.values(), AN_UPDATE, unknown)
        reported |= {one.column.id for one in made.values()} - {column.id for column in lost}
        return ChangedRow(values, reported if missing else None, lost)

    def _with_generated(
        self, layout: StoredLayout, before: StoredRow, missing: Collection[int]
    ) -> tuple[list[bytes | None], set[int]]:
        """The values of an image that leaves out generated columns, with what the row has held in these, and the ids of
        the columns of which that is not known. Raises InexactRowsError: the row is not there."""
        values, plan = values_of(*before), self.key_plan(layout)
        lost = {layout.columns[place].id for place in missing}
        if plan is None:
            place = self.kept.place_of(self.number, self._digest(layout, *before))
        else:
            key = plan.key(*before)
            place = self.kept.place(self.number, key)
            if place is None and self.may_have(key):
                return values, lost
        if place is None:
            raise InexactRowsError(NOT_THERE)
        layout_no, image = self.kept.rows.read(place)
        try:
            kept = self.values_in(layout, self.layouts[layout_no], image)
        except InexactRowsError:
            return values, lost
        for number in missing:
            values[number] = kept[number]
        return values, self._unknown_of(layout, before)

    def _unknown_of(self, layout: StoredLayout, row: StoredRow) -> set[int]:
        """The columns whose values are not known of a row that is kept."""
        plan = self.key_plan(layout)
        return set(self.unknown_columns) if plan is None else self.unknown_of(plan.key(*row))

    def leaves_in_doubt(
        self, layout: StoredLayout, before: StoredRow, after: StoredRow, places: Collection[int]
    ) -> bool:
        """Whether an UPDATE that reports only some places is of a row of which nothing is known; then it still is so.
        Raises InexactRowsError: the image before has no value for a column of the key."""
        plan = self.key_plan(layout)
        if plan is None or not self.is_doubtful:
            return False
        key = plan.key(*before)
        if self.kept.place(self.number, key) is not None or not self.may_have(key):
            return False
        values, new = values_of(*before), values_of(*after)
        for place in places:
            values[place] = new[place]
        new_key = plan.key(*layout.row(values))
        reason = self.doubts.rows.get(key, {}).get(ROW) or self.unknown
        assert reason is not None
        if new_key != key:
            self.doubts.gone(key)
        self.doubt_row(new_key, [ROW], reason)
        return True

    def may_be_replace(
        self, layout: StoredLayout, before: StoredRow, after: StoredRow, places: Collection[int]
    ) -> bool:
        """Whether a REPLACE may have logged an UPDATE: the image behind has the key, and for another one a second key.
        Source: MariaDB 10.11 and 11.8, as they log it."""
        plan = self.key_plan(layout)
        if plan is None or not {place for place, _ in plan.parts} <= set(places):
            return False
        is_second = sum(index.kind in (IndexKind.PRIMARY, IndexKind.UNIQUE) for index in self.table.indexes) > 1
        return is_second or plan.key(*before) == plan.key(*after)

    def doubt_defaults(self, layout: StoredLayout, row: StoredRow, places: Collection[int], gtid: str) -> None:
        """A row's values beyond these places are not known, unless they are those that a REPLACE gives it, too.

        A MINIMAL image of a REPLACE does not have the defaults of the columns that it does not name.

        Raises InexactRowsError: the table has no key.

        Source: MariaDB 10.11 and 11.8, as they log it.
        """
        plan = self.key_plan(layout)
        if plan is None:
            raise InexactRowsError(LIKE_A_REPLACE)
        known = {column.id: column for column in self.table.columns}
        values, lost = values_of(*row), []
        for place, column in enumerate(layout.columns):
            if place in places or known[column.id].is_computed:
                continue
            try:
                if _default(known[column.id], column) == values[place]:
                    continue
            except InexactRowsError:
                pass
            lost.append(column.id)
        if lost:
            reason = UnknownRows(gtid, LIKE_A_REPLACE)
            self.doubt_row(plan.key(*row), lost, reason)

    def values_in(self, layout: StoredLayout, stored: StoredLayout, image: bytes) -> list[bytes | None]:
        """The values of an image of another layout as a layout stores them. Raises InexactRowsError: a value of a
        column that was added is not known."""
        values = stored.values(image)
        if stored is layout:
            return values
        columns = {column.id: column for column in self.table.columns}
        found: list[bytes | None] = []
        for column in layout.columns:
            place = stored.places.get(column.id)
            if place is None:
                found.append(first_value(columns[column.id], column))
            elif values[place] is None:
                found.append(None)
            else:
                found.append(self._restored(stored.columns[place], column, values[place] or b""))
        return found

    @staticmethod
    def _restored(old: StoredColumn, new: StoredColumn, data: bytes) -> bytes:
        """A value of an older version of a column as its new one stores it."""
        restore = restoring(old, new)
        try:
            if restore is not None:
                return restore(data)
            problem = f"it has another type since {data[:20]!r} was stored"
        except ValueError as error:
            problem = str(error)
        raise InexactRowsError(f"a value of column {new.column.name} cannot be changed: {problem}")

    def complete(
        self, layout: StoredLayout, values: list[bytes | None], missing: Collection[int]
    ) -> list[StoredColumn]:
        """Give a row of an INSERT what its image leaves out, at the places that are missing, but for what is returned.
        Raises InexactRowsError: a default is no constant, or the key is not known."""
        if self.table.kind is TableKind.SEQUENCE:
            known_values = self._sequence_values(layout)
            for place in missing:
                values[place] = known_values[place]
            return []
        known = {column.id: column for column in self.table.columns}
        for place in missing:
            column = layout.columns[place]
            if known[column.id].expression is None:
                values[place] = _default(known[column.id], column)
        wanted = [one for one in self._computed_of(layout) if one.place in missing]
        return self._compute(layout, values, wanted, AN_INSERT)

    def compute_updated(
        self, layout: StoredLayout, values: list[bytes | None], told: Collection[int], gtid: str
    ) -> None:
        """An UPDATE tells only some columns: others that are computed from those have other values, too. Raises
        InexactRowsError: the key is not known any more."""
        columns = self._computed_of(layout)
        unknown = self.unknown_columns.keys() | {one for found in self.doubts.rows.values() for one in found}
        for column in self._compute(layout, values, affected(columns, told), AN_UPDATE, unknown):
            self.lose_column(column.id, UnknownRows(gtid, _no_value(AN_UPDATE, column)))

    def _compute(
        self,
        layout: StoredLayout,
        values: list[bytes | None],
        columns: Iterable[ColumnExpression],
        what: str,
        unknown: Collection[int] = (),
    ) -> list[StoredColumn]:
        """Give generated columns their values, but for what is returned. Raises InexactRowsError: the key is not
        known."""
        lost = list(compute(columns, layout, values, unknown))
        for column in lost:
            if column.id in self._key_columns():
                raise InexactRowsError(_no_value(what, column))
        return lost

    def _computed_of(self, layout: StoredLayout) -> list[ColumnExpression]:
        found = self._computed.get(layout.number)
        if found is None:
            found = self._computed[layout.number] = list(computed_columns(self.table, layout))
        return found

    def _sequence_values(self, layout: StoredLayout) -> list[bytes | None]:
        """The only row of a sequence, of which an image that is not whole tells what has changed."""
        for place in self.kept.places(self.number):
            layout_no, image = self.kept.rows.read(place)
            return self.values_in(layout, self.layouts[layout_no], image)
        raise InexactRowsError("ALTER SEQUENCE, and no whole image since")

    def _is_current(
        self, layout: StoredLayout, image: bytes, spans: list[Span], ends: tuple[bytes, ...] = (ENDS_2038, ENDS_2106)
    ) -> bool:
        """Whether a row of a table with system versioning is one that holds now; others of it are not kept."""
        if not self.table.is_versioned:
            return True
        end = next((column.id for column in self.table.columns if column.period is RowPeriod.END), None)
        if end is None:
            return True
        place = layout.places[end]
        span = spans[place]
        if span is None:
            return True
        data = image[span[0] : span[1]]
        if kind_of(layout.columns[place].column).is_zoned:
            return data[:4] in ends
        return not data.strip(b"\xff")

    def _digest(self, layout: StoredLayout, image: bytes, spans: list[Span]) -> bytes:
        """What tells a row without a key from others: all of its values that no others make, in the order of now."""
        parts = []
        for column in self.table.columns:
            if column.is_computed or (column.period is not None and self.table.is_versioned):
                continue
            place = layout.places[column.id]
            span = spans[place]
            if span is None:
                parts.append(b"\0")
            else:
                value = value_key(layout.columns[place].column)(image[span[0] : span[1]])
                parts.append(b"\1" + len(value).to_bytes(4, "big") + value)
        return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_SIZE).digest()

    def _digest_at(self, place: int) -> bytes:
        layout_no, image = self.kept.rows.read(place)
        layout = self.layouts[layout_no]
        return self._digest(layout, image, layout.spans(image)[0])

    def set_sequence(self, state: Sequence[int], layout: StoredLayout) -> None:
        """Let a sequence have this row."""
        columns = zip(layout.columns, state, strict=True)
        self.insert(layout, [layout.row([stored_value(one.column, one.type, value) for one, value in columns])])

    # All rows at once -------------------------------------------------------------------------

    def values_at(self, place: int) -> list[bytes | None]:
        """The stored values of a row, or of one that was there, in the columns that the table has now. Raises
        InexactRowsError: a value of a column that was added is not known."""
        layout_no, image = self.kept.rows.read(place)
        return self.values_in(self.layouts.add(own_columns(self.table)), self.layouts[layout_no], image)

    def remove(self, places: Sequence[int]) -> None:
        """Remove the rows that are there."""
        layout = self.layouts.add(own_columns(self.table))
        for start in range(0, len(places), REWRITTEN_AT_A_TIME):
            some = places[start : start + REWRITTEN_AT_A_TIME]
            self.delete(layout, [layout.row(self.values_at(place)) for place in some])

    def clear(self, gtid: str = "") -> None:
        """There is no row any more, since a group."""
        self.cleared_by = gtid
        self.unknown, self.is_open = None, False
        self.doubts.clear()
        self.kept.drop(self.number)
        self.used.clear()
        self.unknown_columns.clear()

    # Changes of the table ---------------------------------------------------------------------

    def alter(self, table: TableVersion, session: SchemaSession = UNTOLD) -> dict[int, str]:
        """The table has another version now; its rows keep their images, or get new ones if these are right no more.

        `session` is of the statement, if that is known.

        Returns the columns whose values are not known any more, by their ids, and why.

        Raises InexactRowsError: the rows, or their keys, cannot be made of what is kept.
        """
        old, self.table = self.table, table
        self.references.clear()
        self._plans.clear()
        self._computed.clear()
        changing = RowConversion(old, table, first_value, session)
        if not self.has_rows:
            if self.is_doubtful and _key_types(old) != _key_types(table):
                raise InexactRowsError("some of its rows are in doubt")
            self.unknown_columns.clear()
            return {}
        is_filled = any(map(self._has_null, changing.filled))
        if changing.computed or _key_types(old) != _key_types(table) or changing.retyped() or is_filled:
            self.spread_doubts(old)
            if self.is_doubtful:
                raise InexactRowsError("some of its rows are in doubt")
            self._rewrite(changing)
        return changing.unknown

    def _rewrite(self, changing: RowConversion) -> None:
        """Images and keys of all rows anew, as the table is now."""
        layout = self.layouts.add(changing.columns)
        wanted = [one for one in self._computed_of(layout) if one.column.id in changing.computed]
        places = [place for _, place in self.kept.all_rows(self.number)]
        self.kept.drop(self.number)
        self.used.clear()
        for start in range(0, len(places), REWRITTEN_AT_A_TIME):
            rows = []
            for place in places[start : start + REWRITTEN_AT_A_TIME]:
                layout_no, old = self.kept.rows.read(place)
                values = changing.values(self.layouts[layout_no], old)
                unknown = self.unknown_columns.keys() | changing.unknown.keys()
                for column in compute(wanted, layout, values, unknown - changing.computed.keys()):
                    changing.unknown.setdefault(column.id, changing.computed[column.id])
                rows.append(layout.row(values))
            self.insert(layout, rows)
        for column_id in changing.computed.keys() - changing.unknown.keys():
            self.unknown_columns.pop(column_id, None)
        lost = self._key_columns() & changing.unknown.keys()
        if lost:
            raise InexactRowsError(changing.unknown[min(lost)])
        if self.is_keyed and (unknown := self._key_columns() & self.unknown_columns.keys()):
            raise InexactRowsError(self.unknown_columns[min(unknown)].reason)

    def _key_columns(self) -> set[int]:
        """The ids of the columns that tell rows apart."""
        index = row_key(self.table)
        if index is None:
            return {column.id for column in self.table.columns if not column.is_computed}
        return {one.column_id for one in index.parts}

    def _has_null(self, old: TableColumn) -> bool:
        """Whether a row has no value in a column as it was."""
        for _, place in self.kept.all_rows(self.number):
            layout_no, image = self.kept.rows.read(place)
            layout = self.layouts[layout_no]
            at = layout.places.get(old.id)
            if old.first_value == "NULL" if at is None else layout.spans(image)[0][at] is None:
                return True
        return False


def values_of(image: bytes, spans: Sequence[Span]) -> list[bytes | None]:
    """The stored bytes of each value of an image."""
    return [None if span is None else image[span[0] : span[1]] for span in spans]


def _no_value(what: str, column: StoredColumn) -> str:
    return f"{what} has no value for the generated column {column.column.name}"


def first_value(known: TableColumn, column: StoredColumn) -> bytes | None:
    """What rows store in a column that was added when they were there. Raises InexactRowsError: it is not known."""
    return _constant(known, column, known.first_value)


def _default(known: TableColumn, column: StoredColumn) -> bytes | None:
    """What an INSERT stores in a column that it does not name."""
    value = _constant(known, column, known.default)
    if value is not None and BY_NAME[known.type.word].is_zoned and any(value):
        raise InexactRowsError(f"column {known.name} has a default in a time zone that is not known")
    if (
        value is not None
        and known.type.word == FLOAT.word
        and FLOAT.narrowed(float(f"{FLOAT.binary.unpack(value)[0]:.6g}")) != FLOAT.binary.unpack(value)[0]
    ):
        raise InexactRowsError(f"column {known.name} has a default of which any ALTER TABLE keeps six digits")
    return value


def _constant(known: TableColumn, column: StoredColumn, expression: str | None) -> bytes | None:
    if expression is None:
        if known.is_nullable and known.expression is None:
            return None
        raise InexactRowsError(f"column {known.name} has a value that the server has filled in")
    try:
        return stored_value(column.column, column.type, literal_value(kept_literal(known.type, expression)))
    except ValueError as error:
        raise InexactRowsError(f"column {known.name} has a value that is no constant: {error}") from None


def _key_types(table: TableVersion) -> list[tuple[object, ...]]:
    """What keys of rows are made of: where two versions have the same, they have the same keys."""
    index = row_key(table)
    if index is None:
        return [(None,), *((column.id, column.type) for column in table.columns if not column.is_computed)]
    types = {column.id: column.type for column in table.columns}
    return [(part.column_id, part.is_descending, *_form_of_key(types[part.column_id])) for part in index.parts]


def _form_of_key(kind: SqlType) -> tuple[object, ...]:
    own = BY_NAME[kind.word]
    if own.is_integer:
        return ("integer", kind.is_unsigned)
    if own.is_string:
        return ("string", kind.charset, is_padded(kind))
    return (kind,)
