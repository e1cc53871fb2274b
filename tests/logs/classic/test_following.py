import random

import pytest

from ibbmaster.kernel import loading
from ibbmaster.logs.classic import following, series
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.primary.streaming import shared
from tests.machinery.foreign_writer import ForeignWriter
from tests.machinery.served_log import ServedDump, ServedLog

GONE_MAX = 40  # calls of the system, one after the other, that do not find a file


@pytest.fixture(autouse=True)
def _with_kernels(monkeypatch):
    monkeypatch.setattr(shared, "kernels", loading.load)


def served(directory):
    return ServedLog(ClassicBinlog([directory]), "classic-10.11")


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def writer(directory):
    writer = ForeignWriter(directory, random.Random(1))
    for _ in range(5):
        writer.append()
    return writer


def check_as_fresh(log, directory, *positions):
    """Each answer, and all that a replica gets, is that of a server that knows nothing of before."""
    fresh = served(directory)
    assert log.answers() == fresh.answers()
    for position in ("", *positions):
        assert log.dump(position) == fresh.dump(position)
    log.engine.wait_for_growth(0.0)


def gtids(dump):
    return sum(event[4] == 162 for event in dump.events)


def waiting(log, position=""):
    dump = ServedDump(log, position)
    dump.go_on()
    assert dump.end is None
    return dump


@pytest.mark.parametrize("size", [0, 4, 100, 270, 400])
def test_a_last_file_that_is_begun_again_is_waited_for(writer, directory, size):
    for _ in range(3):
        writer.rotate()
        writer.append()
    log = served(directory)
    dump = waiting(log)
    check_as_fresh(log, directory)
    path = writer.path()
    path.write_bytes(path.read_bytes()[:size])
    check_as_fresh(log, directory, "0-1-2")
    dump.go_on()
    assert dump.end is None
    assert log.engine.unfinished.startswith("bin.000004: ")
    assert "dumps wait until they are there again" in log.engine.unfinished
    writer.publish()
    writer.append()
    dump.go_on()
    assert (dump.end, gtids(dump)) == (None, 9)
    writer.rotate()
    writer.append()
    check_as_fresh(log, directory, "0-1-2")
    dump.go_on()
    assert (dump.end, gtids(dump)) == (None, 10)
    assert log.engine.unfinished is None
    dump.close()


@pytest.mark.parametrize("count", [1, 9])
def test_another_log_over_the_files_is_that_log(writer, directory, count):
    log = served(directory)
    by_gtid, by_file = waiting(log), waiting(log, ("bin.000001", 4))
    check_as_fresh(log, directory)
    writer.write_another_over_it()
    for _ in range(count):
        writer.append()
    check_as_fresh(log, directory)
    by_gtid.go_on()
    by_file.go_on()
    assert by_gtid.end[:1] == b"\xfe"
    assert by_file.end[:3] == b"\xff" + (1236).to_bytes(2, "little")
    by_gtid.close()
    by_file.close()


class GoesAway:
    """A file that is not there for one call of the system, the one with this number, and back after it."""

    def __init__(self, path, at, monkeypatch):
        self.path, self.at, self.calls = path, at, 0
        for module, name in ((series, "open_file"), (following, "open_file"), (following, "stamp_of")):
            monkeypatch.setattr(module, name, self._without(getattr(module, name)))

    def _without(self, call):
        def called(path):
            if path != self.path:
                return call(path)
            self.calls += 1
            if self.calls - 1 != self.at:
                return call(path)
            hidden = path.with_name("hidden")
            path.rename(hidden)
            try:
                return call(path)
            finally:
                hidden.rename(path)

        return called


@pytest.mark.parametrize("done", ["nothing", "cut", "reset", "rotate_and_purge"])
def test_a_file_that_goes_away_for_a_moment_ends_nothing(tmp_path, monkeypatch, done):
    """At whichever call of the system: a reader that does not wait meets it, too."""
    for at in range(GONE_MAX):
        writer = ForeignWriter(tmp_path / f"log{at}", random.Random(1))
        for _ in range(3):
            writer.rotate()
            writer.append()
        log = served(writer.directory)
        log.answers()
        behind, fresh = waiting(log), ServedDump(log, "")
        with monkeypatch.context() as patched:
            if done != "nothing":
                getattr(writer, done)()
            gone = GoesAway(writer.path(), at, patched)
            for dump in (fresh, behind):
                dump.go_on()
                assert dump.end is None or dump.end[:1] == b"\xfe" or done == "rotate_and_purge"
            log.answers()
            log.dump("")
            log.engine.wait_for_growth(0.0)
        writer.publish()
        writer.append()
        check_as_fresh(log, writer.directory)
        for dump in (fresh, behind):
            dump.go_on()
            assert dump.end is None or dump.end[:1] == b"\xfe" or done == "rotate_and_purge"
            dump.close()
        if gone.calls <= at:
            break
    assert at > 3
