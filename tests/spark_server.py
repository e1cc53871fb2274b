"""Servers of Spark itself, as processes: a master and workers of a standalone cluster, a server of Spark Connect."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
STARTS_WITHIN_SECONDS = 600  # ends what hangs; a machine may be busy
ENDS_WITHIN_SECONDS = 1800  # with all that is left to read
LOOKS_AGAIN_SECONDS = 0.05
SLOW_STARTS_MAX = 20  # of one program, on a machine that is busy with other tests


class SparkServer:
    """A Java process that runs a class of Spark; what it logs is in a file."""

    def __init__(self, log: Path, *command: str, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [HOME / "bin" / command[0], *command[1:]],
                stdout=file,
                stderr=file,
                env={
                    **os.environ,
                    "SPARK_HOME": str(HOME),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                    **(environment or {}),
                },
                cwd=log.parent,
                start_new_session=True,
            )

    def when_it_says(self, pattern: str) -> str:
        end = time.monotonic() + STARTS_WITHIN_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            found = re.search(pattern, self._log.read_text())
            if found is not None:
                return found[1]
            time.sleep(LOOKS_AGAIN_SECONDS)
        raise AssertionError(f"nothing like {pattern} in {self._log.read_text()[-2000:]}")

    def kill_started(self) -> int:
        """End all that it has started, and not itself; how many processes these were."""
        count = 0
        for path in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended, or is no process
                session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
                if session == self._process.pid and path.name != str(self._process.pid):
                    os.kill(int(path.name), signal.SIGKILL)
                    count += 1
        return count

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
