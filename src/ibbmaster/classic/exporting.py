"""The groups of a log written as traditional binlog files, or as `.ibb` files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

from ibbmaster.classic.series_writer import STEM, ClassicWriter
from ibbmaster.disk.interface import Disk
from ibbmaster.dump.profile import Profile
from ibbmaster.errors import EventError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import decode_event_header
from ibbmaster.gtid import GtidState
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.log.directory import END_POLL_PERIOD_S
from ibbmaster.log.interface import LogEngine, ReadPlan, are_paged
from ibbmaster.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES
from ibbmaster.position import LogPosition
from ibbmaster.store.appending import open_log

PROGRESS_STEP_BYTES = 1 << 20  # of the log between two calls of `progress`
FILE_BYTES_MIN = 4096  # as max_binlog_size of a server
OnProgress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionReport:
    """What was written. Sizes are in bytes; `gtid_state` is that at the end, `restart_count` counts server starts."""

    files: tuple[str, ...]
    group_count: int
    event_bytes: int  # as the log has them
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

    A file ends after the group with which it has `max_file_bytes` or more, where a server was started, and where a
    domain was forgotten, which only the head of the next one can say. Heads and ends have time and server of the
    group next to them, so the same log gives the same files. They are durable in the end, with an index, and
    with the state that a server reads when it is started on them.

    Raises:
        ConfigurationError: such a server has no traditional files.
        EventError: an event is damaged, or that server does not know it; the text names the group.
        FormatError, ClassicFormatError: the log is damaged.
        StoreError: the directory cannot be written.
    """
    plan = log.start_of_file()
    series = _Series(ClassicWriter(disk, profile, state=plan.state.copy(), stem=stem), max_file_bytes)
    for group in _passed(log, plan, progress):
        if group.gtid is None:
            series.note_start()
            continue
        if group.start.file_no != series.file_no:
            series.enter(group.start.file_no, log)
        try:
            series.write(group)
        except EventError as error:
            place = f"{log.file_name(group.start.file_no)} offset {group.start.offset}"
            raise EventError(f"group {group.gtid} at {place}: {error}") from None
    series.finish()
    return ConversionReport(
        files=tuple(series.writer.names),
        group_count=series.group_count,
        event_bytes=series.event_bytes,
        restart_count=series.restart_count,
        gtid_state=series.writer.state,
    )


def export_pages(
    log: LogEngine,
    disk: Disk,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
    state_interval_bytes: int = STATE_INTERVAL_BYTES,
    progress: OnProgress | None = None,
) -> ConversionReport:
    """Write every group of a log into an empty directory of `.ibb` files.

    Raises:
        ConfigurationError: a size the format does not allow.
        EventError, FormatError, ClassicFormatError: the log is damaged.
        StoreError: the directory cannot be written.
    """
    plan, count, size = log.start_of_file(), 0, 0

    def counted(group: EventGroup) -> Iterator[bytes]:
        nonlocal size
        size += len(group.gtid_event)
        for piece in group.body:
            size += len(piece)
            yield bytes(piece)

    with open_log(
        disk,
        initial_state=plan.state,
        max_file_bytes=max_file_bytes,
        state_interval_bytes=state_interval_bytes,
        gtid_strict=False,
    ) as target:
        first = target.end.file_no
        for group in _passed(log, plan, progress):
            if group.gtid is not None:
                target.write_group(group.gtid, group.gtid_event, counted(group))
                count += 1
        target.flush()
        state, last = target.state.copy(), target.end.file_no
    return ConversionReport(
        files=tuple(map(format_file_name, range(first, last + 1))),
        group_count=count,
        event_bytes=size,
        restart_count=0,
        gtid_state=state,
    )


class _Series:
    """What goes on from group to group: when a file begins, and what its head says."""

    def __init__(self, writer: ClassicWriter, max_file_bytes: int) -> None:
        self.writer = writer
        self.file_no = -1  # of the log
        self.group_count = self.event_bytes = self.restart_count = 0
        self._max_file_bytes = max_file_bytes
        self._is_start = not len(writer.state)  # the next file begins with a start of the server
        self._last = {"server_id": 0, "timestamp": 0}

    def note_start(self) -> None:
        """A server was started before the next group."""
        self.restart_count += bool(self.group_count)
        self._is_start = self._is_start or bool(self.group_count)

    def enter(self, file_no: int, log: LogEngine) -> None:
        """The next group is in another file of the log: whether a domain was forgotten there, or a server started."""
        plan = log.start_of_file(file_no) if self.file_no >= 0 else None
        self.file_no = file_no
        if plan is None:
            return
        if plan.is_restart:
            self.note_start()
        dropped = set(self.writer.state.domain_ids) - set(plan.state.domain_ids)
        if dropped and plan.is_begun:
            self._end()
            for domain_id in dropped:
                self.writer.state.drop_domain(domain_id)

    def write(self, group: EventGroup) -> None:
        """The next group, in a new file where that is due."""
        writer, gtid = self.writer, group.gtid
        assert gtid is not None
        header = decode_event_header(group.gtid_event)
        near = {"server_id": header.server_id, "timestamp": header.timestamp}
        if writer.is_open and (self._is_start or writer.offset >= self._max_file_bytes):
            self._end()
        if not writer.is_open:
            writer.begin_file(is_start=self._is_start, **near)
            self._is_start = False
        self.event_bytes += writer.write_group(group.gtid_event, group.body)
        writer.state.log(gtid)
        self.group_count += 1
        self._last = near

    def finish(self) -> None:
        """No more groups come."""
        if not self.writer.is_open:
            self.writer.begin_file(is_start=self._is_start, **self._last)
        self.writer.end_file(is_last=True, **self._last)
        self.writer.write_state()
        self.writer.sync()

    def _end(self) -> None:
        if self.writer.is_open:
            self.writer.end_file(is_last=False, **self._last)


def _passed(log: LogEngine, plan: ReadPlan, progress: OnProgress | None) -> Iterator[EventGroup]:
    """Every group of the log as it is now, those without GTID, too."""
    sizes = {file.file_no: file.size for file in log.files()}
    end, total, before, heard = log.end(), sum(sizes.values()), 0, 0
    file_no = plan.position.file_no
    with closing(log.groups(plan)) as groups:
        while (position := groups.position) < end:
            group = groups.next_group()
            if group is None:
                if not (are_paged(groups) and groups.expects_more):
                    break
                time.sleep(END_POLL_PERIOD_S)  # another process writes there
                continue
            yield group
            position = LogPosition(*group.end)
            while file_no < position.file_no:
                before += sizes.get(file_no, 0)
                file_no += 1
            done = before + position.offset
            if progress is not None and done - heard >= PROGRESS_STEP_BYTES:
                heard = done
                progress(min(done, total), total)
    if progress is not None:
        progress(total, total)
