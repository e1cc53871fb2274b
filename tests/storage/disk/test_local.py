import errno
import gc
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ibbmaster.errors import BusyError, DiskFullError, MissingFileError, StoreError
from ibbmaster.storage.disk import local
from ibbmaster.storage.disk.interface import owning
from ibbmaster.storage.disk.local import RealDisk, made_at_once


@pytest.fixture
def disk(tmp_path):
    disk = RealDisk(tmp_path)
    yield disk
    disk.close()


def test_reads_past_the_end_are_short_and_a_file_made_anew_is_read_anew(disk, tmp_path):
    disk.create("a")
    disk.write("a", 3, b"xyz")
    assert (disk.read("a", 0, 100), disk.read("a", 50, 1)) == (b"\0\0\0xyz", b"")
    (tmp_path / "a").unlink()
    (tmp_path / "a").write_bytes(b"new")
    assert disk.read("a", 0, 3) == b"new"


class Clock:
    """Counts how often a directory is read, and tells the time that a test says."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.scans = 0
        scandir = os.scandir

        def count(path):
            self.scans += 1
            return scandir(path)

        monkeypatch.setattr(local.os, "scandir", count)
        monkeypatch.setattr(local.time, "monotonic", lambda: self.now)


def test_a_directory_is_read_again_only_when_it_was_changed(disk, tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    (tmp_path / "a").touch()
    assert list(disk.list()) == ["a"]
    clock.now += local.COARSE_TICK_S
    known = disk.list()  # for as long as a later change might bear the same time, it is read again
    assert clock.scans == 2
    assert all(disk.list() is known for _ in range(10))
    (tmp_path / "a").write_bytes(b"no new name")
    assert disk.list() is known
    assert clock.scans == 2
    (tmp_path / "b").touch()  # by whomever
    assert sorted(disk.list()) == ["a", "b"]
    assert known == ["a"]
    (tmp_path / "a").unlink()
    assert disk.list() == ["b"]


@pytest.mark.parametrize("change", ["by another", "by itself"])
def test_a_change_is_seen_also_where_the_time_of_the_directory_stays_the_same(disk, tmp_path, monkeypatch, change):
    """A file system whose clock ticks once in 2 s: what is made within one tick leaves no other trace."""
    clock = Clock(monkeypatch)
    stat, moment = os.stat, 1_700_000_000 * 10**9

    def coarse_stat(path, **options):
        found = stat(path, **options)
        if Path(path) != tmp_path:
            return found
        return SimpleNamespace(st_dev=found.st_dev, st_ino=found.st_ino, st_mtime_ns=moment)

    monkeypatch.setattr(local.os, "stat", coarse_stat)
    assert disk.list() == []
    clock.now += 2
    assert disk.list() == []
    if change == "by itself":
        clock.now += 100
        assert disk.list() == []
        disk.create("a")
    else:
        (tmp_path / "a").touch()
    assert disk.list() == ["a"]


def test_a_watch_is_one_for_all_and_given_back_with_the_disk(disk, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    watch = disk.watch()
    assert disk.watch() is watch
    (tmp_path / "a").touch()
    assert watch.wait(60)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    disk.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_disk_that_is_forgotten_leaves_no_descriptor_open(tmp_path):
    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    disk = RealDisk(tmp_path)
    disk.lock()
    disk.create("a")
    disk.write("a", 0, b"x")
    disk.read("a", 0, 1)
    disk.watch()
    assert len(os.listdir("/proc/self/fd")) > before
    del disk
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_holes_are_told_from_data(disk):
    disk.create("a")
    disk.truncate("a", 1 << 20)
    disk.write("a", 1 << 19, b"x")
    assert disk.next_data("a", 0) in (0, 1 << 19)  # a file system may know no holes
    assert disk.next_data("a", 1 << 19) == 1 << 19
    assert disk.next_data("a", (1 << 19) + (1 << 18)) in ((1 << 19) + (1 << 18), 1 << 20)
    assert disk.next_data("a", 1 << 20) == 1 << 20
    assert disk.next_data("a", 1 << 21) == 1 << 20
    for ask in (disk.next_data, lambda name, offset: disk.read(name, offset, 1)):
        with pytest.raises(MissingFileError, match="no such file"):
            ask("b", 0)


def test_short_writes_and_reads_of_the_system_are_gone_on_with(disk, monkeypatch):
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:7], offset))
    monkeypatch.setattr(os, "pread", lambda fd, size, offset: pread(fd, min(size, 11), offset))
    data = bytes(range(256)) * 3
    disk.create("a")
    disk.write("a", 5, data)
    assert disk.read("a", 5, len(data)) == data


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, StoreError)]
)
def test_errors_of_the_system_name_the_file(disk, monkeypatch, code, kind):
    disk.create("a")

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(kind, match=os.strerror(code)) as caught:
        disk.write("a", 0, b"x")
    assert type(caught.value) is kind
    assert str(disk.directory / "a") in str(caught.value)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b"])
def test_a_name_that_leaves_the_directory_is_refused(disk, name):
    with pytest.raises(StoreError, match="is no name of a file"):
        disk.create(name)


def test_links_and_fifos_are_neither_listed_nor_opened(disk, tmp_path):
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo")
    assert disk.list() == ["target"]
    for name in ("link", "fifo"):
        with pytest.raises(StoreError):
            disk.read(name, 0, 1)
        with pytest.raises(StoreError):
            disk.write(name, 0, b"x")


def test_a_directory_that_cannot_be_made_is_named_as_it_was_given(tmp_path):
    (tmp_path / "file").touch()
    for target in (tmp_path / "file/new", tmp_path / "file/there/new"):
        problem = f"^{target} cannot be made: (Not a directory|File exists)"
        with pytest.raises(StoreError, match=problem), made_at_once(target):
            pass


def test_the_system_is_asked_to_read_what_it_does_not_have(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *request: asked.append(request))
    (tmp_path / "file").write_bytes(bytes(100))
    with open(tmp_path / "file", "rb") as file:
        local.expect(file.fileno(), 0, 100)
        local.expect(file.fileno(), 100, 100)  # there is nothing
        assert asked == []
        monkeypatch.setattr(local, "fill", lambda *place, only_cached: None)
        local.expect(file.fileno(), 1, local.REQUEST_BYTES + 1)
        requests = [(file.fileno(), at, local.REQUEST_BYTES, os.POSIX_FADV_WILLNEED) for at in (1, 1 + (1 << 19))]
        assert asked == requests

        def fail(*place, only_cached):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(local, "fill", fail)
        local.expect(file.fileno(), 0, 100)  # who reads it hears of that


def test_a_directory_is_owned_once_and_given_back_where_opening_fails(tmp_path):
    first, second = RealDisk(tmp_path), RealDisk(tmp_path)
    with pytest.raises(ValueError, match="no"), owning(first):
        raise ValueError("no")
    with owning(second):
        pass
    assert first.is_locked(), "whoever opened the log keeps it"
    with pytest.raises(BusyError, match="another process is writing here"), owning(first):
        pass
    second.close()
    first.lock()
    first.close()
