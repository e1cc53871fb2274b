"""Threads that write, read, flush, purge, reset and back up, in orders that a seed decides."""

from __future__ import annotations

import hashlib
import os
import random
from concurrent.futures import ProcessPoolExecutor, as_completed

import pytest

from ibbmaster.kernel import loading
from ibbmaster.testing.scheduler import Scheduler
from ibbmaster.testing.schedules import Schedule, import_under_threads, run_seed

FIRST_SEED = 1
SEEDS_PER_BACKUP = 6


@pytest.mark.timeout(1200)
def test_no_order_of_threads_loses_a_group_or_shows_one_too_early(pytestconfig):
    """Prints the seed if one does; `python -m ibbmaster.testing.schedules --seed SEED` shows it again."""
    count = pytestconfig.getoption("--schedules")
    checked = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(run_seed, seed) for seed in range(FIRST_SEED, FIRST_SEED + count)]
        try:
            for run in as_completed(runs):
                checked += run.result()
        finally:
            pool.shutdown(cancel_futures=True)
    assert checked > 5 * count


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
    print(f"seed {seed}")
    assert trace_of(seed) == trace_of(seed)
