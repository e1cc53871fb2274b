"""What the store does when the disk says no, at each call of a workload in turn."""

import dataclasses
import itertools

import pytest

from ibbmaster.errors import DiskFullError, FailedError, FormatError, StoreError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability
from tests.machinery.crash import Judge
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.events import groups_of, make_event, new_group, numbers_in

STEPS = 25
FINAL = ("write", "sync", "truncate", "create", "allocate", "sync_dir")
NEED_ROOM = ("write", "create", "allocate")


def failing_at(judge, verbs, nth, error, times=1):
    judge.disk.fail = failure = DiskFailure(verbs, nth, times, error)
    return failure


def judge_of(seed, **options):
    judge = Judge(seed)
    judge.options = dataclasses.replace(judge.options, **options)
    return judge


def calls_of(seed, verbs):
    judge = judge_of(seed)
    failure = failing_at(judge, verbs, 10**9, StoreError)
    workload = judge.begin()
    for _ in range(STEPS):
        workload.step_at_random()
    return failure.count


@pytest.mark.parametrize("seed", range(400, 406))
def test_an_error_of_the_disk_is_final_and_loses_nothing(seed):
    total = calls_of(seed, FINAL)
    assert total > 40
    for nth in range(1, total + 1):
        judge, workload = judge_of(seed), None
        hit = failing_at(judge, FINAL, nth, StoreError).hit
        try:
            workload = judge.begin()
            for _ in range(STEPS):
                workload.step_at_random()
        except StoreError:
            pass
        else:
            if workload.store.status().state != "failed":  # who waits for growth goes on with what is durable
                pytest.fail(f"call {nth} ({hit[-1:]}) failed and nobody said so")
        files = judge.disk.files()
        if workload is not None:
            store = workload.store
            status = store.status()
            if status.state == "running":  # while the store was being opened again
                assert workload.log[-1] == "restart"
            else:
                assert status.state in ("failed", "closed"), (nth, hit)
                acknowledged = (status.durable_file, status.durable_offset)
                if status.state == "failed":
                    assert "planted" in str(status.failure)
                    with pytest.raises(FailedError, match="planted"):
                        store.write_direct(None, make_event(15, 1, bytes(100)), [])
                    try:
                        groups_of(store.groups(store.start_of_file()))
                    except (FormatError, StoreError):  # a reset that failed has removed some files, or every one
                        assert workload.log[-1] == "reset_log"
                assert (store.status().durable_file, store.status().durable_offset) == acknowledged
        judge.judge(files, f"after call {nth} ({hit[-1:]}) failed")
        for number, image in enumerate(itertools.islice(judge.disk.crash_states(judge._rng), 5)):
            judge.judge(image, f"power lost after call {nth} ({hit[-1:]}) failed, {number}")


# As mysql-test/suite/binlog_in_engine/disk_full.test
@pytest.mark.parametrize("seed", range(420, 426))
def test_a_full_disk_makes_the_writer_wait_and_loses_nothing(seed):
    total = calls_of(seed, NEED_ROOM)
    assert total > 15
    for nth in range(1, total + 1):
        judge = judge_of(seed, full_disk_retry_s=1e-6)
        hit = failing_at(judge, NEED_ROOM, nth, DiskFullError, times=3).hit
        try:
            workload = judge.begin()
        except DiskFullError:  # a store that cannot be begun says so, and can be begun later
            judge.disk.fail = lambda verb, name: None
            judge.begin().store.close()
            continue
        for _ in range(STEPS):
            try:
                workload.step_at_random()
            except DiskFullError:
                assert workload.log[-1] in ("restart", "work_in_background")  # nobody waits there
                if workload.log[-1] == "restart":
                    break
        assert hit
        judge.judge(judge.disk.files(), f"call {nth} ({hit[-1:]}) found the disk full")


def test_who_does_not_want_to_wait_for_room_is_told_at_once():
    judge = judge_of(7, full_disk_retry_s=0, durability=Durability.SYNC)
    store = BinlogStore(judge.disk, judge.options)
    store.write_direct(*new_group(1, 50))
    hit = failing_at(judge, NEED_ROOM, 1, DiskFullError, times=10**9).hit

    def feed_until_refused():
        for _ in range(100):
            store.write_direct(*new_group(2, 9000))

    with pytest.raises(DiskFullError, match="planted"):
        feed_until_refused()
    assert hit
    assert store.status().state == "running"
    assert numbers_in(store)
