"""The background work of a store: a thread that keeps writers, readers and restarts fast."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ibbmaster.errors import DiskFullError, IbbMasterError
from ibbmaster.store.binlog_store import BinlogStore

log = logging.getLogger(__name__)

PERIOD_S = 1.0  # how late what was not synced at commit becomes durable, and what is durable reaches its file
CLEANING_SHARE = 0.2  # of the time, at most
COMPLAINT_PERIOD_S = 60.0


class Background:
    """Runs the background work of a store while it is entered as a context; close the store afterwards.

    Full pages are written as they come; everything else once a period: what is appended is made durable, an idle log is
    brought to its files, the next file is made, and files are purged. What recovery left to forget is forgotten in a
    small share of the time, as `clock` measures it in seconds.
    """

    def __init__(
        self, store: BinlogStore, *, period_s: float = PERIOD_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._period_s = period_s
        self._clock = clock
        self._thread = threading.Thread(target=self._run, name="ibbmaster-store", daemon=True)
        self._is_stopping = False
        self._complained_at = -COMPLAINT_PERIOD_S
        self._clean_at = 0.0

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
                wait_s = min(self._clean(now), next_round - self._clock())
            except IbbMasterError as error:
                self._complain(error, now)
                wait_s = self._period_s
            if wait_s > 0 and not self._is_stopping:
                self._store.wake.wait(wait_s)
                self._store.wake.clear()

    def _clean(self, now: float) -> float:
        """Forget a little if it is time; returns after how many seconds to come again."""
        if now >= self._clean_at:
            start = self._clock()
            has_more = self._store.clean_step()
            took = self._clock() - start
            self._clean_at = start + took / CLEANING_SHARE if has_more else now + self._period_s
        return self._clean_at - self._clock()

    def _complain(self, error: IbbMasterError, now: float) -> None:
        if now - self._complained_at >= COMPLAINT_PERIOD_S:
            self._complained_at = now
            kind = "waits for room on the disk" if isinstance(error, DiskFullError) else "has failed"
            log.error("the binlog store %s: %s", kind, error)
