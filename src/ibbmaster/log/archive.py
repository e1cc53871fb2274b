"""A binlog that is read as a whole, by many readers at once: stretch by stretch, from any place to any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import FormatError, IbbMasterError, PositionError, StoreError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.log.boundary import FileBoundary
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.end_check import PATIENCE_S, STEP_PAGES
from ibbmaster.log.engine import BinlogEngine, ReadPlan
from ibbmaster.log.event_groups import EventGroupReader
from ibbmaster.log.log_range import LogRange
from ibbmaster.log.pages import PageReader
from ibbmaster.log.states import FULL_STATE_PAGE, read_state_record
from ibbmaster.position import LOG_START, LogPosition

WHOLE_FILES = 1 << 62  # bytes of a stretch; more than any file has
OnFault = Callable[[LogPosition, str], object]  # where, and what is wrong there


class Archive(Protocol):
    """What a reader of many stretches needs, whatever the format of the files."""

    def close(self) -> None:
        """Give back descriptors; what is asked for later opens files again."""

    def file_name(self, file_no: int) -> str: ...

    def start_position(self) -> GtidPosition:
        """What was logged before the oldest file."""

    def end_point(self) -> LogPosition:
        """Behind the last group that can be seen now."""

    def end_position(self) -> GtidPosition:
        """The latest GTID of each domain."""

    def cuts(self, position: GtidPosition) -> dict[int, LogPosition]:
        """For each domain of a position the point behind its GTID.

        Raises:
            PositionPurgedError: the position is older than the oldest file.
            PositionError: a GTID is not in this log.
        """

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        """Stretches that hold every group between two points, each of `size` bytes or more where that can be."""

    def groups(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        """The groups of a stretch in order. Each body must be read, or dropped, before the next group.

        With `on_fault` damage is reported there, and reading goes on behind it.

        Raises:
            FormatError, ClassicFormatError: a file is damaged, and there is no `on_fault`.
        """


class IbbArchive:
    """A directory of `.ibb` files. Nothing is read before it is asked for."""

    def __init__(self, path: Path | str, *, is_strict: bool = True) -> None:
        self.disk = RealDisk(path)
        self._directory = BinlogDirectory(self.disk)
        self._is_strict = is_strict  # refuse a log with a hole

    def close(self) -> None:
        self.disk.close()

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    def file_numbers(self) -> list[int]:
        """The numbers of the files; without a gap if the archive is strict.

        Raises:
            StoreError: there is none, or one in the middle is missing.
        """
        if self._is_strict:
            return list(self._directory.file_numbers())
        numbers = sorted(number for name in self.disk.list() if (number := parse_file_name(name)) is not None)
        if not numbers:
            raise StoreError(f"{self.disk}: no binlog files (binlog-000000.ibb and so on)")
        return numbers

    def start_position(self) -> GtidPosition:
        return self._state_before(self.file_numbers()[0]).position()

    def _state_before(self, file_no: int) -> GtidState:
        record = read_state_record(PageReader(self.disk, readahead_pages_max=1), file_no, FULL_STATE_PAGE)
        return GtidState(() if record is None else record.gtids)

    def end_point(self) -> LogPosition:
        try:
            end = self._directory.end()
            if self._is_strict:
                self._directory.check_end(patience_s=PATIENCE_S, pages_max=STEP_PAGES)
        except IbbMasterError:
            if self._is_strict:
                raise
            last = self.file_numbers()[-1]
            return LogPosition(last, self.disk.size(format_file_name(last)))
        return end

    def end_position(self) -> GtidPosition:
        try:
            return self._directory.binlog_state().position()
        except IbbMasterError:
            if self._is_strict:
                raise
            return GtidState(group.gtid for group in self._readable(LOG_START) if group.gtid is not None).position()

    def cuts(self, position: GtidPosition) -> dict[int, LogPosition]:
        try:
            plan = self._directory.seek(position)
        except FormatError:
            if self._is_strict:
                raise
            return find_cuts(position, LOG_START, GtidState(), self._readable(LOG_START))
        groups = read_on(self._directory, plan) if self._is_strict else self._readable(plan.position)
        return find_cuts(position, plan.position, plan.state, groups)

    def _readable(self, start: LogPosition) -> Iterator[EventGroup]:
        """The groups from a place on; what is damaged is passed over."""
        for log_range in self.ranges(start, self.end_point(), size=WHOLE_FILES):
            yield from self.groups(log_range, on_fault=lambda point, problem: None)

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        ranges: list[LogRange] = []
        for file_no in self.file_numbers():
            if not start.file_no <= file_no <= end.file_no:
                continue
            file_end = self.disk.size(format_file_name(file_no))
            if file_no == end.file_no:
                file_end = min(file_end, end.offset)
            first = PAGE_SIZE
            if file_no == start.file_no:
                first = max(PAGE_SIZE, start.offset)
            step = self._step(file_no, size)
            while first < file_end:
                last = min((first // step + 1) * step, file_end)
                ranges.append(LogRange(file_no=file_no, start_offset=first, end_offset=last))
                first = last
        return ranges

    def _step(self, file_no: int, size: int) -> int:
        """Bytes of a stretch: so many that it begins where a state record is due."""
        try:
            header = PageReader(self.disk, readahead_pages_max=1).header(file_no)
        except FormatError:
            if self._is_strict:
                raise
            header = None
        interval = PAGE_SIZE * (header.state_interval_pages if header is not None else 1) or PAGE_SIZE
        return max(1, -(-size // interval)) * interval

    def groups(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        page_no = log_range.start_offset // PAGE_SIZE
        end = LogPosition(log_range.file_no, log_range.end_offset)
        seam = self._seam(log_range, is_strict=on_fault is None)
        while page_no * PAGE_SIZE < log_range.end_offset:
            reader = EventGroupReader(self.disk, file_no=log_range.file_no, page_no=page_no, end=end)
            try:
                while (group := reader.next_group()) is not None:
                    if log_range.holds(group.start):
                        yield group
                        if seam is not None and group.gtid is not None:
                            seam.log([group.gtid])
                if reader.position.file_no == log_range.file_no and seam is not None:
                    _check_seam(seam, on_fault)
                return
            except FormatError as error:
                position = reader.position
                if on_fault is None:
                    raise
                seam = None  # what is missing is known
                if position >= end:
                    return  # what is damaged belongs to the next stretch
                location = error.location
                on_fault(LogPosition.of(location), error.problem)
                page_no = max(position.page_no, page_no)
                if location.file_no == log_range.file_no:
                    page_no = max(page_no, location.page_no)
                page_no += 1

    def _seam(self, log_range: LogRange, *, is_strict: bool) -> FileBoundary | None:
        try:
            return FileBoundary(self.disk, log_range)
        except FormatError:
            if is_strict:
                raise
            return None  # the reader of the page says what is wrong with it


def _check_seam(seam: FileBoundary, on_fault: OnFault | None) -> None:
    try:
        seam.check()
    except FormatError as error:
        if on_fault is None:
            raise
        on_fault(LogPosition.on_page(error.location.file_no, error.location.page_no), error.problem)


def read_on(engine: BinlogEngine, plan: ReadPlan) -> Iterator[EventGroup]:
    """The groups from where a plan begins."""
    with closing(engine.event_groups(plan)) as groups:
        while (group := groups.next_group()) is not None:
            yield group


def find_cuts(
    position: GtidPosition, start: LogPosition, state: GtidState, groups: Iterable[EventGroup]
) -> dict[int, LogPosition]:
    """For each domain of a position the point behind its GTID: a walk over the groups from `start` on.

    `state` is what was logged before `start`, which a search has found: at most one state
    interval before the position.

    Raises:
        PositionError: a GTID is not in this log.
    """
    cuts: dict[int, LogPosition] = {}
    wanted = dict(position)
    for gtid in position.values():
        logged = state.seq_no(gtid.domain_id, gtid.server_id)
        if logged is not None and logged >= gtid.seq_no:
            cuts[gtid.domain_id] = start
            del wanted[gtid.domain_id]
    for group in groups:
        if not wanted:
            break
        found = group.gtid
        if found is None or found.domain_id not in wanted:
            continue
        last = wanted[found.domain_id]
        if found.server_id == last.server_id and found.seq_no >= last.seq_no:
            is_it = found.seq_no == last.seq_no
            cuts[found.domain_id] = group.start._replace(offset=group.start.offset + 1) if is_it else group.start
            del wanted[found.domain_id]
    if wanted:
        missing = ",".join(map(str, wanted.values()))
        raise PositionError(f"position [{position}]: this binlog does not hold {missing}")
    return cuts
