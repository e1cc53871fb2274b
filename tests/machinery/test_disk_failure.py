import random

import pytest

from ibbmaster.errors import DiskFullError, StoreError
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.simulated_disk import SimulatedDisk


def test_one_call_of_a_verb_fails_and_the_next_one_does_not():
    disk = SimulatedDisk()
    disk.fail = failure = DiskFailure(("sync",), 2, 1, StoreError)
    disk.create("a")
    disk.sync("a")
    with pytest.raises(StoreError, match="a: planted"):
        disk.sync("a")
    disk.sync("a")
    assert failure.hit == ["sync a"]
    assert failure.is_final


def test_a_full_disk_is_full_for_some_calls_and_can_be_ended():
    disk = SimulatedDisk()
    disk.create("a")
    disk.fail = failure = DiskFailure(("write",), 1, 2, DiskFullError)
    for _ in range(2):
        with pytest.raises(DiskFullError):
            disk.write("a", 0, b"x")
    disk.write("a", 0, b"x")
    assert failure.hit == ["write a", "write a"]
    assert not failure.is_final
    disk.fail = failure = DiskFailure(("write",), 1, 9, DiskFullError)
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
