"""The content of a group as every text of it says it: statements that took effect, and changes of rows."""

from __future__ import annotations

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

FRAME = ("BEGIN", "COMMIT", "XA START", "XA END")  # say no more than the GTID event and the end of the group
FRAME_SIZE = max(map(len, FRAME))


class Printer(ABC):
    """Makes the text of a log; by default nothing before the first group and after the last."""

    def begin(self) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""

    @abstractmethod
    def group(self, group: Group) -> Iterator[bytes]:
        """The text of a group, in pieces; groups come in the order of the log. Raises EventError: it has no text."""


class ChangeLines(Printer):
    """Prints a line for each change, in UTF-8."""

    def __init__(self, *, keeps_bytes: bool = False) -> None:
        """With `keeps_bytes` values that cannot be read are printed as their bytes, instead of an error."""
        self.keeps_bytes = keeps_bytes

    def group(self, group: Group) -> Iterator[bytes]:
        for line in self.lines(GroupContent(group, keeps_bytes=self.keeps_bytes), group.start):
            yield f"{line}\n".encode()

    @abstractmethod
    def lines(self, content: GroupContent, start: LogPosition) -> Iterator[str]:
        """The lines of a group that begins at a place, without their line feeds."""


class RowItem(NamedTuple):
    """A change of one row."""

    table: TableSchema
    change: Change


class StatementItem(NamedTuple):
    """A statement that took effect; `is_ddl` where its GTID event says so."""

    statement: LoggedStatement
    is_ddl: bool


class GroupContent:
    """A group to print; `head` is its GTID event. Raises EventError: the GTID event is damaged."""

    def __init__(self, group: Group, *, keeps_bytes: bool = False) -> None:
        """With `keeps_bytes` a value that cannot be read is an `UndecodableValue`, not an error."""
        self.timestamp = group.timestamp
        self._group = group
        self._keeps_bytes = keeps_bytes
        self._contents = group.contents()
        first = next(self._contents)
        assert isinstance(first, Event)  # every group begins with its GTID event
        try:
            self.head: GtidEvent = decode_gtid_event(first.data)
        except EventError as error:
            raise self._here(error) from None

    def items(self) -> Iterator[RowItem | StatementItem]:
        """Its changes and statements, in order; may be read once. Raises EventError, UndecodableError."""
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
    """The effective statement of an event of a group, unless it only ends the group. Raises EventError."""
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
    """Add the place of a group to an error about it, which names it."""
    try:
        yield
    except EventError as error:
        raise EventError(f"{error}, at {group.start}") from None
