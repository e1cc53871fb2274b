"""Answers about the tables of a served log; what reads them is loaded when it is first needed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ibbmaster.errors import IbbMasterError, PositionError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.kernel.loading import has_numpy, is_long, load
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue.log_tables import LogSnapshot, TableQuery
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import BlockResultSet, ColumnDefinition
from ibbmaster.work import check_wanted, holding

if TYPE_CHECKING:
    from pathlib import Path

    from ibbmaster.logs.log.group_folding import TakeMap
    from ibbmaster.logs.log.history_cache import HistoryCache
    from ibbmaster.logs.log.schema_history import LastScanned, LoggedSchema, TakeStatement
    from ibbmaster.primary.dialogue.relation import Relation
    from ibbmaster.primary.select.engine import QueryRun
    from ibbmaster.primary.select.table_reader import FoundRows, RowRange, TableReader
    from ibbmaster.primary.select.tables import KeptDatabase
    from ibbmaster.schema.base_dump import BaseSchema
    from ibbmaster.schema.catalog import KnownTable, SchemaCatalog
    from ibbmaster.schema.history import SchemaHistory
    from ibbmaster.schema.model import SchemaPlace, TableVersion
    from ibbmaster.schema.name_case import NameCase

LOOKS_MAX = 100  # for a moment in which the log does not grow
NOT_IN_LOG = 1945  # ER_GTID_POSITION_NOT_FOUND_IN_BINLOG


class PrimaryTables:
    """`LogTables` of one primary; called from worker threads."""

    def __init__(
        self,
        engine: LogEngine,
        cache: HistoryCache | None = None,
        base: Path | None = None,
        *,
        case: NameCase | None = None,
        has_kernels: bool = True,
        row_event_max: int | None = None,
    ) -> None:
        """`cache` keeps the schema history; the log continues the dump `base`; `case` says how the log's server
        compares names, if the log itself does not; `row_event_max` limits a row event, put together and unpacked."""
        self._case = case
        self._row_event_max = row_event_max
        self._engine = engine
        self._has_kernels = has_kernels
        self._base_file = base
        self._base: BaseSchema | None = None
        self._cache = cache
        self._lock = threading.Lock()  # for all below
        self._versions: _Timeline | None = None
        self._catalog: SchemaCatalog | None = None
        self._table_reader: TableReader | None = None
        self._kept: KeptDatabase | None = None

    def newest(self) -> LogSnapshot:
        engine = self._engine
        for _ in range(LOOKS_MAX):
            end, state = engine.end(), engine.state()
            if engine.end() == end:
                return LogSnapshot(end=end, file_name=engine.file_name(end.file_no), state=state)
        return self.snapshot_at(state.position())  # it keeps growing: find where that state was

    def snapshot_at(self, position: GtidPosition) -> LogSnapshot:
        engine = self._engine
        logged = engine.state()
        for gtid in position.values():
            if (logged.seq_no(gtid.domain_id, gtid.server_id) or 0) < gtid.seq_no:
                raise _not_in_log(gtid, "the log has no such one")
        try:
            plan = engine.seek(position)
        except PositionError as error:
            raise RefusedError(NOT_IN_LOG, "HY000", f"position {position}: {error}") from None
        state, end = plan.state.copy(), plan.position
        missing = {gtid for gtid in position.values() if not _holds(state.seq_no(gtid.domain_id, gtid.server_id), gtid)}
        with contextlib.closing(engine.groups(plan)) as groups:
            while missing and (group := groups.next_group()) is not None:
                check_wanted()
                end = group.end
                if group.gtid is None:
                    continue
                state.log(group.gtid)
                for gtid in [each for each in missing if _passes(group.gtid, each)]:
                    if group.gtid != gtid:
                        raise _not_in_log(gtid, f"the first one behind it is {group.gtid}")
                    missing.discard(gtid)
        if missing:
            raise _not_in_log(missing.pop(), "the log has no such one")
        return LogSnapshot(end=end, file_name=engine.file_name(end.file_no), state=state)

    def catalog(self, snapshot: LogSnapshot) -> SchemaCatalog:
        from ibbmaster.schema.model import SchemaPlace

        found = self._timeline(snapshot.end).at(SchemaPlace(snapshot.end, 0))
        with holding(self._lock):
            if found == self._catalog:  # its users keep what follows from it
                return self._catalog
            self._catalog = found
            return found

    def name_case(self) -> int:
        if self._case is not None:
            return int(self._case)
        try:
            return int(self._timeline(self._engine.end()).case)
        except IbbMasterError:  # a variable has a value even where the tables are unknown
            return 0

    def compute(self, query: TableQuery) -> Relation | BlockResultSet:
        return self._query_run(query).answer()

    def computed_columns(self, query: TableQuery) -> tuple[ColumnDefinition, ...]:
        return self._query_run(query).columns()

    def _query_run(self, query: TableQuery) -> QueryRun:
        from ibbmaster.primary.select.engine import QueryRun
        from ibbmaster.primary.select.tables import KeptDatabase

        with holding(self._lock):
            self._kept = self._kept or KeptDatabase()

        def rows_of(table: TableVersion, column_ids: Sequence[int], wanted: RowRange) -> FoundRows:
            self._timeline(query.snapshot.end)
            return self._reader().rows_of(query.snapshot, table, column_ids, wanted)

        place = self._engine.reset_count, query.snapshot.end, query.snapshot.state
        return QueryRun(query, rows_of, self._kept, place)

    def _timeline(self, end: LogPosition) -> _Timeline:
        """Up to a position at least."""
        with holding(self._lock):
            if self._versions is None:
                from ibbmaster.logs.log.schema_history import LoggedSchema

                if self._base_file is not None:
                    from ibbmaster.logs.log.base_file import base_schema, expect_continued

                    self._base = base_schema(self._base_file)
                    if self._base.position is not None:
                        expect_continued(self._engine, self._base.position)
                base = self._base
                catalog, behind = (None, None) if base is None else (base.catalog, base.position)
                scan = self._scan if self._has_kernels else None
                schema = LoggedSchema(
                    self._engine, cache=self._cache, base=catalog, behind=behind, case=self._case, scan=scan
                )
                self._versions = _Timeline(schema)
            self._versions.follow(end)
            return self._versions

    @staticmethod
    def _scan(log: LogEngine, take: TakeStatement, take_map: TakeMap | None = None) -> LastScanned | None:
        """All statements, by kernels if at hand."""
        start, end = log.start_of_file().position, log.end()
        found = load() if has_numpy() and is_long(start, end) else None
        if found is None:
            return None
        from ibbmaster.tables.arrow.ddl_scan import scan_ddl

        return scan_ddl(log, take, take_map, find=lambda _: found)

    def _reader(self) -> TableReader:
        timeline = self._timeline(self._engine.end())
        with holding(self._lock):
            if self._table_reader is None:
                from ibbmaster.logs.log.large_rows import large_rows
                from ibbmaster.primary.select.table_reader import TableReader
                from ibbmaster.tables.fold.base_rows import BaseDump

                is_placed = self._base is not None and self._base.position is not None
                base = BaseDump.of_file(self._base_file) if is_placed and self._base_file is not None else None
                self._table_reader = TableReader(
                    self._engine,
                    timeline,
                    base=base,
                    large=large_rows(self._row_event_max),
                    loads_kernels=self._has_kernels,
                )
            return self._table_reader


class _Timeline:
    """Versions of tables, for several threads."""

    def __init__(self, schema: LoggedSchema) -> None:
        self._schema = schema
        self._lock = threading.Lock()
        self._end: LogPosition | None = None  # of the log, when it was folded last
        self._history: SchemaHistory | None = None

    def follow(self, end: LogPosition) -> None:
        with holding(self._lock):
            if self._end != end:
                self._history = self._schema.history()
                self._end = end

    @property
    def case(self) -> NameCase:
        with holding(self._lock):
            assert self._history is not None
            return self._history.case

    def at(self, place: SchemaPlace | None = None) -> SchemaCatalog:
        with holding(self._lock):
            assert self._history is not None
            return self._history.at(place)

    def table_at(self, database: str, name: str, place: SchemaPlace | None = None) -> KnownTable | None:
        with holding(self._lock):
            assert self._history is not None
            return self._history.table_at(database, name, place)


def _holds(seq_no: int | None, gtid: Gtid) -> bool:
    return seq_no is not None and seq_no >= gtid.seq_no


def _passes(logged: Gtid, wanted: Gtid) -> bool:
    return (
        logged.domain_id == wanted.domain_id and logged.server_id == wanted.server_id and logged.seq_no >= wanted.seq_no
    )


def _not_in_log(gtid: Gtid, why: str) -> RefusedError:
    return RefusedError(NOT_IN_LOG, "HY000", f"GTID {gtid} is not in this log: {why}")
