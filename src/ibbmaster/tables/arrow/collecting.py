"""Collects the events of a range of a log into batches, many groups at once where all is plain."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ibbmaster.errors import ClassicFormatError, EventError, FormatError, StoreError
from ibbmaster.kernel.calls import Collecting, FileRange, Kernels
from ibbmaster.kernel.fields import (
    CHUNKS_PER_PAGE_MAX,
    ChunkColumn,
    Conversion,
    EventColumn,
    Field,
    GroupColumn,
    last_gtids,
)
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.groups import ENDING_TYPES, LARGE_EVENT_SIZE
from ibbmaster.logs.classic.head import read_head
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.logs.classic.window import BlockWindow, Truncated
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.logs.log.group_content import group_events
from ibbmaster.logs.log.interface import GroupSource, is_staged
from ibbmaster.logs.log.log_range import GroupSelection, LogRange
from ibbmaster.logs.log.range_reading import FileBoundary, check_range_reached
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .event_batch import ALL_BITS, EventBatch, in_group, read_only, wanted_groups

DATA_BYTES = 4 << 20  # of events in a batch, which caches hold; a longer event has one of its own
SMALL_BYTES = 1 << 18  # of a traditional file that is read at once
GROUPS_MAX = 1 << 15
EVENT_BYTES_MIN = 19
AROUND_GROUPS = (EventType.BINLOG_CHECKPOINT, *ENDING_TYPES)  # between the groups of a plain file
BLOCK_PAGES = 64
ROOM_BYTES = (BLOCK_PAGES + 1) * PAGE_SIZE  # a batch with less room is full
OnStart = Callable[[EventGroup], object]


def event_batches(
    source: GroupSource,
    log_range: LogRange,
    kernels: Kernels,
    *,
    is_strict: bool = True,
    on_start: OnStart = lambda group: None,
) -> Iterable[EventBatch]:
    """The events of a range; `is_strict`: the log must reach to its end. `on_start` gets what is logged without a GTID:
    the FORMAT_DESCRIPTION of a started server. Raises FormatError, ClassicFormatError: a file is damaged; the text
    names a known group; EventError: a group does not consist of events."""
    if is_staged(source) and (choice := source.choice) is not None:
        batches = event_batches(source.inner, log_range, kernels, is_strict=is_strict, on_start=on_start)
        return _chosen(batches, choice)
    source = source.opened_to(log_range)
    if isinstance(source, BinlogDirectory):
        return IbbBatches(source, log_range, kernels, is_strict=is_strict, on_start=on_start)
    if isinstance(source, ClassicBinlog):
        return ClassicBatches(source, [log_range], kernels)
    return GroupBatches(source, [log_range], kernels)


def _chosen(batches: Iterable[EventBatch], choice: GroupSelection) -> Iterator[EventBatch]:
    for batch in batches:
        found = batch.of_chosen(wanted_groups(batch.groups, choice))
        if len(found.groups):
            yield found


class CollectingRoom:
    """Room for a batch of events, which kernels fill."""

    def __init__(self, kernels: Kernels, file_name: Callable[[int], str]) -> None:
        self._kernels = kernels
        self._file_name = file_name
        self.data = np.empty(DATA_BYTES, dtype=np.uint8)
        self._collected = read_only(self.data)
        self.groups = np.zeros((GROUPS_MAX, GroupColumn.COLUMNS), dtype=np.int64)
        self._events = np.empty((DATA_BYTES // EVENT_BYTES_MIN, EventColumn.COLUMNS), dtype=np.int64)
        self.state = np.zeros(Field.SIZE, dtype=np.int64)
        self.state[Field.SKIP_TYPE] = self.state[Field.NESTED_TYPE] = -1
        table = np.empty((CHUNKS_PER_PAGE_MAX, ChunkColumn.COLUMNS), dtype=np.int32)
        self.collecting = Collecting(self.state, table, self.groups, self.data)

    @property
    def count(self) -> int:
        return int(self.state[Field.GROUPS])

    @property
    def is_full(self) -> bool:
        groups, used = self.state[Field.GROUPS], self.state[Field.OUT]
        return bool(groups == GROUPS_MAX or used > DATA_BYTES - ROOM_BYTES)

    def taken(self) -> EventBatch:
        count = self.count
        found = self._kernels.index_events(self._collected, self.groups, count, self._events)
        self.state[Field.GROUPS] = self.state[Field.OUT] = 0
        return EventBatch(self._collected, self.groups[:count], self._events[:found], self._file_name)


class GroupBatches:
    def __init__(self, source: GroupSource, ranges: Sequence[LogRange], kernels: Kernels) -> None:
        self._source = source
        self._ranges = ranges
        self._kernels = kernels
        self._room = room = CollectingRoom(kernels, source.file_name)
        self._data, self._groups, self._state, self._collecting = room.data, room.groups, room.state, room.collecting

    def __iter__(self) -> Iterator[EventBatch]:
        for group in self._one_by_one():
            if self._room.is_full:
                yield self._room.taken()
            if group.gtid is not None:
                yield from self._by_reference(group)
        if self._state[Field.GROUPS]:
            yield self._room.taken()

    def _one_by_one(self) -> Iterator[EventGroup]:
        for log_range in self._ranges:
            yield from self._source.groups_in(log_range)

    def _by_reference(self, group: EventGroup) -> Iterator[EventBatch]:
        """Collect a group, event by event."""
        state = self._state
        number = 0
        is_new = True
        try:
            for event in group_events(group):
                if len(event) > DATA_BYTES - state[Field.OUT] or (is_new and state[Field.GROUPS] == GROUPS_MAX):
                    if state[Field.GROUPS]:
                        yield self._room.taken()
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
        except (EventError, FormatError, ClassicFormatError) as error:
            raise in_group(error, group, self._source.file_name) from error

    def _alone(self, group: EventGroup, event: bytes, number: int) -> EventBatch:
        groups = np.array([self._row(group, 0, number)], dtype=np.int64)
        groups[0, GroupColumn.END] = len(event)
        events = np.array([[0, len(event), 0, number]], dtype=np.int64)
        return EventBatch(read_only(event), groups, events, self._source.file_name)

    def _row(self, group: EventGroup, start: int, number: int) -> list[int]:
        gtid = group.gtid
        assert gtid is not None
        seq_no = gtid.seq_no if gtid.seq_no < ALL_BITS // 2 else gtid.seq_no - ALL_BITS
        timestamp = decode_event_header(group.gtid_event).timestamp
        return [gtid.domain_id, gtid.server_id, seq_no, timestamp, *group.start, *group.end, start, start, number]


class ClassicBatches(GroupBatches):
    def __init__(self, log: ClassicBinlog, ranges: Sequence[LogRange], kernels: Kernels) -> None:
        super().__init__(log, ranges, kernels)
        self._log = log
        self._numbers = np.zeros(Conversion.SIZE, dtype=np.int64)
        self._memory = page_memory(SMALL_BYTES)  # to read a small file into

    def _one_by_one(self) -> Iterator[EventGroup]:
        for log_range in self._ranges:
            if not self._take_whole(log_range):
                yield from self._log.groups_in(log_range, take=functools.partial(self._take, log_range))

    def _take_whole(self, log_range: LogRange) -> bool:
        """Collect a small file in which all is plain; False, with nothing of it, if it must be read."""
        state = self._state
        begin = int(state[Field.GROUPS]), int(state[Field.OUT])
        try:
            window = self._log.whole_window(log_range, self._memory[: DATA_BYTES - begin[1]])
            if window is None or read_head(window).state is None or window.is_in_use:
                return False
            event_type = int(EventType.BINLOG_CHECKPOINT)
            while window.has_more() and event_type == EventType.BINLOG_CHECKPOINT:
                if not self._take(log_range, window):
                    event_type, _ = window.read_event(LARGE_EVENT_SIZE)
            if not window.has_more() and event_type in AROUND_GROUPS:
                return True
        except (ClassicFormatError, StoreError, Truncated):
            pass  # reported when it is read
        state[Field.GROUPS], state[Field.OUT] = begin
        return False

    def _take(self, log_range: LogRange, window: BlockWindow) -> bool:
        """Collect groups from a window's beginning; False if the next one must come by itself."""
        if window.is_known_before_other_than(EventType.GTID):
            return False
        numbers = self._numbers
        numbers[Conversion.READ_AT], numbers[Conversion.SOURCE_OFFSET] = window.position, window.block_offset
        numbers[Conversion.CHECKSUM_BYTES] = window.checksum_size
        self._kernels.collect_classic_groups(
            np.frombuffer(window.block, dtype=np.uint8),
            numbers,
            kernel_roles(),
            self._collecting,
            FileRange(log_range.file_no, log_range.start_offset, log_range.end_offset),
        )
        has_moved = bool(numbers[Conversion.READ_AT] > window.position)
        window.position = int(numbers[Conversion.READ_AT])
        return has_moved


class IbbBatches(GroupBatches):
    def __init__(
        self, log: BinlogDirectory, log_range: LogRange, kernels: Kernels, *, is_strict: bool, on_start: OnStart
    ) -> None:
        super().__init__(log, [log_range], kernels)
        self._range = log_range
        self._on_start = on_start
        self._disk = log.disk
        self._is_strict = is_strict
        self._reader = EventGroupReader(
            log.disk,
            file_no=log_range.file_no,
            page_no=log_range.start_offset // PAGE_SIZE,
            end=LogPosition(log_range.file_no, log_range.end_offset),
        )
        self._boundary = FileBoundary(log.disk, log_range, checks_header=is_strict)
        self._block: Any = np.frombuffer(page_memory(BLOCK_PAGES * PAGE_SIZE), dtype=np.uint8)

    def __iter__(self) -> Iterator[EventBatch]:
        state = self._state
        position = NOWHERE  # where the kernel stopped, and in which records
        inside = (-1, -1)
        while True:
            if self._reader.position != position:
                position, inside = self._reader.position, (-1, -1)
            if position >= (self._range.file_no, self._range.end_offset):
                break
            moved = self._collect(position, inside)
            if moved is not None:
                position, inside = moved
            elif self._room.is_full:
                yield self._room.taken()
            else:
                group = self._reader.next_group()
                if group is None:
                    end = LogPosition(self._range.file_no, self._range.end_offset)
                    check_range_reached(self._reader, end, is_strict=self._is_strict)
                    break
                if group.gtid is not None:
                    self._boundary.log([group.gtid])  # also before the range: a kernel passes those, too
                if not self._range.holds(group.start):
                    continue
                if group.gtid is not None:
                    yield from self._by_reference(group)
                else:
                    self._on_start(group)
        if state[Field.GROUPS]:
            yield self._room.taken()
        if self._reader.position.file_no == self._range.file_no:
            self._boundary.check()

    def _collect(self, position: LogPosition, inside: tuple[int, int]) -> tuple[LogPosition, tuple[int, int]] | None:
        """Collect from a position on; returns the one behind, None if nothing was passed."""
        file_no, page_no = position.file_no, position.page_no
        if file_no != self._range.file_no or position.offset <= PAGE_SIZE or self._room.is_full:
            return None
        target = memoryview(self._block)
        size = self._disk.read_into(self._source.file_name(file_no), page_no * PAGE_SIZE, target) or 0
        state = self._state
        before = int(state[Field.GROUPS])
        state[Field.PAGE], state[Field.OFFSET] = 0, position.page_offset
        state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = inside
        file_range = FileRange(file_no, page_no * PAGE_SIZE, self._range.end_offset)
        self._kernels.collect_table(self._block, size // PAGE_SIZE, self._collecting, file_range)
        behind = LogPosition.on_page(file_no, page_no + int(state[Field.PAGE]), int(state[Field.OFFSET]))
        if behind == position:
            return None
        inside = int(state[Field.SKIP_TYPE]), int(state[Field.NESTED_TYPE])
        passed = last_gtids(self._groups[before : state[Field.GROUPS]])
        self._reader.continue_at(behind, passed, is_inside_record=inside[0] >= 0)
        self._boundary.log(passed)
        first = before
        while first < state[Field.GROUPS] and self._groups[first, GroupColumn.FILE_OFFSET] < self._range.start_offset:
            first += 1
        if first > before:
            kept = int(state[Field.GROUPS]) - first
            self._groups[before : before + kept] = self._groups[first : first + kept].copy()
            state[Field.GROUPS] = before + kept
        return behind, inside
