"""Threads that write, read, flush, purge, reset and back up, in orders that a seed decides."""

import hashlib
import multiprocessing
import os
import random
from concurrent.futures import ProcessPoolExecutor, as_completed

import pytest

from ibbmaster.kernel import loading
from tests.machinery.scheduler import Scheduler
from tests.machinery.schedules import Schedule, import_under_threads, run_failing_seed, run_seed

SPAWN = multiprocessing.get_context("spawn")  # a fork of a process that has run tests is as large as that is
SEEDS_PER_BACKUP = 6
SEEDS_PER_FAILURE = 2


def test_no_order_of_threads_loses_a_group_or_shows_one_too_early(pytestconfig):
    """Prints the seed if one does; `python -m tests.machinery.schedules --seed SEED` shows it again."""
    first, count = (pytestconfig.getoption(f"--{name}") for name in ("first-schedule", "schedules"))
    checked = 0
    with ProcessPoolExecutor(os.cpu_count(), SPAWN) as pool:
        runs = [pool.submit(run_seed, seed) for seed in range(first, first + count)]
        try:
            for run in as_completed(runs):
                checked += run.result()
        finally:
            pool.shutdown(cancel_futures=True)
    assert checked > 5 * count


def test_whichever_call_of_the_disk_fails_nobody_is_told_what_is_not_so(pytestconfig):
    """Prints the seed if someone is; `python -m tests.machinery.schedules --failing --seed SEED` shows it again."""
    first, count = (pytestconfig.getoption(f"--{name}") for name in ("first-schedule", "schedules"))
    seeds = range(first, first + count // SEEDS_PER_FAILURE)
    checked, failed = 0, set()
    with ProcessPoolExecutor(os.cpu_count(), SPAWN) as pool:
        try:
            for states, calls in pool.map(run_failing_seed, seeds):
                checked += states
                failed.update(call.split()[0] for call in calls)
        finally:
            pool.shutdown(cancel_futures=True)
    assert checked > 5 * len(seeds)
    assert failed >= {"sync", "write", "create"}


def test_an_import_whose_disk_fails_says_so_and_has_what_it_has_flushed():
    assert sum(import_under_threads(seed, fails=True) for seed in range(100)) > 30


# As mysql-test/suite/binlog_in_engine/mariabackup_binlogs.test
def test_a_backup_is_the_log_at_one_moment_whoever_writes_meanwhile(pytestconfig):
    for seed in range(pytestconfig.getoption("--schedules") // SEEDS_PER_BACKUP):
        Schedule(seed, backs_up=True).run()


def test_what_a_server_sends_through_kernels_is_what_was_fed():
    if loading.load() is None:
        pytest.skip("the kernels cannot be loaded here")
    for seed in range(1000, 1002):
        run_seed(seed)


def test_an_import_has_on_the_disk_what_it_has_flushed():
    for seed in range(20):
        import_under_threads(seed)


def test_a_seed_brings_the_same_schedule_back(monkeypatch):
    def trace_of(seed):
        trace = hashlib.sha256()
        count = Scheduler._count

        def noted(self, what):
            trace.update(f"{self.current.name} {what}\n".encode())
            count(self, what)

        with monkeypatch.context() as patch:
            patch.setattr(Scheduler, "_count", noted)
            Schedule(seed).run()
        return trace.hexdigest()

    seed = random.randrange(2**32)
    assert trace_of(seed) == trace_of(seed)
