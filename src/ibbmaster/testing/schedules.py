"""The judge of the store under threads: writers, readers, background and administration, one step at a time.

A seed makes a directory, and on it some lives: each begins with what the one before has left,
runs its threads under a scheduler, and ends in order or by a crash at any step. Meanwhile the
least that a loss of power would leave is recovered whenever the durable end has moved or
something was acknowledged, and other states now and then. What readers get, and the bytes
that a replica would, is compared with what was fed.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import random
from collections.abc import Callable, Iterable

from ibbmaster.disk.overlay import OverlayDisk
from ibbmaster.disk.write_behind import WriteBehindDisk
from ibbmaster.errors import BusyError, IbbMasterError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.ibb.xa import Xid
from ibbmaster.log.interface import LogFile
from ibbmaster.log.purge import PurgeRequest
from ibbmaster.position import LogPosition
from ibbmaster.store.background import Background
from ibbmaster.store.backup import back_up
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.recovery import replay
from ibbmaster.store.redo_log import SEGMENT_NAMES, read_durable_end, scan_redo
from ibbmaster.store.redo_tail import RedoTail
from ibbmaster.store.store_options import Durability
from ibbmaster.store.writer import BinlogWriter
from ibbmaster.testing.campaign import add_campaign_options, run_from_command_line
from ibbmaster.testing.crash import PAYLOADS, WrongStateError, make_event, make_gtid_event, options_of, xid_bytes
from ibbmaster.testing.ledger import Fed, GroupStage, GtidKey, Ledger, Prepared
from ibbmaster.testing.log_checker import CheckError, FoundLog, check_log
from ibbmaster.testing.scheduler import Scheduler, SimulatedThread
from ibbmaster.testing.simulated_disk import SimulatedDisk
from ibbmaster.testing.streams import StreamReader

LIVES = 3
WRITERS = 3
STEPS_OF_WRITER = 7
STATES_PER_LIFE = 12  # besides those at acknowledgements
CRASH_STEPS_MAX = 4000
FOLLOW_CHANCE = 0.005
UNJUDGED = 0.5  # of the lives: quick ones, in which no states are recovered but the one that a crash leaves
SIMULATED = (  # what runs under the scheduler
    "store.redo_log",
    "store.group_commit",
    "store.durable_end",
    "store.step_writer",
    "store.log_writer",
    "store.page_fifo",
    "store.flusher",
    "store.binlog_store",
    "log.directory",
    "store.background",
    "disk.write_behind",
    "streaming.block_cache",
    "streaming.buffers",
)
PREEMPTED = tuple(
    f"store.{name}"
    for name in ("redo_log", "group_commit", "durable_end", "page_fifo", "flusher", "step_writer", "log_writer")
)


class Engine:
    """Another engine of transactions in two phases; what it prepares is durable at once."""

    def __init__(self, held: Iterable[Xid] = ()) -> None:
        self.held = set(held)
        self.committed: set[Xid] = set()

    def prepared(self) -> Iterable[Xid]:
        return sorted(self.held, key=xid_bytes)

    def commit_by_xid(self, xid: Xid) -> None:
        self.held.discard(xid)
        self.committed.add(xid)

    def rollback_by_xid(self, xid: Xid) -> None:
        self.held.discard(xid)


class Life:
    """One opening of a store, with threads that use it."""

    def __init__(self, schedule: Schedule, number: int) -> None:
        self.schedule = schedule
        self.ledger = schedule.ledger
        self.disk = schedule.disk
        self.engine = schedule.engine
        self.name = f"{schedule.seed} {number}"
        rng = random.Random(self.name)
        self._rng = rng
        self.scheduler = Scheduler(random.Random(f"{self.name} order"), preempts_inside=rng.random() < 0.3)
        self._is_unjudged = rng.random() < UNJUDGED or schedule.backs_up
        self._crash_step = rng.randrange(50, CRASH_STEPS_MAX) if rng.random() < 0.6 else 0
        self._state_chance = STATES_PER_LIFE / CRASH_STEPS_MAX
        self._durable_end: LogPosition | None = None
        self._durable_lsn = -1
        self._tail: RedoTail | None = None
        self.crash_image: dict[str, bytes] | None = None
        self.writers_left = WRITERS
        self.is_complete = False  # everything is durable, and nothing more comes
        self.readers: list[StreamReader] = []

    def run(self) -> None:
        """Run it to its end, or to the crash that the seed has set."""
        modules = [importlib.import_module(f"ibbmaster.{name}") for name in SIMULATED]
        traced = [importlib.import_module(f"ibbmaster.{name}") for name in PREEMPTED]
        with self.scheduler.installed(modules, traced=traced):
            self.disk.pause = self.scheduler.pause
            self.store = BinlogStore(self.disk, self.schedule.options, engines=[self.engine])
            self.scheduler.at_step = self._at_step
            self.scheduler.start("life", self._live)
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
            self._sync()
            self.is_complete = True
            for thread in readers:
                thread.join()
        with self.scheduler.quiet():
            self.store.close()
            found = check_log(self.disk.files())
            if found != check_log(self.disk.durable_files()):
                raise CheckError("the store was closed, and not all of it is durable")
            for fed in self.ledger.fed.values():
                fed.is_durable |= fed.is_logged
            self.ledger.check(found, self.ledger.required(is_kill=False), is_kill=False)
            for reader in self.readers:
                reader.check_complete(found)

    def _start(self, name: str, function: Callable[[], object]) -> SimulatedThread:
        thread = SimulatedThread(self.scheduler, name, function)
        thread.start()
        return thread

    def _repeat(self, name: str, step: Callable[[random.Random], object], count: int) -> None:
        rng = random.Random(f"{self.name} {name}")
        for _ in range(rng.randrange(count + 1)):
            self.scheduler.wait("its turn", lambda: False, rng.choice((0.01, 0.1, 0.4)))
            step(rng)

    # Writers --------------------------------------------------------------------------------

    def _writer(self, number: int) -> Callable[[], None]:
        rng = random.Random(f"{self.name} writer {number}")
        verbs = (self._feed, self._feed, self._feed_batch, self._feed_pieces, self._feed_prepared, self._feed_two_phase)

        def work() -> None:
            for _ in range(STEPS_OF_WRITER):
                rng.choice(verbs)(rng, number)

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
        ref = self.store.write_direct(gtid, event, [body])
        self.ledger.note_logged(fed, ref)
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
        ref = group.commit(gtid, event)
        self.ledger.note_logged(fed, ref)
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
            ref = self.store.xa_commit(xid, gtid, event)
            self.ledger.note_logged(fed, ref)
            self._acknowledge([fed])
        self._reach(prepared, GroupStage.FINISHED)

    def _feed_two_phase(self, rng: random.Random, number: int) -> None:
        gtid, event, body, fed = self._new_group(rng, number, rng.choice((50, 20_000, 40_000)))
        xid = self._next_xid(number)
        group = self.store.open_group()
        group.write(body)
        group.prepare_internally(xid)
        self.engine.held.add(xid)
        self.schedule.two_phase[xid] = fed
        ref = group.commit(gtid, event)
        self.ledger.note_logged(fed, ref)
        self._acknowledge([fed])
        if self.schedule.options.durability is not Durability.SYNC:
            self._sync()
        self.engine.commit_by_xid(xid)
        self.store.xa_forget(xid)

    # The others -----------------------------------------------------------------------------

    def _work(self, rng: random.Random) -> None:
        match rng.randrange(6):
            case 0:
                self.store.write_pages()
            case 1 | 2:
                self.store.checkpoint()
            case 3:
                self.store.prepare_next_file()
            case 4:
                self.store.clean_step()
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
            if self.ledger.reset_count == reset_count and "faster than" not in str(error):
                raise
            return
        if self.ledger.reset_count == reset_count:
            self.ledger.check(check_log(target.durable_files()), required, is_kill=True, since=steady)

    # Acknowledgements -----------------------------------------------------------------------

    def _acknowledge(self, items: list[Fed | Prepared]) -> None:
        """They are as durable now as was asked for: that is tried at once."""
        durability = self.schedule.options.durability
        for item in items:
            item.is_durable |= durability is Durability.SYNC
            item.is_written |= durability is not Durability.LATER
        if durability is Durability.SYNC:
            self._judge(self.disk.durable_files(), "acknowledged; only what was synced is left")
        elif durability is Durability.WRITE:
            self._judge(self.disk.files(), "acknowledged as written; killed", is_kill=True)

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
        self._judge(self.disk.durable_files(), "synced; only what was synced is left")

    # Judging --------------------------------------------------------------------------------

    def _at_step(self) -> None:
        with self.scheduler.quiet():
            self._check_redo()
            self._follow()
            end = self.store.end()
            if end != self._durable_end and self.ledger.doomed is None:
                self._durable_end = end
                self._judge(self.disk.durable_files(), f"the durable end is {end}", end=end)
        if self._rng.random() < self._state_chance:
            self._judge(self.disk.files(), "killed", is_kill=True)
            self._judge(self.disk.crash_state(self._rng), "power lost")
        if self.scheduler.step_count == self._crash_step:
            is_kill = self._rng.random() < 0.3
            self.crash_image = self.disk.files() if is_kill else self.disk.crash_state(self._rng)
            self._judge(self.crash_image, "crashed", is_kill=is_kill)
            self.scheduler.end()

    def _check_redo(self) -> None:
        """What the redo log takes for durable is: that can be seen without a recovery."""
        lsn = max(self.store._writer.redo.durable_lsn, read_durable_end(self.disk) or 0)
        if lsn == self._durable_lsn:
            return
        self._durable_lsn = lsn
        files = self.disk.durable_files()
        scan = scan_redo(SimulatedDisk({name: files[name] for name in SEGMENT_NAMES if name in files}))
        if scan is None or scan.end_lsn < lsn:
            raise CheckError(f"the redo log is durable up to {lsn}, and on the disk up to {scan and scan.end_lsn}")

    def _follow(self) -> None:
        """What another process sees of the redo log: now and then, so that segments come round meanwhile."""
        durable_lsn = read_durable_end(self.disk)
        if durable_lsn is None or self._rng.random() >= FOLLOW_CHANCE:
            return
        if self._tail is None or not self._tail.follow(durable_lsn):
            scan = scan_redo(self.disk, end_lsn=durable_lsn)
            self._tail = None if scan is None else RedoTail(self.disk, scan)
        tail, scan = self._tail, scan_redo(self.disk, end_lsn=durable_lsn)
        if scan is None or tail is None:
            return
        overlay = OverlayDisk(self.disk)
        end = replay(overlay, scan, is_alone=True)
        if end is not None and tail.mark != end:
            raise CheckError(f"followed to {tail.mark}, and durable is {end}")
        for name in set(overlay.changed_files).intersection(self.disk.list()):  # a reset makes the first one late
            for page_no in overlay.changed_pages(name):
                offset = page_no * PAGE_SIZE
                if tail.pages.read(name, offset, PAGE_SIZE) != overlay.read(name, offset, PAGE_SIZE):
                    raise CheckError(f"{name} page {page_no} as another process sees it differs from what is durable")

    def _judge(
        self, image: dict[str, bytes], how: str, *, is_kill: bool = False, end: LogPosition | None = None
    ) -> None:
        """Recover what a crash at this moment may leave, and compare it with the notes."""
        if self._is_unjudged and image is not self.crash_image:
            return
        self.schedule.checked += 1
        engine = Engine(self.engine.held)
        held = set(engine.held)
        with self.scheduler.quiet():
            try:
                disk = SimulatedDisk(image)
                store = BinlogStore(disk, self.schedule.options, engines=[engine])
                found = check_log(disk.files())
                state = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in store.state()}
                if state != found.state:
                    raise CheckError(f"the store says state {state}, the files {found.state}")
                self.ledger.check(found, self.ledger.required(is_kill=is_kill), is_kill=is_kill)
                if end is not None and store.end() < end:
                    raise CheckError(f"the log ends at {store.end()}")
                self._check_engine(engine, held, found)
            except (CheckError, IbbMasterError, AssertionError) as error:
                raise CheckError(f"{how}: {type(error).__name__}: {error}") from error

    def _check_engine(self, engine: Engine, held: set[Xid], found: FoundLog) -> None:
        """The other engine has committed exactly what the log holds."""
        keys = {group.gtid for group in found.groups}
        for xid in held:
            fed = self.schedule.two_phase[xid]
            is_there = fed.key in keys or (fed.file_no is not None and fed.file_no < found.first_file_no)
            if is_there != (xid in engine.committed) and not fed.may_be_gone and not fed.is_gone:
                raise CheckError(
                    f"group {fed.key} is in the log: {is_there}; the engine has committed it: {not is_there}"
                )


class Schedule:
    """Everything that a seed says. `checked` counts the states that were recovered.

    With `backs_up` it is about backups: they are made again and again, and nothing else is judged.
    """

    def __init__(self, seed: int, *, backs_up: bool = False) -> None:
        self.seed = seed
        self.backs_up = backs_up
        rng = random.Random(seed)
        self.options = dataclasses.replace(options_of(rng), durability=rng.choice(list(Durability)))
        self.ledger = Ledger()
        self.disk = SimulatedDisk()
        self.engine = Engine()
        self.seq_nos = dict.fromkeys(range(WRITERS + 1), 0)
        self.xid_count = 0
        self.two_phase: dict[Xid, Fed] = {}
        self.left_over: list[tuple[Xid, bytes]] = []
        self.checked = 0

    def run(self) -> None:
        """Run all lives.

        Raises:
            WrongStateError: something is not as it must be.
        """
        for number in range(LIVES):
            life = Life(self, number)
            try:
                life.run()
                if life.crash_image is not None:
                    self._recover(life.crash_image)
            except Exception as error:
                raise WrongStateError(
                    f"seed {self.seed}, life {number}, step {life.scheduler.step_count}: {type(error).__name__}: "
                    f"{error}; the last steps: {', '.join(list(life.scheduler.trace)[-12:])}"
                ) from error

    def _recover(self, image: dict[str, bytes]) -> None:
        """Continue with what the crash has left."""
        self.disk = SimulatedDisk(image)
        BinlogStore(self.disk, self.options, engines=[self.engine]).close()
        self.ledger.restart(check_log(self.disk.files()))
        self.left_over = [(xid, body) for xid, body in self.left_over if xid_bytes(xid) in self.ledger.prepared]


def run_seed(seed: int) -> int:
    """Run one seed; returns how many states were recovered on the way."""
    schedule = Schedule(seed)
    schedule.run()
    return schedule.checked


def import_under_threads(seed: int) -> None:
    """Write in bulk behind a `WriteBehindDisk`: what a flush has left is on the disk, whatever the order.

    Raises:
        WrongStateError: it is not.
    """
    rng = random.Random(seed)
    scheduler = Scheduler(random.Random(f"{seed} order"))
    disk = SimulatedDisk()
    disk.pause = scheduler.pause
    fed: list[tuple[GtidKey, bytes]] = []

    def work() -> None:
        behind = WriteBehindDisk(disk)
        with BinlogWriter(behind, max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE) as writer:
            for number in range(1, rng.randrange(2, 30)):
                gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
                event, body = make_gtid_event(gtid), make_event(160, 1, bytes(rng.choice(PAYLOADS)))
                writer.write_group(gtid, event, [body])
                fed.append(((0, 1, number), event + body))
                if rng.random() < 0.2:
                    writer.flush()
                    check()
        check()
        behind.close()

    def check() -> None:
        found = check_log(disk.durable_files())
        if [(group.gtid, group.events) for group in found.groups] != fed:
            raise CheckError(f"{len(fed)} groups were flushed, and {len(found.groups)} of them are on the disk")

    with scheduler.installed([importlib.import_module("ibbmaster.disk.write_behind")]):
        scheduler.start("import", work)
        try:
            scheduler.run()
        except Exception as error:
            raise WrongStateError(f"import, seed {seed}, step {scheduler.step_count}: {error}") from error


def main() -> None:
    """Run seed after seed until so many states were recovered; ends with 1 at the first that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m ibbmaster.testing.schedules", description=main.__doc__)
    parser.add_argument("--states", type=int, default=1_000_000, help="how many states (default: %(default)s)")
    add_campaign_options(parser, "run")
    run_from_command_line(run_seed, parser.parse_args(), unit="states", error=WrongStateError)


if __name__ == "__main__":
    main()
