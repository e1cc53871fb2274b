"""The figures of a running primary, which SHOW GLOBAL STATUS, SHOW PROCESSLIST, the log and /metrics report. Table:
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
from itertools import islice, starmap
from types import MappingProxyType
from typing import NamedTuple

from ibbmaster.errors import IbbMasterError
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.interface import LogEngine, LogFile
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.position import LogPosition
from .client_stream import traffic_of
from .login_guard import LoginGuard
from .registry import Registry, Session

ENDS_MAX = 512  # moves of the log's end that are remembered; older ones get further apart
REMEMBERED_MAX = 1000  # replicas, and pairs of a GTID state: no label grows for ever
REMEMBERED_S = 86400.0  # a replica that has left


class Figure(NamedTuple):
    name: str
    value: float
    labels: Mapping[str, object] = MappingProxyType({})


class FigureKind(NamedTuple):
    name: str
    kind: str  # gauge, counter or untyped
    status: str  # the row of SHOW GLOBAL STATUS; NULL: none
    meaning: str


KINDS = {row[0]: FigureKind(*row) for row in rows_of(__package__, "figures")}


@dataclass(slots=True, kw_only=True)
class DumpFigures:
    """Of one dump, at the last look. `str` is for people."""

    server_id: int | None
    host: str
    sent_bytes: int = 0
    lag_groups: int = 0
    lag_bytes: int = 0
    lag_s: float = 0.0
    stalled_s: float = 0.0
    held_file: str = ""  # that is to be removed, but for it
    held_s: float = 0.0

    def __str__(self) -> str:
        text = f"{self.sent_bytes} bytes confirmed"
        if self.lag_bytes:
            text += f", {self.lag_groups} transactions, {self.lag_bytes} bytes and {self.lag_s:.0f} s behind"
        if self.stalled_s:
            text += f", stalled for {self.stalled_s:.0f} s"
        if self.held_file:
            text += f", holds {self.held_file}, which is to be removed, for {self.held_s:.0f} s"
        return text


class _LogEnd(NamedTuple):
    end: LogPosition
    files: list[LogFile]
    state: GtidState
    wanted_file_no: int

    def bytes_before(self, place: LogPosition) -> int:
        return sum(file.size for file in self.files if file.file_no < place.file_no) + place.offset


class Figures:
    """Thread-safe. `store` writes the log in this process, `more` gives figures of what feeds it."""

    def __init__(
        self, engine: LogEngine, registry: Registry, guard: LoginGuard, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.store: BinlogStore | None = None
        self.more: list[Callable[[], Iterable[Figure]]] = []
        self.is_stopping = False
        self.on_beat: Callable[[bool], object] = lambda is_stopping: None  # while the event loop works
        self.dumps: dict[int, DumpFigures] = {}
        """By connection, at the last look."""
        self.looked_s = 0.0  # how long that took
        self._engine, self._registry, self._guard, self._clock = engine, registry, guard, clock
        self._ends: list[tuple[float, LogPosition]] = []
        self._gone: OrderedDict[tuple[int | None, str], tuple[int, float]] = OrderedDict()  # bytes sent, when it left
        self._lock = threading.Lock()
        self._beat_at = self._looked_at = self._since = clock()

    # Looking -----------------------------------------------------------------------------------

    def look(self) -> list[Session]:
        """Measure all dumps; returns those that hold a file. May read the disk."""
        with self._lock:
            now, before = self._clock(), self.dumps
            running = [(one, dump.place) for one in self._registry if (dump := one.dump) is not None]
            is_behind = any(place is not None for _, place in running)
            try:
                end = self._look_at_end(now, only_cached=bool(running) and not is_behind)
                log = _LogEnd(end, *self._log()) if is_behind else _LogEnd(end, [], GtidState(), 0)
            except (BlockingIOError, IbbMasterError):  # replicas hear of it
                return []
            self.dumps = {
                one.connection_id: self._measured(one, place, log, now, before.get(one.connection_id))
                for one, place in running
            }
            self.looked_s, self._looked_at = self._clock() - now, now
            return [one for one, _ in running if self.dumps[one.connection_id].held_file]

    def _look_at_end(self, now: float, *, only_cached: bool) -> LogPosition:
        end = self._engine.end(only_cached=only_cached)
        if not self._ends or self._ends[-1][1] != end:
            if self._ends and end < self._ends[-1][1]:
                self._ends.clear()  # the log was reset
            self._ends.append((now, end))
            if len(self._ends) > ENDS_MAX:
                del self._ends[1 : ENDS_MAX // 2 : 2]
        return end

    def _log(self) -> tuple[list[LogFile], GtidState, int]:
        wanted = None if self.store is None else self.store.wanted_file_no
        return self._engine.files(), self._engine.state(), wanted or 0

    def _measured(
        self,
        session: Session,
        place: tuple[LogPosition, GtidState] | None,
        log: _LogEnd,
        now: float,
        before: DumpFigures | None,
    ) -> DumpFigures:
        found = DumpFigures(server_id=session.dump_server_id, host=session.host)
        passed_s = now - self._looked_at
        if (traffic := traffic_of(session.socket)) is not None:
            found.sent_bytes = traffic.sent
            if before is not None and traffic.waiting and traffic.sent == before.sent_bytes:
                found.stalled_s = before.stalled_s + passed_s
        if place is None:
            return found
        position, sent = place
        for domain in log.state.domain_ids:
            found.lag_groups += max(0, (log.state.highest_seq_no(domain) or 0) - (sent.highest_seq_no(domain) or 0))
        found.lag_bytes = max(0, log.bytes_before(log.end) - log.bytes_before(position))
        found.lag_s = next((now - moved_at for moved_at, end in self._ends if end > position), 0.0)
        if position.file_no < log.wanted_file_no:
            found.held_file = self._engine.file_name(position.file_no)
            found.held_s = before.held_s + passed_s if before is not None and before.held_file else 0.0
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
        self._gone[key] = self._gone.pop(key, (0, 0.0))[0] + sent, self._clock()
        if len(self._gone) > REMEMBERED_MAX:
            self._gone.popitem(last=False)

    def beat(self) -> None:
        """The event loop works."""
        self._beat_at = self._clock()
        self.on_beat(self.is_stopping)

    def stop(self) -> None:
        self.is_stopping = True
        self.beat()

    def silent_s(self) -> float:
        """Since the event loop was seen."""
        return self._clock() - self._beat_at

    def problems(self) -> Iterator[str]:
        """Why the primary is not ready."""
        if self.is_stopping:
            yield "serving ends"
        if self.store is not None and (failure := self.store.status().failure) is not None:
            yield f"nothing can be written any more: {failure}"

    # Reporting ---------------------------------------------------------------------------------

    def figures(self) -> Iterator[Figure]:
        """All of now. May read the disk."""
        self.look()
        engine, files = self._engine, self._engine.files()
        yield Figure("mysql_up", 1)
        yield Figure("mysql_binlog_files", len(files))
        yield Figure("mysql_binlog_size_bytes", sum(file.size for file in files))
        if self._ends:
            moved_at, end = self._ends[-1]
            yield Figure("ibbmaster_durable_timestamp_seconds", round(time.time() - self._clock() + moved_at, 3))
            if number := re.search(r"\d+", engine.file_name(end.file_no)):
                yield Figure("mysql_binlog_file_number", int(number[0]))
        for gtid in islice(engine.state(), REMEMBERED_MAX):
            yield Figure("ibbmaster_gtid_seq", gtid.seq_no, {"domain": gtid.domain_id, "server_id": gtid.server_id})
        yield from self._of_replicas()
        yield from self.counts()

    def _of_replicas(self) -> Iterator[Figure]:
        oldest = self._clock() - REMEMBERED_S
        gone = {key: sent for key, (sent, left_at) in list(self._gone.items()) if left_at > oldest}
        found = {(one.server_id, one.host): one for one in list(self.dumps.values())}
        for key in [*found, *(key for key in gone if key not in found)]:
            dump, labels = found.get(key), {"server_id": key[0], "host": key[1]}
            yield Figure("ibbmaster_replica_connected", int(dump is not None), labels)
            sent = gone.get(key, 0) + (0 if dump is None else dump.sent_bytes)
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
        plain = {
            "mysql_global_status_uptime": self.uptime_s,
            "mysql_global_status_threads_connected": len(registry),
            "mysql_global_status_connections": registry.opened,
            "mysql_global_status_aborted_connects": guard.refused + registry.dropped + registry.logins["not_allowed"],
            "mysql_global_status_access_denied_errors": guard.refused,
            "mysql_global_status_bytes_sent": registry.sent_bytes + sum(one.sent for one in open_now),
            "mysql_global_status_bytes_received": registry.received_bytes + sum(one.received for one in open_now),
            "ibbmaster_logins_delayed_total": guard.delayed,
            "ibbmaster_logins_dropped_total": registry.dropped,
            "ibbmaster_login_addresses_slowed": guard.slowed_addresses(),
            "ibbmaster_dumps_begun_total": registry.dumps_begun,
        }
        yield from starmap(Figure, plain.items())
        yield from (Figure("ibbmaster_logins_total", n, {"result": of}) for of, n in registry.logins.items())
        yield from (Figure("ibbmaster_dumps_ended_total", n, {"result": of}) for of, n in registry.dumps_ended.items())
        yield from (Figure("ibbmaster_refusals_total", n, {"reason": of}) for of, n in registry.refusals.items())
        for more in self.more:
            yield from more()

    def status(self) -> dict[str, int]:
        """By name in SHOW GLOBAL STATUS; figures with labels as their sum."""
        rows = Counter({"Ibb_purge_held_by": sum(bool(dump.held_file) for dump in list(self.dumps.values()))})
        for figure in self.counts():
            if (name := KINDS[figure.name].status) != NULL:
                rows[name] += int(figure.value)
        return dict(sorted(rows.items()))
