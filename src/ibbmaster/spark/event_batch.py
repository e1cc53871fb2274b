"""Events of many groups side by side in one buffer, with where each is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.errors import EventError, FormatError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import decode_event_header
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import EventColumn, Field, GroupColumn
from ibbmaster.store.archive import IbbArchive
from ibbmaster.store.event_groups import EventGroupReader
from ibbmaster.store.group_content import group_events
from ibbmaster.store.log_range import LogRange, Selection
from ibbmaster.store.seam import Seam

DATA_BYTES = 8 << 20  # of events in a batch; a longer event has one of its own
GROUPS_MAX = 1 << 15
EVENT_BYTES_MIN = 19
BLOCK_PAGES = 64
ALL_BITS = 2**64


@dataclass(frozen=True, slots=True)
class EventBatch:
    """`groups` and `events` have the columns `GroupColumn` and `EventColumn`; their places are those in `data`.

    The arrays are good until the next batch. A group may begin or end in another batch.
    """

    data: Any
    groups: Any
    events: Any

    def gtid(self, group: int) -> str:
        """The GTID of a group, for people."""
        row = self.groups[group]
        number = int(row[GroupColumn.SEQ_NO]) % ALL_BITS
        return f"{row[GroupColumn.DOMAIN]}-{row[GroupColumn.SERVER]}-{number}"

    def place(self, group: int) -> str:
        """A group and where it begins, for people."""
        row = self.groups[group]
        name = format_file_name(int(row[GroupColumn.FILE_NO]))
        return f"group {self.gtid(group)} at {name} offset {row[GroupColumn.FILE_OFFSET]}"

    def event(self, number: int) -> bytes:
        """The bytes of an event."""
        start, size = self.events[number, EventColumn.START], self.events[number, EventColumn.SIZE]
        return self.data[start : start + size].tobytes()  # type: ignore[no-any-return]

    def of_groups(self, wanted: Any) -> EventBatch:
        """The events of those groups whose place in `wanted` is true."""
        if wanted.all():
            return self
        return EventBatch(self.data, self.groups, self.events[wanted[self.events[:, EventColumn.GROUP]]])


class EventBatches:
    """The events of a stretch of an `.ibb` file, many groups at once where all is plain.

    Raises:
        FormatError: a file is damaged; the text names the group if it is known.
        EventError: a group does not consist of events.
    """

    def __init__(self, archive: IbbArchive, log_range: LogRange, kernels: ModuleType) -> None:
        self._archive = archive
        self._range = log_range
        self._kernels = kernels
        self._reader = EventGroupReader(
            archive.disk,
            file_no=log_range.file_no,
            page_no=log_range.start_offset // PAGE_SIZE,
            end=(log_range.file_no, log_range.end_offset),
        )
        self._seam = Seam(archive.disk, log_range)
        self._block: Any = np.empty(BLOCK_PAGES * PAGE_SIZE, dtype=np.uint8)
        self._data = np.empty(DATA_BYTES, dtype=np.uint8)
        self._groups = np.zeros((GROUPS_MAX, GroupColumn.COLUMNS), dtype=np.int64)
        self._events = np.empty((DATA_BYTES // EVENT_BYTES_MIN, EventColumn.COLUMNS), dtype=np.int64)
        self._state = np.zeros(Field.SIZE, dtype=np.int64)

    def __iter__(self) -> Iterator[EventBatch]:
        state = self._state
        place = (-1, 0)  # where the kernel stopped, and inside which records
        inside = (-1, -1)
        while True:
            if self._reader.place != place:
                place, inside = self._reader.place, (-1, -1)
            if place >= (self._range.file_no, self._range.end_offset):
                break
            moved = self._collect(place, inside)
            if moved is not None:
                place, inside = moved
            elif self._is_full:
                yield self._taken()
            else:
                group = self._reader.next_group()
                if group is None:
                    break
                if group.gtid is not None and self._range.holds(self._archive.point_of(group)):
                    self._seam.log([group.gtid])
                    yield from self._careful(group)
        if state[Field.GROUPS]:
            yield self._taken()
        if self._reader.place[0] == self._range.file_no:
            self._seam.check()

    @property
    def _is_full(self) -> bool:
        groups, used = self._state[Field.GROUPS], self._state[Field.OUT]
        return bool(groups == GROUPS_MAX or used > DATA_BYTES - (BLOCK_PAGES + 1) * PAGE_SIZE)

    def _collect(
        self, place: tuple[int, int], inside: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Collect from a place on; returns the place behind, None if nothing was passed."""
        file_no, file_offset = place
        page_no, page_offset = divmod(file_offset, PAGE_SIZE)
        if file_no != self._range.file_no or file_offset <= PAGE_SIZE or self._is_full:
            return None
        target = memoryview(self._block)
        size = self._archive.disk.read_into(self._archive.file_name(file_no), page_no * PAGE_SIZE, target) or 0
        state = self._state
        before = int(state[Field.GROUPS])
        state[Field.PAGE], state[Field.OFFSET] = 0, page_offset
        state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = inside
        self._kernels.collect_groups(
            self._block,
            size // PAGE_SIZE,
            state,
            file_no,
            page_no * PAGE_SIZE,
            self._range.end_offset,
            self._groups,
            self._data,
        )
        behind = file_no, (page_no + int(state[Field.PAGE])) * PAGE_SIZE + int(state[Field.OFFSET])
        if behind == place:
            return None
        inside = int(state[Field.SKIP_TYPE]), int(state[Field.NESTED_TYPE])
        passed = last_gtids(self._groups[before : state[Field.GROUPS]])
        self._reader.pass_over(*behind, passed, is_inside_record=inside[0] >= 0)
        self._seam.log(passed)
        first = before
        while first < state[Field.GROUPS] and self._groups[first, GroupColumn.FILE_OFFSET] < self._range.start_offset:
            first += 1  # the stretch begins behind them
        if first > before:
            kept = int(state[Field.GROUPS]) - first
            self._groups[before : before + kept] = self._groups[first : first + kept].copy()
            state[Field.GROUPS] = before + kept
        return behind, inside

    def _taken(self) -> EventBatch:
        """What was collected, as a batch."""
        count = int(self._state[Field.GROUPS])
        found = self._kernels.index_events(self._data, self._groups, count, self._events)
        self._state[Field.GROUPS] = self._state[Field.OUT] = 0
        return EventBatch(self._data, self._groups[:count], self._events[:found])

    def _careful(self, group: EventGroup) -> Iterator[EventBatch]:
        """A group that is not plain, event by event."""
        state = self._state
        number = 0
        is_new = True
        try:
            for event in group_events(group):
                if len(event) > DATA_BYTES - state[Field.OUT] or (is_new and state[Field.GROUPS] == GROUPS_MAX):
                    if state[Field.GROUPS]:
                        yield self._taken()
                    is_new = True
                if len(event) > DATA_BYTES:
                    yield self._alone(group, event, number)
                    number += 1
                    continue
                start = int(state[Field.OUT])
                self._data[start : start + len(event)] = memoryview(event)
                if is_new:
                    self._groups[state[Field.GROUPS]] = self._row(group, start, number)
                    state[Field.GROUPS] += 1
                    is_new = False
                state[Field.OUT] += len(event)
                self._groups[state[Field.GROUPS] - 1, GroupColumn.END] = state[Field.OUT]
                number += 1
        except (EventError, FormatError) as error:
            raise in_group(error, group) from error

    def _alone(self, group: EventGroup, event: bytes, number: int) -> EventBatch:
        groups = np.array([self._row(group, 0, number)], dtype=np.int64)
        groups[0, GroupColumn.END] = len(event)
        return EventBatch(
            np.frombuffer(event, dtype=np.uint8), groups, np.array([[0, len(event), 0, number]], dtype=np.int64)
        )

    def _row(self, group: EventGroup, start: int, number: int) -> list[int]:
        gtid = group.gtid
        assert gtid is not None
        point = self._archive.point_of(group)
        end_file_no = parse_file_name(group.end_file_name)
        assert end_file_no is not None
        seq_no = gtid.seq_no if gtid.seq_no < ALL_BITS // 2 else gtid.seq_no - ALL_BITS
        timestamp = decode_event_header(group.gtid_event).timestamp
        return [
            gtid.domain_id,
            gtid.server_id,
            seq_no,
            timestamp,
            *point,
            end_file_no,
            group.end_offset,
            start,
            start,
            number,
        ]


def last_gtids(groups: Any) -> list[Gtid]:
    """The last GTID of each (domain, server) pair, in the order of the log."""
    if not len(groups):
        return []
    pairs = groups[:, GroupColumn.DOMAIN] << 32 | groups[:, GroupColumn.SERVER]
    last = [len(groups) - 1]
    if (pairs != pairs[0]).any():
        _, from_end = np.unique(pairs[::-1], return_index=True)
        last = sorted(len(groups) - 1 - from_end)
    columns = [GroupColumn.DOMAIN, GroupColumn.SERVER, GroupColumn.SEQ_NO]
    return [
        Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no % ALL_BITS)
        for domain_id, server_id, seq_no in groups[last][:, columns].tolist()
    ]


def wanted_groups(groups: Any, selection: Selection) -> Any:
    """For each group of a batch whether a selection takes it."""
    wanted = np.ones(len(groups), dtype=bool)
    domains = groups[:, GroupColumn.DOMAIN]
    timestamps = groups[:, GroupColumn.TIMESTAMP]
    if selection.domains:
        wanted &= np.isin(domains, list(selection.domains))
    if selection.start_time is not None:
        wanted &= timestamps >= selection.start_time
    if selection.end_time is not None:
        wanted &= timestamps < selection.end_time
    for domain_id, point in selection.starts:
        wanted &= (domains != domain_id) | ~_is_before(groups, point)
    if selection.ends is not None:
        ends = np.zeros(len(groups), dtype=bool)
        for domain_id, point in selection.ends:
            ends |= (domains == domain_id) & _is_before(groups, point)
        wanted &= ends
    return wanted


def _is_before(groups: Any, point: tuple[int, int]) -> Any:
    file_no, file_offset = point
    file_nos = groups[:, GroupColumn.FILE_NO]
    return (file_nos < file_no) | ((file_nos == file_no) & (groups[:, GroupColumn.FILE_OFFSET] < file_offset))


def in_group(error: EventError | FormatError, group: EventGroup) -> EventError | FormatError:
    """The same error, which also names the group."""
    if isinstance(error, FormatError):
        return type(error)(error.location, f"{error.problem} (in group {group.gtid})")
    return EventError(f"group {group.gtid} at {group.file_name} offset {group.file_offset}: {error}")
