import random

import pytest

from tests.machinery.simulated_disk import SimulatedDisk


@pytest.fixture
def disk():
    disk = SimulatedDisk({"a": b"old" * 4})
    disk.sync_dir()
    return disk


def states(disk):
    return {tuple(sorted(state.items())) for seed in range(20) for state in disk.crash_states(random.Random(seed))}


def test_what_was_synced_stays_and_of_later_writes_any_may_be_there_alone(disk):
    disk.write("a", 0, b"new")
    disk.sync("a")
    assert states(disk) == {(("a", b"newoldoldold"),)}
    disk.write("a", 0, b"1")
    disk.write("a", 5, b"2")
    contents = {dict(state)["a"] for state in states(disk)}
    assert contents == {b"newoldoldold", b"1ewoldoldold", b"newol2oldold", b"1ewol2oldold"}


def test_a_write_over_several_sectors_may_be_torn_between_them(disk):
    disk.write("a", 0, b"\1" * 4096)
    sizes = {dict(state)["a"].count(1) for state in states(disk)}
    assert {0, 4096} < sizes
    assert all(size % 512 == 0 for size in sizes)


def test_a_new_name_is_there_only_once_the_directory_was_synced(disk):
    disk.create("b")
    disk.write("b", 0, b"x")
    disk.sync("b")
    assert {"b" in dict(state) for state in states(disk)} == {True, False}
    disk.sync_dir()
    assert {dict(state).get("b") for state in states(disk)} == {b"x"}


def test_a_removed_name_may_still_be_there_until_the_directory_was_synced(disk):
    disk.unlink("a")
    assert {"a" in dict(state) for state in states(disk)} == {True, False}
    disk.sync_dir()
    assert states(disk) == {()}


def test_a_longer_file_may_have_zeros_where_its_data_should_be(disk):
    disk.write("a", 12, b"more")
    assert {b"oldoldoldold", b"oldoldoldoldmore"} <= {dict(state)["a"] for state in states(disk)}


def test_a_sync_covers_what_was_written_before_it_began():
    disk = SimulatedDisk({"a": bytes(8)})

    def write_meanwhile(what):
        if what == "sync, half done":
            disk.pause = None
            disk.write("a", 4, b"late")

    disk.write("a", 0, b"soon")
    disk.pause = write_meanwhile
    disk.sync("a")
    assert disk.durable_files() == {"a": b"soon" + bytes(4)}
    assert disk.files() == {"a": b"soonlate"}
    disk.sync("a")
    assert disk.durable_files() == {"a": b"soonlate"}


def test_a_sync_does_not_cover_a_write_that_is_not_done():
    disk, seen = SimulatedDisk({"a": bytes(8)}), []

    def look(what):
        if what == "write, half done":
            disk.pause = None
            seen.append(disk.read("a", 0, 8))
            disk.sync("a")

    disk.pause = look
    disk.write("a", 0, b"halfdone")
    assert seen == [b"half" + bytes(4)]
    assert disk.durable_files() == {"a": bytes(8)}
    assert disk.files() == {"a": b"halfdone"}


def test_one_state_at_random_is_one_of_those_that_a_crash_may_leave():
    disk = SimulatedDisk({"a": b"old" * 4})
    disk.write("a", 0, b"1")
    disk.create("b")
    disk.write("a", 5, b"2")
    disk.sync_dir()
    disk.unlink("b")
    assert {tuple(sorted(disk.crash_state(random.Random(seed)).items())) for seed in range(300)} == states(disk)
