"""Row events as whole images, filled up where they leave columns out."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import KINDS, ChangeKind, Span, rows_of, spans_of
from ibbmaster.replication.event.rows.large import ALL_ROWS, LargeRows
from ibbmaster.replication.event.table_map import RowsHeader, decode_rows_header
from ibbmaster.replication.event.types import EventType
from .contents import TableContents
from .stored import StoredColumn, StoredLayout, StoredRow, values_of
from .whole_rows import AN_INSERT, AN_UPDATE, RowImages

PORTION_BYTES = 64 << 20


class _Plan(NamedTuple):
    """The columns of an image: their sizes, fixed or of the length before them, and places. It `is_whole` with all
    columns, `is_complete` with all but generated ones."""

    sizes: list[tuple[int | None, int]]
    places: list[int]
    is_whole: bool
    is_complete: bool


class MappedTable(RowImages):
    """The table of a TABLE_MAP: the contents that its row events change, and their layout."""

    def __init__(self, contents: TableContents, layout: StoredLayout, large: LargeRows = ALL_ROWS) -> None:
        super().__init__(contents, layout)
        self._large = large
        self._plans: dict[bytes, _Plan] = {}

    def change(self, event: bytes, gtid: str, start: int = 0, *, is_replace: bool | None = None) -> None:
        """Apply a row event, from the row on at `start`; 0: all of it. `is_replace`: whether a REPLACE logged it; None
        if unknown. Raises EventError: the event is damaged; InexactRowsError: what it changes is not there, or
        unknown."""
        header = decode_rows_header(event)
        if header.column_count != len(self.layout.columns):
            name, columns = self.contents.table.full_name, len(self.layout.columns)
            raise EventError(f"row event of {header.column_count} columns, {name} has {columns}")
        data, offset = rows_of(event, header, self._large)
        offset = start or offset
        kind, first, second = self._plans_of(event, header)
        if kind is ChangeKind.UPDATE:
            self._update(first, second, data, offset, gtid, is_replace=is_replace)
            return
        for rows in self._portions(first, data, offset):
            if kind is ChangeKind.DELETE:
                self.contents.delete(self.layout, rows)
                continue
            uncertain = self.uncertain_places()
            if first.is_whole and not uncertain:
                self.contents.insert(self.layout, rows)
                continue
            filled = [self._filled(first, uncertain, *row) for row in rows]
            self.contents.insert(self.layout, [row for row, _ in filled])
            for row, lost in filled:
                self.contents.lose_values(self.layout, row, lost, AN_INSERT, gtid)

    def images(self, event: bytes) -> Iterator[tuple[StoredRow, Collection[int], StoredRow | None, Collection[int]]]:
        """Each row before, and as an UPDATE leaves it, with the places of the two that have values. Raises EventError:
        the event is damaged."""
        header = decode_rows_header(event)
        data, offset = rows_of(event, header, self._large)
        kind, first, second = self._plans_of(event, header)
        while offset < len(data):
            before, offset = self._row(first, data, offset)
            after = None
            if kind is ChangeKind.UPDATE:
                after, offset = self._row(second, data, offset)
            yield before, first.places, after, second.places

    def _plans_of(self, event: bytes, header: RowsHeader) -> tuple[ChangeKind, _Plan, _Plan]:
        """Kind, and images before and after; without a second one the first again."""
        kind, first = KINDS[EventType(event[TYPE_OFFSET])], self._plan(header.columns_present)
        return kind, first, self._plan(header.columns_after) if kind is ChangeKind.UPDATE else first

    def _plan(self, present: bytes) -> _Plan:
        plan = self._plans.get(present)
        if plan is None:
            bits = int.from_bytes(present, "little")
            columns = self.layout.columns
            places = [place for place in range(len(columns)) if bits >> place & 1]
            missing = set(range(len(columns))) - set(places)
            sizes = [(columns[place].fixed, columns[place].prefix) for place in places]
            plan = _Plan(sizes, places, not missing, missing <= self.generated_places())
            self._plans[present] = plan
        return plan

    def _portions(self, plan: _Plan, data: bytes, offset: int) -> Iterator[list[StoredRow]]:
        rows: list[StoredRow] = []
        begin = offset
        while offset < len(data):
            row, offset = self._row(plan, data, offset)
            rows.append(row)
            if offset - begin >= PORTION_BYTES:
                yield rows
                rows, begin = [], offset
        if rows:
            yield rows

    def _row(self, plan: _Plan, data: bytes, offset: int) -> tuple[StoredRow, int]:
        if not plan.sizes:
            raise EventError("a row event without columns")
        spans, end = spans_of(data, offset, plan.sizes)
        moved: list[Span] = [None if span is None else (span[0] - offset, span[1] - offset) for span in spans]
        if not plan.is_whole:
            all_spans: list[Span] = [None] * len(self.layout.columns)
            for place, span in zip(plan.places, moved, strict=True):
                all_spans[place] = span
            moved = all_spans
        return (data[offset:end], moved), end

    def _filled(
        self, plan: _Plan, uncertain: Collection[int], image: bytes, spans: list[Span]
    ) -> tuple[StoredRow, list[StoredColumn]]:
        """The whole image of an INSERT, and the columns that stay unknown. NULL at a place in `uncertain` is no
        value."""
        values = values_of(image, spans)
        missing = {place for place in uncertain if values[place] is None}
        missing |= set(range(len(values))) - set(plan.places)
        if not missing:
            return (image, spans), []
        lost = self.complete(values, missing)
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
            flush()  # the next row may depend on these
            row = self._update_partly(first, second, before, after, gtid)
            if row is None or second.is_complete or is_replace is False:
                continue
            if is_replace or self.may_be_replace(before, after, second.places):
                self.doubt_defaults(row, second.places, gtid)
        flush()

    def _whole(self, first: _Plan, second: _Plan, after: StoredRow) -> StoredRow | None:
        if second.is_whole:
            return after
        if not first.is_complete or not second.is_complete or self.contents.is_doubtful:
            return None
        return self.completed(after)

    def _update_partly(
        self, first: _Plan, second: _Plan, before: StoredRow, after: StoredRow, gtid: str
    ) -> StoredRow | None:
        """Change a row that its event reports in part; returns it if it follows from what it was."""
        contents, layout = self.contents, self.layout
        if not first.is_complete and self.leaves_in_doubt(before, after, second.places):
            return None
        new = self.updated(before, first.places, after, second.places)
        row = layout.row(new.values)
        contents.update(layout, [before], [row], new.reported)
        contents.lose_values(layout, row, new.lost, AN_UPDATE, gtid)
        return row
