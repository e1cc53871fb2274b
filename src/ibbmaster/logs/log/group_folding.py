"""Folds the groups of a log into a schema history: their statements, and their TABLE_MAPs where rows define tables.

Reads only groups that a server marked as DDL, and those of a single statement: ALTER SEQUENCE has no mark."""

import contextlib
from collections.abc import Callable

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.replication.event.table_map import SAYS_OFFSET
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.work import check_wanted
from .group_content import MAY_HOLD_DDL, QUERIES, group_events

SEEN_MAX = 1 << 12  # TABLE_MAP events that are known again

NeedsRows = Callable[[SchemaHistory], bool]
"""Whether a history by statements alone does not define all tables that are asked for."""


def defined_history(fold: Callable[[bool], SchemaHistory], needs_rows: NeedsRows) -> SchemaHistory:
    """Fold a log with rows, which takes long, only if the history without them needs it."""
    history = fold(False)
    return fold(True) if needs_rows(history) else history


class UndefinedTables:
    """Folds TABLE_MAP events beside the statements; looks at equal ones between two statements once."""

    def __init__(self, history: SchemaHistory) -> None:
        self._history = history
        self._seen: set[bytes] = set()
        self._changes = 0  # up to which all these were seen

    def take(self, place: SchemaPlace, gtid: Gtid, event: bytes) -> None:
        """Ignores a damaged event, which is reported when its rows are read."""
        if len(self._seen) >= SEEN_MAX or len(self._history.places) != self._changes:
            self._seen.clear()
            self._changes = len(self._history.places)
        says = event[SAYS_OFFSET:]
        if says in self._seen:
            return
        self._seen.add(says)
        with contextlib.suppress(EventError):
            self._history.take_rows(place, str(gtid), decode_table_schema(event))

    def take_group(self, group: EventGroup) -> None:
        assert group.gtid is not None
        for number, event in enumerate(group_events(group)):
            check_wanted()
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                self.take(SchemaPlace(group.start, number), group.gtid, event)


#: Place, GTID and TABLE_MAP event; one that says what an earlier one said may be left out.
TakeMap = Callable[[SchemaPlace, Gtid, bytes], object]


class GroupFolding:
    """Folds group after group into one history; also one again whose folding was broken off, without its first part.
    With `takes_rows` these define the tables that no statement defines."""

    def __init__(self, history: SchemaHistory, *, takes_rows: bool = False) -> None:
        self.history = history
        self.begun = LogPosition(-1, 0)
        """The group that was begun last."""
        self._event_no = 0  # of its statement that was folded last
        self._rows = UndefinedTables(history) if takes_rows else None

    @property
    def take_map(self) -> TakeMap | None:
        """Takes TABLE_MAPs found without reading groups; None where rows define nothing."""
        return None if self._rows is None else self._rows.take

    def fold(self, group: EventGroup, version: int | None = None) -> None:
        """`version` is of the server that wrote the group, if known. Raises BrokenOffError: the history is no longer
        wanted; EventError: a statement is damaged; it names the group."""
        if group.start != self.begun:
            self.begun, self._event_no = group.start, 0
        if group.gtid_event[GTID_FLAGS_OFFSET] & MAY_HOLD_DDL:
            self._fold_statements(group, version)
        if self._rows is not None:
            self._rows.take_group(group)

    def _fold_statements(self, group: EventGroup, version: int | None) -> None:
        timestamp = decode_event_header(group.gtid_event).timestamp
        gtid = str(group.gtid)
        try:
            for event_no, event in enumerate(group_events(group)):
                check_wanted()  # CREATE TABLE … SELECT has all rows of its table
                if event[TYPE_OFFSET] in QUERIES and event_no > self._event_no:
                    statement = decode_statement(event)._replace(server_version=version)
                    self.history.add(SchemaPlace(group.start, event_no), gtid, timestamp, statement)
                    self._event_no = event_no
        except EventError as error:
            raise EventError(f"group {gtid}: {error}") from error
