"""Events of many groups side by side in one buffer."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibbmaster.errors import ClassicFormatError, EventError, FormatError
from ibbmaster.kernel.fields import EventColumn, GroupColumn
from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.large import LargeRows
from ibbmaster.replication.event.rows.partial import NOT_PLAIN, PlainRows
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.file_name import format_file_name

IS_NOT_PLAIN = np.isin(np.arange(256), NOT_PLAIN)
ALL_BITS = 2**64
IDENTITY = slice(GroupColumn.DOMAIN, GroupColumn.END_FILE_NO)  # identifies a group: GTID, time and place
Damage = EventError | FormatError | ClassicFormatError


@dataclass(frozen=True, slots=True)
class EventBatch:
    """`groups` and `events` have the columns `GroupColumn` and `EventColumn`, with places in the read-only `data`. The
    arrays are good until the next batch, where a group may continue."""

    data: Any
    groups: Any
    events: Any
    file_name: Callable[[int], str] = format_file_name

    def gtid(self, group: int) -> str:
        row = self.groups[group]
        number = int(row[GroupColumn.SEQ_NO]) % ALL_BITS
        return f"{row[GroupColumn.DOMAIN]}-{row[GroupColumn.SERVER]}-{number}"

    def place(self, group: int) -> str:
        row = self.groups[group]
        name = self.file_name(int(row[GroupColumn.FILE_NO]))
        return _place_text(self.gtid(group), name, int(row[GroupColumn.FILE_OFFSET]))

    def schema_place(self, number: int) -> SchemaPlace:
        event = self.events[number]
        return SchemaPlace(self.start(event[EventColumn.GROUP]), int(event[EventColumn.NUMBER]))

    def identity(self, group: int) -> tuple[int, ...]:
        return tuple(self.groups[group, IDENTITY].tolist())

    def start(self, group: int) -> LogPosition:
        row = self.groups[group]
        return LogPosition(int(row[GroupColumn.FILE_NO]), int(row[GroupColumn.FILE_OFFSET]))

    def event(self, number: int) -> bytes:
        start, size = self.events[number, EventColumn.START], self.events[number, EventColumn.SIZE]
        return self.data[start : start + size].tobytes()  # type: ignore[no-any-return]

    def event_view(self, number: int) -> memoryview:
        start, size = self.events[number, EventColumn.START], self.events[number, EventColumn.SIZE]
        return memoryview(self.data[start : start + size])

    def of_groups(self, wanted: Any) -> "EventBatch":
        if wanted.all():
            return self
        return dataclasses.replace(self, events=self.events[wanted[self.events[:, EventColumn.GROUP]]])

    def of_chosen(self, chosen: Any) -> "EventBatch":
        if chosen.all():
            return self
        events = self.events[chosen[self.events[:, EventColumn.GROUP]]]
        events[:, EventColumn.GROUP] = (np.cumsum(chosen) - 1)[events[:, EventColumn.GROUP]]
        return dataclasses.replace(self, groups=self.groups[chosen], events=events)

    @contextlib.contextmanager
    def naming_group(self, number: int) -> Iterator[None]:
        """Let an error about an event name its group."""
        try:
            yield
        except EventError as error:
            group = int(self.events[number, EventColumn.GROUP])
            raise EventError(f"{self.place(group)}: {error}") from error


def wanted_groups(groups: Any, selection: GroupSelection) -> Any:
    wanted = np.ones(len(groups), dtype=bool)
    domains = groups[:, GroupColumn.DOMAIN]
    timestamps = groups[:, GroupColumn.TIMESTAMP]
    if selection.domains:
        wanted &= np.isin(domains, list(selection.domains))
    if selection.servers:
        wanted &= np.isin(groups[:, GroupColumn.SERVER], list(selection.servers))
    if selection.start_time is not None:
        wanted &= timestamps >= selection.start_time
    if selection.end_time is not None:
        wanted &= timestamps < selection.end_time
    for domain_id, point in selection.starts:
        wanted &= (domains != domain_id) | ~is_before(groups, point)
    if selection.ends is not None:
        ends = np.zeros(len(groups), dtype=bool)
        for domain_id, point in selection.ends:
            ends |= (domains == domain_id) & is_before(groups, point)
        wanted &= ends
    return wanted


def is_before(groups: Any, position: LogPosition) -> Any:
    file_no, offset = position
    file_nos = groups[:, GroupColumn.FILE_NO]
    return (file_nos < file_no) | ((file_nos == file_no) & (groups[:, GroupColumn.FILE_OFFSET] < offset))


def in_group(error: Damage, group: EventGroup, file_name: Callable[[int], str]) -> Damage:
    if isinstance(error, FormatError):
        return type(error)(error.location, f"{error.problem} (in group {group.gtid})")
    if isinstance(error, ClassicFormatError):
        return type(error)(error.file_name, error.file_offset, f"{error.problem} (in group {group.gtid})")
    return EventError(f"{_place_text(str(group.gtid), file_name(group.start.file_no), group.start.offset)}: {error}")


def _place_text(gtid: str, file_name: str, offset: int) -> str:
    return f"group {gtid} at {file_name} offset {offset}" if file_name else f"group {gtid}"


def read_only(data: Any) -> Any:
    """Bytes as kernels take them: not writable, as those of a long event are."""
    array = np.frombuffer(data, dtype=np.uint8)
    array.flags.writeable = False
    return array


class PlainEvents:
    """Makes events plain, batch by batch; holds the fragments of a row event that continues."""

    def __init__(self, large: LargeRows) -> None:
        self._large = large
        self._rows = PlainRows(large)

    def of(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The same events, unpacked and joined; a large one is a batch by itself."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        if not IS_NOT_PLAIN[types].any() and not self._rows.is_open:
            yield batch
            return
        data = bytearray()
        rows: list[list[int]] = []
        for number, row in enumerate(batch.events.tolist()):
            with batch.naming_group(number):
                event = self._rows.whole_event(batch.event(number))
            if event is not None and len(event) > self._large.kept_max:
                yield _batch_of(batch, data, rows)
                yield _batch_of(batch, event, [[0, len(event), *row[2:]]])
                data, rows = bytearray(), []
            elif event is not None:
                rows.append([len(data), len(event), *row[2:]])
                data += event
        yield _batch_of(batch, data, rows)

    def finish(self) -> None:
        """Raises EventError: the log ends inside a row event's fragments."""
        self._rows.finish()


def _batch_of(batch: EventBatch, data: Buffer, rows: list[list[int]]) -> EventBatch:
    events = np.array(rows, dtype=np.int64).reshape(-1, EventColumn.COLUMNS)
    return dataclasses.replace(batch, data=read_only(data), events=events)
