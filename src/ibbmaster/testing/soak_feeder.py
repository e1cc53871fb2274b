"""A process that writes a store and serves it: `python -m ibbmaster.testing.soak_feeder DIR SEED`.

Prints `port N`, and `fed GROUPS BYTES` now and then. A line on standard input ends the
writing: `end POSITION` follows. It serves until standard input ends.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.group_writer import GroupWriter
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability, StoreOptions
from ibbmaster.testing.soak_log import DOMAIN_COUNT, body_of, gtid_event_of, gtid_of

USER, PASSWORD = "repl", "soak"
REPORT_PERIOD_S = 0.5
PACES_S = (0.0, 0.02, 0.05, 0.15)  # between two steps: bursts, a steady load, and time for heartbeats
STEPS_PER_PACE = 30
PIECE_BYTES = 90_000  # of a group that is written while others are
OPTIONS = StoreOptions(
    durability=Durability.SYNC,
    max_file_bytes=4 << 20,
    state_interval_bytes=64 << 10,
    oob_piece_bytes=64 << 10,
    spill_bytes=20_000,
    redo_bytes=16 << 20,
    max_total_bytes=1 << 30,
)


@dataclass(slots=True, kw_only=True)
class _OpenGroup:
    """A group that is written while others are; nothing else is written in its domain."""

    gtid: Gtid
    writer: GroupWriter
    rest: bytes
    xid: Xid | None


class Feeder:
    """Writes group after group, in all the ways there are."""

    def __init__(self, store: BinlogStore, seed: int) -> None:
        self._store = store
        self._seed = seed
        self._chance = random.Random(seed)
        self._seq_nos = [0] * DOMAIN_COUNT
        self._open: dict[int, _OpenGroup] = {}
        self.group_count = 0
        self.byte_count = 0

    def step(self) -> None:
        """One group, or a piece of one."""
        domain_id = self._chance.randrange(DOMAIN_COUNT)
        if domain_id in self._open:
            self._go_on(domain_id)
            return
        self._seq_nos[domain_id] += 1
        gtid = gtid_of(domain_id, self._seq_nos[domain_id])
        self.group_count += 1
        match self._chance.randrange(12) if gtid.seq_no > 2 else -1:
            case 0 | 1 | 2:
                self._begin(gtid, xid=None)
            case 3:
                self._begin(gtid, xid=Xid(format_id=1, gtrid=str(gtid).encode(), bqual=b""))
            case 4:
                self._write_with_savepoint(gtid)
            case 5 if self._chance.random() < 0.1:
                self._write(gtid)
                self._store.flush()
            case _:
                self._write(gtid)

    def finish(self) -> None:
        """End what is open."""
        while self._open:
            self._go_on(next(iter(self._open)))

    def _write(self, gtid: Gtid) -> None:
        events = body_of(self._seed, gtid)
        self.byte_count += sum(map(len, events))
        self._store.write_direct(gtid, gtid_event_of(gtid), events)

    def _write_with_savepoint(self, gtid: Gtid) -> None:
        body = b"".join(body_of(self._seed, gtid))
        group = self._store.open_group()
        group.write(body[:100])
        group.savepoint("s")
        group.write(bytes(self._chance.choice((100, 300_000))))
        group.roll_back_to("s")
        group.write(body[100:])
        self.byte_count += len(body)
        group.commit(gtid, gtid_event_of(gtid))

    def _begin(self, gtid: Gtid, *, xid: Xid | None) -> None:
        body = b"".join(body_of(self._seed, gtid, has_xid=xid is None))
        self.byte_count += len(body)
        self._open[gtid.domain_id] = _OpenGroup(gtid=gtid, writer=self._store.open_group(), rest=body, xid=xid)

    def _go_on(self, domain_id: int) -> None:
        group = self._open[domain_id]
        if group.rest:
            piece, group.rest = group.rest[:PIECE_BYTES], group.rest[PIECE_BYTES:]
            group.writer.write(piece)
            if not group.rest and group.xid is not None:
                group.writer.prepare(group.xid)
            return
        del self._open[domain_id]
        if group.xid is None:
            group.writer.commit(group.gtid, gtid_event_of(group.gtid))
        else:
            self._store.xa_commit(group.xid, group.gtid, gtid_event_of(group.gtid))


def feed(store: BinlogStore, seed: int, ended: threading.Event) -> None:
    """Write until the end is asked for; then say where it is."""
    feeder = Feeder(store, seed)
    chance = random.Random(f"{seed} pace")
    report_due = time.monotonic()
    while not ended.is_set():
        pace_s = chance.choice(PACES_S)
        for _ in range(STEPS_PER_PACE):
            feeder.step()
            ended.wait(pace_s)
            if ended.is_set():
                break
            if time.monotonic() >= report_due:
                report_due = time.monotonic() + REPORT_PERIOD_S
                print("fed", feeder.group_count, feeder.byte_count, flush=True)
    feeder.finish()
    store.sync()
    print("fed", feeder.group_count, feeder.byte_count, flush=True)
    print("end", store.binlog_state().position(), flush=True)


def main() -> None:
    """Write, serve, and end as standard input says."""
    import trio

    from ibbmaster.dump.profile import PROFILES
    from ibbmaster.server.options import PrimaryOptions
    from ibbmaster.server.primary import Primary
    from ibbmaster.wire.auth import make_account

    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    ended = threading.Event()
    with BinlogStore(RealDisk(directory), OPTIONS) as store, Background(store):
        account = make_account(USER, PASSWORD)
        options = PrimaryOptions(
            host="127.0.0.1", port=0, account=account, certificate=None, profile=PROFILES["engine"]
        )
        primary = Primary(store, options)
        store.connected_replicas = lambda: sum(session.dump_server_id is not None for session in primary.registry)

        async def serve() -> None:
            async with trio.open_nursery() as nursery:
                print("port", await nursery.start(primary.serve), flush=True)
                writer = threading.Thread(target=feed, args=(store, seed, ended), daemon=True)
                writer.start()
                await trio.to_thread.run_sync(sys.stdin.readline)
                ended.set()
                await trio.to_thread.run_sync(sys.stdin.read)
                await trio.to_thread.run_sync(writer.join)
                primary.stop()

        trio.run(serve)


if __name__ == "__main__":
    main()
