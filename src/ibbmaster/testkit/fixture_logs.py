"""Logs of tests: made in milliseconds, sound at their end, and torn as by a crash in the middle of a write."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Unpack

from ibbmaster.api.stores import WritingOptions, store_options
from ibbmaster.api.writing import OpenGroup, WritableLog
from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.storage.ibb.xa import Xid

FILE_BYTES = "1M"  # small, so that a log is made at once
REDO_BYTES = "1M"
OPEN_S = 1.0  # for groups that are open at a crash to end
POLL_S = 0.001
CRASHED = "the primary crashed"


class FixtureDisk(RealDisk):
    """A directory without syncs, which take most of the time: it survives the process but no loss of power."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._tears: Callable[[str], bool] = lambda name: False
        self._is_dead = False

    def tear(self, is_torn: Callable[[str], bool]) -> None:
        """Cut the next write to such a file in half, and write nothing after it."""
        self._tears = is_torn

    def die(self) -> None:
        self._is_dead = True

    def write(self, name: str, offset: int, data: Buffer) -> None:
        if self._is_dead:
            raise StoreError(CRASHED)
        if self._tears(name):
            half = len(data) // 2
            super().write(name, offset, memoryview(data)[: half if half % PAGE_SIZE else half + PAGE_SIZE // 2])
            self.die()
            raise StoreError(CRASHED)
        super().write(name, offset, data)

    def sync(self, name: str) -> None:
        pass

    def sync_dir(self) -> None:
        pass


class FixtureLog(WritableLog):
    """A log of a test without a thread of its own. Made by `fixture_log`. Writers wait while it crashes and
    recovers."""

    def __init__(self, path: Path, options: StoreOptions, initial_state: GtidState | None = None) -> None:
        self._disk = FixtureDisk(path)
        self._options = options
        self._changed = threading.Condition()
        self._is_crashing = False
        self._writing = 0  # calls that write, now
        self._begun: weakref.WeakSet[OpenGroup] = weakref.WeakSet()
        super().__init__(
            path, BinlogStore(self._disk, options, initial_state=initial_state), schema=None, has_background=False
        )

    def crash(self, torn: str) -> None:
        """Stop in the middle of writing, and recover what was durable.

        `torn` is where: in the redo record of a group ("redo"), in a page on its way to its file ("pages"), or after
        some pieces of a large group ("group"). Open groups have `OPEN_S` to end; later they cannot be committed.
        """
        with self._changed:
            self._is_crashing = True
            until = time.monotonic() + OPEN_S
            while self._is_busy and time.monotonic() < until:
                self._changed.wait(POLL_S)  # no call says that a group has ended
        try:
            self._crash(torn)
        finally:
            with self._changed:
                self._is_crashing = False
                self._changed.notify_all()

    def _crash(self, torn: str) -> None:
        with contextlib.suppress(StoreError):
            _WRITES[torn](self)
        self._disk.die()
        with contextlib.suppress(StoreError):
            self.store.close()  # descriptors and the lock
        self._disk = FixtureDisk(self.path)
        store = BinlogStore(self._disk, self._options)
        store.connected_replicas = self.store.connected_replicas
        self._engine = self.store = store
        self._stack.callback(store.close)
        self.forget_history()

    def begin(self, **options: Any) -> OpenGroup:
        with self._going_on():
            group = super().begin(**options)
            self._begun.add(group)
            return group

    def append(self, *args: Any, **options: Any) -> LogPosition:
        with self._going_on():
            return super().append(*args, **options)

    def xa_commit(self, *args: Any) -> LogPosition:
        with self._going_on():
            return super().xa_commit(*args)

    def xa_rollback(self, xid: Xid | str) -> None:
        with self._going_on():
            super().xa_rollback(xid)

    def flush(self, **options: Any) -> None:
        with self._going_on():
            super().flush(**options)

    @property
    def _is_busy(self) -> bool:
        return self._writing > 0 or not all(one.is_ended for one in self._begun)

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """A crash waits for the end of this; this waits for the end of a crash."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_crashing)
            self._writing += 1
        try:
            yield
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()

    def _write_record(self) -> None:
        self._disk.tear(SEGMENT_NAMES.__contains__)
        latest = self.state.latest(0)
        gtid = Gtid(domain_id=0, server_id=1, seq_no=1 if latest is None else latest.seq_no + 1)
        super().append(gtid, "INSERT INTO ibbmaster.torn VALUES ('never')")
        self.sync()

    def _write_pages(self) -> None:
        self._disk.tear(lambda name: parse_file_name(name) is not None)
        self.bring_to_files()

    def _write_group(self) -> None:
        with super().begin() as group:
            group.write(bytes(2 * max(self._options.spill_bytes, self._options.oob_piece_bytes)))
            self.sync()
            self._disk.die()


_WRITES = {"redo": FixtureLog._write_record, "pages": FixtureLog._write_pages, "group": FixtureLog._write_group}
TORN = tuple(_WRITES)


def fixture_log(path: Path, *, state: GtidState | str = "", **options: Unpack[WritingOptions]) -> FixtureLog:
    """A new small log for a test, made in milliseconds, without syncs and threads, after `state`; options are those
    of `ibbmaster.create`."""
    given: WritingOptions = {"max_file_bytes": FILE_BYTES, "redo_bytes": REDO_BYTES, **options}
    path.mkdir(parents=True, exist_ok=True)
    initial = GtidState.parse(state) if isinstance(state, str) else state
    return FixtureLog(path, store_options(given), initial)


def expect_sound(log: WritableLog) -> None:
    """Raises AssertionError: the log has faults; the text names the first."""
    log.bring_to_files()
    faults = [fault for fault in log.verify() if fault.is_damage]
    assert not faults, f"the log {log.path} has {len(faults)} faults: {faults[0]}"
