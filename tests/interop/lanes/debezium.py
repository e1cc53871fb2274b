"""Debezium's MariaDB connector, run as a program that prints its records."""

import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lanes.drivers import driver_command
from lanes.primary import Primary

TIMEOUT_S = 250.0  # ends what hangs; a machine may be busy
LINES_SHOWN = 60
LAST = "THE-END"  # in a record behind which it stops
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
#: What is of the run, or of the files that a primary keeps, in a record.
OF_THE_RUN = re.compile(r"ts_(ms|us|ns)|file|pos|thread")
_AUTO_INCREMENT = re.compile(r" AUTO_INCREMENT=\d+")

Record = tuple[str, Any, Any]


class DebeziumError(Exception):
    """It ended with an error; the text is what it said."""


class Debezium:
    """One run of the connector; a context manager that ends it."""

    def __init__(self, primary: Primary, directory: Path, mode: str, *properties: str, last: str = LAST) -> None:
        """`directory` keeps its offsets and schema history; with those of an earlier run it goes on."""
        directory.mkdir(exist_ok=True)
        program, *rest = driver_command("debezium", "Follow")
        account = [primary.host, str(primary.port), primary.user, primary.password]
        self.records: list[Record] = []
        self.stored = 0  # so many of them come not again in another run
        self._log = directory / "log"
        self._changed = threading.Condition()
        self._end: str | None = None
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [program, QUIET, *rest, *account, mode, str(directory), last, *properties],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        end = "it ended without a word"
        with self._process.stdout as lines:
            for line in lines:
                parts = line.rstrip("\n").split("\t")
                if parts == ["stored"]:
                    with self._changed:
                        self.stored = len(self.records)
                        self._changed.notify_all()
                    continue
                if len(parts) == 1 or parts[0] == "failed":
                    end = line.strip()
                    continue
                record = parts[0], parsed(parts[1]), parsed(parts[2])
                with self._changed:
                    self.records.append(record)
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def wait_for(self, is_there: Callable[[list[Record]], object]) -> None:
        """Wait until the records fulfil a condition behind which its offset is stored.

        Raises DebeziumError: it ended before, or it took too long.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None or is_there(self.records[: self.stored]), TIMEOUT_S)
            if not is_there(self.records[: self.stored]):
                raise DebeziumError(self.log_text())

    def finish(self) -> list[Record]:
        """Wait for its end, and have all of its records. Raises DebeziumError: it failed, or it took too long."""
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None, TIMEOUT_S)
        if self._end != "end":
            raise DebeziumError(self.log_text())
        return self.records

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def log_text(self) -> str:
        """How it ended, and the last lines of its log."""
        return "\n".join([str(self._end), *self._log.read_text().splitlines()[-LINES_SHOWN:]])


def parsed(text: str) -> Any:
    """A key or a value, without what another run would have otherwise."""
    return cleaned(json.loads(text))


def cleaned(value: Any) -> Any:
    match value:
        case dict():
            return {name: cleaned(inner) for name, inner in value.items() if not OF_THE_RUN.fullmatch(name)}
        case list():
            return [cleaned(inner) for inner in value]
        case str():
            return _AUTO_INCREMENT.sub("", value)
        case _:
            return value


def has_snapshot(tables: int) -> Callable[[list[Record]], bool]:
    """Whether a snapshot has told the structure of so many tables, or has ended with the last row."""

    def is_there(records: list[Record]) -> bool:
        created = sum("CREATE TABLE" in str((value or {}).get("ddl")) for _, _, value in records)
        ended = any((value or {}).get("source", {}).get("snapshot") == "last" for _, _, value in records)
        return created == tables or ended

    return is_there
