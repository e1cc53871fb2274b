"""Reads a log forward, and changes the rows of its tables as it goes."""

from collections.abc import Iterable
from typing import Self

from ibbmaster.errors import ConfigurationError, EventError, UndecodableError
from ibbmaster.logs.log.group_content import group_events, xid_text
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES, LoggedStatement, decode_statement
from ibbmaster.replication.event.statement.savepoint import SavepointStep, savepoint_step
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.certainty import SchemaTimeline, engine_of
from ibbmaster.rows.effects import LOST
from ibbmaster.rows.walk import walk
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.work import check_wanted
from .applying import EventFold
from .base_rows import BaseDump, columns_left_out, stored_rows
from .contents import TableContents
from .kept_rows import KeptRows
from .row_doubts import UnknownRows
from .stored import own_columns

STATEMENT_HEAD_SIZE = 1 << 10
GROUP = "whole"
ROW_BYTES_MAX = 64 << 30  # of kept rows, in a temporary file
UNTRANSACTIONAL = frozenset(("MYISAM", "ARIA", "MEMORY", "CSV", "ARCHIVE", "MRG_MYISAM"))


class NotPlainError(Exception):
    """Kernels cannot go on: the reference has to read it all."""


class RowFold(EventFold):
    """The rows of tables at `position`, which moves forward. One thread at a time. `wanted` are generations whose rows
    are kept, None for all; row events of other tables are skipped."""

    def __init__(
        self,
        engine: LogEngine,
        timeline: SchemaTimeline,
        kept: KeptRows,
        start: LogPosition,
        bytes_max: int = ROW_BYTES_MAX,
        base: BaseDump | None = None,
        large: LargeRows | None = None,
        wanted: frozenset[int] | None = None,
    ) -> None:
        self.position = start
        super().__init__(
            engine, timeline, kept, SchemaPlace(start, 0), large_rows() if large is None else large, wanted
        )
        self.base = base
        self._bytes_max = bytes_max
        self._prepared: dict[str, LogPosition] = {}
        self._savepoints: dict[str, int] = {}
        self._savepoint_count = 0
        self._is_loaded = base is None

    def fork(self) -> Self:
        other = self._like(self.kept.fork())
        other._is_loaded = self._is_loaded
        other.layouts = self.layouts
        other.tables = {number: contents.fork(other.kept) for number, contents in self.tables.items()}
        other._complete, other._prepared = set(self._complete), dict(self._prepared)
        other._statements = self._statements.fork()
        other._temporary = set(self._temporary)
        return other

    def _like(self, kept: KeptRows) -> Self:
        settings = (self._bytes_max, self.base, self.large, self.wanted)
        return type(self)(self._engine, self._timeline, kept, self.position, *settings)

    def close(self) -> None:
        self.kept.close()

    def advance(self, end: LogPosition) -> None:
        """Read on up to a position. Raises FormatError, ClassicFormatError: a file is damaged; EventError: a group is;
        MissingTablesError: rows of more tables must be kept from the start."""
        if not self._is_loaded and self.base is not None:
            self._load(self.base)
        self._read(end)
        self.position = max(self.position, end)
        catalog = self._timeline.at(SchemaPlace(self.position, 0))
        alive = {table.generation for table in catalog.tables.values() if isinstance(table, TableVersion)}
        for number in self.tables.keys() - alive:
            self._forget(number)

    def _read(self, end: LogPosition) -> None:
        for log_range in self._engine.ranges(self.position, end, size=1 << 62):
            for group in self._engine.groups_in(log_range):
                check_wanted()
                if group.start < self.position:
                    continue
                if group.start >= end:
                    break
                gtid = group.gtid
                if gtid is None or (self.base is not None and self.base.has(gtid.domain_id, gtid.seq_no)):
                    _pass(group)
                else:
                    self._take(group)
                self.position = group.end

    def contents_of(self, table: TableVersion) -> TableContents:
        self._versions.clear()
        found = self.contents_now(table)
        self.kept.conclude()
        return found

    def _load(self, base: BaseDump) -> None:
        """Raises ConfigurationError: a row is none of its table."""
        self._gtid = str(base.position)
        for known in self._timeline.at(self._place).tables.values():
            if isinstance(known, TableVersion):
                self._complete.add(known.generation)
        for inserted in base.read():
            table = self._version(*inserted.table)
            if table is None:
                raise ConfigurationError(f"the dump has rows of {inserted.table}, and no CREATE TABLE of it")
            if not self.keeps(table):
                continue
            contents = self.contents_now(table)
            layout = self.layouts.add(own_columns(table))
            for column in columns_left_out(table, inserted):
                reason = f"the dump has no column {column.name}"
                contents.unknown_columns[column.id] = UnknownRows(self._gtid, reason)
            for rows in stored_rows(table, layout, inserted):
                contents.insert(layout, rows)
        self._is_loaded = True

    # Groups -----------------------------------------------------------------------------------

    def _take(self, group: EventGroup) -> None:
        self._gtid = str(group.gtid)
        self._savepoints.clear()
        self._savepoint_count = 0
        self.kept.savepoint(GROUP)
        try:
            if group.gtid_event[GTID_FLAGS_OFFSET] & GtidFlag.PREPARED_XA:
                self.prepare(group.gtid_event, group.start)
                _pass(group)
            else:
                self._apply(group_events(group), group.start)
        except (EventError, UndecodableError) as error:
            self.kept.undo(GROUP)
            raise EventError(f"group {self._gtid}: {error}") from error
        finally:
            self.kept.release(GROUP)
        self.expect_room()

    def prepare(self, gtid_event: bytes, start: LogPosition) -> None:
        self._prepared[xid_text(gtid_event) or ""] = start

    def expect_room(self) -> None:
        """If rows take too much, drop those that are gone, then the largest tables, until the others take half of
        it."""
        if self.kept.rows.size <= self._bytes_max:
            return
        self.kept.compact()
        while self.kept.rows.size > self._bytes_max // 2 and self.tables:
            sizes = {number: self.kept.size(number) for number in self.tables}
            largest = max(sizes, key=lambda number: sizes[number])
            reason = f"its rows take {sizes[largest]} bytes, which is too much: all rows may take {self._bytes_max}"
            self.doubt(self.tables[largest], reason)
            self.kept.compact()

    def _apply(self, events: Iterable[bytes], start: LogPosition) -> None:
        xid: str | None = None
        touched: dict[int, int] = {}
        self._is_replace = None
        for number, event, table in walk(events, self.large, lambda event, number: self._map(event, start, number)):
            check_wanted()
            self._place = SchemaPlace(start, number)
            if table is not None:
                touched[table.contents.number] = self._savepoint_count
                self._change(table, event)
            elif event[TYPE_OFFSET] == EventType.GTID:
                xid = xid_text(event)
            else:
                self._apply_other(event, xid, touched)

    def _apply_other(self, event: bytes, xid: str | None, touched: dict[int, int]) -> None:
        event_type = event[TYPE_OFFSET]
        if event_type in STATEMENT_TYPES:
            self._header = decode_event_header(event)
            self._state(decode_statement(event), xid, touched)
        elif event_type == EventType.ANNOTATE_ROWS:
            self._is_replace = is_of_replace(event)
        elif (lost := LOST.get(event_type)) is not None:
            self._take_all(self._statements.take(lost, self._place))

    def _state(self, statement: LoggedStatement, xid: str | None, touched: dict[int, int]) -> None:
        if statement.text.strip(" \n;").upper() in ("BEGIN", "COMMIT"):
            return
        cursor = statement_cursor(statement.text, statement.sql_mode, statement.server_version)
        if cursor.takes_words("XA"):
            self._complete_xa(xid or "", cursor.take().text.upper())
        elif (step := savepoint_step(cursor)) is not None:
            self._step_to_savepoint(step, touched)
        else:
            self._operate(statement, cursor)

    def _step_to_savepoint(self, step: SavepointStep, touched: dict[int, int]) -> None:
        """`touched` has how many savepoints were set when rows of a table last changed."""
        if not step.is_rollback:
            assert step.name is not None
            number = self._savepoints[step.name] = self._savepoint_count
            self._savepoint_count += 1
            self.kept.savepoint(f"s{number}")
            return
        number = -1 if step.name is None else self._savepoints.get(step.name, -1)
        self.kept.undo(GROUP if number < 0 else f"s{number}")
        is_known = step.name is None or number >= 0
        for table in self.tables.values():
            if table.is_doubtful or table.cleared_by == self._gtid:
                self.doubt(table, "a ROLLBACK beside changes in statement format")
        for table_no, count in touched.items():
            contents = self.tables.get(table_no)
            if contents is None:
                continue
            if not is_known:
                self.doubt(contents, f"ROLLBACK TO {step.name}, which is no savepoint of its group")
            elif count > number and engine_of(contents.table) in UNTRANSACTIONAL:
                self.doubt(contents, "a ROLLBACK, which its engine does not know")

    def _complete_xa(self, xid: str, verb: str) -> None:
        """A prepared transaction takes effect at XA COMMIT: its events are read where they are."""
        if verb not in ("COMMIT", "ROLLBACK"):
            return
        place = self._prepared.pop(xid, None)
        if verb == "ROLLBACK":
            return
        if place is None:
            reason = f"XA COMMIT of {xid}, which the log does not have"
            self._take_all(self._statements.everywhere(reason, self._place))
            return
        one = LogRange(file_no=place.file_no, start_offset=place.offset, end_offset=place.offset + 1)
        for group in self._engine.groups_in(one):
            self._apply((event for event in group_events(group) if event[TYPE_OFFSET] != EventType.GTID), place)


def is_of_replace(event: bytes) -> bool:
    head = event[EVENT_HEADER_SIZE : EVENT_HEADER_SIZE + STATEMENT_HEAD_SIZE]
    return statement_cursor(head.decode("utf-8", "replace")).peek().is_word("REPLACE")


def _pass(group: EventGroup) -> None:
    for _ in group.body:
        pass
