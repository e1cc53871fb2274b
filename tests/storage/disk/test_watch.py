import os
import threading

import pytest

from ibbmaster.storage.disk import watch
from ibbmaster.storage.disk.watch import DirectoryWatch

LONG_S = 60  # nothing takes as long

CHANGES = {
    "writes": lambda path: (path / "there").write_bytes(b"more"),
    "makes": lambda path: (path / "new").touch(),
    "removes": lambda path: (path / "there").unlink(),
    "renames": lambda path: (path / "there").rename(path / "elsewhere"),
    "moves in": lambda path: (path / "below" / "one").rename(path / "here"),  # what lies below is not watched
    "moves away": lambda path: (path / "there").rename(path / "below" / "there"),
    "cuts": lambda path: os.truncate(path / "there", 1),
    "writes in another process": lambda path: os.system(f"echo more >> '{path}/there'"),
}


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "there").write_bytes(b"something")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "one").touch()
    return tmp_path


@pytest.mark.parametrize("change", CHANGES)
def test_who_waits_is_told_that_somebody(directory, change):
    watched = DirectoryWatch(directory)
    assert watched.why_polled == ""
    assert not watched.wait(0)
    waiting = threading.Timer(0.01, CHANGES[change], [directory])
    waiting.start()
    assert watched.wait(LONG_S)
    waiting.join()


def test_what_was_written_between_two_waits_is_told_once_at_the_next(directory):
    watched = DirectoryWatch(directory)
    for _ in range(100):
        CHANGES["writes"](directory)
    assert watched.wait(LONG_S)
    assert not watched.wait(0)


def test_reading_is_no_change_and_the_descriptor_is_given_back(directory):
    watched = DirectoryWatch(directory)
    assert (directory / "there").read_bytes()
    assert list(directory.iterdir())
    assert not watched.wait(0)
    watched.close()
    watched.close()
    assert watched.wait(LONG_S)  # time to look: nobody tells any longer


@pytest.mark.parametrize("reason", ["NFS file system", "Too many open files"])
def test_where_the_kernel_does_not_tell_it_is_time_to_look_again_and_again(directory, monkeypatch, caplog, reason):
    caplog.set_level("DEBUG", logger="ibbmaster")

    def refuse(_):
        raise OSError(0, reason)

    monkeypatch.setattr(watch, "_watch", refuse)
    watched = DirectoryWatch(directory)
    assert watched.why_polled == reason
    assert [watched.wait(LONG_S) for _ in range(3)] == [True, True, True]
    assert not watched.wait(0)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"{directory}: the kernel does not tell of writes ({reason}): looked at every 2 ms"


def test_a_network_file_system_is_known_by_its_type_and_what_is_not_there_is_looked_for(directory, monkeypatch):
    assert DirectoryWatch(directory / "typo").why_polled == "No such file or directory"

    class Libc:
        def statfs(self, path, found):
            found[0:4] = (0x6969).to_bytes(4, "little")
            return 0

    monkeypatch.setattr(watch.ctypes, "CDLL", lambda *_, **__: Libc())
    assert DirectoryWatch(directory).why_polled == "NFS file system"


def test_the_first_notices_come_at_once_and_those_of_a_busy_writer_with_a_gap(directory, monkeypatch):
    watched, pauses, now = DirectoryWatch(directory), [], [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watch.time, "sleep", pauses.append)

    def notice():
        CHANGES["writes"](directory)
        assert watched.wait(LONG_S)

    for _ in range(watch.NOTICES_AT_ONCE + 2):
        notice()
    assert pauses == [pytest.approx(watch.GAP_S)] * 2
    now[0] += 1
    notice()
    assert len(pauses) == 2
