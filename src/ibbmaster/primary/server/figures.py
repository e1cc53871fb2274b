"""The figures of a running primary, which SHOW GLOBAL STATUS, SHOW PROCESSLIST, the log and /metrics tell. Table:
`figures`. A dump counts nothing for them: what the kernel has confirmed of its connection, and where it is, is read
here from time to time.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.interface import LogEngine, LogFile
from ibbmaster.position import LogPosition
from .client_stream import traffic_of
from .login_guard import LoginGuard
from .registry import Registry, Session

ENDS_MAX = 512  # moves of the log's end that are remembered; older ones get further apart
REMEMBERED_MAX = 1000  # replicas, and pairs of a GTID state: no label grows for ever
REMEMBERED_S = 86400.0  # a replica that has left

Labels = Mapping[str, object]


class Figure(NamedTuple):
    name: str
    value: float
    labels: Labels = MappingProxyType({})


class FigureKind(NamedTuple):
    name: str
    kind: str  # gauge, counter or untyped
    status: str | None  # the row of SHOW GLOBAL STATUS
    meaning: str


def figure_kinds() -> dict[str, FigureKind]:
    rows = [[None if cell == NULL else cell for cell in row] for row in rows_of(__package__, "figures")]
    return {row[0]: FigureKind(*row) for row in rows}  # type: ignore[misc, arg-type]


@dataclass(slots=True, kw_only=True)
class DumpFigures:
    """Of one dump, at the last look. `str` is for people."""

    server_id: int
    host: str
    is_replica: bool  # it has registered
    sent_bytes: int = 0
    lag_groups: int = 0
    lag_bytes: int = 0
    lag_s: float = 0.0
    stalled_s: float = 0.0
    held_file: str = ""  # that is to be removed, but for it
    held_s: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.sent_bytes} bytes confirmed"]
        if self.lag_bytes:
            parts.append(f"{self.lag_groups} transactions, {self.lag_bytes} bytes and {self.lag_s:.0f} s behind")
        if self.stalled_s:
            parts.append(f"stalled for {self.stalled_s:.0f} s")
        if self.held_file:
            parts.append(f"holds {self.held_file}, which is to be removed, for {self.held_s:.0f} s")
        return ", ".join(parts)


@dataclass(slots=True)
class _Seen:
    sent_bytes: int = -1  # at the last look
    still_since: float = 0.0
    held_since: float | None = None


@dataclass(slots=True)
class _Gone:
    sent_bytes: int = 0  # of its earlier dumps
    left_at: float = 0.0


class Figures:
    """Thread-safe. `more` gives figures of what feeds the log."""

    def __init__(
        self, engine: LogEngine, registry: Registry, guard: LoginGuard, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.more: list[Callable[[], Iterable[Figure]]] = []
        self.is_stopping = False
        self.on_beat: Callable[[bool], object] = lambda is_stopping: None  # while the event loop works
        self.beat_at = self._since = clock()
        self.dumps: dict[int, DumpFigures] = {}
        """By connection, at the last look."""
        self.looked_s = 0.0  # how long the last look took
        self._engine, self._registry, self._guard, self._clock = engine, registry, guard, clock
        self._ends: list[tuple[float, LogPosition]] = []
        self._seen: dict[int, _Seen] = {}
        self._known: OrderedDict[tuple[int, str], _Gone] = OrderedDict()
        self._lock = threading.Lock()

    # Looking -----------------------------------------------------------------------------------

    def look(self, *, only_cached: bool = False) -> list[Session]:
        """Measure all dumps; returns those that hold a file. May read the disk."""
        with self._lock:
            now = self._clock()
            running = [session for session in self._registry if session.dump is not None]
            try:
                end = self._look_at_end(now, only_cached=only_cached or all(map(_is_at_end, running)))
                behind = [session for session in running if not _is_at_end(session)]
                files, state = (self._engine.files(), self._engine.state()) if behind else ([], GtidState())
            except (BlockingIOError, IbbMasterError):  # replicas hear of it
                return []
            self._seen = {one.connection_id: self._seen.get(one.connection_id, _Seen()) for one in running}
            self.dumps = {one.connection_id: self._measured(one, now, end, files, state) for one in running}
            self.looked_s = self._clock() - now
            return [one for one in running if self.dumps[one.connection_id].held_file]

    def _look_at_end(self, now: float, *, only_cached: bool) -> LogPosition:
        end = self._engine.end(only_cached=only_cached)
        if not self._ends or self._ends[-1][1] != end:
            if self._ends and end < self._ends[-1][1]:
                self._ends.clear()  # the log was reset
            self._ends.append((now, end))
            if len(self._ends) > ENDS_MAX:
                del self._ends[1 : ENDS_MAX // 2 : 2]
        return end

    def _measured(
        self, session: Session, now: float, end: LogPosition, files: list[LogFile], state: GtidState
    ) -> DumpFigures:
        assert session.dump is not None
        assert session.dump_server_id is not None
        found = DumpFigures(
            server_id=session.dump_server_id,
            host=session.host,
            is_replica=session.replica_server_id is not None,
        )
        seen, traffic = self._seen[session.connection_id], traffic_of(session.socket)
        if traffic is not None:
            if traffic.sent != seen.sent_bytes or not traffic.waiting:
                seen.sent_bytes, seen.still_since = traffic.sent, now
            found.sent_bytes, found.stalled_s = traffic.sent, now - seen.still_since
        held_since, seen.held_since = seen.held_since, None
        if _is_at_end(session):
            return found
        position, sent = session.dump.position, session.dump.sent
        found.lag_groups = sum(
            max(0, (state.highest_seq_no(domain) or 0) - (sent.highest_seq_no(domain) or 0))
            for domain in state.domain_ids
        )
        found.lag_bytes = max(0, _offset_of(end, files) - _offset_of(position, files))
        found.lag_s = next((now - moved_at for moved_at, place in self._ends if place > position), 0.0)
        wanted = self._engine.wanted_file_no
        if wanted is not None and position.file_no < wanted:
            seen.held_since = now if held_since is None else held_since
            found.held_file, found.held_s = self._engine.file_name(position.file_no), now - seen.held_since
        return found

    def note_end(self, session: Session) -> None:
        """A connection ends, and its socket is still open."""
        self.dumps.pop(session.connection_id, None)
        traffic = traffic_of(session.socket)
        sent, received = (0, 0) if traffic is None else (traffic.sent, traffic.received)
        self._registry.sent_bytes += sent
        self._registry.received_bytes += received
        if session.dump_server_id is None or session.replica_server_id is None:
            return
        key = session.dump_server_id, session.host
        known = self._known.setdefault(key, _Gone())
        known.sent_bytes += sent
        known.left_at = self._clock()
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    def beat(self) -> None:
        """The event loop works."""
        self.beat_at = self._clock()
        self.on_beat(self.is_stopping)

    def stop(self) -> None:
        self.is_stopping = True
        self.beat()

    def problems(self) -> Iterator[str]:
        """Why the primary is not ready."""
        if self.is_stopping:
            yield "serving ends"
        if self._engine.write_failure is not None:
            yield f"nothing can be written any more: {self._engine.write_failure}"

    def silent_s(self) -> float:
        """Since the event loop was seen."""
        return self._clock() - self.beat_at

    # Telling -----------------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        """All of now. May read the disk."""
        self.look()
        engine = self._engine
        yield Figure("mysql_up", 1)
        files = engine.files()
        yield Figure("mysql_binlog_files", len(files))
        yield Figure("mysql_binlog_size_bytes", sum(file.size for file in files))
        if self._ends and (number := re.search(r"\d+", engine.file_name(self._ends[-1][1].file_no))):
            yield Figure("mysql_binlog_file_number", int(number[0]))
        for gtid, _ in zip(engine.state(), range(REMEMBERED_MAX), strict=False):
            labels = {"domain": gtid.domain_id, "server_id": gtid.server_id}
            yield Figure("ibbmaster_gtid_seq", gtid.seq_no, labels)
        if self._ends:
            moved_at = time.time() - (self._clock() - self._ends[-1][0])
            yield Figure("ibbmaster_durable_timestamp_seconds", round(moved_at, 3))
        yield from self._of_replicas()
        yield from self.counts()

    def _of_replicas(self) -> Iterator[Figure]:
        now = self._clock()
        for key, gone in list(self._known.items()):
            if now - gone.left_at > REMEMBERED_S:
                self._known.pop(key, None)
        found = {(one.server_id, one.host): one for one in self.dumps.values()}
        for key in [*found, *(key for key in self._known if key not in found)]:
            dump, gone = found.get(key), self._known.get(key) or _Gone()
            labels = {"server_id": key[0], "host": key[1]}
            yield Figure("ibbmaster_replica_connected", int(dump is not None), labels)
            sent = gone.sent_bytes + (0 if dump is None else dump.sent_bytes)
            yield Figure("ibbmaster_replica_sent_bytes_total", sent, labels)
            if dump is not None:
                yield Figure("ibbmaster_replica_lag_groups", dump.lag_groups, labels)
                yield Figure("ibbmaster_replica_lag_bytes", dump.lag_bytes, labels)
                yield Figure("ibbmaster_replica_lag_seconds", round(dump.lag_s, 3), labels)
                yield Figure("ibbmaster_replica_stalled_seconds", round(dump.stalled_s, 3), labels)
                yield Figure("ibbmaster_purge_held_by", int(bool(dump.held_file)), labels)

    @property
    def uptime_s(self) -> int:
        return int(self._clock() - self._since)

    def counts(self) -> Iterator[Figure]:
        """Those that need no look at the log."""
        guard, registry = self._guard, self._registry
        open_now = [traffic for session in registry if (traffic := traffic_of(session.socket)) is not None]
        yield Figure("mysql_global_status_uptime", self.uptime_s)
        yield Figure("mysql_global_status_threads_connected", len(registry))
        yield Figure("mysql_global_status_connections", registry.opened)
        yield Figure("mysql_global_status_aborted_connects", guard.refused + registry.dropped)
        yield Figure("mysql_global_status_access_denied_errors", guard.refused)
        yield Figure("mysql_global_status_bytes_sent", registry.sent_bytes + sum(one.sent for one in open_now))
        received = registry.received_bytes + sum(one.received for one in open_now)
        yield Figure("mysql_global_status_bytes_received", received)
        yield Figure("ibbmaster_logins_delayed_total", guard.delayed)
        yield Figure("ibbmaster_logins_dropped_total", registry.dropped)
        yield Figure("ibbmaster_login_addresses_slowed", guard.slowed_addresses())
        yield Figure("ibbmaster_dumps_begun_total", registry.dumps_begun)
        for result, count in registry.logins.items():
            yield Figure("ibbmaster_logins_total", count, {"result": result})
        for result, count in registry.dumps_ended.items():
            yield Figure("ibbmaster_dumps_ended_total", count, {"result": result})
        for reason, count in registry.refusals.items():
            yield Figure("ibbmaster_refusals_total", count, {"reason": reason})
        for more in self.more:
            yield from more()

    def status(self) -> dict[str, int]:
        """By name in SHOW GLOBAL STATUS; figures with labels as their sum."""
        rows = Counter[str]()
        for figure in self.counts():
            if (name := KINDS[figure.name].status) is not None:
                rows[name] += int(figure.value)
        rows["Ibb_purge_held_by"] = sum(bool(dump.held_file) for dump in self.dumps.values())
        return dict(sorted(rows.items()))


KINDS = figure_kinds()


def _is_at_end(session: Session) -> bool:
    return session.dump is not None and session.dump.is_at_end


def _offset_of(position: LogPosition, files: list[LogFile]) -> int:
    """Bytes of the log before a position, counted from the oldest file on."""
    return sum(file.size for file in files if file.file_no < position.file_no) + position.offset
