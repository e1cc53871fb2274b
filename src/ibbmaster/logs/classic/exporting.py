"""Writes a log as traditional binlog files, or reads it for an import."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.gtid import GtidState
from ibbmaster.kernel.fields import GroupColumn, last_gtids
from ibbmaster.kernel.loading import has_numpy, kernels
from ibbmaster.logs.log.directory import END_POLL_PERIOD_S
from ibbmaster.logs.log.gtid_order import place_of
from ibbmaster.logs.log.interface import EventGroups, LogEngine, ReadPlan, are_paged
from ibbmaster.logs.log.limits import MAX_FILE_BYTES
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.profile import Profile
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.storage.disk.interface import Disk
from .series_writer import STEM, ClassicWriter

if TYPE_CHECKING:
    from ibbmaster.kernel.calls import Kernels

PROGRESS_STEP_BYTES = 1 << 20
FILE_BYTES_MIN = 4096
OnProgress = Callable[[int, int], object]


class ConversionReport(NamedTuple):
    """Sizes are in bytes; `gtid_state` is that at the end, `restart_count` counts server starts."""

    files: tuple[str, ...]
    group_count: int
    event_bytes: int
    restart_count: int
    gtid_state: GtidState


def export_traditional(
    log: LogEngine,
    disk: Disk,
    profile: Profile,
    *,
    stem: str = STEM,
    max_file_bytes: int = MAX_FILE_BYTES,
    progress: OnProgress | None = None,
) -> ConversionReport:
    """Write every group of a log into an empty directory, as files of the server that `profile` names.

    A file ends after the group with which it has `max_file_bytes` or more, at a server start, and where a domain was
    forgotten, which only the next head can say. Heads and ends have time and server of the group next to them, so the
    same log gives the same files. They become durable, with index and state file. Raises ConfigurationError: such a
    server has no traditional files; EventError: an event is damaged, or that server does not know it; FormatError,
    ClassicFormatError: the log is damaged; StoreError: the directory cannot be written."""
    plan = log.start_of_file()
    series = TraditionalSeries(log, ClassicWriter(disk, profile, state=plan.state.copy(), stem=stem), max_file_bytes)
    for found in passed(log, plan, progress, ready_kernels()):
        series.take(found)
    series.finish()
    return ConversionReport(
        files=tuple(series.writer.names),
        group_count=series.group_count,
        event_bytes=series.event_bytes,
        restart_count=series.restart_count,
        gtid_state=series.writer.state,
    )


def ready_kernels() -> Kernels | None:
    """Those that `passed` uses."""
    return kernels() if has_numpy() else None


class TraditionalSeries:
    """Writes groups of a log in order, file after file. Raises as `export_traditional`."""

    def __init__(self, log: LogEngine, writer: ClassicWriter, max_file_bytes: int) -> None:
        self._log = log
        self.writer = writer
        self.file_no = -1
        self.group_count = self.event_bytes = self.restart_count = 0
        self._max_file_bytes = max_file_bytes
        self._is_start = not len(writer.state)  # a start of the server begins the next file
        self._last = {"server_id": 0, "timestamp": 0}

    def take(self, found: EventGroup | CollectedGroups) -> None:
        for group in found.left(self) if isinstance(found, CollectedGroups) else (found,):
            if group.gtid is None:
                self.note_start()
                continue
            self.enter(group.start.file_no)
            try:
                self.write(group)
            except EventError as error:
                place = f"{self._log.file_name(group.start.file_no)} offset {group.start.offset}"
                raise EventError(f"group {group.gtid} at {place}: {error}") from None

    def note_start(self) -> None:
        self.restart_count += bool(self.group_count)
        self._is_start = self._is_start or bool(self.group_count)

    def enter(self, file_no: int) -> None:
        if file_no == self.file_no:
            return
        plan = self._log.start_of_file(file_no) if self.file_no >= 0 else None
        self.file_no = file_no
        if plan is None:
            return
        if plan.is_restart:
            self.note_start()
        dropped = set(self.writer.state.domain_ids) - set(plan.state.domain_ids)
        if dropped and plan.is_begun:
            self.end()
            for domain_id in dropped:
                self.writer.state.drop_domain(domain_id)

    def write(self, group: EventGroup) -> None:
        gtid = group.gtid
        assert gtid is not None
        header = decode_event_header(group.gtid_event)
        near = {"server_id": header.server_id, "timestamp": header.timestamp}
        self._make_ready(near)
        writer = self.writer
        self.event_bytes += writer.write_group(group.gtid_event, group.body)
        writer.state.log(gtid)
        self.group_count += 1
        self._last = near

    def place(self, kernels: Kernels, data: Any, groups: Any, first: int) -> int:
        self._make_ready(_near(groups[first]))
        row = self.writer.place(kernels, data, groups, first, self._max_file_bytes)
        for gtid in last_gtids(groups[first:row]):
            self.writer.state.log(gtid)
        self.event_bytes += int((groups[first:row, GroupColumn.END] - groups[first:row, GroupColumn.START]).sum())
        self.group_count += row - first
        if row > first:
            self._last = _near(groups[row - 1])
        return row

    def _make_ready(self, near: dict[str, int]) -> None:
        writer = self.writer
        if writer.is_open and (self._is_start or writer.offset >= self._max_file_bytes):
            self.end()
        if not self.writer.is_open:
            self.begin(is_start=self._is_start, near=near)
            self._is_start = False

    def begin(self, *, is_start: bool, near: dict[str, int]) -> None:
        self.writer.begin_file(is_start=is_start, **near)

    def finish(self) -> None:
        if not self.writer.is_open:
            self.begin(is_start=self._is_start, near=self._last)
        self.writer.end_file(is_last=True, **self._last)
        self.writer.write_state()
        self.writer.sync()

    def end(self) -> None:
        """End the file, if one is open, before the next group."""
        if self.writer.is_open:
            self.writer.end_file(is_last=False, **self._last)


class CollectedGroups(NamedTuple):
    kernels: Kernels
    data: Any
    groups: Any

    def left(self, series: TraditionalSeries) -> Iterator[EventGroup]:
        """Write them; yields each that the kernel leaves before later ones are written."""
        if not len(self.groups):
            return
        series.enter(int(self.groups[0, GroupColumn.FILE_NO]))
        row = 0
        while row < len(self.groups):
            before, row = row, series.place(self.kernels, self.data, self.groups, row)
            if row == before:
                yield self._group(row)
                row += 1

    def _group(self, row: int) -> EventGroup:
        found = self.groups[row].tolist()
        data = self.data[found[GroupColumn.START] : found[GroupColumn.END]].tobytes()
        size = decode_event_header(data).size
        [gtid] = last_gtids(self.groups[row : row + 1])
        return EventGroup(
            gtid=gtid,
            gtid_event=data[:size],
            body=iter((data[size:],)),
            start=LogPosition(found[GroupColumn.FILE_NO], found[GroupColumn.FILE_OFFSET]),
            end=LogPosition(found[GroupColumn.END_FILE_NO], found[GroupColumn.END_OFFSET]),
        )


def _near(row: Any) -> dict[str, int]:
    return {"server_id": int(row[GroupColumn.SERVER]), "timestamp": int(row[GroupColumn.TIMESTAMP])}


def passed(
    log: LogEngine, plan: ReadPlan, progress: OnProgress | None, ready: Kernels | None = None
) -> Iterator[EventGroup | CollectedGroups]:
    """Every present group of the log, and every event without GTID; many at once with kernels that are `ready`."""
    heard = _Progress(log, plan.position.file_no, progress)
    end = log.end()
    with closing(log.groups(plan)) as groups:
        for found in passed_by(groups, end, ready):
            yield found
            heard.reach(groups.position)
    heard.finish()


def passed_by(
    groups: EventGroups, end: LogPosition, ready: Kernels | None = None
) -> Iterator[EventGroup | CollectedGroups]:
    """As `passed`, what a reader has not read yet, up to a position of its log."""
    pages = None
    if ready is not None and are_paged(groups) and groups.position < end:
        from .page_groups import PageGroups

        pages = PageGroups(groups, end, ready)
    while groups.position < end:
        if pages is not None and ready is not None and pages.collect():
            yield CollectedGroups(ready, pages.data, pages.groups)
        elif (group := groups.next_group()) is not None:
            yield group
        elif are_paged(groups) and groups.expects_more:
            time.sleep(END_POLL_PERIOD_S)
        else:
            break


class _Progress:
    def __init__(self, log: LogEngine, file_no: int, progress: OnProgress | None) -> None:
        self._sizes = {file.file_no: file.size for file in log.files()}
        self._total = sum(self._sizes.values())
        self._progress = progress
        self._file_no = file_no
        self._before = self._heard = 0  # of complete files; as said last

    def reach(self, position: LogPosition) -> None:
        while self._file_no < position.file_no:
            self._before += self._sizes.get(self._file_no, 0)
            self._file_no += 1
        done = self._before + position.offset
        if self._progress is not None and done - self._heard >= PROGRESS_STEP_BYTES:
            self._heard = done
            self._progress(min(done, self._total), self._total)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress(self._total, self._total)


class LogRead:
    """The groups of a log, from a file on, to import like those of a `ClassicReader`."""

    restart_count = bytes_read = 0
    notices = ()

    def __init__(self, log: LogEngine, file_no: int | None = None) -> None:
        self._log = log
        self._plan = log.start_of_file(file_no)
        self.initial_state = self._plan.state.copy()
        self.file_names = [file.name for file in log.files()]
        self.size_bytes = sum(file.size for file in log.files())

    def groups(self, take: object = None) -> Iterator[EventGroup]:
        found = passed(self._log, self._plan, self._note)
        return (group for group in found if isinstance(group, EventGroup) and group.gtid is not None)

    def _note(self, done: int, total: int) -> None:
        self.bytes_read = done

    def place(self, position: LogPosition) -> str:
        return place_of(self._log, position)

    def from_file(self, file_no: int) -> LogRead:
        return LogRead(self._log, file_no)
