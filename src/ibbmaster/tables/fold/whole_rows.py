"""Whole rows of images that leave values out: from the old row, from defaults, and generated columns."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from ibbmaster.schema.model import IndexKind, TableKind
from .computed import ColumnExpression, affected, compute
from .contents import NOT_THERE, TableContents, no_value
from .row_conversion import default_value
from .row_doubts import ROW, UnknownRows
from .stored import InexactRowsError, StoredColumn, StoredLayout, StoredRow, key_columns, values_of

LIKE_A_REPLACE = "an image of a REPLACE does not have the defaults of other columns"
AN_INSERT, AN_UPDATE = "an INSERT", "an UPDATE"

Values = list[bytes | None]


class ChangedRow(NamedTuple):
    """A row after an UPDATE that does not report all of it."""

    values: Values
    reported: set[int] | None  # ids of columns that it reports, or that follow; None: all
    lost: list[StoredColumn]  # generated columns with an unknown new value


class RowImages:
    """Completes images of one table in one layout; columns are called by their places."""

    def __init__(self, contents: TableContents, layout: StoredLayout) -> None:
        self.contents = contents
        self.layout = layout

    def before_image(self, row: StoredRow) -> Values:
        """The values of the row that a partial image means. Raises InexactRowsError: it is not there, or a value is
        unknown."""
        if self.contents.key_plan(self.layout) is None:
            raise InexactRowsError("an image is not whole, and the table has no key")
        place = self.contents.find(self.layout, row)
        if place is None:
            raise InexactRowsError(NOT_THERE)
        return self.contents.values_in(self.layout, place)

    def generated_places(self) -> frozenset[int]:
        return frozenset(self.layout.places[column.id] for column in self.contents.table.columns if column.is_computed)

    def uncertain_places(self) -> frozenset[int]:
        """Columns in which an INSERT may have NULL where rows have a value. Source: MariaDB 10.11.18, 11.8.6 and 11.8.9
        log so VIRTUAL columns of system-versioned tables under MINIMAL."""
        table = self.contents.table
        columns = table.columns if table.is_versioned else ()
        virtual = (one for one in columns if one.expression is not None and not one.is_stored)
        return frozenset(self.layout.places[one.id] for one in virtual)

    def completed(self, after: StoredRow) -> StoredRow | None:
        """The whole row of an image without generated columns; None if these depend on something else."""
        values, wanted = values_of(*after), self.contents.computed_of(self.layout)
        if any(one.compute is None for one in wanted) or list(compute(wanted, self.layout, values, ())):
            return None
        return self.layout.row(values)

    def updated(
        self, before: StoredRow, present: Collection[int], after: StoredRow, given: Collection[int]
    ) -> ChangedRow:
        """The row after an UPDATE with values at the places `present` before, and `given` after. Generated columns that
        no image has keep their values, unless what makes them changed. Raises InexactRowsError: the row is not there,
        or a value is unknown. Source: MariaDB 11.8.9 has no generated column in images of UPDATE and DELETE; 11.8.6 and
        10.11.19 have."""
        ids = [column.id for column in self.layout.columns]
        missing = set(range(len(ids))) - set(present)
        reported = {ids[place] for place in given}
        if not missing:
            values, unknown = values_of(*before), set[int]()
        elif missing <= self.generated_places():
            values, unknown = self._with_generated(before, missing)
            reported |= {ids[place] for place in present}
        else:
            values, unknown = self.before_image(before), self._unknown_of(before)
        unknown -= {ids[place] for place in present}
        new = values_of(*after)
        changed = {place for place in given if values[place] != new[place] or ids[place] in unknown}
        for place in given:
            values[place] = new[place]
        unknown -= reported
        columns = self.contents.computed_of(self.layout)
        made = {one.place: one for one in affected(columns, changed) if one.place not in given}
        made |= {one.place: one for one in columns if one.column.id in unknown}
        lost = self._compute(values, made.values(), AN_UPDATE, unknown)
        reported |= {one.column.id for one in made.values()} - {column.id for column in lost}
        return ChangedRow(values, reported if missing else None, lost)

    def _with_generated(self, before: StoredRow, missing: Collection[int]) -> tuple[Values, set[int]]:
        """An image's values, with the row's generated ones, and the ids of unknown columns. Raises InexactRowsError:
        the row is not there."""
        contents, values, plan = self.contents, values_of(*before), self.contents.key_plan(self.layout)
        lost = {self.layout.columns[place].id for place in missing}
        place = contents.find(self.layout, before)
        if place is None:
            if plan is not None and contents.may_have(plan.key(*before)):
                return values, lost
            raise InexactRowsError(NOT_THERE)
        try:
            kept = contents.values_in(self.layout, place)
        except InexactRowsError:
            return values, lost
        for number in missing:
            values[number] = kept[number]
        return values, self._unknown_of(before)

    def _unknown_of(self, row: StoredRow) -> set[int]:
        plan = self.contents.key_plan(self.layout)
        return set(self.contents.unknown_columns) if plan is None else self.contents.unknown_of(plan.key(*row))

    def leaves_in_doubt(self, before: StoredRow, after: StoredRow, places: Collection[int]) -> bool:
        """Whether an UPDATE that reports some places is of an unknown row, which then stays so. Raises
        InexactRowsError: the image before lacks a value of the key."""
        contents, plan = self.contents, self.contents.key_plan(self.layout)
        if plan is None or not contents.is_doubtful:
            return False
        key = plan.key(*before)
        if contents.place(key) is not None or not contents.may_have(key):
            return False
        values, new = values_of(*before), values_of(*after)
        for place in places:
            values[place] = new[place]
        new_key = plan.key(*self.layout.row(values))
        reason = contents.doubts.rows.get(key, {}).get(ROW) or contents.unknown
        assert reason is not None
        if new_key != key:
            contents.doubts.gone(key)
        contents.doubt_row(new_key, [ROW], reason)
        return True

    def may_be_replace(self, before: StoredRow, after: StoredRow, places: Collection[int]) -> bool:
        """Whether a REPLACE may have logged an UPDATE: the image behind has the key, and for another one a second key.
        Source: MariaDB 10.11 and 11.8, as they log it."""
        plan = self.contents.key_plan(self.layout)
        if plan is None or not {place for place, _ in plan.parts} <= set(places):
            return False
        kinds = [index.kind for index in self.contents.table.indexes]
        has_second = sum(kind in (IndexKind.PRIMARY, IndexKind.UNIQUE) for kind in kinds) > 1
        return has_second or plan.key(*before) == plan.key(*after)

    def doubt_defaults(self, row: StoredRow, places: Collection[int], gtid: str) -> None:
        """Doubt values beyond these places, unless a REPLACE would give the same: its MINIMAL image lacks the defaults
        of columns it does not name. Raises InexactRowsError: the table has no key. Source: MariaDB 10.11 and 11.8, as
        they log it."""
        plan = self.contents.key_plan(self.layout)
        if plan is None:
            raise InexactRowsError(LIKE_A_REPLACE)
        known = {column.id: column for column in self.contents.table.columns}
        values, lost = values_of(*row), []
        for place, column in enumerate(self.layout.columns):
            if place in places or known[column.id].is_computed:
                continue
            try:
                is_lost = default_value(known[column.id], column) != values[place]
            except InexactRowsError:
                is_lost = True
            if is_lost:
                lost.append(column.id)
        if lost:
            self.contents.doubt_row(plan.key(*row), lost, UnknownRows(gtid, LIKE_A_REPLACE))

    def complete(self, values: Values, missing: Collection[int]) -> list[StoredColumn]:
        """Fill an INSERT's values; returns the columns that stay unknown. Raises InexactRowsError: a default is no
        constant, or the key is unknown."""
        if self.contents.table.kind is TableKind.SEQUENCE:
            known_values = self._sequence_values()
            for place in missing:
                values[place] = known_values[place]
            return []
        known = {column.id: column for column in self.contents.table.columns}
        for place in missing:
            column = self.layout.columns[place]
            if known[column.id].expression is None:
                values[place] = default_value(known[column.id], column)
        wanted = [one for one in self.contents.computed_of(self.layout) if one.place in missing]
        return self._compute(values, wanted, AN_INSERT)

    def compute_updated(self, values: Values, told: Collection[int], gtid: str) -> None:
        """Raises InexactRowsError: the key becomes unknown."""
        contents = self.contents
        unknown = contents.unknown_columns.keys() | {one for found in contents.doubts.rows.values() for one in found}
        columns = affected(contents.computed_of(self.layout), told)
        for column in self._compute(values, columns, AN_UPDATE, unknown):
            contents.lose_column(column.id, UnknownRows(gtid, no_value(AN_UPDATE, column)))

    def _compute(
        self, values: Values, columns: Iterable[ColumnExpression], what: str, unknown: Collection[int] = ()
    ) -> list[StoredColumn]:
        """Returns the generated columns that stay unknown. Raises InexactRowsError: the key is unknown."""
        lost = list(compute(columns, self.layout, values, unknown))
        for column in lost:
            if column.id in key_columns(self.contents.table):
                raise InexactRowsError(no_value(what, column))
        return lost

    def _sequence_values(self) -> Values:
        for place in self.contents.kept.places(self.contents.number):
            return self.contents.values_in(self.layout, place)
        raise InexactRowsError("ALTER SEQUENCE, and no whole image since")
