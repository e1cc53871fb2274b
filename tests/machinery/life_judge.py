"""What a crash at any moment of a life may leave, recovered and compared with the notes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ibbmaster.errors import IbbMasterError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.recovery import replay
from ibbmaster.logs.store.redo_log import read_durable_end, scan_redo
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.redo_tail import RedoTail
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.overlay import OverlayDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.log_checker import CheckError, check_log
from tests.machinery.simulated_disk import SimulatedDisk

if TYPE_CHECKING:
    from tests.machinery.life import Life

STATES_PER_LIFE = 12  # besides those at acknowledgements
CRASH_STEPS_MAX = 4000
FOLLOW_CHANCE = 0.005
UNJUDGED = 0.5  # of the lives: quick ones, in which no states are recovered but the one that a crash leaves


class LifeJudge:
    """Recovers states of the disk of a life; `crash_image` is the one that its crash leaves."""

    def __init__(self, life: Life, rng: random.Random, *, is_unjudged: bool) -> None:
        self.crash_image: dict[str, bytes] | None = None
        self._life = life
        self._disk, self._scheduler, self._ledger = life.disk, life.scheduler, life.ledger
        self._rng = rng
        self._is_unjudged = rng.random() < UNJUDGED or is_unjudged
        self._crash_step = rng.randrange(50, CRASH_STEPS_MAX) if rng.random() < 0.6 else 0
        self._state_chance = STATES_PER_LIFE / CRASH_STEPS_MAX
        self._durable_end: LogPosition | None = None
        self._durable_lsn = -1
        self._tail: RedoTail | None = None

    def at_step(self) -> None:
        with self._scheduler.quiet():
            self._check_redo()
            self._follow()
            end = self._life.store.end()
            if end != self._durable_end and self._ledger.doomed is None:
                self._durable_end = end
                self.recover(self._disk.durable_files(), f"the durable end is {end}", end=end)
        if self._rng.random() < self._state_chance:
            self.recover(self._disk.files(), "killed", is_kill=True)
            self.recover(self._disk.crash_state(self._rng), "power lost")
        if self._scheduler.step_count == self._crash_step:
            self.crash("killed" if self._rng.random() < 0.3 else "power lost")
            self._scheduler.end()

    def crash(self, how: str) -> None:
        is_kill = how == "killed"
        if is_kill:
            self.crash_image = self._disk.files()
        else:
            self.crash_image = self._disk.crash_state(self._rng) if how == "power lost" else self._disk.durable_files()
        self.recover(self.crash_image, how, is_kill=is_kill)

    def _check_redo(self) -> None:
        lsn = max(self._life.store._writer.redo.durable_lsn, read_durable_end(self._disk) or 0)
        if lsn == self._durable_lsn:
            return
        self._durable_lsn = lsn
        files = self._disk.durable_files()
        scan = scan_redo(SimulatedDisk({name: files[name] for name in SEGMENT_NAMES if name in files}))
        if scan is None or scan.end_lsn < lsn:
            raise CheckError(f"the redo log is durable up to {lsn}, and on the disk up to {scan and scan.end_lsn}")

    def _follow(self) -> None:
        durable_lsn = read_durable_end(self._disk)
        if durable_lsn is None or self._rng.random() >= FOLLOW_CHANCE:
            return
        if self._tail is None or not self._tail.follow(durable_lsn):
            scan = scan_redo(self._disk, end_lsn=durable_lsn)
            self._tail = None if scan is None else RedoTail(self._disk, scan)
        tail, scan = self._tail, scan_redo(self._disk, end_lsn=durable_lsn)
        if scan is None or tail is None:
            return
        overlay = OverlayDisk(self._disk)
        end = replay(overlay, scan, is_alone=True)
        if end is not None and tail.mark != end:
            raise CheckError(f"followed to {tail.mark}, and durable is {end}")
        made = {name for name in self._disk.list() if self._disk.size(name)}  # a reset makes the first one late
        for name in made.intersection(overlay.changed_files):
            for page_no in overlay.changed_pages(name):
                offset = page_no * PAGE_SIZE
                if tail.pages.read(name, offset, PAGE_SIZE) != overlay.read(name, offset, PAGE_SIZE):
                    raise CheckError(f"{name} page {page_no} as another process sees it differs from what is durable")

    def recover(
        self, image: dict[str, bytes], how: str, *, is_kill: bool = False, end: LogPosition | None = None
    ) -> None:
        if self._is_unjudged and image is not self.crash_image:
            return
        self._life.schedule.checked += 1
        disk = SimulatedDisk(image)
        with self._scheduler.quiet():
            try:
                store = BinlogStore(disk, self._life.schedule.options)
                found = check_log(disk.files())
                state = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in store.state()}
                if state != found.state:
                    raise CheckError(f"the store says state {state}, the files {found.state}")
                self._ledger.check(found, self._ledger.required(is_kill=is_kill), is_kill=is_kill)
                if end is not None and store.end() < end:
                    raise CheckError(f"the log ends at {store.end()}")
            except (CheckError, IbbMasterError, AssertionError) as error:
                raise CheckError(f"{how}: {type(error).__name__}: {error}") from error
            finally:
                disk.forget()
