"""Ends runs of `lake maintain` at their steps, as a kill does."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ibbmaster.lake.maintain.delta import DeltaTarget
from ibbmaster.lake.maintain.iceberg import IcebergTarget

TARGETS = {"delta": DeltaTarget, "iceberg": IcebergTarget}
WRITES = {"os.mkdir": 0, "os.rename": 1, "os.remove": 0, "sqlite3.connect": 0}  # which argument of each is the path


class KilledError(BaseException):
    """As a kill, nobody catches it."""


class KillSwitch:
    """Ends a run at one of its steps: in front of a file operation of ours, in front of a commit, or behind it."""

    def __init__(self, place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._place = str(place)
        self._wanted: int | None = None
        self.seen: list[str] = []
        steps: list[tuple[type, str]] = [(TARGETS[kind], "replace"), (TARGETS[kind], "merge")]
        if kind == "iceberg":
            from pyiceberg.io.pyarrow import PyArrowFile

            steps.append((PyArrowFile, "create"))
        for owner, name in steps:
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name)))
        sys.addaudithook(self._hear)  # which stays, and does nothing once this is disarmed

    def killed(self, wanted: int, run: Callable[[], object]) -> bool:
        """Whether a run has a step of this number, at which it ends."""
        self._wanted, self.seen = wanted, []
        try:
            run()
        except KilledError:
            return True
        finally:
            self._wanted = None
        return False

    def _around(self, method):
        def called(*args, **options):
            self._step(f"before {method.__name__}")
            result = method(*args, **options)
            self._step(f"after {method.__name__}")
            return result

        return called

    def _hear(self, event: str, args: tuple) -> None:
        if self._wanted is None:
            return
        if event in WRITES:
            path = args[WRITES[event]]
        elif event == "open" and isinstance(args[0], (str, Path)) and args[2] & (os.O_WRONLY | os.O_RDWR):
            path = args[0]
        else:
            return
        if str(path).startswith(self._place):
            self._step(f"{event} {Path(path).name}")

    def _step(self, what: str) -> None:
        if self._wanted is not None:
            self.seen.append(what)
            if len(self.seen) == self._wanted:
                self._wanted = None
                raise KilledError
