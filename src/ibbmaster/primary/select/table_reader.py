"""Rows of tables at positions of the log, kept for the next query."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.kernel.loading import kernels_at_hand
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue.log_tables import LogSnapshot
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.certainty import SchemaTimeline, doubt_text
from ibbmaster.schema.model import TableVersion
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.base_rows import BaseDump
from ibbmaster.tables.fold.cascades import MissingTablesError
from ibbmaster.tables.fold.contents import TableContents
from ibbmaster.tables.fold.folding import ROW_BYTES_MAX, NotPlainError, RowFold
from ibbmaster.tables.fold.kept_rows import EVERYTHING, Interval, KeptRows, RowFile, WrongChangeError
from ibbmaster.tables.fold.row_doubts import UnknownRows
from ibbmaster.work import holding

FOLDS_MAX = 4  # positions whose rows are kept
ALONE_MAX = 3  # tables whose rows are read by themselves; for more tables all are read at once
FROZEN_MAX = 16  # if sessions have frozen them; others are read again each time
UNKNOWN_ROWS = 1105
FEW = 4  # rows for one that is wanted


class UnknownRowsError(RefusedError):
    """The rows of a table are not exact; `unknown` says since when, and why."""

    def __init__(self, table: TableVersion, unknown: UnknownRows) -> None:
        super().__init__(UNKNOWN_ROWS, "HY000", f"{table.full_name}: {doubt_text(unknown.gtid, unknown.reason)}")
        self.unknown = unknown


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows by intervals of their keys, in order or against it, up to a limit."""

    intervals: Sequence[Interval] = (EVERYTHING,)
    is_descending: bool = False
    limit: int | None = None
    is_counted: bool = False  # only their number is wanted
    are_ends: bool = False  # only the first and the last
    are_few: bool = False  # if they are many, all rows of the table will do


ALL_ROWS = RowRange()


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The places of the images of rows in a buffer that does not change."""

    contents: TableContents
    places: array[int]
    data: Buffer
    count: int


class TableReader:
    """Finds rows of tables, each query at its own position. Thread-safe. Later queries read on from what was read;
    positions are kept while a session has them frozen, the last ones longer. Rows of a position take up to `bytes_max`
    of temporary disk space; `large` handles row events that exceed the memory; `loads_kernels`: where that pays.
    """

    def __init__(
        self,
        engine: LogEngine,
        timeline: SchemaTimeline,
        *,
        base: BaseDump | None = None,
        bytes_max: int = ROW_BYTES_MAX,
        large: LargeRows | None = None,
        loads_kernels: bool = False,
    ) -> None:
        self._loads_kernels = loads_kernels
        self._large = large
        self._base = base
        self._bytes_max = bytes_max
        self._engine = engine
        self._timeline = timeline
        self._lock = threading.Lock()
        self._folds: list[RowFold] = []  # the last one that was used at the end
        self._asked: set[tuple[str, str]] = set()
        self._users: list[tuple[weakref.ref[LogSnapshot], LogPosition]] = []

    def rows_of(
        self, snapshot: LogSnapshot, table: TableVersion, column_ids: Sequence[int], wanted: RowRange = ALL_ROWS
    ) -> FoundRows:
        """In the order of the key. Raises RefusedError: rows, or values of these columns, are not exact;
        IbbMasterError: the log cannot be read."""
        if self._base is not None and not _has_reached(snapshot.state, self._base.position):
            text = f"rows of tables are known from GTID position {self._base.position} on, which the base is of"
            raise RefusedError(UNKNOWN_ROWS, "HY000", text)
        with holding(self._lock):
            contents = self._contents_at(snapshot, table)
            for interval in wanted.intervals:
                unknown = contents.unknown_in(interval, column_ids)
                if unknown is not None:
                    raise UnknownRowsError(table, unknown)
            kept, number = contents.kept, contents.number
            if wanted.is_counted:
                count = sum(kept.count_in(number, interval) for interval in wanted.intervals)
                return FoundRows(contents, array("q"), kept.rows.data(), count)
            places = _places(contents, wanted)
            if wanted.are_few and contents.unknown_in(EVERYTHING, column_ids) is None:
                every = kept.all_places(number)
                if len(places) * FEW >= len(every):
                    places = every
            return FoundRows(contents, places, kept.rows.data(), len(places))

    def close(self) -> None:
        with holding(self._lock):
            for fold in self._folds:
                fold.close()
            self._folds.clear()

    def _contents_at(self, snapshot: LogSnapshot, table: TableVersion) -> TableContents:
        self._users = [(user, place) for user, place in self._users if user() is not None]
        self._users.append((weakref.ref(snapshot), snapshot.end))
        able = [fold for fold in self._folds if fold.keeps(table)]
        fold = next((fold for fold in able if fold.position == snapshot.end), None)
        fold = self._nearest(snapshot.end, able, table) if fold is None else fold
        fold, contents = self._read_on(fold, snapshot.end, table)
        self._folds.remove(fold)
        self._folds.append(fold)
        self._forget_oldest()
        return contents

    def _read_on(self, fold: RowFold, end: LogPosition, table: TableVersion) -> tuple[RowFold, TableContents]:
        """Another fold where the rows depend on more tables, or a group needs the reference."""
        while True:
            wanted, is_plain = fold.wanted, True
            try:
                if fold.position != end:
                    fold.advance(end)
                return fold, fold.contents_of(table)
            except MissingTablesError as error:
                wanted = (wanted or frozenset()) | error.generations
            except (NotPlainError, WrongChangeError):
                is_plain = False
            except BaseException:
                self._drop(fold)
                raise
            self._drop(fold)
            fold = self._new_fold(end, wanted, is_plain=is_plain)

    def _drop(self, fold: RowFold) -> None:
        self._folds.remove(fold)
        fold.close()

    def _forget_oldest(self) -> None:
        last = self._folds[-1]
        if last.wanted is None:  # it has all tables
            for fold in [fold for fold in self._folds[:-1] if fold.position == last.position]:
                self._drop(fold)
        frozen = {place for _, place in self._users}
        while True:
            places = list(dict.fromkeys(fold.position for fold in self._folds[::-1]))  # the last one first
            unused = [place for place in places[1:] if place not in frozen]
            if len(places) <= FOLDS_MAX or (not unused and len(places) <= FROZEN_MAX):
                return
            oldest = (unused or places)[-1]
            for fold in [fold for fold in self._folds if fold.position == oldest]:
                self._drop(fold)

    def _nearest(self, end: LogPosition, able: Sequence[RowFold], table: TableVersion) -> RowFold:
        before = [fold for fold in able if fold.position < end]
        fold = max(before, key=lambda fold: fold.position, default=None)
        if fold is None:
            self._asked.add((table.database, table.name))
            return self._new_fold(end, frozenset({table.generation}) if len(self._asked) <= ALONE_MAX else None)
        if any(place == fold.position for _, place in self._users):
            fold = fold.fork()
            self._folds.append(fold)
        return fold

    def _new_fold(self, end: LogPosition, wanted: frozenset[int] | None, *, is_plain: bool = True) -> RowFold:
        """Without `is_plain` by the reference."""
        start = self._engine.start_of_file().position
        settings = (start, self._bytes_max, self._base, self._large, wanted)
        found = kernels_at_hand(start, end if self._loads_kernels else start) if is_plain else None
        if found is None:
            fold = RowFold(self._engine, self._timeline, KeptRows(RowFile()), *settings)
        else:
            from ibbmaster.tables.fold.fast_folding import FastRowFold
            from ibbmaster.tables.fold.fast_kept_rows import FastKeptRows

            fold = FastRowFold(self._engine, self._timeline, FastKeptRows(RowFile()), *settings).use(found)
        self._folds.append(fold)
        return fold


def _has_reached(state: GtidState, position: GtidPosition) -> bool:
    return all((state.highest_seq_no(gtid.domain_id) or gtid.seq_no) >= gtid.seq_no for gtid in position.values())


def _places(contents: TableContents, wanted: RowRange) -> array[int]:
    kept, number = contents.kept, contents.number
    if wanted == ALL_ROWS:
        return kept.all_places(number)
    if wanted.are_ends:
        ends = [kept.places(number, EVERYTHING, is_descending=is_last, limit=1) for is_last in (False, True)]
        return array("q", [place for end in ends for place in end])
    found = array("q")
    for interval in wanted.intervals[::-1] if wanted.is_descending else wanted.intervals:
        left = None if wanted.limit is None else wanted.limit - len(found)
        if left == 0:
            break
        found.extend(kept.places(number, interval, is_descending=wanted.is_descending, limit=left))
    return found
