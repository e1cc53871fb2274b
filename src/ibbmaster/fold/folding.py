"""Reads a log forward, and changes the rows of its tables as it goes; what it cannot tell exactly, it says by table."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

from ibbmaster.errors import ConfigurationError, EventError, UndecodableError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, EventHeader, decode_event_header
from ibbmaster.event.rows.changes import KINDS, ChangeKind
from ibbmaster.event.rows.large import LargeRows
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.statement.logged import STATEMENT_TYPES, LoggedStatement, decode_statement
from ibbmaster.event.statement.savepoint import SavepointStep, savepoint_step
from ibbmaster.event.table_map import FLAG_NO_FOREIGN_KEY_CHECKS, TABLE_ID_SIZE, decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.fold.base_rows import BaseDump, columns_left_out, stored_rows
from ibbmaster.fold.cascades import (
    CASCADING,
    Children,
    ForeignChange,
    cascade,
    doubt_below,
    parent_changes,
    referred_columns,
)
from ibbmaster.fold.contents import ENDS_2038, ENDS_2106, UNTOLD, InexactRowsError, TableContents, first_value
from ibbmaster.fold.kept_rows import KeptRows
from ibbmaster.fold.partitions import move_rows
from ibbmaster.fold.row_doubts import UnknownRows
from ibbmaster.fold.row_events import MappedTable
from ibbmaster.fold.stored import StoredLayouts, mapped_columns, own_columns
from ibbmaster.gtid import Gtid
from ibbmaster.log.group_content import group_events, own_name, xid_text
from ibbmaster.log.interface import LogEngine
from ibbmaster.log.large_rows import large_rows
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import LogPosition
from ibbmaster.rows.certainty import (
    MERGED,
    Altered,
    Doubted,
    Fresh,
    Gone,
    Outcome,
    RowsGone,
    SchemaTimeline,
    StatementFold,
    engine_of,
)
from ibbmaster.rows.effects import LOST, Effect, Emptied, PartitionStep, WrittenTables, effects_of
from ibbmaster.rows.walk import walk
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.ddl import statement_cursor
from ibbmaster.schema.model import ForeignConstraint, SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.session import SchemaSession
from ibbmaster.schema.view_text import sequence_options
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.versions import Difference, version_number
from ibbmaster.work import check_wanted

INSERTS = frozenset(number for number, kind in KINDS.items() if kind is ChangeKind.INSERT)
FLAG_THREAD_SPECIFIC = 0x4  # of an event: it is about temporary tables, or hangs on its session in another way
STATEMENT_HEAD_SIZE = 1 << 10  # bytes, in which the first word of a statement is
NO_FOREIGN_KEY_CHECKS = 1 << 26  # of the flags of a session
WITHOUT_BEGINNING = "the log does not begin with its CREATE TABLE; give a base (--base DUMP)"
GROUP = "whole"  # the savepoint of a group
ROW_BYTES_MAX = 64 << 30  # of all rows that are kept, in a temporary file
UNTRANSACTIONAL = frozenset(("MYISAM", "ARIA", "MEMORY", "CSV", "ARCHIVE", "MRG_MYISAM"))


class MissingTablesError(Exception):
    """What becomes of the tables that are kept is told by others, too, whose rows were not kept from the start."""

    def __init__(self, generations: frozenset[int]) -> None:
        super().__init__(generations)
        self.generations = generations


class NotPlainError(Exception):
    """Kernels cannot go on: the reference has to read it all."""


class RowFold:
    """The rows of tables at `position`, which goes forward. One thread at a time. `wanted` are the generations whose
    rows are kept, None for all; row events of other tables are passed over."""

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
        self.wanted = wanted
        self._large = large_rows() if large is None else large
        self._bytes_max = bytes_max
        self.tables: dict[int, TableContents] = {}  # by generation
        self.kept = kept
        self.layouts = StoredLayouts()
        self._engine = engine
        self._timeline = timeline
        self._complete: set[int] = set()  # generations that were emptied while we looked
        self._prepared: dict[str, LogPosition] = {}  # XA transactions: where the group is
        self._statements = StatementFold(timeline)
        self._savepoints: dict[str, int] = {}  # of the group, by name
        self._savepoint_count = 0
        self._touched: dict[int, int] = {}  # how many were set when rows of a table last changed in the group
        self._versions: dict[tuple[str, str], TableVersion | None] = {}
        self._mapped: dict[bytes, MappedTable | None] = {}  # by TABLE_MAP, until the next statement that may change it
        self._children: dict[tuple[str, str], list[tuple[TableVersion, ForeignConstraint]]] | None = None
        self._followed: dict[tuple[str, str], Children] = {}  # of those, the children whose rows are kept
        self._temporary: set[tuple[tuple[int, int], TableName]] = set()  # tables of sessions
        self._header = EventHeader(0, 0, 0, 0, 0, 0)  # of the statement that is read
        self._is_replace: bool | None = None  # what the last ANNOTATE_ROWS says of the row events after it
        self._moved: tuple[SchemaPlace, PartitionStep] | None = None
        self._statement: LoggedStatement | None = None  # the current one
        self._gtid = ""
        self._place = SchemaPlace(start, 0)
        self._base = base
        self._is_loaded = base is None

    def fork(self) -> Self:
        """The same, to go on from by itself."""
        other = self._like(self.kept.fork())
        other._is_loaded = self._is_loaded
        other.layouts = self.layouts
        other.tables = {number: contents.fork(other.kept) for number, contents in self.tables.items()}
        other._complete, other._prepared = set(self._complete), dict(self._prepared)
        other._statements = self._statements.fork()
        other._temporary = set(self._temporary)
        return other

    def _like(self, kept: KeptRows) -> Self:
        """With the same settings, at the same position."""
        settings = (self._bytes_max, self._base, self._large, self.wanted)
        return type(self)(self._engine, self._timeline, kept, self.position, *settings)

    def close(self) -> None:
        """Forget all of it."""
        self.kept.close()

    def advance(self, end: LogPosition) -> None:
        """Read on up to a position.

        Raises:
            FormatError, ClassicFormatError: a file of the log is damaged.
            EventError: a group is.
            MissingTablesError: rows of more tables must be kept, from the start on.
        """
        if not self._is_loaded and self._base is not None:
            self._load(self._base)
        self._read(end)
        self.position = max(self.position, end)
        self._forget_dropped()

    def _read(self, end: LogPosition) -> None:
        """Apply all groups up to a position."""
        for log_range in self._engine.ranges(self.position, end, size=1 << 62):
            for group in self._engine.groups_in(log_range):
                check_wanted()
                if group.start < self.position:
                    continue
                if group.start >= end:
                    break
                if group.gtid is not None and not self._is_in_base(group.gtid):
                    self._take(group)
                else:
                    for _ in group.body:
                        pass
                self.position = group.end

    def keeps(self, table: TableVersion) -> bool:
        """Whether the rows of a table are kept."""
        return self.wanted is None or table.generation in self.wanted

    def contents_of(self, table: TableVersion) -> TableContents:
        """The rows of a table as it is at `position`, if they are kept."""
        self._versions.clear()
        found = self._contents(table)
        self.kept.conclude()
        return found

    # The base ---------------------------------------------------------------------------------

    def _load(self, base: BaseDump) -> None:
        """The rows that there were before. Raises ConfigurationError: a row is none of its table."""
        self._gtid = str(base.position)
        for known in self._timeline.at(self._place).tables.values():
            if isinstance(known, TableVersion):
                self._complete.add(known.generation)  # also those that had no rows
        for inserted in base.read():
            table = self._version(*inserted.table)
            if table is None:
                name = TableName(*inserted.table)
                raise ConfigurationError(f"the dump has rows of {name}, and no CREATE TABLE of it")
            if not self.keeps(table):
                continue
            contents = self._contents(table)
            layout = self.layouts.add(own_columns(table))
            for column in columns_left_out(table, inserted):
                reason = f"the dump has no column {column.name}"
                contents.unknown_columns[column.id] = UnknownRows(self._gtid, reason)
            for rows in stored_rows(table, layout, inserted):
                contents.insert(layout, rows)
        self._is_loaded = True

    def _is_in_base(self, gtid: Gtid) -> bool:
        """Whether what a group did is in the base already."""
        reached = None if self._base is None else self._base.position.get(gtid.domain_id)
        return reached is not None and gtid.seq_no <= reached.seq_no

    # Groups -----------------------------------------------------------------------------------

    def _take(self, group: EventGroup) -> None:
        self._gtid = str(group.gtid)
        self._savepoints.clear()
        self._savepoint_count = 0
        self.kept.savepoint(GROUP)
        try:
            flags = group.gtid_event[GTID_FLAGS_OFFSET]
            if flags & GtidFlag.PREPARED_XA:
                self._prepared[xid_text(group.gtid_event) or ""] = group.start
                for _ in group.body:
                    pass
            else:
                self._apply(group_events(group), group.start)
        except (EventError, UndecodableError) as error:
            self.kept.undo(GROUP)
            raise EventError(f"group {self._gtid}: {error}") from error
        finally:
            self.kept.release(GROUP)
        self.expect_room()

    def expect_room(self) -> None:
        """If rows take more than they may: leave out those that are gone, and then the largest table, until the others
        take half of it."""
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
        """Everything that a group does."""
        xid: str | None = None
        touched = self._touched = {}
        self._is_replace = None
        for number, event, table in walk(events, self._large, lambda event, number: self._map(event, start, number)):
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
        """What an event does that is no row event."""
        event_type = event[TYPE_OFFSET]
        if event_type in STATEMENT_TYPES:
            self._header = decode_event_header(event)
            self._state(decode_statement(event), xid, touched)
        elif event_type == EventType.ANNOTATE_ROWS:
            self._is_replace = is_of_replace(event)
        elif (lost := LOST.get(event_type)) is not None:
            self._take_all(self._statements.take(lost, self._place))

    def _state(self, statement: LoggedStatement, xid: str | None, touched: dict[int, int]) -> None:
        """What a statement does, beyond the row events beside it."""
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
        """Set a savepoint, or go back to one; `touched` has how many were set when rows of a table last changed."""
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
        """XA COMMIT makes that happen what was prepared; its events are read where they are."""
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
            events = (event for event in group_events(group) if event[TYPE_OFFSET] != EventType.GTID)
            self._apply(events, place)

    # Rows -------------------------------------------------------------------------------------

    def _map(self, event: bytes, start: LogPosition, number: int) -> MappedTable | None:
        """The table that a TABLE_MAP names; None for one whose rows are not known anyway."""
        self._place = SchemaPlace(start, number)
        key = event[EVENT_HEADER_SIZE + TABLE_ID_SIZE :]
        if key not in self._mapped:
            self._mapped[key] = self._new_map(event)
        return self._mapped[key]

    def _new_map(self, event: bytes) -> MappedTable | None:
        called = own_name(event)
        table = self._version(*called)
        if table is None:
            self._doubt_children(*called, ", whose columns are not known, may change rows")
            return None
        if table.kind is TableKind.VIEW or not self._is_followed(table):
            return None
        contents = self._contents(table)
        try:
            layout = self.layouts.add(mapped_columns(decode_table_schema(event), table))
        except (EventError, ValueError) as error:
            self.doubt(contents, str(error))
            doubt_below(self, table)
            return None
        return MappedTable(contents, layout, self._large)

    def _is_followed(self, table: TableVersion) -> bool:
        """Whether row events of a table say something of rows that are kept. Raises MissingTablesError: they do, and
        its own are not kept."""
        if self.keeps(table) or engine_of(table) in MERGED:
            return True
        if needed := self._leading_to_wanted(table, frozenset()):
            raise MissingTablesError(needed)
        return False

    def _leading_to_wanted(self, table: TableVersion, passed: frozenset[int]) -> frozenset[int]:
        """The tables from this one on whose foreign keys change rows of a table that is kept; none if that is so."""
        found: frozenset[int] = frozenset()
        passed |= {table.generation}
        for child, _ in self._children_named(table.database, table.name):
            if self.keeps(child):
                found |= {table.generation}
            elif child.generation not in passed and (more := self._leading_to_wanted(child, passed)):
                found |= more | {table.generation}
        return found

    def _version(self, database: str, name: str) -> TableVersion | None:
        key = (database, name)
        if key not in self._versions:
            found = self._timeline.table_at(database, name, self._place)
            self._versions[key] = found if isinstance(found, TableVersion) else None
        return self._versions[key]

    def _contents(self, table: TableVersion) -> TableContents:
        contents = self.tables.get(table.generation)
        if contents is None:
            contents = self.tables[table.generation] = TableContents(self.kept, table.generation, table, self.layouts)
            if table.generation not in self._complete:
                since = table.gtid or self._gtid
                contents.unknown = UnknownRows(since, WITHOUT_BEGINNING)
            elif table.kind is TableKind.SEQUENCE:
                contents.set_sequence(_first_state(table), self.layouts.add(own_columns(table)))
            self._see_engine(contents)
        elif contents.table is not table:
            self._alter(contents, table)
            self._see_engine(contents)
        return contents

    def _see_engine(self, contents: TableContents) -> None:
        """What the engine of a table says of its rows."""
        if not self._statements.keeps_rows(contents.table):
            self.kept.drop(contents.number)
            contents.unknown = None
            contents.unknown_columns.clear()
        elif (reason := self._statements.engine_reason(contents.table)) is not None:
            self.doubt(contents, reason)

    def _change(self, mapped: MappedTable, event: bytes, first: int = 0) -> None:
        """Apply a row event, from the row on that is at `first`."""
        contents = mapped.contents
        if contents.table.is_versioned:
            contents.ends = self._ends_of(event)
        if contents.table.kind is TableKind.SEQUENCE:
            contents.unknown = None  # an event has all of its state, if its image is whole
        changes = self._changes_of_parent(mapped, event)
        is_lost = contents.unknown is not None and not contents.is_open
        if is_lost or not self._statements.keeps_rows(contents.table):
            self._take_all(self._statements.merged(contents.table, "its rows are changed", self._place))
        else:
            try:
                mapped.change(event, self._gtid, first, is_replace=self._is_replace)
            except InexactRowsError as error:
                self.doubt(contents, str(error))
        if changes:
            cascade(self, contents.table, changes, self._gtid)

    def _ends_of(self, event: bytes) -> tuple[bytes, ...]:
        """When rows end that hold now; a server that was upgraded leaves it in rows that are there."""
        engine, file_no = self._engine, self._place.position.file_no
        version = version_number(engine.server_version_of(file_no))
        if not version or event[TYPE_OFFSET] not in INSERTS:
            return ENDS_2038, ENDS_2106
        return (ENDS_2106,) if Difference.HISTORY_ENDS_IN_2106.holds(version) else (ENDS_2038,)

    def _changes_of_parent(self, mapped: MappedTable, event: bytes) -> list[ForeignChange]:
        """What a row event does to rows that foreign keys refer to."""
        table = mapped.contents.table
        if event[TYPE_OFFSET] in INSERTS or not (children := self.children_of(table)):
            return []
        if decode_rows_header(event).flags & FLAG_NO_FOREIGN_KEY_CHECKS:
            return []  # then a server leaves the children as they are
        try:
            return list(parent_changes(mapped, event, referred_columns(children)))
        except InexactRowsError:
            doubt_below(self, table)
            return []

    def children_of(self, table: TableVersion) -> Children:
        """The tables whose foreign keys to a table change rows of theirs, and these keys."""
        return self._followed_children(table.database, table.name)

    def _followed_children(self, database: str, name: str) -> Children:
        """Those whose rows are kept. Raises MissingTablesError: rows of others must be kept, too."""
        found = self._followed.get((database, name))
        if found is None:
            found = [one for one in self._children_named(database, name) if self._is_followed(one[0])]
            self._followed[database, name] = found
        return found

    def _children_named(self, database: str, name: str) -> Children:
        if self._children is None:
            self._children = {}
            self._followed.clear()
            for child in self._timeline.at(self._place).tables.values():
                if not isinstance(child, TableVersion):
                    continue
                for key in child.foreign_keys:
                    if CASCADING & {key.on_delete, key.on_update}:
                        self._children.setdefault((key.parent_database, key.parent_table), []).append((child, key))
        return self._children.get((database, name), [])

    def contents_now(self, table: TableVersion) -> TableContents:
        """The rows of a table as it is at the event that is read."""
        return self._contents(table)

    # Statements -------------------------------------------------------------------------------

    def _operate(self, statement: LoggedStatement, cursor: Cursor) -> None:
        effects = effects_of(statement, cursor)
        if not effects or not isinstance(effects[0], WrittenTables):  # also CREATE INDEX and its like
            self._versions.clear()
            self._mapped.clear()
            self._children = None
            self._followed.clear()
            self._note_temporary(statement, effects)
        self._statement = statement
        for effect in effects:
            if isinstance(effect, WrittenTables):
                self._write(effect, statement)
            else:
                self._take_all(self._statements.take(effect, self._place))
        self._statement = None

    def _session_of(self, statement: LoggedStatement) -> tuple[int, int]:
        """Server and thread that have run a statement."""
        return self._header.server_id, statement.thread_id

    def _note_temporary(self, statement: LoggedStatement, effects: Sequence[Effect]) -> None:
        """Temporary tables come and go, and hide others from their session that are called so."""
        if self._temporary:
            named = {word.lower() for word in re.findall(r"\w+", statement.text)}
            self._temporary -= {
                (session, table)
                for session, table in self._temporary
                if session == self._session_of(statement) and table.name.lower() in named
            }
        if statement.text.lstrip()[:6].upper() == "CREATE" and not statement.error_code:
            self._temporary |= {
                (self._session_of(statement), one.table)
                for one in effects
                if isinstance(one, Emptied) and one.is_temporary
            }

    def _write(self, effect: WrittenTables, statement: LoggedStatement) -> None:
        """What a change of rows in statement format may have changed, and what foreign keys made of that."""
        if self._header.flags & FLAG_THREAD_SPECIFIC and effect.tables is not None:
            session = self._session_of(statement)
            tables = tuple(one for one in effect.tables if (session, one) not in self._temporary)
            effect = replace(effect, tables=tables, empties=False)
        outcomes = list(self._statements.take(effect, self._place, statement.text))
        self._take_all(outcomes)
        if (statement.flags or 0) & NO_FOREIGN_KEY_CHECKS:
            return
        parents = dict.fromkeys(effect.tables or () if effect.changes else ())
        for outcome in outcomes:
            if isinstance(outcome, RowsGone) or (isinstance(outcome, Doubted) and not outcome.leaves):
                parents[TableName(outcome.table.database, outcome.table.name)] = None
        for parent in parents:
            self._doubt_children(*parent)

    def _doubt_children(self, database: str, name: str, why: str = " deletes or changes rows without an event") -> None:
        """A parent's foreign keys may have changed or removed rows of its children."""
        for child, _ in self._followed_children(database, name):
            contents = self._contents(child)
            if contents.has_rows:
                self.doubt(contents, f"its foreign key to {TableName(database, name)}{why}")
            doubt_below(self, child)

    def _take_all(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case Gone(generation=generation):
                    self._forget(generation)
                case Fresh(table=table):
                    self._complete.add(table.generation)
                case Altered(table=table) if table.generation in self.tables:
                    self._contents(table)  # what that does to its rows must be seen before the next one comes
                case Doubted(step=PartitionStep() as step) if self._moves(step):
                    pass
                case RowsGone(table=table) if self.keeps(table):
                    self._contents(table).clear(self._gtid)
                case Doubted(table=table) if self.keeps(table):
                    self._take_doubt(self._contents(table), outcome)

    def _moves(self, step: PartitionStep) -> bool:
        """Whether rows of partitions went, or went elsewhere, as the statement has it that is read. Raises
        MissingTablesError: rows of one more table must be kept."""
        if self._moved == (self._place, step):
            return True  # as the other table was told of
        before, after = (find(step.table, self._place) for find in (self._statements.before, self._statements.after))
        if before is None or after is None:
            return False
        find = self._statements.after if step.is_split else self._statements.before
        other = None if step.other is None else find(step.other, self._place)
        if step.other is not None and other is None:
            return False
        involved = [one for one in (after, other) if one is not None]
        if not any(map(self.keeps, involved)):
            return True
        if missing := frozenset(one.generation for one in involved if not self.keeps(one)):
            raise MissingTablesError(missing)
        if step.is_split and other is not None:
            self._complete.add(other.generation)
        contents = [self._contents(one) for one in involved]
        for one in contents:
            one.spread_doubts(one.table)
        if any(one.unknown is not None or one.is_doubtful for one in contents):
            return False
        try:
            move_rows(step, contents, before, after)
        except (InexactRowsError, NotUnderstoodError, EventError, ValueError):
            return False
        self._moved = (self._place, step)
        return True

    def _forget(self, number: int) -> None:
        self.tables.pop(number, None)
        self.kept.drop(number)

    def _forget_dropped(self) -> None:
        """Rows of tables that are no more, however they went."""
        catalog = self._timeline.at(SchemaPlace(self.position, 0))
        alive = {table.generation for table in catalog.tables.values() if isinstance(table, TableVersion)}
        for number in [number for number in self.tables if number not in alive]:
            self._forget(number)

    def _alter(self, contents: TableContents, table: TableVersion) -> None:
        """Rows get another version of their table; what they hold in it may not be known."""
        gtid = table.gtid or self._gtid
        old = {column.id for column in contents.table.columns}
        if contents.has_rows:
            own = {column.id: column for column in own_columns(table)}
            for column in table.columns:
                if column.id in old or column.expression is not None:
                    continue
                try:
                    first_value(column, own[column.id])
                except InexactRowsError as error:
                    contents.lose_column(column.id, UnknownRows(gtid, f"ADD COLUMN: {error}"))
        one = self._statement
        session = UNTOLD if one is None else SchemaSession.of(one, self._header.timestamp)
        try:
            for column_id, reason in contents.alter(table, session).items():
                contents.lose_column(column_id, UnknownRows(gtid, reason))
        except (InexactRowsError, EventError, ValueError) as error:
            self.doubt(contents, f"ALTER TABLE: {error}")

    # Doubts -----------------------------------------------------------------------------------

    def _take_doubt(self, contents: TableContents, doubted: Doubted) -> None:
        if doubted.leaves:
            contents.doubt_more(UnknownRows(self._gtid, doubted.reason))
        elif not (doubted.adds or contents.has_rows):
            return  # there is no row that could be another one
        elif doubted.is_open and (contents.unknown is None or contents.is_open):
            contents.forget(UnknownRows(self._gtid, doubted.reason), is_open=True)
        else:
            self.doubt(contents, doubted.reason)

    def doubt(self, contents: TableContents, reason: str) -> None:
        """From here on the rows of a table are not known; those that are kept are of no use."""
        if contents.unknown is None or contents.is_open:
            contents.forget(UnknownRows(self._gtid, reason), is_open=False)


def is_of_replace(event: bytes) -> bool:
    """Whether an ANNOTATE_ROWS event is of a REPLACE."""
    head = event[EVENT_HEADER_SIZE : EVENT_HEADER_SIZE + STATEMENT_HEAD_SIZE]
    return statement_cursor(head.decode("utf-8", "replace")).peek().is_word("REPLACE")


def _first_state(table: TableVersion) -> list[int]:
    """The row of a sequence that nothing has taken a value from."""
    options = sequence_options(table)
    limits = [options.minimum, options.maximum, options.start]
    return [options.start, *limits, options.increment, options.cache, int(options.is_cycling), 0]
