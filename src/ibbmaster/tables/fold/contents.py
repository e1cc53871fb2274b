"""The rows of one table, as far as the log was read."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.changes import Span
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import RowPeriod, TableColumn, TableKind, TableVersion
from ibbmaster.schema.session import SchemaSession
from .computed import ColumnExpression, compute, computed_columns
from .kept_rows import Interval, KeptRows, successor
from .row_conversion import RowConversion, first_value, restoring
from .row_doubts import ROW, RowDoubts, UnknownRows
from .stored import (
    InexactRowsError,
    KeyPlan,
    StoredColumn,
    StoredLayout,
    StoredLayouts,
    StoredRow,
    key_columns,
    key_plan,
    key_types,
    own_columns,
    value_key,
)

DIGEST_SIZE = 16
NOT_THERE = "an UPDATE of a row that is not there"
REWRITTEN_AT_A_TIME = 1 << 10  # rows
UNTOLD = SchemaSession()  # of a statement that is not at hand
ENDS_2038, ENDS_2106 = b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"
CELLS_MAX = 1 << 12  # rows with single values in doubt, before whole columns are


class RowWatch(Protocol):
    def note(self, layout: StoredLayout, keys: Sequence[bytes], rows: Sequence[StoredRow]) -> None: ...


@dataclass(slots=True)
class TableContents:
    """The rows of one table since its making, through its versions and names.

    Attributes:
        number: the table's generation.
        table: the version that its rows have now.
        layouts: of all kept images, by number.
        unknown, unknown_columns: since when, and why, rows that are not kept, or columns, are unknown.
        is_open: rows that are reported later are kept all the same.
        cleared_by: the group that last removed all rows.
        ends: the end of rows that hold now, as the writer of the next ones has it.
        used: numbers of its rows' layouts.
        references: by foreign key, what notes new rows for it.
        scanned: rows looked through for foreign keys.
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

    def fork(self, kept: KeptRows) -> "TableContents":
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

    # What is known ----------------------------------------------------------------------------

    @property
    def is_keyed(self) -> bool:
        return row_key(self.table) is not None

    @property
    def has_rows(self) -> bool:
        return self.kept.has(self.number) or bool(self.doubts)

    @property
    def is_doubtful(self) -> bool:
        """Whether single rows are known, or unknown, beside others."""
        return self.is_open or bool(self.doubts)

    def place(self, key: bytes) -> int | None:
        return self.kept.place(self.number, key)

    def may_have(self, key: bytes) -> bool:
        """Whether the table may have a row of a key that is not kept."""
        return ROW in self.doubts.rows.get(key, ()) or (self.unknown is not None and key not in self.doubts.absent)

    def unknown_of(self, key: bytes) -> set[int]:
        return {*self.unknown_columns, *self.doubts.rows.get(key, ())}

    def unknown_in(self, interval: Interval, columns: Collection[int]) -> UnknownRows | None:
        """Why rows with keys in an interval, or their values of columns, are unknown; None: known."""
        if self.unknown is not None and not self._is_one_known(interval):
            return self.unknown
        found = [*(self.doubts.inside(interval) if self.doubts.rows else ()), self.unknown_columns]
        return next((one[column] for one in found for column in (ROW, *columns) if column in one), None)

    def _is_one_known(self, interval: Interval) -> bool:
        first, end = interval
        if end is None or end != successor(first):
            return False
        return first in self.doubts.absent or self.place(first) is not None

    def is_in_doubt(self, columns: Collection[int]) -> bool:
        """Whether a row may be there or not, or has unknown values of columns."""
        return self.unknown is not None or any(
            not found.keys().isdisjoint((ROW, *columns)) for found in self.doubts.rows.values()
        )

    def forget(self, reason: UnknownRows, *, is_open: bool) -> None:
        """All rows are unknown from now on; later ones are kept if it `is_open`."""
        self.unknown = self.unknown or next(
            (one for found in self.doubts.rows.values() for one in found.values()), reason
        )
        self.is_open = is_open and self.is_keyed
        self.doubts.clear()
        self.kept.drop(self.number)

    def doubt_more(self, reason: UnknownRows) -> None:
        if not self.is_keyed:
            self.forget(reason, is_open=False)
        elif self.unknown is None:
            self.unknown, self.is_open = reason, True
        self.doubts.absent.clear()

    def lose_column(self, column: int, reason: UnknownRows) -> None:
        self.unknown_columns.setdefault(column, reason)

    def lose_values(
        self, layout: StoredLayout, row: StoredRow, columns: Collection[StoredColumn], what: str, gtid: str
    ) -> None:
        for column in columns:
            reason = UnknownRows(gtid, no_value(what, column))
            plan = None if self.table.is_versioned else self.key_plan(layout)
            if plan is None or len(self.doubts.rows) >= CELLS_MAX:
                self.lose_column(column.id, reason)
            elif column.id not in self.unknown_columns:
                self.doubt_row(plan.key(*row), [column.id], reason)

    def doubt_row(self, key: bytes, columns: Collection[int], reason: UnknownRows) -> None:
        """Values of a row are unknown, or, with ROW, whether it is there."""
        if ROW in columns and self.place(key) is not None:
            self.kept.delete(self.number, [key])
        self.doubts.doubt(key, columns, reason)
        if self.doubts.is_full:
            self.forget(reason, is_open=True)

    def spread_doubts(self, table: TableVersion) -> None:
        """Doubts about generated columns of some rows alone become those of all rows."""
        generated = {column.id for column in table.columns if column.is_computed}
        lost = {column: reason for found in self.doubts.rows.values() for column, reason in found.items()}
        if self.unknown is None and not self.is_open and lost.keys() <= generated:
            for column, reason in lost.items():
                self.lose_column(column, reason)
            self.doubts.clear()

    # Keys and values --------------------------------------------------------------------------

    def key_plan(self, layout: StoredLayout) -> KeyPlan | None:
        if layout.number not in self._plans:
            self._plans[layout.number] = key_plan(self.table, layout)
        return self._plans[layout.number]

    def computed_of(self, layout: StoredLayout) -> list[ColumnExpression]:
        found = self._computed.get(layout.number)
        if found is None:
            found = self._computed[layout.number] = list(computed_columns(self.table, layout))
        return found

    def values_in(self, layout: StoredLayout, place: int) -> list[bytes | None]:
        """The values of a row, present or past, as a layout stores them. Raises InexactRowsError: a column that was
        added, or has another type now, has an unknown value."""
        layout_no, image = self.kept.rows.read(place)
        stored = self.layouts[layout_no]
        values = stored.values(image)
        if stored is layout:
            return values
        columns = {column.id: column for column in self.table.columns}
        found: list[bytes | None] = []
        for column in layout.columns:
            at = stored.places.get(column.id)
            if at is None:
                found.append(first_value(columns[column.id], column))
            else:
                value = values[at]
                found.append(None if value is None else self._restored(stored.columns[at], column, value))
        return found

    @staticmethod
    def _restored(old: StoredColumn, new: StoredColumn, data: bytes) -> bytes:
        restore = restoring(old, new)
        try:
            if restore is not None:
                return restore(data)
            problem = f"it has another type since {data[:20]!r} was stored"
        except ValueError as error:
            problem = str(error)
        raise InexactRowsError(f"a value of column {new.column.name} cannot be changed: {problem}")

    def values_at(self, place: int) -> list[bytes | None]:
        return self.values_in(self.layouts.add(own_columns(self.table)), place)

    def _digest(self, layout: StoredLayout, image: bytes, spans: Sequence[Span]) -> bytes:
        """Identifies a row without a key: by all values that are not generated, in the columns' order of now."""
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

    def find(self, layout: StoredLayout, row: StoredRow) -> int | None:
        plan = self.key_plan(layout)
        if plan is None:
            return self.kept.place_of(self.number, self._digest(layout, *row))
        return self.place(plan.key(*row))

    # Changes of rows --------------------------------------------------------------------------

    def insert(self, layout: StoredLayout, rows: Sequence[StoredRow]) -> None:
        """Add rows, as whole images. Raises InexactRowsError: a key is there."""
        rows = [row for row in rows if self._is_current(layout, row, self.ends)]
        if self.table.kind is TableKind.SEQUENCE:
            self.kept.drop(self.number)
            rows = rows[-1:]
        self.used.add(layout.number)
        places = self.kept.rows.append(layout.number, (image for image, _ in rows))
        plan = self.key_plan(layout)
        if plan is None:
            self.kept.add(self.number, [self._digest(layout, *row) for row in rows], places)
            return
        keys = [plan.key(*row) for row in rows]
        if not self.kept.insert(self.number, keys, places):
            raise InexactRowsError("an INSERT of a key that is there already")
        if self.is_doubtful:
            for key in keys:
                self.doubts.report(key)
        self._note(layout, keys, rows)

    def delete(self, layout: StoredLayout, rows: Sequence[StoredRow]) -> None:
        """Remove rows, as images with at least the key. Raises InexactRowsError: one is not there."""
        rows = [row for row in rows if self._is_current(layout, row)]
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
        if self.place(key) is not None:
            self.kept.delete(self.number, [key])
        elif not self.may_have(key):
            return False
        self.doubts.gone(key)
        return True

    def update(
        self,
        layout: StoredLayout,
        rows: Sequence[StoredRow],
        after: Sequence[StoredRow],
        reported: Collection[int] | None = None,
    ) -> None:
        """Change rows, by images before with at least the key, and whole ones after; `reported` are ids of reported
        columns, None for all. Raises InexactRowsError: one is not there, or gets another one's key."""
        plan = self.key_plan(layout)
        self.used.add(layout.number)
        if plan is None or self.table.is_versioned:
            for before, new in zip(rows, after, strict=True):
                self._update_one(layout, before, new)
            return
        keys, new_keys = [plan.key(*row) for row in rows], [plan.key(*row) for row in after]
        if keys != new_keys:
            for before, new, key, new_key in zip(rows, after, keys, new_keys, strict=True):
                untold = self.unknown_of(key) - set(reported) if self.is_doubtful and reported is not None else set()
                reasons = {**self.unknown_columns, **self.doubts.rows.get(key, {})}
                self._update_one(layout, before, new)
                for column in untold:
                    self.doubts.doubt(new_key, [column], reasons[column])
        elif self.is_doubtful:
            for key, new in zip(keys, after, strict=True):
                self._replace(layout, key, new, reported)
        else:
            places = self.kept.rows.append(layout.number, (image for image, _ in after))
            if not self.kept.move(self.number, keys, places):
                raise InexactRowsError(NOT_THERE)
            self._note(layout, keys, after)

    def _replace(self, layout: StoredLayout, key: bytes, after: StoredRow, reported: Collection[int] | None) -> None:
        """Change a row where some are in doubt. Raises InexactRowsError: it is not there."""
        if self.place(key) is None:
            if not self.may_have(key):
                raise InexactRowsError(NOT_THERE)
            self.insert(layout, [after])
            return
        self.kept.move(self.number, [key], self.kept.rows.append(layout.number, [after[0]]))
        self.doubts.report(key, reported)
        self._note(layout, [key], [after])

    def _update_one(self, layout: StoredLayout, before: StoredRow, after: StoredRow) -> None:
        if self.key_plan(layout) is None and self._is_current(layout, before) and self._is_current(layout, after):
            (place,) = self.kept.rows.append(layout.number, [after[0]])
            digests = self._digest(layout, *before), self._digest(layout, *after)
            if not self.kept.replace(self.number, *digests, place):
                raise InexactRowsError(NOT_THERE)
            return
        self.delete(layout, [before])
        self.insert(layout, [after])

    def _note(self, layout: StoredLayout, keys: Sequence[bytes], rows: Sequence[StoredRow]) -> None:
        for notes in self.references.values():
            notes.note(layout, keys, rows)

    def _is_current(
        self, layout: StoredLayout, row: StoredRow, ends: tuple[bytes, ...] = (ENDS_2038, ENDS_2106)
    ) -> bool:
        """Past rows, which a system-versioned table has, are not kept."""
        if not self.table.is_versioned:
            return True
        end = next((column.id for column in self.table.columns if column.period is RowPeriod.END), None)
        image, spans = row
        span = None if end is None else spans[layout.places[end]]
        if end is None or span is None:
            return True
        data = image[span[0] : span[1]]
        if kind_of(layout.columns[layout.places[end]].column).is_zoned:
            return data[:4] in ends
        return not data.strip(b"\xff")

    # All rows at once -------------------------------------------------------------------------

    def set_sequence(self, state: Sequence[int], layout: StoredLayout) -> None:
        columns = zip(layout.columns, state, strict=True)
        self.insert(layout, [layout.row([stored_value(one.column, one.type, value) for one, value in columns])])

    def remove(self, places: Sequence[int]) -> None:
        layout = self.layouts.add(own_columns(self.table))
        for start in range(0, len(places), REWRITTEN_AT_A_TIME):
            some = places[start : start + REWRITTEN_AT_A_TIME]
            self.delete(layout, [layout.row(self.values_at(place)) for place in some])

    def clear(self, gtid: str = "") -> None:
        self.cleared_by = gtid
        self.unknown, self.is_open = None, False
        self.doubts.clear()
        self.kept.drop(self.number)
        self.used.clear()
        self.unknown_columns.clear()

    def alter(self, table: TableVersion, gtid: str, session: SchemaSession = UNTOLD) -> None:
        """Give the table another version; rows keep their images, or get new ones where these are wrong in it. Columns
        lose values that the statement does not tell. Raises InexactRowsError: the rows, or their keys, cannot be made
        of what is kept."""
        old, self.table = self.table, table
        self.references.clear()
        self._plans.clear()
        self._computed.clear()
        has_same_keys = key_types(old) == key_types(table)
        if not self.has_rows:
            if self.is_doubtful and not has_same_keys:
                raise InexactRowsError("some of its rows are in doubt")
            self.unknown_columns.clear()
            return
        self._lose_added(old, gtid)
        changing = RowConversion(old, table, session)
        is_filled = any(map(self._has_null, changing.filled))
        if changing.computed or not has_same_keys or changing.retyped() or is_filled:
            self.spread_doubts(old)
            if self.is_doubtful:
                raise InexactRowsError("some of its rows are in doubt")
            self._rewrite(changing)
        for column_id, reason in changing.unknown.items():
            self.lose_column(column_id, UnknownRows(gtid, reason))

    def _lose_added(self, old: TableVersion, gtid: str) -> None:
        known = {column.id for column in old.columns}
        for column, own in zip(self.table.columns, own_columns(self.table), strict=True):
            if column.id not in known and column.expression is None:
                try:
                    first_value(column, own)
                except InexactRowsError as error:
                    self.lose_column(column.id, UnknownRows(gtid, f"ADD COLUMN: {error}"))

    def _rewrite(self, changing: RowConversion) -> None:
        layout = self.layouts.add(changing.columns)
        wanted = [one for one in self.computed_of(layout) if one.column.id in changing.computed]
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
        lost = key_columns(self.table) & changing.unknown.keys()
        if lost:
            raise InexactRowsError(changing.unknown[min(lost)])
        if self.is_keyed and (unknown := key_columns(self.table) & self.unknown_columns.keys()):
            raise InexactRowsError(self.unknown_columns[min(unknown)].reason)

    def _has_null(self, old: TableColumn) -> bool:
        for _, place in self.kept.all_rows(self.number):
            layout_no, image = self.kept.rows.read(place)
            layout = self.layouts[layout_no]
            at = layout.places.get(old.id)
            if old.first_value == "NULL" if at is None else layout.spans(image)[0][at] is None:
                return True
        return False


def no_value(what: str, column: StoredColumn) -> str:
    return f"{what} has no value for the generated column {column.column.name}"
