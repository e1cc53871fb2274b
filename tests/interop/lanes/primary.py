"""Who serves a capture: `ibbmaster serve` as a user starts it, or a real MariaDB primary."""

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import pytest

from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs
from ibbmaster.testkit.mariadb_server import PASSWORD, USER

START_TIMEOUT_S = 600.0  # ends what hangs; a machine may be busy
STOP_TIMEOUT_S = 120.0
LOG_LINES_MAX = 400


class PrimaryError(Exception):
    """The primary did not start; the text is what it said."""


class Primary(Protocol):
    """What a client needs to know of a primary: where one logs in, and as whom."""

    host: str
    port: int
    user: str
    password: str


def login_of(primary: Primary) -> dict[str, Any]:
    """How it is given to a client in Python, or in JSON."""
    return {"host": primary.host, "port": primary.port, "user": primary.user, "password": primary.password}


def login_options(primary: Primary) -> list[str]:
    """How it is given to a program of MariaDB."""
    return [f"--{name}={value}" for name, value in login_of(primary).items()]


def tool_command(version: str, program: str, *arguments: str) -> list[str]:
    """The command line of a version's client program."""
    try:
        return [*find_programs(version).command(program), "--no-defaults", *arguments]
    except ProgramsMissingError as error:
        pytest.skip(str(error))


class IbbPrimary:
    """`ibbmaster serve` in a process of its own."""

    user = USER
    password = PASSWORD
    _process: subprocess.Popen[str] | None = None

    def __init__(self, directory: Path, *options: str, host: str = "127.0.0.1") -> None:
        self.host = host
        self.port = 0
        self.log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self._directory = directory
        self._options = options

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Start, at the same port as before if it ran before.

        Raises PrimaryError: it ended without saying where it listens.
        """
        listen = ["--listen", f"{self.host}:{self.port}", "--json"]
        account = ["--user", self.user, "--password", self.password]
        self._process = subprocess.Popen(
            ibbmaster("serve", str(self._directory), *listen, *account, *self._options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        line = self._process.stdout.readline()
        if not line:
            self.kill()
            raise PrimaryError(f"ibbmaster serve did not start:\n{self.log_text()}")
        self.port = json.loads(line)["port"]

    def _read_log(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self.log.append(line.rstrip())

    def log_text(self) -> str:
        return "\n".join(self.log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._finish()
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def end_well(self) -> None:
        """SIGTERM; whatever a client did, it is no mistake of ours."""
        self.stop()
        assert "Traceback" not in self.log_text(), self.log_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._finish()

    def _finish(self) -> None:
        self._process.wait(STOP_TIMEOUT_S)
        self._process.stdout.close()
        self._reader.join(STOP_TIMEOUT_S)
        self._process = None


def ibbmaster(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ibbmaster", *arguments]


def run_program(command: Sequence[object], *, code: int = 0, timeout: float = 600, **given: Any) -> str:
    """What a program prints, its errors if it is to end with a code; another end is an error that shows what it said.

    `given` is of `subprocess.run`, such as `input`.
    """
    given = ({} if "input" in given else {"stdin": subprocess.DEVNULL}) | given
    options = {"capture_output": True, "text": True, "errors": "surrogateescape", "check": False}
    done = subprocess.run([*map(str, command)], timeout=timeout, **options, **given)
    said = f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == code, f"{command[:3]} ended with {done.returncode}\n{said}"
    return done.stdout + done.stderr * (code != 0)
