"""A thread that keeps writers, readers and restarts fast."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ibbmaster.errors import DiskFullError, IbbMasterError
from .binlog_store import BinlogStore

log = logging.getLogger(__name__)

PERIOD_S = 1.0  # until commits are durable, and durable ones in their files
COMPLAINT_PERIOD_S = 60.0


class Background:
    """Works while it is entered as a context; close the store afterwards. It writes full pages as they come, and once a
    period of `clock`'s seconds syncs, brings an idle log to its files, makes the next file and purges."""

    def __init__(
        self, store: BinlogStore, *, period_s: float = PERIOD_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._period_s = period_s
        self._clock = clock
        self._thread = threading.Thread(target=self._run, name="ibbmaster-store", daemon=True)
        self._is_stopping = False
        self._complained_at = -COMPLAINT_PERIOD_S

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping = True
        self._store.wake.set()
        self._thread.join()

    def _run(self) -> None:
        next_round = 0.0
        last_lsn = -1
        while not self._is_stopping:
            now = self._clock()
            try:
                self._store.write_pages()
                self._store.prepare_next_file()
                if self._store.needs_checkpoint():
                    self._store.checkpoint()
                if now >= next_round:
                    next_round = now + self._period_s
                    self._store.sync()
                    self._store.purge_automatically(now=time.time())
                    lsn = self._store.status().lsn
                    if lsn == last_lsn:
                        self._store.checkpoint()
                    last_lsn = lsn
                wait_s = next_round - self._clock()
            except IbbMasterError as error:
                self._complain(error, now)
                wait_s = self._period_s
            if wait_s > 0 and not self._is_stopping:
                self._store.wake.wait(wait_s)
                self._store.wake.clear()

    def _complain(self, error: IbbMasterError, now: float) -> None:
        if now - self._complained_at >= COMPLAINT_PERIOD_S:
            self._complained_at = now
            kind = "waits for room on the disk" if isinstance(error, DiskFullError) else "has failed"
            log.error("the binlog store %s: %s", kind, error)
