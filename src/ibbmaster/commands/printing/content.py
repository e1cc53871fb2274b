"""A group's content as every text has it: effective statements, and changes of rows."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from ibbmaster.api.group import Change, Event, Group, UndecodableValue
from ibbmaster.errors import EventError
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES, LoggedStatement, decode_statement
from ibbmaster.replication.event.types import EventType

FRAME = ("BEGIN", "COMMIT", "XA START", "XA END")  # say no more than GTID event and group end
FRAME_SIZE = max(map(len, FRAME))


class Printer(ABC):
    """Makes a log's text; by default nothing before and after groups."""

    def begin(self) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""

    @abstractmethod
    def group(self, group: Group) -> Iterator[bytes]:
        """In pieces; groups come in order. Raises EventError: it has no text."""


class ChangeLines(Printer):
    """A line for each change, in UTF-8."""

    def __init__(self, *, keeps_bytes: bool = False) -> None:
        """With `keeps_bytes` unreadable values are their bytes, not an error."""
        self.keeps_bytes = keeps_bytes

    def group(self, group: Group) -> Iterator[bytes]:
        for line in self.lines(GroupContent(group, keeps_bytes=self.keeps_bytes), group.start):
            yield f"{line}\n".encode()

    @abstractmethod
    def lines(self, content: "GroupContent", start: LogPosition) -> Iterator[str]:
        """Of a group that begins at a place, without line feeds."""


class RowItem(NamedTuple):
    table: TableSchema
    change: Change


class StatementItem(NamedTuple):
    """It took effect; `is_ddl` where its GTID event says so."""

    statement: LoggedStatement
    is_ddl: bool


class GroupContent:
    """`head` is its GTID event. Raises EventError: that is damaged."""

    def __init__(self, group: Group, *, keeps_bytes: bool = False) -> None:
        """With `keeps_bytes` an unreadable value is an `UndecodableValue`, not an error."""
        self.timestamp = group.timestamp
        self._group = group
        self._keeps_bytes = keeps_bytes
        self._contents = group.contents()
        first = next(self._contents)
        assert isinstance(first, Event)
        try:
            self.head: GtidEvent = decode_gtid_event(first.data)
        except EventError as error:
            raise self._here(error) from None

    def items(self) -> Iterator[RowItem | StatementItem]:
        """In order, once. Raises EventError, UndecodableError."""
        for item in self._contents:
            if isinstance(item, Event):
                try:
                    statement = statement_of(item.data, self.head)
                except EventError as error:
                    raise self._here(error) from None
                if statement is not None:
                    yield StatementItem(statement, bool(self.head.flags & GtidFlag.DDL))
                continue
            table, change = item
            if not self._keeps_bytes:
                _expect_readable(change)
            yield RowItem(table, change)

    def _here(self, error: EventError) -> EventError:
        return EventError(f"group {self._group.gtid}: {error}")


def statement_of(event: bytes, head: GtidEvent) -> LoggedStatement | None:
    """An event's effective statement, unless it only ends the group. Raises EventError."""
    event_type = event[TYPE_OFFSET]
    if event_type == EventType.XA_PREPARE:
        return LoggedStatement(f"XA PREPARE {head.xid}", database="", thread_id=0, sql_mode=0, has_effect=True)
    if event_type not in STATEMENT_TYPES:
        return None
    statement = decode_statement(event)
    is_frame = statement.text[:FRAME_SIZE].upper().startswith(FRAME)
    return None if is_frame or not statement.has_effect else statement


def _expect_readable(change: Change) -> None:
    for image in (change.before, change.after):
        for value in () if image is None else image.values():
            if isinstance(value, UndecodableValue):
                raise value.error


@contextlib.contextmanager
def placed(group: Group) -> Iterator[None]:
    """Add a group's place to an error that names it."""
    try:
        yield
    except EventError as error:
        raise EventError(f"{error}, at {group.start}") from None
