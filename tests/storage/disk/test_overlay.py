import contextlib
import random

import pytest

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.disk.overlay import OverlayDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.disk import MemoryDisk

FILES = {"a": bytes(range(256)) * 200, "b": b"b" * PAGE_SIZE}


def content(disk):
    return {name: disk.read(name, 0, disk.size(name)) for name in sorted(disk.list())}


def change_one(rng, *disks):
    name, offset, size = rng.choice("abc"), rng.randrange(70_000), rng.randrange(40_000)
    data = rng.randbytes(size)
    step = rng.choice(["create", "write", "write", "allocate", "truncate", "unlink"])
    arguments = {"write": (offset, data), "allocate": (offset,), "truncate": (offset,)}.get(step, ())
    results = []
    for disk in disks:
        try:
            results.append(getattr(disk, step)(name, *arguments))
        except StoreError as error:
            results.append(type(error))
    assert results[0] == results[1], (step, name)


def test_random_changes_read_as_those_of_a_directory_and_leave_the_one_below():
    for _ in range(20):
        below, other = MemoryDisk(FILES), MemoryDisk(FILES)
        overlay = OverlayDisk(below)
        for _ in range(15):
            change_one(random, overlay, other)
            assert content(overlay) == content(other)
            for name in overlay.list():
                start, size = random.randrange(70_000), random.randrange(40_000)
                assert overlay.read(name, start, size) == other.read(name, start, size)
        assert content(below) == FILES


def test_a_buffer_is_filled_from_what_was_changed():
    overlay = OverlayDisk(MemoryDisk(FILES))
    overlay.write("b", 10, b"xyz")
    target = bytearray(5)

    assert overlay.read_into("b", 9, memoryview(target)) == 5
    assert target == b"bxyzb"
    assert overlay.read_into("b", 9, memoryview(target), only_cached=True) is None
    assert overlay.read_into("a", 1, memoryview(target)) == 5


def test_it_knows_its_own_pages_and_may_begin_empty():
    overlay = OverlayDisk(MemoryDisk(FILES))
    overlay.write("a", PAGE_SIZE - 1, b"xy")
    assert (overlay.changed_files, overlay.changed_pages("a"), overlay.changed_pages("b")) == (["a"], [0, 1], [])
    overlay.truncate("a", PAGE_SIZE)
    assert overlay.changed_pages("a") == [0]
    overlay = OverlayDisk(MemoryDisk(FILES), is_empty=True)
    assert overlay.list() == []
    with pytest.raises(MissingFileError, match="a: no such file"):
        overlay.size("a")
    overlay.create("a")
    assert content(overlay) == {"a": b""}


def test_what_is_there_is_not_made_again():
    overlay = OverlayDisk(MemoryDisk(FILES))
    with pytest.raises(StoreError, match="a is there already"):
        overlay.create("a")
    with contextlib.closing(overlay):
        overlay.unlink("a")
    with pytest.raises(MissingFileError):
        overlay.modified_at("a")
    assert overlay.open("b") is None
    assert overlay.next_data("b", 7) == 7
