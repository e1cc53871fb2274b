"""What a crash may leave is recovered to what was fed, whatever the moment."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from tests.machinery.crash import Judge, judge_seed

FIRST_SEED = 1


# As mysql-test/suite/binlog_in_engine/recovery.test
def test_every_state_a_crash_leaves_is_recovered(record_property, request):
    """Prints the seed if it is not; `python -m tests.machinery.crash --seed SEED` shows it again."""
    checked, wanted = 0, request.config.getoption("--crash-states")
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:  # a fork is large
        seeds = iter(range(FIRST_SEED, 10**6))
        waiting = [pool.submit(judge_seed, next(seeds)) for _ in range(2 * (os.cpu_count() or 1))]
        while checked < wanted:
            checked += waiting.pop(0).result()
            waiting.append(pool.submit(judge_seed, next(seeds)))
        for future in waiting:
            future.cancel()
    record_property("states", checked)
    assert checked >= wanted


def test_a_seed_brings_the_same_run_back():
    first, second = Judge(77), Judge(77)
    for judge in (first, second):
        judge.run(25)
    assert first.checked == second.checked > 100
    assert first.verbs == second.verbs
