"""The effect of statements on one table: when it was emptied, and which rows they leave uncertain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.rows.certainty import Doubted, RowsGone, StatementFold, doubt_text, union_of
from ibbmaster.rows.effects import DatabaseGone, Effect, Emptied, Unknown, WrittenTables
from ibbmaster.rows.shape import changed_columns, version_shape
from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.history import BEFORE, SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.versions import NameRange, ranges_of
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.shape import field_name
from ibbmaster.tables.fold.cascades import CASCADING
from .statements import Logged

Place = tuple[int, int]
START: Place = (-1, -1)


class Truncation(NamedTuple):
    """The end of all rows from groups that begin at `place` or before."""

    place: Place
    timestamp: int
    gtid: str


class Doubt(NamedTuple):
    """Rows may have changed without an event; compares in the order of the log."""

    place: Place
    gtid: str
    reason: str

    def __str__(self) -> str:
        return doubt_text(self.gtid, self.reason)


@dataclass(slots=True)
class Past:
    """A table up to a place.

    Attributes:
        state: the table there; None if no statement tells.
        versions: those that its rows had since it was last emptied.
        cuts: where it was emptied, in order.
        nulls: fields that an INSERT without them leaves NULL in every version.
        ancestors: tables whose changes may change its rows by foreign keys.
        doubts, past_doubts: about rows that are there, and that are gone.
    """

    state: KnownTable | None = None
    versions: list[TableVersion] = field(default_factory=list)
    cuts: list[Truncation] = field(default_factory=list)
    nulls: set[str] = field(default_factory=set)
    ancestors: set[TableName] = field(default_factory=set)
    doubts: list[Doubt] = field(default_factory=list)
    past_doubts: list[Doubt] = field(default_factory=list)

    @property
    def begin(self) -> Place:
        """Its rows come from behind this place."""
        return self.cuts[-1].place if self.cuts else START


def ancestors_of(history: SchemaHistory, names: Iterable[TableName]) -> set[TableName]:
    """The tables whose changes may ever have changed rows of others by foreign keys, also in several steps."""
    waiting, found = list(names), set[TableName]()
    while waiting:
        for version in history.versions(*waiting.pop()):
            for key in version.foreign_keys if isinstance(version, TableVersion) else ():
                parent = history.case.table_key(key.parent_database, key.parent_table)
                if CASCADING & {key.on_delete, key.on_update} and parent not in found:
                    found.add(parent)
                    waiting.append(parent)
    return found


def past_of(history: SchemaHistory, name: TableName, end: SchemaPlace | None, statements: Iterable[Logged]) -> Past:
    """That of the table of this name at a place, or at the end; `statements` reach up to there."""
    return _Telling(history, name, end).told(statements)


class _Telling:
    def __init__(self, history: SchemaHistory, name: TableName, end: SchemaPlace | None) -> None:
        self._history = history
        self._names: Sequence[NameRange] = ranges_of(history, name, end)
        self._end = end
        self._fold = StatementFold(history)
        self._prepared: set[str] = set()
        self._temporary: set[TableName] = set()
        self._past = Past(ancestors=ancestors_of(history, (one.name for one in self._names)))

    def told(self, statements: Iterable[Logged]) -> Past:
        for one in statements:
            self._tell(one)
        past = self._past
        past.state = self._state(self._end, self._end)
        past.versions = list(self._versions())
        past.nulls = _nulls(past.versions, list(self._all_versions()))
        if past.state is not None and past.state.undefined_because:
            gtid = past.state.gtid or ""
            past.doubts.append(Doubt(_group(past.state.since), gtid, past.state.undefined_because))
        past.doubts += [*_by_versions(past.versions, self._fold), *self._merged()]
        past.doubts.sort()
        return past

    def _state(self, place: SchemaPlace | None, seen_at: SchemaPlace | None) -> KnownTable | None:
        """The table by its names at a place, as events see it, perhaps from behind."""
        states = (self._history.table_at(*called, seen_at) for called in self._called(place))
        return next((state for state in states if state is not None), None)

    def _called(self, place: SchemaPlace | None) -> Iterator[TableName]:
        for one in self._names:
            if one.until is None if place is None else one.holds(one.name, place):
                yield one.name

    def _versions(self) -> Iterator[TableVersion]:
        last = _generation(self._past.state)
        known = {one.since: one for one in self._all_versions() if one.generation == last}
        yield from (known[since] for since in sorted(known, key=_group))

    def _all_versions(self) -> Iterator[TableVersion]:
        for called in self._names:
            for one in self._history.versions(*called.name):
                if (
                    isinstance(one, TableVersion)
                    and (called.since is None or called.since <= (one.since or BEFORE))
                    and (self._end is None or one.since is None or one.since < self._end)
                ):
                    yield one

    def _merged(self) -> Iterator[Doubt]:
        names = {called.name for called in self._names}
        for name in list(self._history.names()):
            for version in self._history.versions(*name):
                union = union_of(version) if isinstance(version, TableVersion) else ()
                if names & {self._history.case.table_key(*table) for table in union}:
                    reason = f"through the MERGE table {version.full_name}: its rows are changed"
                    yield Doubt(_group(version.since), version.gtid or "", reason)

    def _tell(self, one: Logged) -> None:
        front, place, behind = (SchemaPlace(LogPosition(*one.place), one.event_no + step) for step in (-1, 0, 1))
        before, after = self._state(front, place), self._state(place, behind)
        generations = {known.generation for known in (before, after) if isinstance(known, TableVersion)}
        is_cut = _generation(before) != _generation(after)
        reasons = list(self._reasons(one))
        for effect in one.effects:
            if self._fold.reaches_all(effect, place):
                reasons.append(effect.reason)
                continue
            outcomes = [one for one in self._fold.take(effect, place) if isinstance(one, RowsGone | Doubted)]
            named = {self._history.case.table_key(*table) for table in _tables_of(effect)}
            changed = set() if isinstance(effect, WrittenTables) and not effect.changes else set(named)
            for outcome in outcomes:
                if isinstance(outcome, RowsGone) or not outcome.leaves:
                    changed.add(self._history.case.table_key(outcome.table.database, outcome.table.name))
            reasons += (
                f"its foreign key to {parent} deletes or changes rows without an event"
                for parent in self._past.ancestors & changed
            )
            reasons += [outcome.reason for outcome in outcomes if outcome.table.generation in generations]
            for called in () if generations else self._called(place):
                is_cut |= self._is_emptied(effect, called)
                if called in named and isinstance(effect, WrittenTables | Unknown):
                    reasons.append(effect.reason)
        if is_cut:
            file_no, offset = one.place
            cut = Truncation((file_no, offset if one.has_rows_before else offset - 1), one.timestamp, one.gtid)
            self._past.cuts.append(cut)
            self._past.past_doubts += self._past.doubts
            self._past.doubts = []
        self._past.doubts += [Doubt(one.place, one.gtid, reason) for reason in reasons]

    def _reasons(self, one: Logged) -> Iterator[str]:
        if one.verb == "ROLLBACK":
            yield "a ROLLBACK of rows in its group"
        if one.verb == "XA PREPARE" and one.xid is not None:
            self._prepared.add(one.xid)
        elif one.xid in self._prepared:
            self._prepared.discard(one.xid or "")
        elif one.verb == "XA COMMIT":
            yield f"XA COMMIT of {one.xid}, which the log does not have"

    def _is_emptied(self, effect: Effect, called: TableName) -> bool:
        case = self._history.case
        if isinstance(effect, DatabaseGone):
            return case.key(effect.database) == called[0]
        if not isinstance(effect, Emptied) or case.table_key(*effect.table) != called:
            return False
        if effect.is_temporary:
            self._temporary.add(called)
        return called not in self._temporary


def _tables_of(effect: Effect) -> Sequence[TableName]:
    if isinstance(effect, WrittenTables):
        return effect.tables or ()
    return (effect.table,) if isinstance(effect, Unknown) else ()


def _by_versions(versions: Sequence[TableVersion], fold: StatementFold) -> Iterator[Doubt]:
    for version in versions:
        reason = fold.engine_reason(version)
        if reason is None and not fold.keeps_rows(version):
            reason = "its engine BLACKHOLE keeps no rows"
        if version.is_versioned:
            reason = "system versioned: the rows of its past are among those of the log"
        if reason is not None:
            yield Doubt(_group(version.since), version.gtid or "", reason)
    lasting = {column.id for column in versions[-1].columns} if versions else set()
    for old, new in pairwise(versions):
        before = {column.id for column in old.columns}
        untold, changed = version_shape(new.full_name, versions[-1]).untold(old), changed_columns(old, new)
        for column in (column for column in new.columns if column.id in lasting):
            reason = None
            if column.id not in before and column.id in untold:
                reason = f"ADD COLUMN {column.name} gives it a value in old rows"
            elif column.id in before and column.id in changed:
                reason = f"MODIFY or CHANGE of column {column.name} may change its values"
            if reason is not None:
                yield Doubt(_group(new.since), new.gtid or "", reason)


def _nulls(versions: Sequence[TableVersion], others: Iterable[TableVersion]) -> set[str]:
    """Fields that every INSERT without them leaves NULL, in any version; other tables' by name."""
    if not versions:
        return set()
    numbers = {column.name: column.id for column in versions[-1].columns}
    found = set(numbers.values())
    for version in others:
        is_same = version.generation == versions[-1].generation
        for one in version.columns:
            is_null = one.default == "NULL" and not one.is_auto_increment
            if not is_null or one.expression is not None or one.period is not None:
                found.discard(one.id if is_same else numbers.get(one.name, 0))
    return {field_name(name) for name, number in numbers.items() if number in found}


def _generation(known: KnownTable | None) -> int | None:
    return None if known is None else known.generation


def _group(place: SchemaPlace | None) -> Place:
    return START if place is None else (place.position.file_no, place.position.offset)
