"""What the store does when the disk says no, at each call of a workload in turn."""

import dataclasses
import itertools

import pytest

from ibbmaster.errors import DiskFullError, FailedError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability
from tests.machinery.crash import Judge
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.simulated_disk import SimulatedDisk

STEPS = 25
FINAL = ("write", "sync", "truncate", "create", "allocate", "sync_dir")
NEED_ROOM = ("write", "create", "allocate")


class Failing:
    """Makes the n-th call of certain verbs fail, once or for a while."""

    def __init__(
        self, disk: SimulatedDisk, verbs: tuple[str, ...], nth: int | None, error: type[StoreError], times: int
    ):
        self.count = 0
        self.failed: str | None = None
        self._verbs, self._nth, self._error, self._times = verbs, nth, error, times
        disk.fail = self

    def __call__(self, verb: str, name: str) -> None:
        if verb in self._verbs:
            self.count += 1
            if self._nth is not None and self._nth <= self.count < self._nth + self._times:
                self.failed = f"{verb} {name}"
                raise self._error(f"{name}: planted")


def work(seed: int, *, steps: int = STEPS, options: dict[str, object] | None = None):
    judge = Judge(seed)
    if options:
        judge.options = dataclasses.replace(judge.options, **options)
    return judge, steps


def calls_of(seed: int, verbs: tuple[str, ...]) -> int:
    judge, steps = work(seed)
    failing = Failing(judge.disk, verbs, None, StoreError, 1)
    workload = judge.begin()
    for _ in range(steps):
        workload.step_at_random()
    return failing.count


def read_all(store: BinlogStore) -> int:
    reader = store.groups(store.start_of_file())
    count = 0
    while (group := reader.next_group()) is not None:
        count += 1
        for _ in group.body:
            pass
    return count


@pytest.mark.parametrize("seed", range(400, 406))
def test_an_error_of_the_disk_is_final_and_loses_nothing(seed):
    total = calls_of(seed, FINAL)
    assert total > 40
    for nth in range(1, total + 1):
        judge, steps = work(seed)
        failing = Failing(judge.disk, FINAL, nth, StoreError, 1)
        workload = None
        try:
            workload = judge.begin()
            for _ in range(steps):
                workload.step_at_random()
        except StoreError:
            pass
        else:
            if workload.store.status().state != "failed":  # who waits for growth goes on with what is durable
                pytest.fail(f"call {nth} ({failing.failed}) failed and nobody said so")
        files = judge.disk.files()
        if workload is not None:
            store = workload.store
            status = store.status()
            if status.state == "running":  # while the store was being opened again
                assert workload.log[-1] == "restart"
            else:
                assert status.state in ("failed", "closed"), (nth, failing.failed)
                acknowledged = (status.durable_file, status.durable_offset)
                if status.state == "failed":
                    assert "planted" in str(status.failure)
                    with pytest.raises(FailedError, match="planted"):
                        store.write_direct(None, make_event(15, 1, bytes(100)), [])
                    read_all(store)
                assert (store.status().durable_file, store.status().durable_offset) == acknowledged
        judge.judge(files, f"after call {nth} ({failing.failed}) failed")
        for number, image in enumerate(itertools.islice(judge.disk.crash_states(judge._rng), 5)):
            judge.judge(image, f"power lost after call {nth} ({failing.failed}) failed, {number}")


# As mysql-test/suite/binlog_in_engine/disk_full.test
@pytest.mark.parametrize("seed", range(420, 426))
def test_a_full_disk_makes_the_writer_wait_and_loses_nothing(seed):
    total = calls_of(seed, NEED_ROOM)
    assert total > 15
    for nth in range(1, total + 1):
        judge, steps = work(seed, options={"full_disk_retry_s": 1e-6})
        failing = Failing(judge.disk, NEED_ROOM, nth, DiskFullError, 3)
        try:
            workload = judge.begin()
        except DiskFullError:  # a store that cannot be begun says so, and can be begun later
            judge.disk.fail = lambda verb, name: None
            judge.begin().store.close()
            continue
        for _ in range(steps):
            try:
                workload.step_at_random()
            except DiskFullError:
                assert workload.log[-1] in ("restart", "work_in_background")  # nobody waits there
                if workload.log[-1] == "restart":
                    break
        assert failing.failed is not None
        judge.judge(judge.disk.files(), f"call {nth} ({failing.failed}) found the disk full")


def test_who_does_not_want_to_wait_for_room_is_told_at_once():
    judge, _ = work(7, options={"full_disk_retry_s": 0, "durability": Durability.SYNC})
    store = BinlogStore(judge.disk, judge.options)
    gtid = Gtid(domain_id=0, server_id=1, seq_no=1)
    store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(50))])
    failing = Failing(judge.disk, NEED_ROOM, 1, DiskFullError, 10**9)
    later = Gtid(domain_id=0, server_id=1, seq_no=2)

    def feed_until_refused():
        for _ in range(100):
            store.write_direct(later, make_gtid_event(later), [make_event(160, 1, bytes(9000))])

    with pytest.raises(DiskFullError, match="planted"):
        feed_until_refused()
    assert failing.failed
    assert store.status().state == "running"
    assert read_all(store) >= 1
