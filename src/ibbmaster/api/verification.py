"""What is wrong with the files of a log, found while it is iterated over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.api.log_files import LogCheck, LogFiles, OnBytes
from ibbmaster.log.fault import Fault, Totals

if TYPE_CHECKING:
    from ibbmaster.store.redo_check import RedoReport


class LogVerification:
    """What is wrong with a log; iterate over it once."""

    def __init__(
        self,
        path: Path,
        files: LogFiles,
        *,
        jobs: int,
        on_bytes: OnBytes,
        bring_to_files: Callable[[], object] = lambda: None,
    ) -> None:
        """`bring_to_files` is called before they are read."""
        self._path = path
        self._files = files
        self._bring_to_files = bring_to_files
        self._jobs = jobs
        self._on_bytes = on_bytes
        self._verified = LogCheck()
        self._found = {True: 0, False: 0}  # faults, and notes
        self._progress = "not begun"

    @property
    def totals(self) -> Totals:
        """What was read so far."""
        return self._verified.totals

    @property
    def redo(self) -> RedoReport | None:
        """What is in the redo log; None where there is none, or before the first fault was read."""
        return self._verified.redo

    def __repr__(self) -> str:
        found = f"{self._found[True]} faults, {self._found[False]} notes"
        return f"<{type(self).__name__} of {self._path}, {self._progress}: {self.totals}: {found}>"

    def __iter__(self) -> Iterator[Fault]:
        """The faults, in the order of the files.

        Raises:
            StoreError: there is no log, or it cannot be read.
        """
        self._progress = "under way"
        self._bring_to_files()
        for fault in self._files.faults(self._verified, jobs=self._jobs, on_bytes=self._on_bytes):
            self._found[fault.is_damage] += 1
            yield fault
        self._progress = "done"
