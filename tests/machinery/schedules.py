"""The judge of the store under threads: writers, readers, background and administration, one step at a time.

A seed makes a directory, and on it some lives: each begins with what the one before has left, runs its threads under a
scheduler, and ends in order or by a crash at any step. Meanwhile the least that a loss of power would leave is
recovered whenever the durable end has moved or something was acknowledged, and other states now and then. What readers
get, and the bytes that a replica would, is compared with what was fed. Where the disk `fails`, a call of it does so in
each life, whoever makes it: nobody may be told what did not happen, and nothing goes on behind it.
"""

import argparse
import dataclasses
import importlib
import random

from ibbmaster.errors import StoreError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.write_behind import WriteBehindDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.storage.ibb.xa import Xid
from tests.machinery.campaign import add_campaign_options, run_from_command_line
from tests.machinery.crash import WrongStateError
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.events import new_group
from tests.machinery.ledger import GtidKey, Ledger
from tests.machinery.life import WRITERS, Life
from tests.machinery.log_checker import CheckError, check_log
from tests.machinery.scheduler import Scheduler
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.simulated_threads import installed
from tests.machinery.workload import PAYLOADS, options_of, xid_bytes

LIVES = 3


class Schedule:
    """Everything that a seed says. `checked` counts the states that were recovered.

    With `backs_up` only backups are judged, again and again. With `fails` the disk does: `failed` has its calls."""

    def __init__(self, seed: int, *, backs_up: bool = False, fails: bool = False) -> None:
        self.seed = seed
        self.backs_up = backs_up
        self.fails = fails
        self.failed: list[str] = []
        rng = random.Random(seed)
        self.options = dataclasses.replace(options_of(rng), durability=rng.choice(list(Durability)))
        if fails:
            self.options = dataclasses.replace(self.options, full_disk_retry_s=rng.choice((0, 0.05)))
        self.ledger = Ledger()
        self.disk = SimulatedDisk()
        self.seq_nos = dict.fromkeys(range(WRITERS + 1), 0)
        self.xid_count = 0
        self.left_over: list[tuple[Xid, bytes]] = []
        self.checked = 0

    def run(self) -> None:
        for number in range(LIVES):
            life = Life(self, number)
            try:
                life.run()
                if life.judge.crash_image is not None:
                    self._recover(life.judge.crash_image)
                self.failed += life.disk_failure.hit if life.disk_failure is not None else ()
            except Exception as error:
                raise WrongStateError(
                    f"seed {self.seed}, life {number}, step {life.scheduler.step_count}: {type(error).__name__}: "
                    f"{error}; the last steps: {', '.join(list(life.scheduler.trace)[-12:])}"
                ) from error

    def _recover(self, image: dict[str, bytes]) -> None:
        self.disk = SimulatedDisk(image)
        BinlogStore(self.disk, self.options).close()
        self.ledger.restart(check_log(self.disk.files()))
        self.left_over = [(xid, body) for xid, body in self.left_over if xid_bytes(xid) in self.ledger.prepared]


def run_seed(seed: int) -> int:
    schedule = Schedule(seed)
    schedule.run()
    return schedule.checked


def run_failing_seed(seed: int) -> tuple[int, list[str]]:
    schedule = Schedule(seed, fails=True)
    schedule.run()
    return schedule.checked, schedule.failed


def import_under_threads(seed: int, *, fails: bool = False) -> bool:
    """Write in bulk behind a `WriteBehindDisk`: what a flush has left is on the disk, whatever the order.

    With `fails` a call of the disk does, and the import ends with its error: whether it did. Raises WrongStateError:
    something is not there, or nobody heard of an error."""
    rng = random.Random(seed)
    scheduler = Scheduler(random.Random(f"{seed} order"))
    disk = SimulatedDisk()
    disk.pause = scheduler.pause
    fed: list[tuple[GtidKey, bytes]] = []
    verbs = (rng.choice(("write", "write", "sync")),) if fails else ()
    disk.fail = failure = DiskFailure(verbs, rng.randrange(1, 25), 1, StoreError)

    def work() -> None:
        try:
            write()
        except StoreError:
            if not failure.hit:
                raise
        else:
            if failure.hit:
                raise CheckError(f"{failure.hit[0]} has failed, and nobody was told")

    def write() -> None:
        behind = WriteBehindDisk(disk)
        with BinlogWriter(behind, max_file_bytes=4 * PAGE_SIZE, state_interval_bytes=PAGE_SIZE) as writer:
            for number in range(1, rng.randrange(2, 30)):
                gtid, event, body = new_group(number, rng.choice(PAYLOADS))
                writer.write_group(gtid, event, body)
                fed.append(((0, 1, number), event + body[0]))
                if rng.random() < 0.2:
                    writer.flush()
                    check()
        check()
        behind.close()

    def check() -> None:
        found = check_log(disk.durable_files())
        if [(group.gtid, group.events) for group in found.groups] != fed:
            raise CheckError(f"{len(fed)} groups were flushed, and {len(found.groups)} of them are on the disk")

    with installed(scheduler, [importlib.import_module("ibbmaster.storage.disk.write_behind")]):
        scheduler.start("import", work)
        try:
            scheduler.run()
        except Exception as error:
            raise WrongStateError(f"import, seed {seed}, step {scheduler.step_count}: {error}") from error
    return bool(failure.hit)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.schedules", description=main.__doc__)
    parser.add_argument("--states", type=int, default=1_000_000, help="how many states (default: %(default)s)")
    parser.add_argument("--failing", action="store_true", help="on a disk that fails")
    add_campaign_options(parser, "run")
    arguments = parser.parse_args()
    check = (lambda seed: run_failing_seed(seed)[0]) if arguments.failing else run_seed
    run_from_command_line(check, arguments, unit="states", error=WrongStateError)


if __name__ == "__main__":
    main()
