"""What sessions ask of the tables of a served log. What reads them is loaded when it is first asked for."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from ibbmaster.dialogue.log_tables import InformationEngine, LogSnapshot, TableQuery
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.errors import PositionError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.wire.response import BlockResultSet, ColumnDefinition, ResultSet

if TYPE_CHECKING:
    from ibbmaster.schema.catalog import SchemaCatalog
    from ibbmaster.schema.history import SchemaHistory

LOOKS_MAX = 100  # for a moment in which the log does not grow
NOT_IN_LOG = 1945  # ER_GTID_POSITION_NOT_FOUND_IN_BINLOG


class PrimaryTables:
    """`LogTables` of one primary; called from worker threads."""

    def __init__(self, engine: LogEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()  # around what is folded
        self._history: SchemaHistory | None = None
        self._catalog: tuple[LogPosition, SchemaCatalog] | None = None

    def newest(self) -> LogSnapshot:
        engine = self._engine
        for _ in range(LOOKS_MAX):
            end, state = engine.end(), engine.state()
            if engine.end() == end:
                return LogSnapshot(end=end, file_name=engine.file_name(end.file_no), state=state)
        return self.snapshot_at(state.position())  # it grows all the time: find where that state was

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

        with self._lock:
            history = self._folded(snapshot.end)
            if self._catalog is None or self._catalog[0] != snapshot.end:
                self._catalog = snapshot.end, history.at(SchemaPlace(snapshot.end, 0))
            return self._catalog[1]

    def _folded(self, end: LogPosition) -> SchemaHistory:
        """The history of what is before a position."""
        from ibbmaster.event.gtid_event import GtidFlag, decode_gtid_event
        from ibbmaster.event.header import decode_event_header
        from ibbmaster.event.split import event_heads
        from ibbmaster.event.statement.logged import STATEMENT_TYPES, decode_statement
        from ibbmaster.schema.history import SchemaHistory
        from ibbmaster.schema.model import SchemaPlace

        if self._history is None:
            self._history = SchemaHistory()
            self._groups = self._engine.groups(self._engine.start_of_file())
        history = self._history
        while self._groups.position < end and (group := self._groups.next_group()) is not None:
            if group.gtid is None:
                history.add_restart()
                continue
            if not decode_gtid_event(group.gtid_event).flags & GtidFlag.DDL:
                continue
            for no, event in enumerate(event_heads(group.body, size_max=1 << 24), 1):
                header = decode_event_header(event)
                if header.event_type in STATEMENT_TYPES:
                    place = SchemaPlace(group.start, no)
                    history.add(place, str(group.gtid), header.timestamp, decode_statement(event))
        return history

    def read_table(self, query: TableQuery) -> ResultSet | BlockResultSet:
        raise NotImplementedError

    def table_columns(self, query: TableQuery) -> tuple[ColumnDefinition, ...]:
        raise NotImplementedError

    def information_engine(self) -> InformationEngine:
        from ibbmaster.sql.information import SqliteEngine

        return SqliteEngine()


def _holds(seq_no: int | None, gtid: Gtid) -> bool:
    return seq_no is not None and seq_no >= gtid.seq_no


def _passes(logged: Gtid, wanted: Gtid) -> bool:
    """Whether a group is the wanted one, or comes behind it."""
    return (
        logged.domain_id == wanted.domain_id and logged.server_id == wanted.server_id and logged.seq_no >= wanted.seq_no
    )


def _not_in_log(gtid: Gtid, why: str) -> RefusedError:
    return RefusedError(NOT_IN_LOG, "HY000", f"GTID {gtid} is not in this log: {why}")
