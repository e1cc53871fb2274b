"""Logs with everything in them that a reader can meet, from a seed."""

import random
from collections.abc import Iterator, Sequence

from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.interface import Disk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import XID_EVENT, gtid_of, make_event, make_gtid_event
from tests.machinery.stores import new_store

SIZES = (*(0, 13, 100, 300) * 4, *(5000, PAGE_SIZE, 40_000) * 2, 90_000, 300_000)
OPTIONS = StoreOptions(max_file_bytes=24 * PAGE_SIZE, state_interval_bytes=4 * PAGE_SIZE, redo_bytes=4 << 20)
MARKED = 0x8000  # a flag of events that some replicas do not want

Group = tuple[Gtid, tuple[bytes, ...]]  # its events, that with the GTID first


class GroupFeeder:
    """Writes groups by every way there is, parts of some between others; `groups` are those committed, in order."""

    def __init__(self, store: BinlogStore, rng: random.Random, sizes: Sequence[int] = SIZES) -> None:
        self.store = store
        self.groups: list[Group] = []
        self._rng = rng
        self._sizes = sizes
        self._seq_no = 0
        self._open: list[tuple[GroupWriter, list[bytes]]] = []

    def step(self) -> None:
        kind = self._rng.randrange(10)
        if kind == 0 and len(self._open) < 3:
            self._open.append((self.store.open_group(), []))
        elif kind <= 2 and self._open:
            self._go_on(self._rng.choice(self._open))
        else:
            gtid = self._next_gtid()
            events = (make_gtid_event(gtid), *self._events(), XID_EVENT)
            self.store.write_direct_ordered(gtid, events[0], events[1:])
            self.groups.append((gtid, events))

    def give_up_open(self) -> None:
        while self._open:
            self._open.pop()[0].abandon()

    def _go_on(self, one: tuple[GroupWriter, list[bytes]]) -> None:
        group, events = one
        for event in self._events():
            group.write(event)
            events.append(event)
        if self._rng.random() < 0.5:
            return
        self._open.remove(one)
        if self._rng.random() < 0.2:
            group.abandon()
            return
        gtid = self._next_gtid()
        group.write(XID_EVENT)
        group.commit(gtid, make_gtid_event(gtid))
        self.groups.append((gtid, (make_gtid_event(gtid), *events, XID_EVENT)))

    def _next_gtid(self) -> Gtid:
        self._seq_no += 1
        return gtid_of(self._seq_no, self._rng.randrange(3), self._rng.randrange(1, 3))

    def _events(self) -> Iterator[bytes]:
        rng = self._rng
        for _ in range(rng.randrange(4)):
            size = rng.choice(self._sizes) if rng.random() < 0.7 else rng.choice(self._sizes[:4])
            event = bytearray(make_event(rng.choice([160, 23]), 1, rng.randbytes(size)))
            event[17:19] = (MARKED if rng.random() < 0.1 else 0).to_bytes(2, "little")
            yield bytes(event)


def random_log(seed: int, disk: Disk, *, groups: int = 150) -> BinlogStore:
    rng = random.Random(seed)
    feeder = GroupFeeder(new_store(disk, OPTIONS, oob_piece_bytes=40_000, spill_bytes=60_000), rng)
    for _ in range(groups):
        feeder.step()
        if rng.random() < 0.01:
            feeder.store.flush()
    feeder.give_up_open()
    feeder.store.sync()
    return feeder.store
