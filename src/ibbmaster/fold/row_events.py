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
from ibbmaster.fold.contents import StoredRow, TableContents, values_of
from ibbmaster.fold.stored import Span, StoredLayout, spans_of

PORTION_BYTES = 64 << 20  # images of one event that are held at a time


class _Plan(NamedTuple):
    """Which columns an image has: their sizes, fixed or of the length before them, and their places."""

    sizes: list[tuple[int | None, int]]
    places: list[int]


@dataclass(slots=True)
class MappedTable:
    """What a TABLE_MAP has named: the contents that its row events change, and how their images lie."""

    contents: TableContents
    layout: StoredLayout
    large: LargeRows = ALL_ROWS
    _plans: dict[bytes, _Plan] = field(default_factory=dict)

    def change(self, event: bytes, gtid: str, start: int = 0, *, is_replace: bool = False) -> None:
        """Apply a row event, from the row on that is at `start`; 0: all of it.

        Raises:
            EventError: the event is damaged.
            InexactRowsError: what it changes is not there, or not known.
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
            if len(first.places) < len(self.layout.columns):
                rows = [self._filled(first, gtid, *row) for row in rows]
            self.contents.insert(self.layout, rows)

    def images(self, event: bytes) -> Iterator[tuple[StoredRow, Collection[int], StoredRow | None, Collection[int]]]:
        """Each row of an event as it was, and as an UPDATE leaves it, and which places of the two have values.

        Raises:
            EventError: the event is damaged.
        """
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
            plan = _Plan([(columns[place].fixed, columns[place].prefix) for place in places], places)
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

    def _filled(self, plan: _Plan, gtid: str, image: bytes, spans: list[Span]) -> StoredRow:
        """The whole image of an INSERT: with defaults where it has no value."""
        values = values_of(image, spans)
        self.contents.complete(self.layout, values, set(range(len(values))) - set(plan.places), gtid)
        return self.layout.row(values)

    def _update(self, first: _Plan, second: _Plan, data: bytes, offset: int, gtid: str, *, is_replace: bool) -> None:
        is_whole = len(second.places) == len(self.layout.columns)
        before_rows: list[StoredRow] = []
        after_rows: list[StoredRow] = []
        portion = offset
        while offset < len(data):
            before, offset = self._row(first, data, offset)
            after, offset = self._row(second, data, offset)
            if is_whole:
                before_rows.append(before)
                after_rows.append(after)
                if offset - portion >= PORTION_BYTES:
                    self.contents.update(self.layout, before_rows, after_rows)
                    before_rows, after_rows, portion = [], [], offset
            else:  # which may depend on the row before it
                row = self._update_partly(first, second, before, after, gtid)
                if is_replace and row is not None:
                    self.contents.doubt_defaults(self.layout, row, second.places, gtid)
        if is_whole:
            self.contents.update(self.layout, before_rows, after_rows)

    def _update_partly(
        self, first: _Plan, second: _Plan, before: StoredRow, after: StoredRow, gtid: str
    ) -> StoredRow | None:
        """Change a row of which not all is reported; what it is now, if that follows from what it was."""
        reported = None
        if len(first.places) < len(self.layout.columns):
            reported = [self.layout.columns[place].id for place in second.places]
            if self.contents.leaves_in_doubt(self.layout, before, after, second.places):
                return None
        row = self._merged(first, second, before, after, gtid)
        self.contents.update(self.layout, [before], [row], reported)
        return row

    def _merged(self, first: _Plan, second: _Plan, before: StoredRow, after: StoredRow, gtid: str) -> StoredRow:
        """The whole image after an update that tells only some columns."""
        if len(first.places) == len(self.layout.columns):
            values = values_of(*before)
        else:
            values = self.contents.before_image(self.layout, *before)
        told = values_of(*after)
        for place in second.places:
            values[place] = told[place]
        self.contents.compute_updated(self.layout, values, second.places, gtid)
        return self.layout.row(values)
