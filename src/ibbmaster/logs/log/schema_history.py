"""Folds the DDL of a log into its schema history, and caches that.

The cache may be deleted at any time; one of another log, or a changed one, is not used."""

import contextlib
import functools
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import ClassicFormatError, EventError, FormatError, IbbMasterError, PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.folding import TABLE
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.saved_history import LastFolded, SavedHistoryError, decode_history, encode_history
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.versions import version_number
from ibbmaster.work import BrokenOffError, check_wanted
from .group_content import group_events, own_name
from .group_folding import GroupFolding, NeedsRows, TakeMap, defined_history
from .history_cache import HistoryCache
from .interface import EventGroups, FramedEventGroups, LogEngine, PagedEventGroups

LOOKED_BYTES = 16 << 20  # of rows, for the names in them
SAVED_BYTES_MIN = 1 << 20  # of the log, after which a history is saved again; of less it is folded anew
DIGESTED_BYTES = 1 << 16  # of the last group, by which a log is known again
_SOURCES = ("schema/*.py", "event/statement/*.py")


class LastScanned(NamedTuple):
    """The last group of a scan; `state` is what was logged before it."""

    start: LogPosition
    end: LogPosition
    gtid: Gtid
    state: GtidState


#: Place, GTID, time and event of a statement in a group that may hold DDL.
TakeStatement = Callable[[SchemaPlace, Gtid, int, bytes], object]


#: Hands over all of a log at once, faster than group by group; None if that is impossible now.
StatementScan = Callable[[LogEngine, TakeStatement, TakeMap | None], LastScanned | None]


class _NeedsRestartsError(Exception):
    """A scan does not see server starts, which end temporary tables."""


class LoggedSchema:
    """The schema history of a log, which grows with it. Thread-safe.

    `base` is the schema before the log, `behind` the position up to which it holds. `cache` keeps the history, unless
    it `takes_rows` that define tables. `scan` is a faster way to begin. `case` says how the server compares names;
    without it the log is asked. With `is_once` it notes nothing to continue by, which costs much."""

    def __init__(
        self,
        log: LogEngine,
        *,
        cache: HistoryCache | None = None,
        base: SchemaCatalog | None = None,
        behind: GtidPosition | None = None,
        scan: StatementScan | None = None,
        case: NameCase | None = None,
        is_once: bool = False,
        takes_rows: bool = False,
    ) -> None:
        self._is_once = is_once
        self._takes_rows = takes_rows
        self._case = self._given_case = case
        self._log = log
        self._cache = None if takes_rows else cache
        self._base = base
        self._behind = behind
        self._scan = scan
        self._rules = hashlib.sha256(f"{_code()} {base!r} {behind} {case!r}".encode()).hexdigest()
        self._lock = threading.Lock()  # for all below
        self._folding: GroupFolding | None = None
        self._last: LastFolded | None = None
        self._state = GtidState()  # before the last group
        self._saved_at = LogPosition(-1, 0)
        self._looked = NamesInRows()
        self._versions: dict[int, int | None] = {}  # of servers, by file

    def history(self, needs_rows: NeedsRows = lambda _: False, up_to: LogPosition | None = None) -> SchemaHistory:
        """All that is durable now, folded; where it `needs_rows` these define tables, from now on. With `up_to` it ends
        before a fault after that place. Raises BrokenOffError: it is no longer wanted; the next call continues;
        EventError: a statement is damaged; FormatError, ClassicFormatError: a file is damaged."""
        with self._lock:
            return defined_history(
                lambda takes_rows: self._folded_to(up_to, takes_rows),
                lambda found: not self._takes_rows and needs_rows(found),
            )

    def _folded_to(self, up_to: LogPosition | None, takes_rows: bool) -> SchemaHistory:
        if takes_rows and not self._takes_rows:
            self._takes_rows, self._cache = True, None
            self._folding = self._last = None
        try:
            is_followed = self._folding is not None and self._continue(self._folding)
            if not is_followed and not any(map(self._continue, self._kept())):
                self._case = self._given_case
                self._looked = NamesInRows()
                self._begin_anew()
            self._find_case()
        except BrokenOffError:
            raise  # between two statements: what was folded is good
        except BaseException as error:
            folding = self._folding
            self._folding = self._last = None  # a part of a group may be folded
            if isinstance(error, IbbMasterError) and up_to and folding and folding.history.end > up_to:
                return folding.history
            raise
        assert self._folding is not None
        return self._folding.history

    def _find_case(self) -> None:
        history = None if self._folding is None else self._folding.history
        if history is None or history.fold.finder is None:
            return
        case = self._looked.look(self._log, history) or history.fold.finder.found
        if case is None:
            return
        if case.folds:
            self._case = case
            self._begin_anew()
        else:
            history.fix_case()
            self._save(history)

    def _new_folding(self) -> GroupFolding:
        is_whole = self._base is not None or not list(self._log.start_of_file().state)
        history = SchemaHistory(self._base, self._case, is_whole=is_whole)
        return GroupFolding(history, takes_rows=self._takes_rows)

    def _begin_anew(self) -> None:
        if self._scan is not None and self._scanned(self._scan):
            return
        folding = self._folding = self._new_folding()
        self._last = None
        plan = self._log.start_of_file()
        self._state = plan.state.copy()
        with closing(self._log.groups(plan)) as groups:
            self._fold(folding, groups)
        self._save(folding.history)

    def _scanned(self, scan: StatementScan) -> bool:
        folding = self._new_folding()
        history = folding.history

        def take(place: SchemaPlace, gtid: Gtid, timestamp: int, event: bytes) -> None:
            check_wanted()
            if self._is_passed_over(gtid):
                return
            try:
                statement = decode_statement(event)._replace(server_version=self._version_of(place))
                history.add(place, str(gtid), timestamp, statement)
            except EventError as error:
                raise EventError(f"group {gtid}: {error}") from error
            if history.fold.temporary:
                raise _NeedsRestartsError

        try:
            up_to = scan(self._log, take, folding.take_map)
        except _NeedsRestartsError:
            return False
        if up_to is None:
            return False
        history.end, self._state = up_to.end, up_to.state
        if self._is_once:
            self._folding = folding
            return True
        last = LastFolded(up_to.start, str(up_to.gtid), "", str(up_to.state), self._rules)
        self._folding, self._last = folding, self._identified(last)
        self._save(history)
        return self._continue(folding)

    def _continue(self, folding: GroupFolding) -> bool:
        last = self._last
        if last is None:
            return False
        end = self._log.end()
        if end < last.start:
            return False
        try:
            with closing(self._groups_from(last)) as groups:
                if not self._finds(last, groups):
                    return False
                self._fold(folding, groups)
        except (PositionPurgedError, KeyError):
            return False
        history = folding.history
        if (history.end.file_no, history.end.offset - SAVED_BYTES_MIN) >= self._saved_at:
            self._save(history)
        return True

    def _finds(self, last: LastFolded, groups: EventGroups) -> bool:
        """Read up to the last folded group; in another log the place may be inside an event."""
        try:
            group = groups.next_group()
            while group is not None and group.start < last.start:
                check_wanted()
                group = groups.next_group()
            return group is not None and group.start == last.start and _digest(group) == last.digest
        except (FormatError, ClassicFormatError, EventError):
            return False

    def _groups_from(self, last: LastFolded) -> EventGroups:
        plan = self._log.start_of_file(last.start.file_no)
        groups = self._log.groups(plan)
        if isinstance(groups, PagedEventGroups):
            groups.close()
            page = LogPosition.on_page(last.start.file_no, last.start.page_no)
            return self._log.groups(replace(plan, position=page) if page > plan.position else plan)
        if isinstance(groups, FramedEventGroups):
            first = groups.next_group()
            if first is None or first.start >= last.start:
                groups.close()
                return self._log.groups(plan)
            groups.continue_at(last.start, GtidState.parse(last.state))
        return groups

    def _identified(self, last: LastFolded) -> LastFolded:
        """With the digest of the last group, read again."""
        with closing(self._groups_from(last)) as groups:
            while (group := groups.next_group()) is not None and group.start < last.start:
                pass
            return last if group is None else last._replace(digest=_digest(group))

    def _fold(self, folding: GroupFolding, groups: EventGroups) -> None:
        """May break off between two statements: `_last` is the last whole group."""
        last: EventGroup | None = None
        try:
            for group in self._folded(folding, groups):
                last = group
                check_wanted()
        except BrokenOffError:
            self._end_with(last)
            raise
        self._end_with(last)

    def _folded(self, folding: GroupFolding, groups: EventGroups) -> Iterator[EventGroup]:
        history, begun = folding.history, folding.begun  # restarts up to there are known
        before = None if self._last is None else Gtid.parse(self._last.gtid)
        file_no = -1 if self._last is None else self._last.start.file_no
        while (group := groups.next_group()) is not None:
            if group.gtid is None:
                if group.start > begun:
                    history.add_restart()
                continue
            if group.start.file_no != file_no:
                file_no = group.start.file_no
                if group.start > begun and history.fold.temporary and self._log.start_of_file(file_no).is_restart:
                    history.add_restart()
            if not self._is_passed_over(group.gtid):
                folding.fold(group, self._version_of(SchemaPlace(group.start, 0)))
            if before is not None:
                self._state.log(before)
            before = group.gtid
            history.end = group.end
            yield group

    def _end_with(self, last: EventGroup | None) -> None:
        if last is not None and last.gtid is not None and not self._is_once:
            self._last = self._identified(LastFolded(last.start, str(last.gtid), "", str(self._state), self._rules))

    def _version_of(self, place: SchemaPlace) -> int | None:
        """`.ibb` files do not say which server wrote a statement."""
        file_no = place.position.file_no
        if file_no not in self._versions:
            self._versions[file_no] = version_number(self._log.server_version_of(file_no)) or None
        return self._versions[file_no]

    def _is_passed_over(self, gtid: Gtid) -> bool:
        reached = None if self._behind is None else self._behind.get(gtid.domain_id)
        return reached is not None and gtid.seq_no <= reached.seq_no

    def _kept(self) -> Iterator[GroupFolding]:
        for data in () if self._cache is None else self._cache.read():
            try:
                history, last = decode_history(data)
                state = GtidState.parse(last.state)
                Gtid.parse(last.gtid)
            except (SavedHistoryError, IbbMasterError):
                continue
            if last.rules == self._rules:
                self._state = state
                self._folding, self._last, self._saved_at = GroupFolding(history), last, history.end
                yield self._folding

    def _save(self, history: SchemaHistory) -> None:
        self._saved_at = history.end
        if self._cache is not None and self._last is not None and (self._cache.is_written or self._is_long(history)):
            self._cache.write(encode_history(history, self._last))

    def _is_long(self, history: SchemaHistory) -> bool:
        begin = self._log.start_of_file().position
        return history.end.file_no > begin.file_no or history.end.offset >= SAVED_BYTES_MIN


class NamesInRows:
    """Looks at the names in the TABLE_MAP events, by which a server finds tables, up to LOOKED_BYTES after the
    statement of a table with capitals: only a server that distinguishes them has written a capital there."""

    def __init__(self) -> None:
        self._at: LogPosition | None = None  # up to where it has looked
        self._bytes = 0

    def look(self, log: LogEngine, history: SchemaHistory) -> NameCase | None:
        """EXACT or LOWER; None if the names say nothing."""
        wanted: dict[TableName, set[TableName]] = {}
        places = []
        for database, table in history.names():
            key = NameCase.LOWER.table_key(database, table)
            if key != (database, table):
                wanted.setdefault(key, set()).add(TableName(database, table))
                places += [one.since.position for one in history.versions(database, table) if one.since is not None]
        if not places or self._bytes > LOOKED_BYTES:
            return None
        start = min(places) if self._at is None else self._at
        with contextlib.suppress(PositionPurgedError, KeyError):
            first = max(start.file_no, log.start_of_file().position.file_no)
            with closing(log.groups(log.start_of_file(first))) as groups:
                while self._bytes <= LOOKED_BYTES and (group := groups.next_group()) is not None:
                    check_wanted()
                    if group.start < start:
                        continue
                    found = self._named_in(group, wanted, history)
                    if found is not None:
                        return found
                    self._at = group.end
        return None

    def _named_in(
        self, group: EventGroup, wanted: dict[TableName, set[TableName]], history: SchemaHistory
    ) -> NameCase | None:
        size = 0
        for event in group_events(group):
            check_wanted()
            size += len(event)
            if event[TYPE_OFFSET] != EventType.TABLE_MAP:
                continue
            name = own_name(event)
            if NameCase.LOWER.table_key(*name) != name:
                return NameCase.EXACT
            place = SchemaPlace(group.start, 0)
            is_there = any(history.table_at(*one, place) is not None for one in wanted.get(name, ()))
            if is_there and history.is_whole and name not in history.lines[TABLE]:
                return NameCase.LOWER
        self._bytes += size  # a group that is broken off is read again
        return None


def _digest(group: EventGroup) -> str:
    found = hashlib.sha256(group.gtid_event)
    left = DIGESTED_BYTES
    for piece in group.body:
        found.update(memoryview(piece)[:left])
        left -= len(piece)
        if left <= 0:
            break
    return found.hexdigest()


@functools.cache
def _code() -> str:
    package = Path(__file__).parents[2]
    found = hashlib.sha256()
    for pattern in _SOURCES:
        for path in sorted(package.glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()
