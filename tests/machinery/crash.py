"""The judge of the store: seeded work on a simulated disk, and every state a crash could leave.

A state is right if the store opens it, and an independent reading of what it then holds is what was fed up to some
point: not before the last acknowledged step, not before anything a replica was sent; nothing twice, nothing half.
"""

import argparse
import random
from collections.abc import Callable

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from tests.machinery.campaign import add_campaign_options, run_from_command_line
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.log_checker import CheckError, FoundLog, check_log
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.workload import Expectation, Oracle, Workload, options_of, xid_bytes

VERB_COUNT = 60  # steps of one seed


class WrongStateError(AssertionError):
    """A crash left what it must not; the text says how to see it again."""


class Judge:
    """Runs one workload and judges distinct states that a crash could leave at each operation on the disk.

    `states_per_operation` limits how many are tried at one of them."""

    def __init__(
        self,
        seed: int,
        *,
        make_store: Callable[[SimulatedDisk, StoreOptions], BinlogStore] = BinlogStore,
        states_per_operation: int = 24,
        options: StoreOptions | None = None,
    ) -> None:
        self.seed = seed
        self._rng = random.Random(seed)
        self._make_store = make_store
        self._states_per_operation = states_per_operation
        self._seen: set[int] = set()
        self._operation = 0
        chosen = options_of(self._rng)
        self.options = chosen if options is None else options
        self.disk = SimulatedDisk()
        self._workload: Workload | None = None
        self._oracle = Oracle()

    @property
    def checked(self) -> int:
        return len(self._seen)

    @property
    def verbs(self) -> list[str]:
        return [] if self._workload is None else list(self._workload.log)

    def begin(self) -> Workload:
        workload = self._workload = Workload(
            self.disk, self._rng, self.options, oracle=self._oracle, make_store=self._make_store
        )
        return workload

    def judge(self, files: dict[str, bytes], how: str) -> None:
        self._judge(files, random.Random(self.seed), how)

    def run(self, verb_count: int, *, checked_max: int | None = None) -> None:
        """Make `verb_count` steps, or stop once `checked_max` states were judged. Raises WrongStateError."""
        self.disk.after = self._after_operation
        workload = self.begin()
        for _ in range(verb_count):
            workload.step_at_random()
            if checked_max is not None and self.checked >= checked_max:
                break

    def _after_operation(self, verb: str) -> None:
        self._operation += 1
        rng = random.Random(f"{self.seed} {self._operation}")
        self._judge(self.disk.files(), rng, "killed")
        if verb in ("sync", "sync_dir"):
            return  # what is there without it was seen before it
        for number, image in enumerate(self.disk.crash_states(rng)):
            if number >= self._states_per_operation:
                break
            self._judge(image, rng, f"power lost, state {number}")

    def _judge(self, image: dict[str, bytes], rng: random.Random, how: str, depth: int = 0) -> None:
        key = hash((frozenset((name, hash(data)) for name, data in image.items()), self._oracle.key()))
        if key in self._seen:
            return
        self._seen.add(key)
        nth = len(self._seen)
        disk = SimulatedDisk(image)
        if depth < 3 and nth % 50 == 0:
            disk.after = lambda verb: self._judge_some(disk, rng, f"{how}; again in recovery", depth + 1)
        try:
            store = self._make_store(disk, self.options)
            disk.after = lambda verb: None
            expected = self._compare(store, disk.files())
            if nth % 10 == 0:
                self._check_idempotence(disk)
            if nth % 20 == 0:
                self._go_on(store, disk, expected)
        except (CheckError, IbbMasterError, AssertionError) as error:
            if isinstance(error, WrongStateError):
                raise
            verbs = self.verbs
            raise WrongStateError(
                f"seed {self.seed}, operation {self._operation} ({how}), step {len(verbs)} {verbs[-1:]}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _judge_some(self, disk: SimulatedDisk, rng: random.Random, how: str, depth: int) -> None:
        self._judge(disk.files(), rng, how, depth)
        for number, image in enumerate(disk.crash_states(rng, torn_max=2)):
            if number >= 4:
                break
            self._judge(image, rng, how, depth)

    def _compare(self, store: BinlogStore, files: dict[str, bytes]) -> Expectation:
        found = check_log(files)
        state = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in store.state()}
        if state != found.state:
            raise CheckError(f"the store says state {state}, the files {found.state}")
        if {xid_bytes(xid) for xid in store.xa_recover()} != found.prepared:
            raise CheckError(f"the store says prepared {store.xa_recover()}, the files {set(found.prepared)}")
        oracle = self._oracle
        earliest = max(oracle.acknowledged, oracle.sent)
        candidates = oracle.steps[earliest:]
        if oracle.in_flight is not None:
            candidates = [*candidates, oracle.in_flight]
        for expectation in reversed(candidates):
            if self._is_match(found, expectation):
                return expectation
        raise CheckError(
            f"{len(found.groups)} groups {[group.gtid for group in found.groups][-3:]} and prepared "
            f"{set(found.prepared)}: not what was fed up to a step from {earliest} to {len(oracle.steps) - 1}"
        )

    def _is_match(self, found: FoundLog, expected: Expectation) -> bool:
        groups = [(group.gtid, hash(group.events)) for group in found.groups]
        missing = len(expected.groups) - len(groups)
        if missing < 0 or found.prepared != expected.prepared or groups != list(expected.groups[missing:]):
            return False
        if not missing:
            return True
        if expected.life != self._oracle.steps[-1].life or found.first_file_no > self._oracle.purge_to:
            return False
        return all(
            self._oracle.file_nos.get(gtid, found.first_file_no) < found.first_file_no
            for gtid, _ in expected.groups[:missing]
        )

    def _check_idempotence(self, disk: SimulatedDisk) -> None:
        again = SimulatedDisk(disk.files())
        self._make_store(again, self.options)
        if again.writes:
            raise CheckError(f"a second start changed something {again.writes} times")

    def _go_on(self, store: BinlogStore, disk: SimulatedDisk, expected: Expectation) -> None:
        added = []
        for number in range(2):
            gtid = Gtid(domain_id=9, server_id=9, seq_no=number + 1)
            event, body = make_gtid_event(gtid), make_event(160, 9, bytes(100))
            store.write_direct(gtid, event, [body])
            added.append(((9, 9, number + 1), hash(event + body)))
            if not number:
                store.flush()
        store.close()
        groups = [(group.gtid, hash(group.events)) for group in check_log(disk.files()).groups]
        if groups[-2:] != added or groups[:-2] != list(expected.groups[len(expected.groups) - len(groups) + 2 :]):
            raise CheckError("what was fed after recovery is not there as it should be")
        self._make_store(SimulatedDisk(disk.files()), self.options)


def judge_seed(seed: int) -> int:
    """Judge one workload; returns how many distinct states were right. Raises WrongStateError: one was not."""
    judge = Judge(seed)
    judge.run(VERB_COUNT)
    return judge.checked


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.crash", description=main.__doc__)
    parser.add_argument("--states", type=int, default=1_000_000, help="how many states (default: %(default)s)")
    add_campaign_options(parser, "judge")
    run_from_command_line(judge_seed, parser.parse_args(), unit="states", error=WrongStateError)


if __name__ == "__main__":
    main()
