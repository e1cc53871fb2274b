"""Traditional files as an archive: read as a whole, by many readers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.series import find_series
from ibbmaster.classic.window import EventWindow
from ibbmaster.errors import IbbMasterError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.archive import WHOLE_FILES, Archive, IbbArchive, OnFault, find_cuts, read_on
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import LogPosition


class ClassicArchive:
    """Traditional binlog files: a file, an index file, or a directory. Files are read whole, from their head."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._files = find_series([self._path])

    def close(self) -> None:
        """Nothing is kept open."""

    def file_name(self, file_no: int) -> str:
        return self._files[file_no].name

    def _binlog(self) -> ClassicBinlog:
        return ClassicBinlog([self._path])

    def start_position(self) -> GtidPosition:
        return self._binlog().plan_of_file(self._files[0].name).state.position()

    def end_point(self) -> LogPosition:
        return LogPosition(len(self._files), 0)

    def end_position(self) -> GtidPosition:
        return self._binlog().binlog_state().position()

    def cuts(self, position: GtidPosition) -> dict[int, LogPosition]:
        binlog = self._binlog()
        plan = binlog.seek(position)
        return find_cuts(position, plan.position, plan.state, read_on(binlog, plan))

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        return [
            LogRange(
                file_no=file_no,
                start_offset=start.offset if file_no == start.file_no else 0,
                end_offset=end.offset if file_no == end.file_no else WHOLE_FILES,
            )
            for file_no in range(start.file_no, min(end.file_no + bool(end.offset), len(self._files)))
        ]

    def groups(
        self,
        log_range: LogRange,
        *,
        on_fault: OnFault | None = None,
        take: Callable[[EventWindow], bool] | None = None,
    ) -> Iterator[EventGroup]:
        """As `Archive` has it; `take` is that of `ClassicFileReader.groups`."""
        reader = None
        try:
            reader = ClassicFileReader(self._files[log_range.file_no])
            for group in reader.groups(take):
                if group.start.offset >= log_range.end_offset:
                    return
                if log_range.holds(group.start):
                    yield group
        except IbbMasterError as error:
            if on_fault is None:
                raise
            on_fault(LogPosition(log_range.file_no, getattr(error, "file_offset", 0)), str(error))
        finally:
            if reader is not None:
                reader.close()


def open_archive(path: Path | str, *, is_classic: bool = False, is_strict: bool = True) -> Archive:
    """The archive at a path."""
    return ClassicArchive(path) if is_classic else IbbArchive(path, is_strict=is_strict)
