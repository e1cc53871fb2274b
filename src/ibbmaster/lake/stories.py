"""What the statements of a log come to for a table: where it was emptied, and what row events do not say of its rows.

Statements are folded in the order of the log. What is noted of a table is what bears on its
rows; its columns only as far as they say what a value is that an image leaves out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ibbmaster.event.statement.altering import (
    AddColumn,
    AddForeignKey,
    AddVersioning,
    ChangeColumn,
    ChangeRows,
    Clause,
    DropColumn,
    DropConstraint,
    MoveRows,
    SetDefault,
    SetEngine,
)
from ibbmaster.event.statement.definition import ColumnClause, ForeignKey, parse_column
from ibbmaster.event.statement.engine import BLACKHOLE, EngineOption, rows_are_elsewhere
from ibbmaster.event.statement.operations import (
    Alter,
    Create,
    CreateRoutine,
    Drop,
    DropDatabase,
    Operation,
    Rename,
    Truncate,
    Write,
)
from ibbmaster.lake.statements import Logged
from ibbmaster.rows.keeps import keeps_values
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.column_type import resolve_type
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.session import DEFAULT_COLLATION, SchemaSession
from ibbmaster.schema.type_clause import parse_type
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import tokens

Place = tuple[int, int]  # of a group: file number, offset
START: Place = (-1, -1)
_KEEPS_NONE = "its engine BLACKHOLE keeps no rows"
_MERGED = "rows may be changed through a MERGE table"


class Truncation(NamedTuple):
    """Rows up to here are no more: those of groups that begin at `place` or before it."""

    place: Place
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Rows have changed, and no event says how.

    It counts only if the table `rows_of` had changes of rows between `since` and `place`; None:
    in any case. With `column` only values of that are meant.
    """

    place: Place
    gtid: str
    reason: str
    rows_of: str | None = None
    since: Place = START
    column: str | None = None


@dataclass(slots=True, kw_only=True)
class Cascade:
    """From `place` on changes of a parent may change rows of the table."""

    key: ForeignKey
    place: Place


@dataclass(slots=True)
class Story:
    """A table, as far as the statements of a log say.

    Attributes:
        is_whole: the log has it from its beginning: it was created, or dropped, there.
        columns: by name; None if no statement names them.
        engine: in capitals; empty if no statement names it.
        cuts, doubts: in the order of the log.
        past_doubts: those of rows that were gone later.
    """

    is_whole: bool = False
    is_versioned: bool = False
    columns: dict[str, ColumnClause] | None = None
    engine: str = ""
    dropped: set[str] = field(default_factory=set)
    cascades: list[Cascade] = field(default_factory=list)
    cuts: list[Truncation] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    past_doubts: list[Doubt] = field(default_factory=list)

    @property
    def begin(self) -> Place:
        """Behind which its rows are those that it has."""
        return self.cuts[-1].place if self.cuts else START


class Stories:
    """All tables of a log. `declared` has columns by table that a user names and no statement."""

    @classmethod
    def declared(cls, declarations: Mapping[str, Mapping[str, str]], case: NameCase = NameCase.EXACT) -> Stories:
        """With the columns that a user has declared, by table: name and type."""
        return cls(
            {
                case.key(table): {name: parse_column(list(tokens(text))) for name, text in columns.items()}
                for table, columns in declarations.items()
            },
            case,
        )

    def __init__(
        self, declared: Mapping[str, dict[str, ColumnClause]] | None = None, case: NameCase = NameCase.EXACT
    ) -> None:
        self._declared = declared or {}
        self._case = case
        self._tables: dict[str, Story] = {}
        self._dropped: dict[str, list[Truncation]] = {}  # databases
        self._temporary: set[tuple[int, str]] = set()  # by thread
        self._has_routines = False
        self._anywhere: list[Doubt] = []

    def tell(self, statements: Iterable[Logged]) -> Stories:
        """Fold some more of a log."""
        for one in statements:
            for operation in one.operations:
                self._apply(one, _found_by(operation, self._case) if self._case.folds else operation)
        return self

    def of(self, table: str) -> Story:
        """What is known of a table."""
        story = copy.deepcopy(self._story(table))
        anywhere = [doubt for doubt in self._anywhere if doubt.place > story.begin]
        story.doubts = sorted([*story.doubts, *anywhere], key=lambda doubt: doubt.place)
        past = [doubt for doubt in self._anywhere if doubt.place <= story.begin]
        story.past_doubts = sorted([*story.past_doubts, *past], key=lambda doubt: doubt.place)
        return story

    def ancestors(self, table: str) -> list[Cascade]:
        """The keys over which changes of other tables may reach the rows of a table, also in several steps."""
        found: list[Cascade] = []
        known = {table}
        waiting = list(self._story(table).cascades)
        while waiting:
            cascade = waiting.pop(0)
            found.append(cascade)
            if cascade.key.parent not in known:
                known.add(cascade.key.parent)
                waiting += self._story(cascade.key.parent).cascades
        return found

    def _story(self, table: str) -> Story:
        story = self._tables.get(table)
        if story is None:
            story = self._tables[table] = Story(columns=self._declared.get(table))
            cuts = self._dropped.get(table.partition(".")[0], [])
            story.cuts = list(cuts)
            story.is_whole = bool(cuts)
        return story

    def _apply(self, one: Logged, operation: object) -> None:
        match operation:
            case Create(is_temporary=True):
                self._temporary.add((one.thread_id, operation.table))
            case Create():
                self._create(one, operation)
            case Drop():
                if (one.thread_id, operation.table) in self._temporary:
                    self._temporary.discard((one.thread_id, operation.table))
                elif not operation.is_temporary:
                    self._end(one, operation.table)
            case Truncate() if not self._is_temporary(one, operation.table):
                self._empty(one, self._story(operation.table))
            case DropDatabase():
                self._drop_database(one, operation.database)
            case Rename() if not self._is_temporary(one, operation.table):
                self._rename(one, operation.table, operation.to, "RENAME TABLE")
            case Alter() if not self._is_temporary(one, operation.table):
                for clause in operation.clauses:
                    self._alter(one, operation.table, clause)
            case CreateRoutine():
                self._has_routines = True
            case Write():
                self._write(one, operation)

    def _is_temporary(self, one: Logged, table: str) -> bool:
        return (one.thread_id, table) in self._temporary

    def _empty(self, one: Logged, story: Story) -> None:
        """No row is left; those that come later in the same group are there."""
        file_no, offset = one.place
        story.cuts.append(Truncation((file_no, offset if one.has_rows_before else offset - 1), one.timestamp))
        story.past_doubts += story.doubts
        story.doubts = []
        for cascade in story.cascades:
            cascade.place = max(cascade.place, one.place)

    def _end(self, one: Logged, table: str) -> Story:
        """The table is gone, and with it all that was known."""
        story = self._story(table)
        self._empty(one, story)
        fresh = self._tables[table] = Story(is_whole=True, cuts=story.cuts, past_doubts=story.past_doubts)
        fresh.columns = self._declared.get(table)
        return fresh

    def _drop_database(self, one: Logged, database: str) -> None:
        for table in [name for name in self._tables if name.partition(".")[0] == database]:
            self._end(one, table)
        self._dropped.setdefault(database, []).append(Truncation((one.file_no, one.file_offset - 1), one.timestamp))

    def _create(self, one: Logged, create: Create) -> None:
        if create.is_conditional and not create.replaces:
            story = self._story(create.table)
            story.is_whole = story.is_whole or not (story.cuts or story.columns)
        else:
            story = self._end(one, create.table)
        if create.like is not None:
            like = self._story(create.like)
            story.columns, story.is_versioned = copy.copy(like.columns), like.is_versioned
            self._set_engine(one, story, EngineOption(like.engine or None))
        elif create.columns is not None:
            story.columns, story.is_versioned = dict(create.columns), create.is_versioned
        story.cascades = [Cascade(key=key, place=one.place) for key in create.foreign_keys]
        self._set_engine(one, story, create.engine)
        if create.selects:
            story.doubts.append(_doubt(one, "CREATE TABLE … SELECT in statement format gives it rows"))

    def _set_engine(self, one: Logged, story: Story, engine: EngineOption) -> None:
        """What a table's engine says of its rows: those of BLACKHOLE have none, those of MERGE are in other tables."""
        was, now = story.engine, story.engine if engine.name is None else engine.name
        story.engine = now
        if was == BLACKHOLE != now:
            self._empty(one, story)
        reason = _KEEPS_NONE if now == BLACKHOLE else rows_are_elsewhere(now)
        if reason is not None and (was != now or engine.union):
            story.doubts.append(_doubt(one, reason))
        for table in engine.union:
            self._story(table).doubts.append(_doubt(one, _MERGED))

    def _rename(self, one: Logged, table: str, to: str, what: str) -> None:
        old = self._story(table)
        moved = copy.deepcopy(old)
        doubt = _doubt(one, f"{what} gives it the rows of {table}", rows_of=table, since=old.begin)
        new = self._end(one, to)
        new.columns, new.dropped, new.cascades = moved.columns, moved.dropped, moved.cascades
        new.is_versioned, new.is_whole, new.engine = moved.is_versioned, moved.is_whole, moved.engine
        new.doubts = [*moved.doubts, doubt]
        self._end(one, table)

    def _alter(self, one: Logged, table: str, clause: Clause) -> None:
        story = self._story(table)
        columns = story.columns
        why = column = None
        match clause:
            case AddColumn():
                if columns is not None and clause.name in columns:
                    return  # ADD COLUMN IF NOT EXISTS
                column = clause.name
                if not clause.definition.is_null_at_first:
                    why = f"ADD COLUMN {clause.name} gives it a value in old rows"
                elif clause.name in story.dropped:
                    why = f"ADD COLUMN {clause.name}, which another column was called before"
                if columns is not None:
                    columns[clause.name] = clause.definition
            case ChangeColumn():
                why, column = _changed(story, clause), clause.to
            case DropColumn():
                story.dropped.add(clause.name)
                story.doubts = [doubt for doubt in story.doubts if doubt.column != clause.name]
                if columns is not None:
                    columns.pop(clause.name, None)
            case SetDefault() if columns is not None and clause.name in columns:
                columns[clause.name] = _with_default(columns[clause.name], is_null=clause.is_null)
            case AddForeignKey():
                story.cascades.append(Cascade(key=clause.key, place=one.place))
            case DropConstraint():
                story.cascades = [cascade for cascade in story.cascades if cascade.key.name != clause.name]
            case AddVersioning():
                story.is_versioned = True
            case ChangeRows():
                why = f"{clause.what} changes or removes rows"
            case SetEngine():
                self._set_engine(one, story, clause.engine)
            case MoveRows():
                self._move(one, table, clause)
                return
        if why is not None:
            story.doubts.append(_doubt(one, why, rows_of=table, since=story.begin, column=column))

    def _move(self, one: Logged, table: str, clause: MoveRows) -> None:
        reason = f"{clause.what} moves rows between {table} and {clause.other}"
        if clause.is_made:
            made, old = self._end(one, clause.other), self._story(table)
            made.columns, made.is_versioned = copy.copy(old.columns), old.is_versioned
        for name in (table, clause.other):
            self._story(name).doubts.append(_doubt(one, reason))
        if clause.is_dropped:
            self._end(one, clause.other)

    def _write(self, one: Logged, write: Write) -> None:
        reason = f"in statement format: {write.verb}"
        if write.tables is None or self._has_routines:
            self._anywhere.append(_doubt(one, reason))
            return
        for table in write.tables:
            story = self._story(table)
            story.doubts.append(_doubt(one, reason, rows_of=None if write.adds else table, since=story.begin))


def _found_by(operation: Operation, case: NameCase) -> Operation:
    """An operation whose tables are called as they are found by."""
    key = case.key
    match operation:
        case Create():
            foreign = tuple(replace(one, parent=key(one.parent)) for one in operation.foreign_keys)
            like = None if operation.like is None else key(operation.like)
            return replace(operation, table=key(operation.table), like=like, foreign_keys=foreign)
        case Rename():
            return replace(operation, table=key(operation.table), to=key(operation.to))
        case Alter():
            clauses = tuple(_clause_found_by(clause, case) for clause in operation.clauses)
            return replace(operation, table=key(operation.table), clauses=clauses)
        case Drop() | Truncate():
            return replace(operation, table=key(operation.table))
        case DropDatabase():
            return replace(operation, database=key(operation.database))
        case Write(tables=tuple() as tables):
            return replace(operation, tables=tuple(map(key, tables)))
    return operation


def _clause_found_by(clause: Clause, case: NameCase) -> Clause:
    match clause:
        case AddForeignKey():
            return replace(clause, key=replace(clause.key, parent=case.key(clause.key.parent)))
        case MoveRows():
            return replace(clause, other=case.key(clause.other))
    return clause


def _doubt(
    one: Logged, reason: str, *, rows_of: str | None = None, since: Place = START, column: str | None = None
) -> Doubt:
    return Doubt(place=one.place, gtid=one.gtid, reason=reason, rows_of=rows_of, since=since, column=column)


def _changed(story: Story, clause: ChangeColumn) -> str | None:
    """Why values of a column may be others now; None if they are not."""
    columns = story.columns
    old = None if columns is None else columns.pop(clause.name, None)
    new = clause.definition or old
    if columns is not None and new is not None:
        columns[clause.to] = new
    if clause.to != clause.name:
        story.dropped.add(clause.name)
        return f"column {clause.name} is called {clause.to} now"
    if old is not None and new is not None and _keeps_values(old, new):
        return None
    return f"MODIFY or CHANGE of column {clause.name} may change its values"


def _keeps_values(old: ColumnClause, new: ColumnClause) -> bool:
    """Whether values of one definition are the same in another, as far as the two tell by themselves."""
    if old.made_of is not None or new.made_of is not None or (old.is_nullable and not new.is_nullable):
        return False
    types = []
    try:
        for cursor in (Cursor(old.type), Cursor(new.type)):
            clause = parse_type(cursor)
            types.append((clause.charset, cursor.rest(), resolve_type(clause, DEFAULT_COLLATION, SchemaSession())))
    except NotUnderstoodError:
        return False
    (charset, rest, kind), (new_charset, new_rest, new_kind) = types
    return (charset, rest) == (new_charset, new_rest) and keeps_values(kind, new_kind)


def _with_default(definition: ColumnClause, *, is_null: bool) -> ColumnClause:
    return ColumnClause(
        type=definition.type,
        is_null_at_first=is_null and definition.is_nullable,
        is_nullable=definition.is_nullable,
        made_of=definition.made_of,
    )
