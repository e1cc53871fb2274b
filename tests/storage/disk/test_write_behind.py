import threading

import pytest

from ibbmaster.errors import DiskFullError
from ibbmaster.storage.disk import write_behind
from ibbmaster.storage.disk.write_behind import WriteBehindDisk
from tests.machinery.disk import MemoryDisk


class GatedDisk(MemoryDisk):
    def __init__(self):
        super().__init__({"a": b""})
        self.gate = threading.Event()
        self.calls: list[str] = []
        self.fails_at: int | None = None

    def write(self, name, offset, data):
        assert self.gate.wait(20)
        if offset == self.fails_at:
            raise DiskFullError("a: No space left on device")
        self.calls.append(f"write {offset}")
        super().write(name, offset, data)

    def sync(self, name):
        self.calls.append("sync")


@pytest.fixture
def disk():
    return GatedDisk()


@pytest.fixture
def behind(disk):
    behind = WriteBehindDisk(disk)
    yield behind
    disk.gate.set()
    behind.close()


def test_a_write_does_not_wait_and_its_bytes_may_change_at_once(disk, behind):
    data = bytearray(b"one")
    behind.write("a", 0, data)
    data[:] = b"xxx"
    behind.write("a", 3, data)
    assert disk.calls == []
    disk.gate.set()
    assert behind.read("a", 0, 10) == b"onexxx"
    assert disk.calls == ["write 0", "write 3"]


ASKED = {
    "sync": lambda disk: disk.sync("a"),
    "sync_dir": lambda disk: disk.sync_dir(),
    "size": lambda disk: disk.size("a"),
    "list": lambda disk: disk.list(),
    "truncate": lambda disk: disk.truncate("a", 9),
    "allocate": lambda disk: disk.allocate("a", 9),
    "create": lambda disk: disk.create("b"),
    "unlink": lambda disk: disk.unlink("a"),
    "read_into": lambda disk: disk.read_into("a", 0, memoryview(bytearray(3))),
    "next_data": lambda disk: disk.next_data("a", 0),
    "modified_at": lambda disk: disk.modified_at("a"),
    "open": lambda disk: disk.open("a"),
}


@pytest.mark.parametrize("what", ASKED)
def test_everything_else_sees_what_was_written(disk, behind, what):
    behind.write("a", 0, b"one")
    threading.Timer(0.02, disk.gate.set).start()
    ASKED[what](behind)
    assert disk.calls[0] == "write 0"


def test_only_a_few_writes_are_held_in_memory(disk, behind):
    for offset in range(write_behind.WRITES_MAX):
        behind.write("a", offset, b"x")
    is_over = threading.Event()
    writer = threading.Thread(target=lambda: (behind.write("a", 99, b"x"), is_over.set()))
    writer.start()
    assert not is_over.wait(0.05)
    disk.gate.set()
    assert is_over.wait(20)
    writer.join()


def test_nothing_is_written_behind_a_write_that_failed_and_every_call_says_so(disk, behind):
    disk.fails_at = 3
    for offset in (0, 3, 6):
        behind.write("a", offset, b"one")
    disk.gate.set()
    for _ in range(2):
        with pytest.raises(DiskFullError, match="No space left"):
            behind.sync("a")
    with pytest.raises(DiskFullError, match="No space left"):
        behind.write("a", 9, b"one")
    assert disk.calls == ["write 0"]


def test_the_disk_begins_to_work_before_it_is_asked_to(disk, behind, monkeypatch):
    monkeypatch.setattr(write_behind, "SYNC_BYTES", 6)
    disk.gate.set()
    for offset in (0, 3, 6, 9, 12):
        behind.write("a", offset, b"one")
    behind.size("a")
    assert [call for call in disk.calls if call != "sync"] == [f"write {offset}" for offset in (0, 3, 6, 9, 12)]
    first, second = (at for at, call in enumerate(disk.calls) if call == "sync")
    assert first > disk.calls.index("write 3")
    assert second > disk.calls.index("write 9")


def test_more_is_written_while_the_disk_syncs_and_a_sync_that_fails_is_told_by_every_call(disk, behind, monkeypatch):
    monkeypatch.setattr(write_behind, "SYNC_BYTES", 6)
    written = threading.Event()

    def sync(name):
        assert written.wait(20)
        raise DiskFullError("a: No space left on device")

    monkeypatch.setattr(disk, "sync", sync)
    disk.gate.set()
    for offset in (0, 3, 6):
        behind.write("a", offset, b"one")
    while "write 6" not in disk.calls:
        pass
    written.set()
    for _ in range(2):
        with pytest.raises(DiskFullError):
            behind.size("a")
