"""Exports as a job does them that is run again and again: by a session of its own, in a process that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parents[1]
TIMEOUT_S = 600  # ends what hangs; a machine may be busy


class Exports:
    """A program with one session of Spark; of Spark Connect without a Java."""

    def __init__(
        self, master: str, settings: Mapping[str, str], environment: Mapping[str, str], directory: Path
    ) -> None:
        own = {**os.environ, **environment}
        if master.startswith("sc://"):
            own.pop("JAVA_HOME", None)
            own["PATH"] = "/nowhere"
        self._errors = directory / "exports.log"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, PROGRAMS / "exporting_program.py", master, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=own,
                start_new_session=True,
            )

    def run(self, log: Path, target: str, form: str = "parquet", kill_at: int = 0) -> dict[str, Any] | None:
        """What an export says; None if it was killed, perhaps by itself in front of a change of a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(log), target, form, kill_at]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        assert self._process.wait(TIMEOUT_S) < 0, self._errors.read_text()[-4000:]
        return None

    def end(self) -> None:
        """Kill it, with its Java."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """The same, and wait until it has ended."""
        if self._process.poll() is None:
            self.end()
        self._process.communicate()


def expect_whole(log: Path, *targets: str, environment: Mapping[str, str] | None = None) -> None:
    """See that exports are those of a log, and nothing else is there."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / "exported.py", log, *targets],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    counts = json.loads(done.stdout)
    assert counts.keys() == set(targets)
    assert all(count > 1000 for count in counts.values()), counts


def expect_cleaned_after_kills(new: Callable[[], Exports], log: Path, place: Path, kills: int) -> None:
    """Kill as many exports into directories, each in front of some change of a file, and let the next one go on."""
    exports = new()
    said = exports.run(log, str(place / "whole"), "delta")
    assert said is not None
    assert said["changes"] > 10
    for number in range(kills):
        target, step = str(place / f"tables{number}"), random.randrange(1, said["changes"] + 1)
        print(f"killed in front of change {step} of {said['changes']}")
        assert exports.run(log, target, "delta", kill_at=step) is None
        exports = new()
        exports.run(log, target, "delta")
        expect_whole(log, target)
