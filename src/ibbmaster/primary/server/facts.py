"""What the conversation knows of the primary: the answers to SHOW and SELECT @@."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ibbmaster.errors import PositionPurgedError, without_paths
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import FileEngine, LogEngine, LogFile
from ibbmaster.primary.dialogue.log_tables import BinlogEventRow, LogTables, ProcessRow
from .figures import Figures
from .listing import Listing, StoredListing
from .login_guard import LoginGuard
from .options import PrimaryOptions
from .registry import Registry
from .tables import PrimaryTables

Answer = TypeVar("Answer")

LOOKS_MAX = 5  # at files that keep changing


def of_one_look(ask: Callable[..., Answer]) -> Callable[..., Answer]:
    """Ask again if files were purged or replaced between two questions."""

    @functools.wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> Answer:
        for _ in range(LOOKS_MAX - 1):
            with contextlib.suppress(PositionPurgedError):
                return ask(*args, **kwargs)
        return ask(*args, **kwargs)

    return asked


class PrimaryFacts:
    """`ServerFacts` of a running primary; called from worker threads."""

    def __init__(
        self,
        engine: LogEngine,
        options: PrimaryOptions,
        registry: Registry,
        guard: LoginGuard,
        cache: HistoryCache | None = None,
    ) -> None:
        self.figures = Figures(engine, registry, guard)
        self._engine = engine
        self._listing = StoredListing(engine) if isinstance(engine, FileEngine) else Listing(engine)
        directory = None if cache is None else cache.directory
        given = [] if directory is None else [directory, directory.absolute(), directory.resolve()]
        self._hidden = sorted({str(path) for path in given if path.is_absolute()}, key=len, reverse=True)
        self._registry = registry
        self.server_id = options.server_id
        self.profile = options.profile
        self.server_version = options.profile.server_version
        self.tables: LogTables = PrimaryTables(
            engine.with_past,
            cache,
            options.base,
            case=options.name_case,
            has_kernels=options.has_kernels,
            row_event_max=options.row_event_max,
        )
        self.started_at = int(time.time())  # in seconds since 1970

    def binlog_state(self) -> GtidState:
        return self._engine.state()

    @of_one_look
    def binlog_end(self) -> tuple[str, int]:
        end = self._listing.end()
        return self._engine.file_name(end.file_no), end.offset

    @of_one_look
    def files(self) -> list[LogFile]:
        """A traditional primary ends with the active file."""
        files = self._engine.files()
        if self.profile.rotates_with_files:
            active = self._engine.end().file_no
            files = [file for file in files if file.file_no <= active]
        return files

    def binary_logs(self) -> list[tuple[str, int]]:
        return [(file.name, file.size) for file in self.files()]

    @of_one_look
    def binlog_events(self, file_name: str | None, offset: int) -> Iterator[BinlogEventRow]:
        return self._listing.rows(self._file(file_name), offset)

    def _file(self, name: str | None) -> LogFile | None:
        return next((file for file in self.files() if name is None or file.name == name), None)

    @of_one_look
    def gtid_position_at(self, file_name: str, offset: int) -> str | None:
        file = self._file(file_name or None)
        found = None if file is None or offset > file.size else self._listing.state_at(file, offset)
        return None if found is None else str(found.position())

    def replica_hosts(self) -> list[tuple[int, str, int]]:
        return [
            (session.replica_server_id, session.replica_host, session.replica_port)
            for session in self._registry
            if session.replica_server_id is not None
        ]

    def processes(self) -> list[ProcessRow]:
        now, dumps = time.monotonic(), self.figures.dumps
        return [
            ProcessRow(
                connection_id=session.connection_id,
                user=session.user,
                host=session.host,
                command=session.command,
                seconds=int(now - session.since),
                state=session.state,
                info=None if (dump := dumps.get(session.connection_id)) is None else str(dump),
            )
            for session in self._registry
        ]

    def unix_timestamp(self) -> float:
        return time.time()

    def status(self) -> Mapping[str, int]:
        return self.figures.status()

    def without_paths(self, text: str) -> str:
        for directory in self._hidden:
            text = text.replace(f"{directory}/", "").replace(directory, "the directory")
        return without_paths(text)

    def statistics(self) -> str:
        return f"Uptime: {self.figures.uptime_s}  Threads: {len(self._registry)}  Questions: 0  Slow queries: 0"
