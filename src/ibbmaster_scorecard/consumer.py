"""A consumer as a process: a request on standard input, lines on standard output."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ibbmaster.errors import ConfigurationError, RemoteProtocolError
from .journal import LINE_SIZE_MAX, LINES_MAX, ToldEvent, parse_told

OUTPUT_SIZE_MAX = 256 << 20  # bytes of one process
LOG_SIZE_MAX = 64 << 10  # last bytes of standard error that are kept
TERM_S = 1.0  # between SIGTERM and SIGKILL
POLL_S = 0.01
RESTARTS_S = (0.5, 2.0, 5.0)  # before each of them
FATAL_S = 2.0  # to end after a fatal error


class Consumer:
    """One process of an adapter, in a process group of its own, which ends with `close`."""

    def __init__(
        self, command: Sequence[str], request: Mapping[str, Any], *, directory: Path, process: int = 1
    ) -> None:
        """Start it. Raises ConfigurationError: the command cannot be started."""
        self.process = process  # its number, from 1
        self.exit_code: int | None = None  # negative for a signal; None: it lives
        self.problem = ""  # with its lines; none is read after that
        self._lines: queue.Queue[ToldEvent] = queue.Queue()
        self._log = bytearray()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigurationError(f"{command[0]}: {error.strerror}") from None
        self._readers = [
            threading.Thread(target=read, args=(stream,), daemon=True, name="ibbmaster-consumer")
            for read, stream in ((self._read_lines, self._process.stdout), (self._read_log, self._process.stderr))
        ]
        for reader in self._readers:
            reader.start()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended already
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def log(self) -> str:
        return bytes(self._log).decode("utf-8", "replace")

    @property
    def has_ended(self) -> bool:
        if self.exit_code is None and not self._is_running():
            self.exit_code = _code(os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT))
        return self.exit_code is not None

    def events(self, timeout: float = 0.0) -> list[ToldEvent]:
        """Waits `timeout` seconds for the first one."""
        found: list[ToldEvent] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._lines.get(timeout=timeout) if timeout > 0 else self._lines.get_nowait())
            while True:
                found.append(self._lines.get_nowait())
        return found

    def close(self, grace_s: float = 2.0) -> list[ToldEvent]:
        """Ask it to end, then end it and everything it has started; returns its last lines. The group is killed before
        another process can get its number."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if not self._wait(grace_s):
            self._signal(signal.SIGTERM)
            self._wait(TERM_S)
        self._signal(signal.SIGKILL)
        self._wait(None)
        self._process.wait()
        for reader, stream in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(TERM_S)  # a child that has left the group may hold the pipe
            if stream is not None and not reader.is_alive():
                stream.close()
        return self.events()

    def _is_running(self) -> bool:
        """Without letting go of the process's number."""
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None

    def _wait(self, seconds: float | None) -> bool:
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self.has_ended:
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    # In threads

    def _read_lines(self, stream: IO[bytes]) -> None:
        size = count = 0
        with contextlib.suppress(OSError, ValueError), stream:
            try:
                while line := stream.readline(LINE_SIZE_MAX + 1):
                    size, count = size + len(line), count + 1
                    if size > OUTPUT_SIZE_MAX or count > LINES_MAX:
                        raise RemoteProtocolError(f"more than {OUTPUT_SIZE_MAX} bytes or {LINES_MAX} lines")
                    if not line.endswith(b"\n") and len(line) <= LINE_SIZE_MAX:
                        return  # an unfinished line
                    self._lines.put(parse_told(line, at=time.monotonic(), process=self.process))
            except RemoteProtocolError as error:
                self.problem = f"line {count} of the adapter: {error}"
                while stream.read(1 << 16):
                    pass  # it must not wait for us

    def _read_log(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while data := os.read(stream.fileno(), 1 << 16):
                self._log += data
                del self._log[:-LOG_SIZE_MAX]


def _code(result: os.waitid_result | None) -> int:
    assert result is not None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


@dataclass(slots=True)
class Supervised:
    """A consumer that is started again with its last position when it ends, three times at most."""

    command: Sequence[str]
    request: Mapping[str, Any]
    directory: Path
    told: list[ToldEvent] = field(default_factory=list)  # every line of all its processes
    starts: int = 0
    exit_code: int | None = None  # of the last process; None: it lives
    problem: str = ""  # a wrong line, after which it is not started again
    log: str = ""  # the end of standard error of all of them, and of the last
    last_log: str = ""
    _consumer: Consumer | None = None
    _due: float | None = None  # when it is started again
    _fatal_at: float | None = None

    def start(self) -> None:
        positions = [event.position for event in self.told if event.what == "position"]
        request = {**self.request, "directory": str(self.directory), "resume": positions[-1] if positions else None}
        self.starts += 1
        self._due = self._fatal_at = self.exit_code = None
        self._consumer = Consumer(self.command, request, directory=self.directory, process=self.starts)

    @property
    def has_ended(self) -> bool:
        return self._consumer is None and self._due is None

    @property
    def has_spoken(self) -> bool:
        return bool(self.told) and self.told[-1].process == self.starts

    def poll(self, timeout: float) -> list[ToldEvent]:
        """Starts the consumer again when that is due."""
        if self._consumer is None:
            if self._due is not None and time.monotonic() >= self._due:
                self.start()
            else:
                time.sleep(timeout)
            return []
        found = self._consumer.events(timeout)
        fatal = next((event.at for event in found if event.what == "error" and event.is_fatal), None)
        self._fatal_at = self._fatal_at or fatal
        is_late = self._fatal_at is not None and time.monotonic() > self._fatal_at + FATAL_S
        self.told += found
        if self._consumer.has_ended or is_late or self._consumer.problem:
            consumer, was_alive = self._consumer, not self._consumer.has_ended
            found = found + self._end(0.0)
            self.exit_code = 1 if was_alive and self._fatal_at is not None else consumer.exit_code
            if self.starts <= len(RESTARTS_S) and not self.problem:
                self._due = time.monotonic() + RESTARTS_S[self.starts - 1]
        return found

    def close(self, grace_s: float) -> None:
        """End it; its exit code stays None if it has lived until now."""
        self._due = None
        if self._consumer is not None:
            self._end(grace_s)

    def _end(self, grace_s: float) -> list[ToldEvent]:
        assert self._consumer is not None
        consumer, self._consumer = self._consumer, None
        rest = consumer.close(grace_s)
        self.told += rest
        self.last_log = consumer.log
        self.log = (self.log + self.last_log)[-LOG_SIZE_MAX:]
        self.problem = consumer.problem
        return rest
