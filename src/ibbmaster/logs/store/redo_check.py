"""What a redo log adds to the files, and whether it fits them."""

from collections.abc import Callable
from dataclasses import dataclass

from ibbmaster.errors import DamageError, IbbMasterError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.logs.log.states import FULL_STATE_PAGE
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.disk.overlay import OverlayDisk
from ibbmaster.storage.ibb.file_name import parse_file_name
from .recovery import SALVAGE_ADVICE, recover, replay
from .redo_log import RedoScan, scan_redo
from .redo_names import has_redo_log


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoReport:
    """The content of a redo log. LSNs count its bytes. `group_count` groups are not in the files. `gtid_state` is that
    of the whole log with them; None if the redo log does not apply: `problem` says why."""

    first_lsn: int = 0
    end_lsn: int = 0
    group_count: int = 0
    gtid_state: GtidState | None = None
    problem: str | None = None
    is_in_use: bool = False  # another process writes here: only the LSNs were read

    def line(self) -> str:
        what = f"redo log: LSN {self.first_lsn} to {self.end_lsn} ({self.end_lsn - self.first_lsn} bytes)"
        if self.is_in_use:
            return f"{what}; another process writes here, so what is not in the files yet was not looked at"
        if self.problem is not None:
            return f"{what}, {self.group_count} event groups: does not apply: {self.problem}"
        if not self.group_count:
            return f"{what}: applies, every event group is in the files"
        return (
            f"{what}: applies, {self.group_count} event groups are not in the files yet, GTID state with them "
            f"[{self.gtid_state}]; `ibbmaster recover DIR` brings them there"
        )

    def as_json(self) -> dict[str, object]:
        """For programs; `applies` is null if that was not examined."""
        return {
            "first_lsn": self.first_lsn,
            "end_lsn": self.end_lsn,
            "bytes": self.end_lsn - self.first_lsn,
            "groups": self.group_count,
            "gtid_state": None if self.gtid_state is None else str(self.gtid_state),
            "applies": None if self.is_in_use else self.problem is None,
            "problem": self.problem,
        }


def check_redo(disk: ReadDisk, *, is_in_use: Callable[[], bool] = lambda: False) -> RedoReport | None:
    """None without a redo log, or with an empty one. Raises StoreError: the directory cannot be read."""
    if not has_redo_log(disk):
        return None
    in_use = is_in_use()
    try:
        scan = scan_redo(disk)
    except DamageError as error:
        if in_use:
            return RedoReport(is_in_use=True)
        return RedoReport(problem=f"{error}. {SALVAGE_ADVICE}")
    if scan is None:
        return None
    first_lsn, end_lsn = scan.checkpoint.lsn, scan.end_lsn
    if in_use:
        return RedoReport(first_lsn=first_lsn, end_lsn=end_lsn, is_in_use=True)
    overlay = OverlayDisk(disk)
    try:
        end = recover(overlay).end
        start = None if any(record.is_reset for record in scan.records) else _end_of_files(disk)
        count = _count_groups(overlay, start)
    except IbbMasterError as error:
        count = _count_alone(disk, scan)
        return RedoReport(first_lsn=first_lsn, end_lsn=end_lsn, group_count=count, problem=str(error))
    state = GtidState() if end is None else end.state
    return RedoReport(first_lsn=first_lsn, end_lsn=end_lsn, group_count=count, gtid_state=state)


def _end_of_files(disk: ReadDisk) -> LogPosition | None:
    try:
        return BinlogDirectory(disk).end()
    except IbbMasterError:
        return None


def _count_groups(disk: ReadDisk, start: LogPosition | None, end: LogPosition | None = None) -> int:
    if start is None:
        numbers = [number for name in disk.list() if (number := parse_file_name(name)) is not None]
        if not numbers:
            return 0
        start = LogPosition.on_page(min(numbers), FULL_STATE_PAGE)
    reader = EventGroupReader(disk, file_no=start.file_no, page_no=FULL_STATE_PAGE, end=end)
    if start.page_no:
        reader.continue_at(start, (), is_inside_record=False)
    count = 0
    while (group := reader.next_group()) is not None:
        for _ in group.body:
            pass
        count += group.gtid is not None
    return count


def _count_alone(disk: ReadDisk, scan: RedoScan) -> int:
    overlay = OverlayDisk(disk)
    try:
        return _count_groups(overlay, scan.checkpoint.end, replay(overlay, scan))
    except IbbMasterError:
        return 0
