"""A directory to read as a whole, with or without tolerance for holes in its log."""

from pathlib import Path

from ibbmaster.disk.place import open_disk
from ibbmaster.errors import FormatError, IbbMasterError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.ibb.file_header import FileHeader
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.end_check import PATIENCE_S, STEP_PAGES
from ibbmaster.log.interface import OnFault
from ibbmaster.log.locating import readable_groups
from ibbmaster.position import LOG_START, LogPosition


class StrictDirectory(BinlogDirectory):
    """Refuses a log with a hole, also one with data after its end."""

    def end(self, *, only_cached: bool = False) -> LogPosition:
        end = super().end(only_cached=only_cached)
        self.check_end(patience_s=PATIENCE_S, pages_max=STEP_PAGES)
        return end


class LenientDirectory(BinlogDirectory):
    """Takes what is there: files may be missing, and damaged groups are left out."""

    def file_numbers(self) -> list[int]:
        """The numbers of the files. Raises StoreError: there are none."""
        numbers = sorted(number for name in self.disk.list() if (number := parse_file_name(name)) is not None)
        if not numbers:
            raise StoreError(f"{self}: no binlog files (binlog-000000.ibb and so on)")
        return numbers

    def _check_without_pages(self, file_no: int) -> None:
        """Nothing to read in it, and no place to report."""

    def header(self, file_no: int) -> FileHeader | None:
        try:
            return super().header(file_no)
        except FormatError:
            return None

    def end(self, *, only_cached: bool = False) -> LogPosition:
        try:
            return super().end(only_cached=only_cached)
        except IbbMasterError:
            last = self.file_numbers()[-1]
            return LogPosition(last, self.disk.size(format_file_name(last)))

    def state(self, *, only_cached: bool = False) -> GtidState:
        try:
            return super().state(only_cached=only_cached)
        except IbbMasterError:
            groups = readable_groups(self, LOG_START, _leave_out)
            return GtidState(group.gtid for group in groups if group.gtid is not None)


def open_directory(path: Path | str, *, is_strict: bool) -> BinlogDirectory:
    """The directory at a path, to read as a whole. Files are read on demand."""
    return (StrictDirectory if is_strict else LenientDirectory)(open_disk(path))


def damage_handler(*, is_strict: bool) -> OnFault | None:
    """The function that a reader of groups reports damage to; None makes it an error."""
    return None if is_strict else _leave_out


def _leave_out(position: LogPosition, problem: str) -> None:
    """`granularity=faults` reports what is damaged."""
