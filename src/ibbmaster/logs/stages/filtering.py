"""Leaves out what is about other tables, of another kind, or of other domains and servers.

An emptied group keeps its GTID: a transaction its end, too, and any other a COMMIT. A replica's own filters have the
same effect on its position. A filter refuses what it cannot judge.

Invariants:
- It leaves out whole statements, row events with their TABLE_MAP and ANNOTATE_ROWS, and the last remaining row event of
  a statement says so (test_the_last_row_event_that_is_left_ends_the_statement).
- Memory does not depend on the size of a group; of a statement that changes tables on both sides of the filter it holds
  one row event (test_a_large_group_goes_through_in_pieces)."""

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from ibbmaster.errors import EventError, StageError
from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, EventHeader, encode_event
from ibbmaster.replication.event.rows.partial import FIXED as FRAGMENT
from ibbmaster.replication.event.rows.partial import FLAG_WHOLE_SIZE, WHOLE_SIZE
from ibbmaster.replication.event.statement import logged
from ibbmaster.replication.event.table_map import FLAG_STATEMENT_END, ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.replication.event.types import EventType, type_name
from ibbmaster.rows.walk import unmapped
from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.storage.codec.buffer import Buffer
from .event_stream import EventStream, mapped_table
from .stage import GroupTransform, emptied
from .statement_tables import StatementKind, Touched, touched_by
from .table_pattern import TableChoice

Kind = Literal["rows", "statements", "ddl"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_CONTEXT = (EventType.INTVAR, EventType.RAND, EventType.USER_VAR)
_NAMELESS = (EventType.LOAD, EventType.NEW_LOAD, EventType.CREATE_FILE, EventType.EXEC_LOAD)
_XA = GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginFilter(GroupTransform):
    """Empties the groups of other domains and servers; empty sets choose all."""

    domain_ids: frozenset[int] = frozenset()
    server_ids: frozenset[int] = frozenset()
    drops_empty: bool = False

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        gtid = group.gtid
        assert gtid is not None
        has_domain = not self.domain_ids or gtid.domain_id in self.domain_ids
        if has_domain and (not self.server_ids or gtid.server_id in self.server_ids):
            return group
        return None if self.drops_empty else emptied(group)


@dataclass(frozen=True, slots=True)
class GtidFilter(GroupTransform):
    """Empties the groups of some GTIDs."""

    gtids: frozenset[Gtid]

    def pass_on(self, group: EventGroup) -> EventGroup:
        return emptied(group) if group.gtid in self.gtids else group


class ContentFilter(GroupTransform):
    """Leaves out events about other tables, None: all, or of other kinds. `find_history`: the statements so far."""

    def __init__(
        self,
        tables: TableChoice | None = None,
        kinds: Collection[Kind] = KINDS,
        *,
        drops_empty: bool = False,
        find_history: Callable[[], SchemaHistory] = SchemaHistory,
    ) -> None:
        self.tables = tables
        self.find_history = find_history
        self._kinds = frozenset(kinds)
        self.drops_empty = drops_empty

    def has_rows_of(self, table: TableName) -> bool:
        return "rows" in self._kinds and (self.tables is None or self.tables.has_table(table))

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        flags = group.gtid_event[GTID_FLAGS_OFFSET]
        content = _Content(self, self._kinds, str(group.gtid), SchemaPlace(group.start, 0))
        body: Iterator[Buffer] = content.filtered(EventStream(group.body))
        if flags & GtidFlag.STANDALONE:
            body = iter(list(body))
            if content.is_empty:
                return None if self.drops_empty else emptied(group)
        elif self.drops_empty and not flags & _XA:
            head: list[Buffer] = []
            while not content.has_kept and (piece := next(body, None)) is not None:
                head.append(bytes(piece))
            if content.is_empty:
                return None
            body = itertools.chain(head, body)
        return replace(group, body=body)


@dataclass(slots=True)
class _RowStatement:
    annotation: bytes | None = None  # waits for a remaining table
    has_dropped: bool = False  # a table
    held: list[bytearray] = field(default_factory=list)

    def released(self, *, ends: bool) -> Iterator[bytes]:
        """What was held; `ends`: nothing after it remains of the statement."""
        held, self.held = self.held, []
        if held and ends:
            head = held[0]
            offset = _flags_offset(head)
            head[offset] |= FLAG_STATEMENT_END
        yield from map(bytes, held)


class _Content:
    def __init__(self, chosen: ContentFilter, kinds: frozenset[Kind], gtid: str, place: SchemaPlace) -> None:
        self._place = place
        self._filter = chosen
        self._choice = chosen.tables
        self._kinds = kinds
        self._gtid = gtid
        self._tables: dict[bytes, bool] = {}  # by table id: whether its rows remain
        self._rows = _RowStatement()
        self._context: list[bytes] = []
        self._fragment: tuple[bool, bool] | None = None  # whether the row event whose fragments come remains, and ends
        self.has_kept = False  # something with an effect
        self._has_dropped = False

    @property
    def is_empty(self) -> bool:
        """A group without content is not empty by the filter."""
        return self._has_dropped and not self.has_kept

    def filtered(self, events: EventStream) -> Iterator[Buffer]:
        while (header := events.next_event()) is not None:
            event_type = header.event_type
            if event_type in ROW_EVENT_TYPES or event_type == EventType.PARTIAL_ROW_DATA:
                yield from self._row_event(header, events)
            elif event_type == EventType.TABLE_MAP:
                yield from self._table_map(events.whole())
            elif event_type == EventType.ANNOTATE_ROWS:
                self._rows.annotation = events.whole()
            elif event_type in _CONTEXT:
                self._context.append(events.whole())
            elif event_type in logged.STATEMENT_TYPES:
                yield from self._statement(header, events.whole())
            elif event_type in _NAMELESS and self._choice is not None:
                raise self._refused(f"{type_name(event_type)} event: MariaDB 10 does not write it any more")
            else:
                yield from events.pieces()

    def _table_map(self, event: bytes) -> Iterator[bytes]:
        is_left = self._filter.has_rows_of(mapped_table(event))
        self._tables[_table_id(event)] = is_left
        if not is_left:
            self._rows.has_dropped = self._has_dropped = True
            return
        if self._rows.annotation is not None:
            yield self._rows.annotation
            self._rows.annotation = None
        self.has_kept = True
        yield event

    def _row_event(self, header: EventHeader, events: EventStream) -> Iterator[Buffer]:
        is_fragment = header.event_type == EventType.PARTIAL_ROW_DATA
        is_left, ends, is_whole = (
            self._fragment_of(events.head) if is_fragment else (*self._judge(events.head, 0), True)
        )
        rows = self._rows
        if is_left and not rows.has_dropped:
            yield from events.pieces()
        elif is_left:
            if not is_fragment or FRAGMENT.unpack_from(events.head, EVENT_HEADER_SIZE)[1] == 1:
                yield from rows.released(ends=False)
            rows.held.append(bytearray(events.whole()))
        if ends and is_whole:
            yield from rows.released(ends=True)
            self._rows = _RowStatement()

    def _judge(self, head: bytes, start: int) -> tuple[bool, bool]:
        """Whether the row event at an offset remains, and whether it ends its statement."""
        if len(head) < start + EVENT_HEADER_SIZE + TABLE_ID_SIZE + 2:
            raise EventError("row event that ends inside its table id and flags")
        table_id = _table_id(head, start)
        if table_id not in self._tables:
            raise unmapped(head[start:])
        flags = head[start + EVENT_HEADER_SIZE + TABLE_ID_SIZE]
        return self._tables[table_id], bool(flags & FLAG_STATEMENT_END)

    def _fragment_of(self, head: bytes) -> tuple[bool, bool, bool]:
        if len(head) < EVENT_HEADER_SIZE + FRAGMENT.size:
            raise EventError("PARTIAL_ROW_DATA that ends inside its numbers")
        count, number, _ = FRAGMENT.unpack_from(head, EVENT_HEADER_SIZE)
        if number == 1:
            self._fragment = self._judge(head, _row_event_offset(head))
        if self._fragment is None:
            raise EventError(f"row event fragment {number} of {count}, expected 1")
        is_left, ends = self._fragment
        if number == count:
            self._fragment = None
        return is_left, ends, number == count

    def _statement(self, header: EventHeader, event: bytes) -> Iterator[bytes]:
        context, self._context = self._context, []
        statement = logged.decode_statement(event)
        try:
            touched = touched_by(statement)
        except NotUnderstoodError as error:
            if self._choice is None and {StatementKind.CHANGE, StatementKind.DDL} <= self._kinds:
                touched = Touched(kind=StatementKind.CHANGE)
            else:
                raise self._refused(str(error)) from None
        if touched.kind is StatementKind.CONTROL:
            yield from (*context, event)
            return
        if self._is_left(touched, statement):
            self.has_kept = True
            yield from (*context, event)
            return
        self._has_dropped = True
        if header.event_type == EventType.EXECUTE_LOAD_QUERY:  # its file has gone out
            yield encode_event(
                event_type=EventType.DELETE_FILE,
                body=logged.FILE_NUMBER.pack(logged.decode_load_data(event).number),
                server_id=header.server_id,
                timestamp=header.timestamp,
            )

    def _is_left(self, touched: Touched, statement: logged.LoggedStatement) -> bool:
        if touched.kind.value not in self._kinds:
            return False
        choice = self._choice
        if choice is None:
            return True
        found = {choice.has_table(table) for table in touched.tables}
        found |= {choice.may_have_of(database) for database in touched.databases}
        if touched.trigger is not None:
            found |= {choice.has_all_of(database) for database in touched.databases}
            if len(found) > 1:
                table = self._filter.find_history().table_of_trigger(touched.trigger, self._place)
                found = found if table is None else {choice.has_table(table)}
        if len(found) > 1 and not touched.is_tolerant:
            tables = ", ".join(map(str, touched.tables)) or "one table of its database"
            text = " ".join(statement.text[:240].split())[:60]
            raise self._refused(f"{text!r} is about {tables}, and the filter leaves out some tables and not all")
        return True in found

    def _refused(self, reason: str) -> StageError:
        return StageError(f"group {self._gtid} cannot be filtered: {reason}")


def _table_id(event: Buffer, start: int = 0) -> bytes:
    offset = start + EVENT_HEADER_SIZE
    return bytes(event[offset : offset + TABLE_ID_SIZE])


def _row_event_offset(head: Buffer) -> int:
    flags = FRAGMENT.unpack_from(head, EVENT_HEADER_SIZE)[2]
    return EVENT_HEADER_SIZE + FRAGMENT.size + (WHOLE_SIZE.size if flags & FLAG_WHOLE_SIZE else 0)


def _flags_offset(event: Buffer) -> int:
    """Of the flags of a row event, or of the one that begins in a fragment."""
    start = _row_event_offset(event) if event[4] == EventType.PARTIAL_ROW_DATA else 0
    return start + EVENT_HEADER_SIZE + TABLE_ID_SIZE
