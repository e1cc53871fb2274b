"""One opening of a store under a scheduler: writers, readers, background and administration."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ibbmaster.errors import BusyError, FailedError, IbbMasterError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.interface import LogFile
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.backup import back_up
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability
from ibbmaster.storage.ibb.xa import Xid
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.ledger import Fed, GroupStage, Prepared
from tests.machinery.life_judge import LifeJudge
from tests.machinery.log_checker import CheckError, check_log
from tests.machinery.scheduler import Scheduler
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.simulated_threads import SimulatedThread, installed
from tests.machinery.streams import StreamReader
from tests.machinery.workload import PAYLOADS, xid_bytes

if TYPE_CHECKING:
    from tests.machinery.schedules import Schedule

WRITERS = 3
STEPS_OF_WRITER = 7
_WRITERS = ("redo_log", "group_commit", "durable_end", "page_fifo", "flusher", "step_writer", "log_writer")
_OTHERS = ("logs.store.binlog_store", "logs.store.background", "logs.log.directory", "storage.disk.write_behind")
PREEMPTED = [importlib.import_module(f"ibbmaster.logs.store.{name}") for name in _WRITERS]
SIMULATED = [  # what runs under the scheduler
    *PREEMPTED,
    *(importlib.import_module(f"ibbmaster.{name}") for name in (*_OTHERS, "primary.streaming.block_cache")),
    importlib.import_module("ibbmaster.primary.streaming.buffers"),
]


class Life:
    def __init__(self, schedule: Schedule, number: int) -> None:
        self.schedule = schedule
        self.ledger = schedule.ledger
        self.disk = schedule.disk
        self.name = f"{schedule.seed} {number}"
        rng = random.Random(self.name)
        self._rng = rng
        self.scheduler = Scheduler(random.Random(f"{self.name} order"), preempts_inside=rng.random() < 0.3)
        self.judge = LifeJudge(self, rng, is_unjudged=schedule.backs_up)
        self.is_complete = False  # everything is durable, or never will be, and nothing more comes
        self.disk_failure = DiskFailure.draw(random.Random(f"{self.name} disk_failure")) if schedule.fails else None
        self.readers: list[StreamReader] = []

    def run(self) -> None:
        with installed(self.scheduler, SIMULATED, traced=PREEMPTED):
            self.disk.pause = self.scheduler.pause
            self.store = BinlogStore(self.disk, self.schedule.options)
            self.scheduler.at_step = self.judge.at_step
            self.scheduler.start("life", self._live)
            if self.disk_failure is not None:
                self.disk.fail = self.disk_failure
            self.scheduler.run()

    def _live(self) -> None:
        rng = self._rng
        with Background(self.store, period_s=rng.choice((0.02, 0.2, 2.0)), clock=lambda: self.scheduler.now):
            writers = [self._start(f"writer {number}", self._writer(number)) for number in range(WRITERS)]
            others = [
                self._start("worker", lambda: self._repeat("worker", self._work, 6)),
                self._start("administrator", lambda: self._repeat("administrator", self._administer, 4)),
            ]
            readers = []
            for number, is_replica in enumerate((False, True)):
                reader = StreamReader(self, is_replica=is_replica)
                self.readers.append(reader)
                readers.append(self._start(f"reader {number}", reader.run))
            if self.schedule.backs_up:
                others.append(self._start("backup", lambda: self._repeat("backup", self._back_up, 4)))
            elif rng.random() < 0.3:
                others.append(self._start("backup", lambda: self._back_up(rng)))
            for thread in (*writers, *others):
                thread.join()
            if self.disk_failure is not None and not self.has_failed:
                if self.disk_failure.is_final:
                    raise CheckError(f"{self.disk_failure.hit} failed, and the store takes no notice")
                self.disk_failure.end(self.disk)
            self._tolerating(self._sync)
            self.is_complete = True
            for thread in readers:
                thread.join()
        with self.scheduler.quiet():
            if self.has_failed:
                self._end_after_failure()
                return
            self.store.close()
            found = check_log(self.disk.files())
            if found != check_log(self.disk.durable_files()):
                raise CheckError("the store was closed, and not all of it is durable")
            for fed in self.ledger.fed.values():
                fed.is_durable |= fed.is_logged
            self.ledger.check(found, self.ledger.required(is_kill=False), is_kill=False)
            for reader in self.readers:
                reader.check_complete(found)

    @property
    def has_failed(self) -> bool:
        return self.disk_failure is not None and self.store.status().state == "failed"

    def _end_after_failure(self) -> None:
        """Nothing is written and nothing gets durable any more; what was acknowledged is there after a restart."""
        assert self.disk_failure is not None
        hit, is_in_reset = self.disk_failure.hit, self.ledger.doomed is not None
        if not self.disk_failure.is_final and not is_in_reset:  # which cannot go back where the disk is full
            raise CheckError(f"{hit} can be done again, and the store has given up")
        self.disk_failure.end(self.disk)
        end, gtid = self.store.end(), self._next_gtid(WRITERS)
        try:
            self.store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(100))])
        except FailedError:
            pass
        else:
            raise CheckError(f"{hit} failed, and the store goes on")
        for reader in self.readers:
            reader.check_durable()
        self.store.close()
        if self.store.end() != end:
            raise CheckError(
                f"the durable end has moved from {end} to {self.store.end()} after {self.disk_failure.hit}"
            )
        self.judge.crash(self._rng.choice(("killed", "power lost", "power lost, and nothing but what was synced left")))

    def _tolerating(self, step: Callable[[], object]) -> None:
        try:
            step()
        except StoreError:
            if self.disk_failure is None or not self.disk_failure.hit:
                raise

    def _start(self, name: str, function: Callable[[], object]) -> SimulatedThread:
        thread = SimulatedThread(self.scheduler, name, function)
        thread.start()
        return thread

    def _repeat(self, name: str, step: Callable[[random.Random], object], count: int) -> None:
        rng = random.Random(f"{self.name} {name}")
        for _ in range(rng.randrange(count + 1)):
            self.scheduler.wait("its turn", lambda: False, rng.choice((0.01, 0.1, 0.4)))
            self._tolerating(lambda: step(rng))

    def _writer(self, number: int) -> Callable[[], None]:
        rng = random.Random(f"{self.name} writer {number}")
        verbs = (self._feed, self._feed, self._feed_batch, self._feed_pieces, self._feed_prepared)

        def work() -> None:
            for _ in range(STEPS_OF_WRITER):
                self._tolerating(partial(rng.choice(verbs), rng, number))

        return work

    def _next_gtid(self, number: int) -> Gtid:
        seq_no = self.schedule.seq_nos[number] = self.schedule.seq_nos[number] + 1
        return Gtid(domain_id=number, server_id=1 + seq_no % 2, seq_no=seq_no)

    def _new_group(self, rng: random.Random, number: int, size: int) -> tuple[Gtid, bytes, bytes, Fed]:
        gtid = self._next_gtid(number)
        event = make_gtid_event(gtid)
        body = make_event(160, 1, rng.randbytes(8).ljust(size, b"x"))
        fed = self.ledger.begin_group((gtid.domain_id, gtid.server_id, gtid.seq_no), event + body)
        return gtid, event, body, fed

    def _feed(self, rng: random.Random, number: int) -> None:
        gtid, event, body, fed = self._new_group(rng, number, rng.choice((20, 20, 300, 3000, 12_000, 40_000)))
        self.ledger.note_logged(fed, self.store.write_direct(gtid, event, [body]))
        self._acknowledge([fed])

    def _feed_batch(self, rng: random.Random, number: int) -> None:
        batch: list[Fed | Prepared] = []
        for _ in range(rng.randrange(1, 4)):
            gtid, event, body, fed = self._new_group(rng, number, rng.randrange(1, 500))
            ticket = self.store.write_direct_ordered(gtid, event, [body])
            self.ledger.note_logged(fed, ticket.ref)
            batch.append(fed)
        self.store.group_commit_ordered(ticket)
        self._acknowledge(batch)

    def _feed_pieces(self, rng: random.Random, number: int) -> None:
        group = self.store.open_group()
        gtid = self._next_gtid(number)
        event = make_gtid_event(gtid)
        body = bytearray()
        for _ in range(rng.randrange(1, 4)):
            piece = make_event(160, 1, rng.randbytes(8).ljust(rng.choice(PAYLOADS[:5]), b"p"))
            group.write(piece)
            body += piece
        if rng.random() < 0.2:
            group.abandon()
            return
        fed = self.ledger.begin_group((gtid.domain_id, gtid.server_id, gtid.seq_no), event + bytes(body))
        self.ledger.note_logged(fed, group.commit(gtid, event))
        self._acknowledge([fed])

    def _next_xid(self, number: int) -> Xid:
        self.schedule.xid_count += 1
        return Xid(format_id=1, gtrid=b"xid%d" % self.schedule.xid_count, bqual=b"%d" % number)

    def _feed_prepared(self, rng: random.Random, number: int) -> None:
        group = self.store.open_group()
        body = make_event(160, 1, rng.randbytes(8).ljust(rng.choice((100, 9000, 30_000)), b"x"))
        group.write(body)
        xid = self._next_xid(number)
        prepared = self.ledger.begin_prepare(xid_bytes(xid))
        group.prepare(xid)
        self._reach(prepared, GroupStage.PREPARED)
        if rng.random() < 0.2:
            self.schedule.left_over.append((xid, body))
            return
        self._finish(rng, number, xid, body)

    def _finish(self, rng: random.Random, number: int, xid: Xid, body: bytes) -> None:
        prepared = self.ledger.prepared[xid_bytes(xid)]
        if rng.random() < 0.3:
            prepared.begin(GroupStage.FINISHING)
            self.store.xa_rollback(xid)
        else:
            gtid = self._next_gtid(number)
            event = make_gtid_event(gtid)
            fed = self.ledger.begin_group((gtid.domain_id, gtid.server_id, gtid.seq_no), event + body)
            prepared.fed = fed
            prepared.begin(GroupStage.FINISHING)
            self.ledger.note_logged(fed, self.store.xa_commit(xid, gtid, event))
            self._acknowledge([fed])
        self._reach(prepared, GroupStage.FINISHED)

    def _work(self, rng: random.Random) -> None:
        match rng.randrange(5):
            case 0:
                self.store.write_pages()
            case 1 | 2:
                self.store.checkpoint()
            case 3:
                self.store.prepare_next_file()
            case _:
                self._sync()

    def _administer(self, rng: random.Random) -> None:
        match rng.randrange(6):
            case 0 | 1:
                self.store.flush()
            case 2 | 3:
                numbers = [file.file_no for file in self._files()]
                to = rng.choice(numbers[:-1] or numbers)
                if self.ledger.doomed is None:
                    self.ledger.purge_to = max(self.ledger.purge_to, to)
                    self.store.purge(PurgeRequest(to_file_no=to))
            case 4:
                self._reset()
            case _:
                self.store.status()
                if self.schedule.left_over:
                    self._finish(rng, WRITERS, *self.schedule.left_over.pop(0))

    def _files(self) -> list[LogFile]:
        while True:
            try:
                return self.store.files()
            except StoreError:  # a reset, or a purge, at this moment
                if self.has_failed:
                    raise
                self.scheduler.wait("files", lambda: False, 0.01)

    def _reset(self) -> None:
        self.ledger.begin_reset()
        is_done = False
        try:
            self.store.reset()
            is_done = True
        except BusyError:
            pass
        self.ledger.end_reset(is_done=is_done)

    def _back_up(self, rng: random.Random) -> None:
        required, steady = self.ledger.required(is_kill=False), self.ledger.steady()
        reset_count = self.ledger.reset_count
        target = SimulatedDisk()
        target.pause = self.scheduler.pause
        try:
            back_up(self.disk, target)
        except IbbMasterError as error:
            if self.ledger.reset_count == reset_count and "faster than" not in str(error) and not self.has_failed:
                raise
            return
        if self.ledger.reset_count == reset_count:
            self.ledger.check(check_log(target.durable_files()), required, is_kill=True, since=steady)

    def _acknowledge(self, items: list[Fed | Prepared]) -> None:
        """They are as durable now as the options say: that is tried at once."""
        durability = self.schedule.options.durability
        for item in items:
            item.is_durable |= durability is Durability.SYNC
            item.is_written |= durability is not Durability.LATER
        if durability is Durability.SYNC:
            self._expect_shown(items)
            self.judge.recover(self.disk.durable_files(), "acknowledged; only what was synced is left")
        elif durability is Durability.WRITE:
            self.judge.recover(self.disk.files(), "acknowledged as written; killed", is_kill=True)

    def _reach(self, prepared: Prepared, stage: GroupStage) -> None:
        prepared.stage = stage
        prepared.is_logged = True
        self._acknowledge([prepared])

    def _sync(self) -> None:
        items = self.ledger.unsynced()
        stages = [item.stage if isinstance(item, Prepared) else None for item in items]
        self.store.sync()
        for item, stage in zip(items, stages, strict=True):
            if stage is None or (isinstance(item, Prepared) and item.stage is stage):
                item.is_durable = item.is_written = True
        self._expect_shown(items)
        self.judge.recover(self.disk.durable_files(), "synced; only what was synced is left")

    def _expect_shown(self, items: list[Fed | Prepared]) -> None:
        """What is acknowledged as durable is there for readers, too, from this moment on."""
        end = self.store.end()
        for item in items if self.ledger.doomed is None else ():
            if isinstance(item, Fed) and item.order is not None and not item.is_gone and item.order >= end:
                raise CheckError(f"group {item.key} at {item.order} is acknowledged, and readers see the log to {end}")
