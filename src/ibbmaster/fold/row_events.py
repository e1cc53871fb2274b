"""Row events as whole images: cut out of the event, and filled up where it leaves columns out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.rows.changes import KINDS, ChangeKind, rows_of
from ibbmaster.event.rows.large import ALL_ROWS, LargeRows
from ibbmaster.event.table_map import decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.fold.contents import AN_INSERT, AN_UPDATE, StoredRow, TableContents, values_of
from ibbmaster.fold.stored import Span, StoredColumn, StoredLayout, spans_of

PORTION_BYTES = 64 << 20  # images of one event that are held at a time


class _Plan(NamedTuple):
    """Which columns an image has: their sizes, fixed or of the length before them, and their places. It `is_whole` with
    all columns, and `is_complete` with all but generated ones."""

    sizes: list[tuple[int | None, int]]
    places: list[int]
    is_whole: bool
    is_complete: bool


@dataclass(slots=True)
class MappedTable:
    """What a TABLE_MAP has named: the contents that its row events change, and how their images lie."""

    contents: TableContents
    layout: StoredLayout
    large: LargeRows = ALL_ROWS
    _plans: dict[bytes, _Plan] = field(default_factory=dict)

    def change(self, event: bytes, gtid: str, start: int = 0, *, is_replace: bool | None = None) -> None:
        """Apply a row event, from the row on that is at `start`; 0: all of it.

        `is_replace`: whether a REPLACE has logged it; None if the log does not say.

        Raises EventError: the event is damaged; InexactRowsError: what it changes is not there, or not known.
        """
        header = decode_rows_header(event)
        if header.column_count != len(self.layout.columns):
            name, columns = self.contents.table.full_name, len(self.layout.columns)
            raise EventError(f"row event of {header.column_count} columns, {name} has {columns}")
        data, offset = rows_of(event, header, self.large)
        offset = start or offset
        kind = KINDS[EventType(event[TYPE_OFFSET])]
        first = self._plan(header.columns_present)
        if kind is ChangeKind.UPDATE:
            second = self._plan(header.columns_after)
            self._update(first, second, data, offset, gtid, is_replace=is_replace)
            return
        for rows in self._portions(first, data, offset):
            if kind is ChangeKind.DELETE:
                self.contents.delete(self.layout, rows)
                continue
            uncertain = self.contents.uncertain_places(self.layout)
            if first.is_whole and not uncertain:
                self.contents.insert(self.layout, rows)
                continue
            filled = [self._filled(first, uncertain, *row) for row in rows]
            self.contents.insert(self.layout, [row for row, _ in filled])
            for row, lost in filled:
                self.contents.lose_values(self.layout, row, lost, AN_INSERT, gtid)

    def images(self, event: bytes) -> Iterator[tuple[StoredRow, Collection[int], StoredRow | None, Collection[int]]]:
        """Each row of an event as it was, and as an UPDATE leaves it, and which places of the two have values. Raises
        EventError: the event is damaged."""
        header = decode_rows_header(event)
        data, offset = rows_of(event, header, self.large)
        is_update = KINDS[EventType(event[TYPE_OFFSET])] is ChangeKind.UPDATE
        first = self._plan(header.columns_present)
        second = self._plan(header.columns_after) if is_update else first
        while offset < len(data):
            before, offset = self._row(first, data, offset)
            after = None
            if is_update:
                after, offset = self._row(second, data, offset)
            yield before, first.places, after, second.places

    def _plan(self, present: bytes) -> _Plan:
        plan = self._plans.get(present)
        if plan is None:
            bits = int.from_bytes(present, "little")
            columns = self.layout.columns
            places = [place for place in range(len(columns)) if bits >> place & 1]
            missing = set(range(len(columns))) - set(places)
            sizes = [(columns[place].fixed, columns[place].prefix) for place in places]
            plan = _Plan(sizes, places, not missing, missing <= self.contents.generated_places(self.layout))
            self._plans[present] = plan
        return plan

    def _portions(self, plan: _Plan, data: bytes, offset: int) -> Iterator[list[StoredRow]]:
        """Images of an event, so many at once as may be held, and where their values are; None: it has no value."""
        rows: list[StoredRow] = []
        size = 0
        while offset < len(data):
            row, end = self._row(plan, data, offset)
            rows.append(row)
            size += end - offset
            offset = end
            if size >= PORTION_BYTES:
                yield rows
                rows, size = [], 0
        if rows:
            yield rows

    def _row(self, plan: _Plan, data: bytes, offset: int) -> tuple[StoredRow, int]:
        if not plan.sizes:
            raise EventError("a row event without columns")
        spans, end = spans_of(data, offset, plan.sizes)
        moved: list[Span] = [None if span is None else (span[0] - offset, span[1] - offset) for span in spans]
        if len(plan.places) < len(self.layout.columns):
            all_spans: list[Span] = [None] * len(self.layout.columns)
            for place, span in zip(plan.places, moved, strict=True):
                all_spans[place] = span
            moved = all_spans
        return (data[offset:end], moved), end

    def _filled(
        self, plan: _Plan, uncertain: Collection[int], image: bytes, spans: list[Span]
    ) -> tuple[StoredRow, list[StoredColumn]]:
        """The whole image of an INSERT: with defaults where it has no value; and the columns that are not known. NULL
        at one of the places `uncertain` is no value."""
        values = values_of(image, spans)
        missing = {place for place in uncertain if values[place] is None}
        missing |= set(range(len(values))) - set(plan.places)
        if not missing:
            return (image, spans), []
        lost = self.contents.complete(self.layout, values, missing)
        return self.layout.row(values), lost

    def _update(
        self, first: _Plan, second: _Plan, data: bytes, offset: int, gtid: str, *, is_replace: bool | None
    ) -> None:
        before_rows: list[StoredRow] = []
        after_rows: list[StoredRow] = []
        portion = offset

        def flush() -> None:
            if before_rows:
                self.contents.update(self.layout, before_rows, after_rows)
                before_rows.clear()
                after_rows.clear()

        while offset < len(data):
            before, offset = self._row(first, data, offset)
            after, offset = self._row(second, data, offset)
            whole = self._whole(first, second, after)
            if whole is not None:
                before_rows.append(before)
                after_rows.append(whole)
                if offset - portion >= PORTION_BYTES:
                    flush()
                    portion = offset
                continue
            flush()  # what it is now may depend on the rows before it
            row = self._update_partly(first, second, before, after, gtid)
            if row is None or second.is_complete or is_replace is False:
                continue
            if is_replace or self.contents.may_be_replace(self.layout, before, after, second.places):
                self.contents.doubt_defaults(self.layout, row, second.places, gtid)
        flush()

    def _whole(self, first: _Plan, second: _Plan, after: StoredRow) -> StoredRow | None:
        """The row after an UPDATE, if that follows from its images alone."""
        if second.is_whole:
            return after
        if not first.is_complete or not second.is_complete or self.contents.is_doubtful:
            return None
        return self.contents.completed(self.layout, after)

    def _update_partly(
        self, first: _Plan, second: _Plan, before: StoredRow, after: StoredRow, gtid: str
    ) -> StoredRow | None:
        """Change a row of which not all is reported; what it is now, if that follows from what it was."""
        contents, layout = self.contents, self.layout
        if not first.is_complete and contents.leaves_in_doubt(layout, before, after, second.places):
            return None
        new = contents.updated(layout, before, first.places, after, second.places)
        row = layout.row(new.values)
        contents.update(layout, [before], [row], new.reported)
        contents.lose_values(layout, row, new.lost, AN_UPDATE, gtid)
        return row
