"""What happens to a whole primary of tests: it crashes, is restarted as another, purged, or replaced."""

from __future__ import annotations

import functools
import itertools
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

from ibbmaster.api.log import Log
from ibbmaster.api.writing import WritableLog
from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid
from ibbmaster.primary.server.registry import Registry, Session
from ibbmaster.replication.event.group import EventGroup
from .clock import FixtureClock
from .fixture_logs import FixtureLog, fixture_log

BY_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, and zero: closing resets
PURGE_S = 10.0  # readers leave sooner


class RestartablePrimary(Protocol):
    log: WritableLog
    clock: FixtureClock

    @property
    def server_id(self) -> int: ...

    def start(self) -> object: ...

    def stop(self) -> None: ...

    def become(self, *, profile: str | None, log: WritableLog | None, server_id: int | None) -> None: ...

    def in_loop(self, function: Callable[[Registry], Any]) -> Any: ...


class Incidents:
    """Not from its event loop. `set_down` is told whether new connections are to be reset."""

    def __init__(self, primary: RestartablePrimary, set_down: Callable[[bool], None]) -> None:
        self._primary = primary
        self._set_down = set_down
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._made = ExitStack()  # directories and logs of other primaries

    @property
    def clock(self) -> FixtureClock:
        return self._primary.clock

    def crash(self, torn: str | None = None) -> None:
        """Reset every connection and close the port; `torn` tears the log there. Raises ConfigurationError: `torn` is
        for logs of tests."""
        log = self._primary.log
        if torn is not None and not isinstance(log, FixtureLog):
            raise ConfigurationError(f"crash: torn: {log!r} is none that fixture_log has made")
        self._set_down(True)
        try:
            self._primary.in_loop(reset_all)
            self._primary.stop()
            if torn is not None:
                assert isinstance(log, FixtureLog)
                log.crash(torn)
        finally:
            self._set_down(False)

    def stop(self) -> None:
        self._primary.stop()

    def restart(self, after_s: float = 0.0, *, profile: str | None = None) -> None:
        """Listen on the same port `after_s` seconds later, with a new file, perhaps as another kind of server."""
        self._closing.wait(after_s)
        with self._lock:
            if self._closing.is_set():
                return
            if profile is not None:
                self._primary.become(profile=profile, log=None, server_id=None)
            self._primary.log.flush()
            self._primary.start()

    def purge(self) -> None:
        """Reset dumps that need removed files. Raises ConfigurationError: something else keeps them."""
        log = self._primary.log
        log.flush()
        active = log.engine.file_name(log.engine.end().file_no)
        deadline = time.monotonic() + PURGE_S
        while kept := log.purge(to=active).kept:
            if time.monotonic() > deadline or self._closing.is_set():
                raise ConfigurationError(f"purge: {kept}")
            self._primary.in_loop(reset_dumps)
            self._closing.wait(0.005)

    def fail_over(self, *, lose: int = 0, add: int = 0, server_id: int | None = None) -> None:
        """Serve another log on the same port: without the last `lose` groups, then `add` groups that change nothing, of
        server `server_id`, by default the next one."""
        primary, old = self._primary, self._primary.log
        server_id = primary.server_id + 1 if server_id is None else server_id
        with self._lock:
            scratch = self._made.enter_context(tempfile.TemporaryDirectory(prefix="ibbmaster-failover-"))
            new = self._made.enter_context(fixture_log(Path(scratch)))
        copy_groups(old, new, lose=lose)
        for number in range(1, add + 1):
            latest = new.state.latest(0)
            gtid = Gtid(domain_id=0, server_id=server_id, seq_no=1 if latest is None else latest.seq_no + 1)
            new.append(gtid, f"FLUSH TABLES /* {number} of the new primary */", timestamp=primary.clock.timestamp)
        self.crash()
        primary.become(profile=None, log=new, server_id=server_id)
        self.restart()

    def end(self) -> None:
        self._closing.set()
        with self._lock:
            pass  # a start that has begun is over

    def clean_up(self) -> None:
        self._made.close()


def reset_all(registry: Registry, *, only_dumps: bool = False) -> None:
    for session in registry:
        if session.dump_server_id is not None or not only_dumps:
            close_by_reset(session)
            session.scope.cancel()


reset_dumps = functools.partial(reset_all, only_dumps=True)


def close_by_reset(session: Session) -> None:
    if session.socket is not None:
        session.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, BY_RESET)


def copy_groups(source: Log, into: WritableLog, *, lose: int = 0) -> None:
    count = sum(1 for _ in _groups_of(source)) - lose if lose else None
    for group in itertools.islice(_groups_of(source), None if count is None else max(0, count)):
        _copy_group(group, into)


class GroupCopier:
    """Copies step by step, event for event; at `last`, all the rest."""

    def __init__(self, source: Log, last: str | None) -> None:
        self._groups = _groups_of(source)
        self._last = last

    def copy_to(self, into: WritableLog, gtid: str | None) -> None:
        """Copy groups up to a GTID. Raises ConfigurationError: the log has no such group."""
        for group in self._groups:
            _copy_group(group, into)
            if str(group.gtid) == gtid != self._last:
                return
        if gtid != self._last:
            raise ConfigurationError(f"recorded {gtid}: the log has no such group behind those named before")

    def close(self) -> None:
        self._groups.close()


def _copy_group(group: EventGroup, into: WritableLog) -> None:
    assert group.gtid is not None
    with into.begin() as copy:
        for piece in group.body:
            copy.write(piece)
        copy.commit(group.gtid, group.gtid_event)


def _groups_of(log: Log) -> Generator[EventGroup]:
    if isinstance(log, WritableLog):
        log.sync()
    with closing(log.engine.groups(log.engine.start_of_file(log.files[0].file_no))) as groups:
        while (group := groups.next_group()) is not None:
            if group.gtid is not None:
                yield group
