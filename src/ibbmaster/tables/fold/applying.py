"""Applies one event after the other to the rows of tables, and says what it cannot know of each."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ibbmaster.errors import EventError
from ibbmaster.logs.log.group_content import own_name
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, EventHeader
from ibbmaster.replication.event.rows.changes import KINDS, ChangeKind
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.replication.event.table_map import FLAG_NO_FOREIGN_KEY_CHECKS, TABLE_ID_SIZE, decode_rows_header
from ibbmaster.rows.certainty import Altered, Doubted, Fresh, Gone, Outcome, RowsGone, SchemaTimeline, StatementFold
from ibbmaster.rows.effects import Effect, Emptied, PartitionStep, WrittenTables, effects_of
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.session import SchemaSession
from ibbmaster.schema.view_text import sequence_options
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.versions import Difference, version_number
from .cascades import (
    Children,
    FollowedTables,
    ForeignChange,
    MissingTablesError,
    cascade,
    doubt_below,
    parent_changes,
    referred_columns,
)
from .contents import ENDS_2038, ENDS_2106, UNTOLD, TableContents
from .kept_rows import KeptRows
from .partitions import move_rows
from .row_doubts import UnknownRows
from .row_events import MappedTable
from .stored import InexactRowsError, StoredLayouts, mapped_columns, own_columns

INSERTS = frozenset(number for number, kind in KINDS.items() if kind is ChangeKind.INSERT)
FLAG_THREAD_SPECIFIC = 0x4  # of an event: it is about temporary tables, or depends on its session otherwise
NO_FOREIGN_KEY_CHECKS = 1 << 26  # of a session
WITHOUT_BEGINNING = "the log does not begin with its CREATE TABLE; give a base (--base DUMP)"


class EventFold:
    """The tables of a fold at the current event, which subclasses read. `wanted`: generations whose rows are kept;
    None: all."""

    def __init__(
        self,
        engine: LogEngine,
        timeline: SchemaTimeline,
        kept: KeptRows,
        place: SchemaPlace,
        large: LargeRows,
        wanted: frozenset[int] | None,
    ) -> None:
        self.large = large
        self.wanted = wanted
        self.tables: dict[int, TableContents] = {}  # by generation
        self.kept = kept
        self.layouts = StoredLayouts()
        self._followed = FollowedTables(timeline, wanted)
        self._engine = engine
        self._timeline = timeline
        self._complete: set[int] = set()
        self._statements = StatementFold(timeline)
        self._versions: dict[tuple[str, str], TableVersion | None] = {}
        self._mapped: dict[bytes, MappedTable | None] = {}  # by TABLE_MAP, until a statement may change it
        self._temporary: set[tuple[tuple[int, int], TableName]] = set()  # tables of sessions
        self._header = EventHeader(0, 0, 0, 0, 0, 0)
        self._statement: LoggedStatement | None = None
        self._is_replace: bool | None = None  # what the last ANNOTATE_ROWS says
        self._moved: tuple[SchemaPlace, PartitionStep] | None = None
        self._gtid = ""
        self._place = place

    def keeps(self, table: TableVersion) -> bool:
        return self._followed.keeps(table)

    def _map(self, event: bytes, start: LogPosition, number: int) -> MappedTable | None:
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
        if table.kind is TableKind.VIEW or not self._followed.follows(table, self._place):
            return None
        contents = self.contents_now(table)
        try:
            layout = self.layouts.add(mapped_columns(decode_table_schema(event), table))
        except (EventError, ValueError) as error:
            self.doubt(contents, str(error))
            doubt_below(self, table)
            return None
        return MappedTable(contents, layout, self.large)

    def _version(self, database: str, name: str) -> TableVersion | None:
        key = (database, name)
        if key not in self._versions:
            found = self._timeline.table_at(database, name, self._place)
            self._versions[key] = found if isinstance(found, TableVersion) else None
        return self._versions[key]

    def contents_now(self, table: TableVersion) -> TableContents:
        contents = self.tables.get(table.generation)
        if contents is None:
            contents = self.tables[table.generation] = TableContents(self.kept, table.generation, table, self.layouts)
            if table.generation not in self._complete:
                contents.unknown = UnknownRows(table.gtid or self._gtid, WITHOUT_BEGINNING)
            elif table.kind is TableKind.SEQUENCE:
                contents.set_sequence(_first_state(table), self.layouts.add(own_columns(table)))
            self._see_engine(contents)
        elif contents.table is not table:
            self._alter(contents, table)
            self._see_engine(contents)
        return contents

    def _see_engine(self, contents: TableContents) -> None:
        if not self._statements.keeps_rows(contents.table):
            self.kept.drop(contents.number)
            contents.unknown = None
            contents.unknown_columns.clear()
        elif (reason := self._statements.engine_reason(contents.table)) is not None:
            self.doubt(contents, reason)

    def _change(self, mapped: MappedTable, event: bytes, first: int = 0) -> None:
        contents = mapped.contents
        if contents.table.is_versioned:
            contents.ends = self._ends_of(event)
        if contents.table.kind is TableKind.SEQUENCE:
            contents.unknown = None  # a whole image has all of its state
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
        """The end of rows that hold now; an upgraded server leaves the older one in existing rows."""
        engine, file_no = self._engine, self._place.position.file_no
        version = version_number(engine.server_version_of(file_no))
        if not version or event[TYPE_OFFSET] not in INSERTS:
            return ENDS_2038, ENDS_2106
        return (ENDS_2106,) if Difference.HISTORY_ENDS_IN_2106.holds(version) else (ENDS_2038,)

    def _changes_of_parent(self, mapped: MappedTable, event: bytes) -> list[ForeignChange]:
        table = mapped.contents.table
        if event[TYPE_OFFSET] in INSERTS or not (children := self.children_of(table)):
            return []
        if decode_rows_header(event).flags & FLAG_NO_FOREIGN_KEY_CHECKS:
            return []
        try:
            return list(parent_changes(mapped, event, referred_columns(children)))
        except InexactRowsError:
            doubt_below(self, table)
            return []

    def children_of(self, table: TableVersion) -> Children:
        return self._followed.children_of(table.database, table.name, self._place)

    # Statements -------------------------------------------------------------------------------

    def _operate(self, statement: LoggedStatement, cursor: Cursor) -> None:
        effects = effects_of(statement, cursor)
        if not effects or not isinstance(effects[0], WrittenTables):
            self._versions.clear()
            self._mapped.clear()
            self._followed.forget()
            self._note_temporary(statement, effects)
        self._statement = statement
        for effect in effects:
            if isinstance(effect, WrittenTables):
                self._write(effect, statement)
            else:
                self._take_all(self._statements.take(effect, self._place))
        self._statement = None

    def _note_temporary(self, statement: LoggedStatement, effects: Sequence[Effect]) -> None:
        own = self._header.server_id, statement.thread_id
        if self._temporary:
            named = {word.lower() for word in re.findall(r"\w+", statement.text)}
            self._temporary -= {one for one in self._temporary if one[0] == own and one[1].name.lower() in named}
        if statement.text.lstrip()[:6].upper() == "CREATE" and not statement.error_code:
            self._temporary |= {(own, one.table) for one in effects if isinstance(one, Emptied) and one.is_temporary}

    def _write(self, effect: WrittenTables, statement: LoggedStatement) -> None:
        """Apply a change in statement format, and what foreign keys may have made of it."""
        if self._header.flags & FLAG_THREAD_SPECIFIC and effect.tables is not None:
            own = self._header.server_id, statement.thread_id
            tables = tuple(one for one in effect.tables if (own, one) not in self._temporary)
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
        for child, _ in self._followed.children_of(database, name, self._place):
            contents = self.contents_now(child)
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
                    self.contents_now(table)
                case Doubted(step=PartitionStep() as step) if self._moves(step):
                    pass
                case RowsGone(table=table) if self.keeps(table):
                    self.contents_now(table).clear(self._gtid)
                case Doubted(table=table) if self.keeps(table):
                    self._take_doubt(self.contents_now(table), outcome)

    def _moves(self, step: PartitionStep) -> bool:
        """Whether the current statement moved or removed known rows of partitions. Raises MissingTablesError: rows of
        one more table must be kept."""
        if self._moved == (self._place, step):
            return True
        before, after = (find(step.table, self._place) for find in (self._statements.before, self._statements.after))
        find = self._statements.after if step.is_split else self._statements.before
        other = None if step.other is None else find(step.other, self._place)
        if before is None or after is None or (step.other is not None and other is None):
            return False
        involved = [one for one in (after, other) if one is not None]
        if not any(map(self.keeps, involved)):
            return True
        if missing := frozenset(one.generation for one in involved if not self.keeps(one)):
            raise MissingTablesError(missing)
        if step.is_split and other is not None:
            self._complete.add(other.generation)
        contents = [self.contents_now(one) for one in involved]
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

    def _alter(self, contents: TableContents, table: TableVersion) -> None:
        one = self._statement
        session = UNTOLD if one is None else SchemaSession.of(one, self._header.timestamp)
        try:
            contents.alter(table, table.gtid or self._gtid, session)
        except (InexactRowsError, EventError, ValueError) as error:
            self.doubt(contents, f"ALTER TABLE: {error}")

    # Doubts -----------------------------------------------------------------------------------

    def _take_doubt(self, contents: TableContents, doubted: Doubted) -> None:
        if doubted.leaves:
            contents.doubt_more(UnknownRows(self._gtid, doubted.reason))
        elif not (doubted.adds or contents.has_rows):
            return
        elif doubted.is_open and (contents.unknown is None or contents.is_open):
            contents.forget(UnknownRows(self._gtid, doubted.reason), is_open=True)
        else:
            self.doubt(contents, doubted.reason)

    def doubt(self, contents: TableContents, reason: str) -> None:
        if contents.unknown is None or contents.is_open:
            contents.forget(UnknownRows(self._gtid, reason), is_open=False)


def _first_state(table: TableVersion) -> list[int]:
    options = sequence_options(table)
    limits = [options.minimum, options.maximum, options.start]
    return [options.start, *limits, options.increment, options.cache, int(options.is_cycling), 0]
