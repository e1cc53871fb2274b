"""Whether a sequence number that goes back is that of a page in the wrong place."""

from __future__ import annotations

import threading

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import Location, RecordError
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.log.fault import Fault
from ibbmaster.log.pages import PageReader

STEP_PAGES = 64  # of a file that is still written, between one look and the next


class MisplacementCheck:
    """Verifies a file when numbers go back in it, and remembers what it found. Thread-safe.

    Logs of a primary without gtid_strict_mode go back rightly; each file of theirs is verified once.
    """

    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._faults: dict[tuple[int, int], Fault | None] = {}

    def check(self, location: Location) -> None:
        """A number goes back in this file, at or after this place.

        Raises RecordError: a page is in the wrong place, as a GTID state or its copy proves.
        """
        is_closed = PageReader(self._disk).header(location.file_no + 1) is not None
        key = location.file_no, -1 if is_closed else location.page_no // STEP_PAGES
        with self._lock:
            if key not in self._faults:
                self._faults[key] = self._find(location.file_no, is_closed=is_closed)
            fault = self._faults[key]
        if fault is not None:
            raise RecordError(fault.location or location, fault.problem)

    def _find(self, file_no: int, *, is_closed: bool) -> Fault | None:
        numbers = [file_no, file_no + 1] if is_closed else [file_no]
        names = self._disk.list()
        if any(format_file_name(number) not in names for number in numbers):
            return None
        from ibbmaster.log.verify import Part, verify_part  # here: who plans a query starts soon

        faults, _ = verify_part(self._disk, Part(numbers, is_last=not is_closed))
        return next((fault for fault in faults if fault.is_damage and fault.is_misplaced), None)
