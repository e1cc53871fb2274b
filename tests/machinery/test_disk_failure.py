import random

import pytest

from ibbmaster.errors import DiskFullError, StoreError
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.simulated_disk import SimulatedDisk


@pytest.mark.parametrize(("error", "times"), [(StoreError, 1), (DiskFullError, 2)])
def test_some_calls_of_a_verb_fail_and_the_next_one_does_not(error, times):
    disk = SimulatedDisk({"a": b""})
    disk.fail = failure = DiskFailure(("write",), 2, times, error)
    disk.write("a", 0, b"x")
    for _ in range(times):
        with pytest.raises(error, match="a: planted"):
            disk.write("a", 0, b"x")
    disk.write("a", 0, b"x")
    assert (failure.hit, failure.is_final) == (["write a"] * times, error is StoreError)
    disk.fail = failure = DiskFailure(("write",), 1, 9, error)
    failure.end(disk)
    disk.write("a", 0, b"x")


def test_what_a_sync_has_failed_for_is_covered_by_no_later_one():
    disk = SimulatedDisk()
    disk.create("a")
    disk.sync_dir()
    disk.write("a", 0, b"first")
    disk.fail = DiskFailure(("sync",), 1, 1, StoreError)
    with pytest.raises(StoreError):
        disk.sync("a")
    disk.write("a", 5, b"second")
    disk.sync("a")
    assert disk.files() == {"a": b"firstsecond"}
    assert disk.durable_files() == {"a": bytes(5) + b"second"}


def test_seeds_draw_every_kind_of_failure():
    drawn = [DiskFailure.draw(random.Random(seed)) for seed in range(300)]
    assert {failure.verbs[0] for failure in drawn if failure.error is StoreError} == {
        *("sync", "write", "create", "allocate", "truncate", "sync_dir", "unlink")
    }
    assert any(failure.error is DiskFullError and failure.times > 1 for failure in drawn)
    assert not DiskFailure(("unlink",), 1, 1, StoreError, ["unlink a"]).is_final
