"""Seeded work with a store, and notes of what was fed, acknowledged and sent."""

import contextlib
import dataclasses
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ibbmaster.errors import BusyError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.log.group_writer import GroupWriter
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.storage.ibb.xa import Xid
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.simulated_disk import SimulatedDisk

PAGE_SIZE = 16384
PAYLOADS = (30, 200, 3000, PAGE_SIZE - 120, PAGE_SIZE, 40_000, 70_000)
VERBS = (  # methods of a workload; the frequent ones more than once
    *(*["feed_small"] * 3, *["feed_sized"] * 2, "open_group", *["add_piece"] * 2),
    *("set_savepoint", "roll_back_to_savepoint", "commit_group", "abandon_group", "prepare_group"),
    *("commit_prepared", "roll_back_prepared", "flush_log", "purge_log", "reset_log"),
    *("restart", *["work_in_background"] * 2, "read_groups"),
)


@dataclass(slots=True)
class Expectation:
    groups: tuple[tuple[tuple[int, int, int], int], ...] = ()  # GTID, hash of its bytes
    prepared: frozenset[bytes] = frozenset()
    life: int = 0  # resets before


@dataclass(slots=True)
class Oracle:
    """Notes of what was fed, acknowledged, and sent; steps count from the empty log, which is step 0."""

    steps: list[Expectation] = field(default_factory=lambda: [Expectation()])
    acknowledged: int = 0
    sent: int = 0
    in_flight: Expectation | None = None  # a step that is being made: it may be in the log, or not
    purge_to: int = 0
    file_nos: dict[tuple[int, int, int], int] = field(default_factory=dict)  # of the groups since the last reset

    def key(self) -> tuple[object, ...]:
        return (len(self.steps), self.acknowledged, self.sent, self.in_flight is not None, self.purge_to)


def xid_bytes(xid: Xid) -> bytes:
    return struct.pack("<IBB", xid.format_id, len(xid.gtrid), len(xid.bqual)) + xid.gtrid + xid.bqual


def options_of(rng: random.Random) -> StoreOptions:
    return StoreOptions(
        durability=rng.choice([Durability.SYNC, Durability.SYNC, Durability.WRITE, Durability.LATER]),
        max_file_bytes=4 * PAGE_SIZE,
        state_interval_bytes=rng.choice([PAGE_SIZE, 2 * PAGE_SIZE, 64 * PAGE_SIZE]),
        redo_bytes=2 * rng.choice([96, 96, 128, 512]) * 1024,
        spill_bytes=rng.choice([2000, 20_000, 512 << 10]),
        fifo_pages_max=rng.choice([3, 6, 1024]),
        full_disk_retry_s=0,
    )


class Workload:
    """Random work with a store on a disk, noted by an oracle. The same `chance` does the same."""

    def __init__(
        self,
        disk: SimulatedDisk,
        rng: random.Random,
        options: StoreOptions,
        *,
        oracle: Oracle,
        make_store: Callable[[SimulatedDisk, StoreOptions], BinlogStore],
    ) -> None:
        self.disk = disk
        self.rng = rng
        self.options = options
        self.oracle = oracle
        self._make_store = make_store
        self.log: list[str] = []  # the verbs so far
        self._seq_no: dict[int, int] = {}
        self._open: list[tuple[GroupWriter, bytearray, dict[str, int]]] = []
        self._prepared: dict[Xid, bytes] = {}
        self._xid_count = 0
        self.store = make_store(disk, options)
        self._reader = self.store.groups(self.store.seek(GtidPosition()))
        self._read = 0  # groups that the reader gave since the last reset

    def step_at_random(self) -> None:
        self.step(self.rng.choice(VERBS))

    def step(self, verb: str) -> None:
        self.log.append(verb)
        self.disk.clock += 1
        make: Callable[[], None] = getattr(self, verb)
        make()
        if self.options.durability is Durability.SYNC:
            self._acknowledge()

    def feed_small(self) -> None:
        self._feed(self.rng.randrange(1, 400))

    def feed_sized(self) -> None:
        self._feed(max(self.rng.choice(PAYLOADS) + self.rng.randrange(-4, 5), 1))

    def _feed(self, size: int) -> None:
        gtid = self._next_gtid()
        body = self._event(size)
        event = make_gtid_event(gtid)
        with self._committing(gtid, event + body):
            ref = self.store.write_direct(gtid, event, [body])
        self._committed(gtid, ref.file_no)

    def open_group(self) -> None:
        self._open.append((self.store.open_group(), bytearray(), {}))

    def add_piece(self) -> None:
        if not (found := self._some_open()):
            return
        group, fed, _ = found
        body = self._event(self.rng.choice((50, 1500, 9000, 33_000)))
        group.write(body)
        fed += body

    def set_savepoint(self) -> None:
        if found := self._some_open():
            group, fed, points = found
            name = self.rng.choice("ab")
            group.savepoint(name)
            points.pop(name, None)
            points[name] = len(fed)

    def roll_back_to_savepoint(self) -> None:
        if (found := self._some_open()) and found[2]:
            group, fed, points = found
            name = self.rng.choice(sorted(points))
            group.roll_back_to(name)
            del fed[points[name] :]
            names = list(points)
            for later in names[names.index(name) + 1 :]:
                del points[later]

    def commit_group(self) -> None:
        if not self._open:
            return
        group, fed, _ = self._open.pop(self.rng.randrange(len(self._open)))
        gtid = self._next_gtid()
        event = make_gtid_event(gtid)
        with self._committing(gtid, event + bytes(fed)):
            ref = group.commit(gtid, event)
        self._committed(gtid, ref.file_no)

    def abandon_group(self) -> None:
        if self._open:
            group, _, _ = self._open.pop(self.rng.randrange(len(self._open)))
            group.abandon()

    def prepare_group(self) -> None:
        found = self._some_open()
        if not found or not found[1]:
            return
        group, fed, _ = found
        self._open.remove(found)
        xid = self._next_xid()
        with self._making(self._after(prepared=self.oracle.steps[-1].prepared | {xid_bytes(xid)})):
            group.prepare(xid)
        self._prepared[xid] = bytes(fed)

    def commit_prepared(self) -> None:
        if not self._prepared:
            return
        xid = self.rng.choice(sorted(self._prepared, key=xid_bytes))
        fed = self._prepared.pop(xid)
        gtid = self._next_gtid()
        event = make_gtid_event(gtid)
        with self._committing(gtid, event + fed, finished=xid):
            ref = self.store.xa_commit(xid, gtid, event)
        self._committed(gtid, ref.file_no)

    def roll_back_prepared(self) -> None:
        if not self._prepared:
            return
        xid = self.rng.choice(sorted(self._prepared, key=xid_bytes))
        del self._prepared[xid]
        with self._making(self._after(prepared=self.oracle.steps[-1].prepared - {xid_bytes(xid)})):
            self.store.xa_rollback(xid)

    def flush_log(self) -> None:
        self.store.flush()

    def purge_log(self) -> None:
        to = self.rng.choice([file.file_no for file in self.store.files()])
        self.oracle.purge_to = max(self.oracle.purge_to, to)
        self.store.purge(PurgeRequest(to_file_no=to))

    def reset_log(self) -> None:
        if self.rng.random() < 0.7:
            return
        after = Expectation(life=self.oracle.steps[-1].life + 1)
        try:
            with self._making(after):
                self.store.reset()
        except BusyError:
            return
        self._acknowledge()
        self.oracle.purge_to = 0
        self._follow()

    def restart(self) -> None:
        self._open.clear()
        self.store.close()
        self._acknowledge()
        self.store = self._make_store(self.disk, self.options)
        self._follow()

    def work_in_background(self) -> None:
        match self.rng.randrange(4):
            case 0:
                self.store.write_pages()
            case 1:
                self.store.checkpoint()
            case 2:
                self.store.prepare_next_file()
            case _:
                self.store.sync()
                self._acknowledge()

    def read_groups(self) -> None:
        if self.rng.random() < 0.5:
            self.store.wait_for_growth(0)
        while self._reader.next_group() is not None:
            self._read += 1
        first = next(index for index, step in enumerate(self.oracle.steps) if step.life == self.oracle.steps[-1].life)
        for index in range(first, len(self.oracle.steps)):
            if len(self.oracle.steps[index].groups) >= self._read:
                self.oracle.sent = max(self.oracle.sent, index)
                break

    def _follow(self) -> None:
        self._reader = self.store.groups(self.store.seek(GtidPosition(self.store.state().position().values())))
        while self._reader.next_group() is not None:
            pass
        self._read = len(self.oracle.steps[-1].groups)

    def _acknowledge(self) -> None:
        self.oracle.acknowledged = len(self.oracle.steps) - 1

    def _after(self, **changes: object) -> Expectation:
        return dataclasses.replace(self.oracle.steps[-1], **changes)  # type: ignore[arg-type]

    def _committing(
        self, gtid: Gtid, events: bytes, finished: Xid | None = None
    ) -> contextlib.AbstractContextManager[None]:
        last = self.oracle.steps[-1]
        key = (gtid.domain_id, gtid.server_id, gtid.seq_no)
        prepared = last.prepared if finished is None else last.prepared - {xid_bytes(finished)}
        return self._making(self._after(groups=(*last.groups, (key, hash(events))), prepared=prepared))

    def _committed(self, gtid: Gtid, file_no: int) -> None:
        self.oracle.file_nos[gtid.domain_id, gtid.server_id, gtid.seq_no] = file_no

    @contextlib.contextmanager
    def _making(self, after: Expectation) -> Iterator[None]:
        """While a step is made it may be in the log or not; it is once it was made."""
        self.oracle.in_flight = after
        try:
            yield
        except BusyError:
            self.oracle.in_flight = None
            raise
        self.oracle.in_flight = None
        self.oracle.steps.append(after)

    def _some_open(self) -> tuple[GroupWriter, bytearray, dict[str, int]] | None:
        return self.rng.choice(self._open) if self._open else None

    def _next_gtid(self) -> Gtid:
        domain_id = self.rng.choice((0, 0, 0, 1, 7))
        self._seq_no[domain_id] = self._seq_no.get(domain_id, 0) + 1
        return Gtid(domain_id=domain_id, server_id=self.rng.choice((1, 2)), seq_no=self._seq_no[domain_id])

    def _next_xid(self) -> Xid:
        self._xid_count += 1
        return Xid(format_id=1, gtrid=b"xid%d" % self._xid_count, bqual=b"" if self._xid_count % 2 else b"b")

    def _event(self, size: int) -> bytes:
        return make_event(160, 1, self.rng.randbytes(8).ljust(size, b"x"))
