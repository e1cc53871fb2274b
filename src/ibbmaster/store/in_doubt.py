"""Transactions in doubt after a restart: one small decision each; what they wrote is forgotten little by little.

A decision reads nothing of what they wrote, and is durable at once. Going through what was rolled back, to find the
garbage in each file and to let go of the files, takes time in proportion to the transaction. So it happens while the
store serves, may stop anywhere and begins anew at the next start.

Source of the rules: MariaDB 12.3, handler.cc, ha_recover_engine_binlog()."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import IbbMasterError
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.interface import TransactionEngine
from ibbmaster.log.out_of_band import FoundNode, OutOfBandReader
from ibbmaster.store.log_writer import LogWriter
from ibbmaster.store.redo_record import XaEntry, XaState

log = logging.getLogger(__name__)

NODES_PER_STEP = 8


def decide(writer: LogWriter, engines: Iterable[TransactionEngine], *, was_replayed: bool) -> None:
    """Decide about every transaction in doubt, here and in the other engines.
    Rolls back what was prepared internally and is not in the log, and what some engine lost before it was prepared
    there. Decisions are durable before an engine hears of them, all by one sync: the table that this life of the
    redo log begins with holds them."""
    held: dict[Xid, list[TransactionEngine]] = {}
    for engine in engines:
        for xid in engine.prepared():
            held.setdefault(xid, []).append(engine)
    prepared = writer.xa.entries(XaState.PREPARED)
    incomplete = [entry for entry in prepared if entry.engine_count > 1 + len(held.get(entry.xid, ()))]
    internal = [entry for entry in prepared if not entry.engine_count]
    for entry in internal:
        writer.xa.apply(replace(entry, state=XaState.ROLLED_BACK))
    if was_replayed or internal:
        writer.flusher.begin()
    for entry in incomplete:
        writer.append_rollback(entry, XaState.ROLLED_BACK)
    if incomplete:
        writer.sync()
    for xid, holders in held.items():
        found = writer.xa.get(xid)
        for engine in holders:
            if found is None or found.state is XaState.ROLLED_BACK:
                engine.rollback_by_xid(xid)
            elif found.state is XaState.COMMITTED:
                engine.commit_by_xid(xid)
    committed = writer.xa.entries(XaState.COMMITTED)
    for entry in committed:
        gone = replace(entry, state=XaState.FINISHED)
        writer.append([], notes=lambda gone=gone: (gone,))  # type: ignore[misc]
    if incomplete or committed:
        writer.checkpoint()  # leaves the next start nothing to do
        writer.sync()


class Cleaning:
    """Forgets rolled-back transactions: `next_entry` gives the next one, `finished` forgets it.
    `garbage` counts the records of each file that no group refers to. Any thread may take a step; it waits for the
    step of another."""

    def __init__(
        self, disk: ReadDisk, next_entry: Callable[[], XaEntry | None], finished: Callable[[XaEntry], None]
    ) -> None:
        self._disk = disk
        self._next_entry = next_entry
        self._finished = finished
        self._entry: XaEntry | None = None
        self._nodes: Iterator[FoundNode] = iter(())
        self._lock = threading.Lock()
        self.garbage: Counter[int] = Counter()

    def step(self) -> bool:
        """Do a little; returns whether more is left. Raises StoreError: the log cannot be written."""
        with self._lock:
            return self._step()

    def _step(self) -> bool:
        if self._entry is None:
            self._entry = self._next_entry()
            if self._entry is None:
                return False
            stream = self._entry.stream
            self._nodes = iter(()) if stream is None else OutOfBandReader(self._disk).nodes(stream)
        try:
            for _ in range(NODES_PER_STEP):
                node = next(self._nodes, None)
                if node is None:
                    break
                self.garbage[node.position.file_no] += 1
            else:
                return True
        except IbbMasterError as error:  # unreadable garbage is garbage, too
            log.warning("cannot go through what a transaction left behind: %s", error)
        self._finished(self._entry)
        self._entry = None
        return True
