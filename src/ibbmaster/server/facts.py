"""What the conversation may know of the primary: the answers behind SHOW and SELECT @@."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

from ibbmaster.dialogue.log_tables import LogTables
from ibbmaster.dialogue.variables import BinlogEventRow, ProcessRow
from ibbmaster.errors import without_paths
from ibbmaster.event.describe import describe_event, event_type_name
from ibbmaster.event.header import decode_event_header
from ibbmaster.event.split import event_heads
from ibbmaster.gtid import GtidState
from ibbmaster.log.history_cache import HistoryCache
from ibbmaster.log.interface import EventGroups, FileEngine, LogEngine, LogFile
from ibbmaster.server.listing import no_target_log, state_at, stored_rows
from ibbmaster.server.logins import LoginGuard
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.server.registry import Registry
from ibbmaster.server.tables import PrimaryTables
from ibbmaster.work import check_wanted


class PrimaryFacts:
    """`ServerFacts` of a running primary; called from worker threads."""

    def __init__(
        self,
        engine: LogEngine,
        options: PrimaryOptions,
        registry: Registry,
        guard: LoginGuard | None = None,
        cache: HistoryCache | None = None,
    ) -> None:
        self._guard = guard
        self._engine = engine
        directory = None if cache is None else cache.directory
        given = [] if directory is None else [directory, directory.absolute(), directory.resolve()]
        self._hidden = sorted({str(path) for path in given if path.is_absolute()}, key=len, reverse=True)
        self._registry = registry
        self.server_id = options.server_id
        self.profile = options.profile
        self.server_version = options.profile.server_version
        self.tables: LogTables = PrimaryTables(
            engine,
            cache,
            options.base,
            case=options.name_case,
            has_kernels=options.has_kernels,
            row_event_max=options.row_event_max,
        )
        self._since = time.monotonic()
        self.started_at = int(time.time())  # in seconds since 1970

    def binlog_state(self) -> GtidState:
        return self._engine.state()

    def binlog_end(self) -> tuple[str, int]:
        if isinstance(self._engine, FileEngine):
            self._engine.state()  # so the end is one that a dump begins at
        end = self._engine.end()
        return self._engine.file_name(end.file_no), end.offset

    def files(self) -> list[LogFile]:
        """The files there are for clients: those of a traditional primary end with the active one."""
        files = self._engine.files()
        if self.profile.rotates_with_files:
            active = self._engine.end().file_no
            files = [file for file in files if file.file_no <= active]
        return files

    def binary_logs(self) -> list[tuple[str, int]]:
        return [(file.name, file.size) for file in self.files()]

    def binlog_events(self, file_name: str | None, offset: int) -> Iterator[BinlogEventRow]:
        file = self._file(file_name)
        if file is None and isinstance(self._engine, FileEngine):
            raise no_target_log()
        if file is None:
            raise KeyError(file_name)
        if isinstance(self._engine, FileEngine):
            return stored_rows(self._engine, file, offset)
        groups = self._engine.groups(self._engine.start_of_file(file.file_no))
        return self._event_rows(groups, file.name, offset)

    def _file(self, name: str | None) -> LogFile | None:
        """A file by its name, the oldest without one."""
        return next((file for file in self.files() if name is None or file.name == name), None)

    def _event_rows(self, groups: EventGroups, file_name: str, offset: int) -> Iterator[BinlogEventRow]:
        with contextlib.closing(groups):
            file_no = groups.position.file_no
            while (group := groups.next_group()) is not None and group.start.file_no == file_no:
                check_wanted()
                if group.start.offset < offset:
                    continue
                for event in event_heads(group.gtid_event, group.body):
                    header = decode_event_header(event)
                    yield BinlogEventRow(
                        file_name=file_name,
                        event_type=event_type_name(header.event_type),
                        server_id=header.server_id,
                        info=describe_event(event),
                    )

    def gtid_position_at(self, file_name: str, offset: int) -> str | None:
        engine = self._engine
        file = self._file(file_name or None)
        if file is None or offset > file.size:
            return None
        if isinstance(engine, FileEngine):
            found = state_at(engine, file, offset)
            return None if found is None else str(found.position())
        plan = engine.start_of_file(file.file_no)
        state = plan.state.copy()
        with contextlib.closing(engine.groups(plan)) as groups:
            while (group := groups.next_group()) is not None and group.start.file_no == plan.position.file_no:
                check_wanted()
                if group.start.offset >= offset:
                    break
                if group.gtid is not None:
                    state.log(group.gtid)
        return str(state.position())

    def replica_hosts(self) -> list[tuple[int, str, int]]:
        return [
            (session.replica_server_id, session.replica_host, session.replica_port)
            for session in self._registry
            if session.replica_server_id is not None
        ]

    def processes(self) -> list[ProcessRow]:
        now = time.monotonic()
        return [
            ProcessRow(
                connection_id=session.connection_id,
                user=session.user,
                host=session.host,
                command=session.command,
                seconds=int(now - session.since),
                state=session.state,
            )
            for session in self._registry
        ]

    def unix_timestamp(self) -> float:
        return time.time()

    def uptime_s(self) -> int:
        return int(time.monotonic() - self._since)

    def status(self) -> Mapping[str, int]:
        guard = self._guard
        return {
            "Aborted_connects": 0 if guard is None else guard.refused + self._registry.dropped,
            "Access_denied_errors": 0 if guard is None else guard.refused,
            "Connections": self._registry.opened,
            "Ibb_logins_delayed": 0 if guard is None else guard.delayed,
            "Ibb_logins_dropped": self._registry.dropped,
            "Ibb_login_addresses_slowed": 0 if guard is None else guard.slowed_addresses(),
        }

    def without_paths(self, text: str) -> str:
        for directory in self._hidden:
            text = text.replace(f"{directory}/", "").replace(directory, "the directory")
        return without_paths(text)

    def statistics(self) -> str:
        """The line COM_STATISTICS is answered with."""
        return f"Uptime: {self.uptime_s()}  Threads: {len(self._registry)}  Questions: 0  Slow queries: 0"
