"""Transactions in doubt after a restart: one small decision each, nothing of what they wrote is read.

Source of the rules: MariaDB 12.3, handler.cc, ha_recover_engine_binlog().
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ibbmaster.ibb.xa import Xid
from ibbmaster.log.interface import TransactionEngine
from ibbmaster.store.log_writer import LogWriter
from ibbmaster.store.redo_record import XaState


def decide(writer: LogWriter, engines: Iterable[TransactionEngine], *, was_replayed: bool) -> None:
    """Decide about every transaction in doubt, here and in the other engines.

    What was prepared internally and is not in the log is rolled back; so is what some engine
    lost before it was prepared there. Decisions are durable before an engine hears of them,
    all by one sync: the table that this life of the redo log begins with holds them.
    """
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
        gone = replace(entry, state=XaState.GONE)
        writer.append([], notes=lambda gone=gone: (gone,))  # type: ignore[misc]
    if incomplete or committed:
        writer.checkpoint()  # so that the next start finds nothing to do
        writer.sync()
