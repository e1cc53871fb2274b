import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from ibbmaster.errors import PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.directory import open_directory
from ibbmaster.logs.log.log_range import WHOLE_FILE
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store import followed
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.followed import FollowedDirectory, WrittenDirectory
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES, has_redo_log
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LOG_START
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.watch import DirectoryWatch
from tests.machinery.events import numbers_of
from tests.machinery.killed_writer import killed_writer
from tests.machinery.stores import bytes_at, feed

OPTIONS = StoreOptions(max_file_bytes=1 << 16, state_interval_bytes=1 << 14, redo_bytes=1 << 20, full_disk_retry_s=0)
GROWTH_S = 60  # nothing takes as long
LARGER = StoreOptions(max_file_bytes=256 << 10, state_interval_bytes=32 << 10, redo_bytes=1 << 20)
READS = 11  # of one look, which begins a scan
GOES_ON = 130  # groups: over both segments, and to an end in the one that is read last

FEEDING = """
import sys
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from tests.machinery.events import new_group
options = StoreOptions(
    max_file_bytes=1 << 16, state_interval_bytes=1 << 14, redo_bytes=1 << 18, durability=Durability(int(sys.argv[2]))
)
with BinlogStore(RealDisk(sys.argv[1]), options) as store, Background(store, period_s=0.01):
    seq_no = store.state().highest_seq_no(0) or 0
    print(seq_no, flush=True)
    while True:
        seq_no += 1
        store.write_direct(*new_group(seq_no, seq_no * 7919 % 3000))
        print(seq_no, flush=True)
"""


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch):
    monkeypatch.setattr(followed, "LOOK_PERIOD_S", 0.01)
    monkeypatch.setattr(followed, "REDO_PERIOD_S", 0.0)


def into_files(store, numbers=(), size=700):
    """Have all groups in the files, some more of them first."""
    feed(store, numbers, size)
    store.checkpoint()
    store.sync()


def reader_of(engine, position=""):
    return engine.groups(engine.seek(GtidPosition.parse(position)))


def grow_to(engine, state):
    while str(engine.state()) != state:
        assert engine.wait_for_growth(GROWTH_S), f"{engine.state()}, not {state}"


def test_an_empty_directory_is_an_empty_log_until_a_writer_comes(tmp_path):
    engine = FollowedDirectory(RealDisk(tmp_path))
    assert not engine.wait_for_growth(0.0)
    assert engine.end() == (0, 16384)
    assert (engine.state(), engine.start_of_file().state) == (GtidState(), GtidState())
    assert [file.name for file in engine.files()] == ["binlog-000000.ibb"]
    reader = reader_of(engine)
    assert reader.next_group() is None
    assert engine.start_of_file(0).position == (0, 16384)
    with pytest.raises(KeyError):
        engine.start_of_file(1)
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        into_files(store, range(1, 20))
        grow_to(engine, "0-1-19")
        assert numbers_of(reader) == list(range(1, 20))
        into_files(store, range(20, 300))
        grow_to(engine, "0-1-299")
        assert numbers_of(reader) == list(range(20, 300))
    assert not list(tmp_path.glob("*lock*"))


def test_a_directory_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="no such file or directory"):
        FollowedDirectory(RealDisk(tmp_path / "typo")).wait_for_growth(0.0)


def test_what_grew_between_the_first_answer_and_the_first_wait_is_growth(tmp_path):
    killed_writer(tmp_path, 1, 50)
    engine = FollowedDirectory(RealDisk(tmp_path))
    assert str(engine.state()) == "0-1-49"
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        into_files(store, range(50, 60))
        assert engine.wait_for_growth(GROWTH_S)
        assert str(engine.state()) == "0-1-59"


def test_a_directory_is_looked_at_when_somebody_has_written_there_and_not_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(followed, "LOOK_PERIOD_S", GROWTH_S)  # only the kernel can be sooner
    waits, is_waiting = [], threading.Event()
    wait = DirectoryWatch.wait

    def note(self, timeout_s):
        waits.append(timeout_s)
        is_waiting.set()
        return wait(self, timeout_s)

    monkeypatch.setattr(DirectoryWatch, "wait", note)
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        into_files(store, range(1, 10))
        engine = FollowedDirectory(RealDisk(tmp_path))
        assert str(engine.state()) == "0-1-9"
        found = []
        waiting = threading.Thread(target=lambda: found.append(engine.wait_for_growth(GROWTH_S)))
        waiting.start()
        is_waiting.wait()
        assert len(waits) == 1
        into_files(store, [10])
        waiting.join()
        assert found == [True]
        assert str(engine.state()) == "0-1-10"
        assert len(waits) < 50  # writes of the store, not time, have called for each


def test_what_a_killed_writer_has_left_in_its_redo_log_is_served_and_nothing_is_changed(tmp_path, caplog):
    caplog.set_level("INFO")
    killed_writer(tmp_path, 1, 156)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    engine = FollowedDirectory(RealDisk(tmp_path))
    assert str(engine.state()) == "0-1-155"
    reader = reader_of(engine)
    assert numbers_of(reader) == list(range(1, 156))
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before
    (line,) = [record.getMessage() for record in caplog.records if "redo log" in record.getMessage()]
    assert "groups are in the redo log of a writer that is gone, and are served from there" in line
    killed_writer(tmp_path, 156, 300)
    grow_to(engine, "0-1-299")
    assert numbers_of(reader) == list(range(156, 300))
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        assert numbers_of(reader) == []
        into_files(store, range(300, 400))
        grow_to(engine, "0-1-399")
        assert numbers_of(reader) == list(range(300, 400))
    assert numbers_of(reader_of(engine, "0-1-150"))[-250:] == list(range(150, 400))


@pytest.mark.parametrize("count", [1, 20, 60, 300])
def test_a_redo_log_is_not_mixed_with_what_the_next_writer_writes(tmp_path, monkeypatch, count):
    killed_writer(tmp_path, 1, 156)
    engine = FollowedDirectory(RealDisk(tmp_path))
    reader = reader_of(engine)
    assert numbers_of(reader) == list(range(1, 156))
    monkeypatch.setattr(followed, "LOOK_PERIOD_S", float("inf"))  # the writer is back before it is noticed
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        into_files(store, range(156, 156 + count))
        found = numbers_of(reader)
        assert numbers_of(reader_of(engine))[:155] == list(range(1, 156))
        monkeypatch.setattr(followed, "LOOK_PERIOD_S", 0.01)
        grow_to(engine, f"0-1-{155 + count}")
        assert found + numbers_of(reader) == list(range(156, 156 + count))


def test_of_a_writer_that_lives_what_is_durable_is_seen_at_once_and_nothing_else(tmp_path):
    with BinlogStore(RealDisk(tmp_path), replace(OPTIONS, durability=Durability.WRITE)) as store:
        feed(store, range(1, 4))
        engine = FollowedDirectory(RealDisk(tmp_path))
        assert str(engine.state()) == "", "written is not durable"
        store.sync()
        assert str(engine.state()) == "0-1-3"
        reader = reader_of(engine)
        feed(store, range(4, 9))
        assert numbers_of(reader) == [1, 2, 3]
        assert str(engine.state()) == "0-1-3"
        store.sync()
        assert engine.wait_for_growth(GROWTH_S)
        assert numbers_of(reader) == [4, 5, 6, 7, 8]
        assert store.status().checkpoint_lsn < store.status().lsn, "nothing had to come into the files for that"


def test_it_follows_over_segments_that_are_begun_anew_flushes_and_checkpoints(memory_path):
    """Looks now and then: what it missed of the redo log is in the files by then."""
    rng = random.Random(7)
    with BinlogStore(RealDisk(memory_path), replace(OPTIONS, redo_bytes=1 << 18)) as store:
        engine = FollowedDirectory(RealDisk(memory_path))
        reader, found, last = reader_of(engine), [], 0
        for _ in range(60):
            count = rng.choice((1, 2, 20, 150))
            feed(store, range(last + 1, last + 1 + count), size=rng.choice((100, 700, 9000)))
            last += count
            match rng.randrange(6):
                case 0:
                    store.flush()
                case 1:
                    into_files(store)
            assert str(engine.state()) == f"0-1-{last}"
            found += numbers_of(reader)
            assert len(found) == last
    assert found == list(range(1, last + 1))


@pytest.mark.parametrize("first", range(1, READS))
def test_segments_that_are_begun_anew_before_any_read_of_two_looks_are_no_reset(memory_path, first):
    """Both segments are, between a look at how far the log is durable and any of the reads that follow, twice."""
    for second in range(1, READS):
        directory = memory_path / str(second)
        directory.mkdir()
        with BinlogStore(RealDisk(directory), replace(OPTIONS, redo_bytes=1 << 17)) as store:
            numbers = itertools.count(1)

            def go_on(store=store, numbers=numbers):
                into_files(store, itertools.islice(numbers, GOES_ON), size=1500)

            disk, left = RealDisk(directory), [0]  # reads of the follower until the writer goes on

            def read(*given, disk=disk, left=left, go_on=go_on):
                left[0] -= 1
                if left[0] == 0:
                    go_on()
                return RealDisk.read(disk, *given)

            disk.read = read
            engine = FollowedDirectory(disk)
            go_on()
            reader = reader_of(engine)
            found = numbers_of(reader)
            go_on()  # what the follower has read of the redo log does not go on
            for number in (first, second):
                left[0] = number
                engine.look(is_urgent=True)
            left[0] = 0
            engine.look(is_urgent=True)
            found += numbers_of(reader)
            assert engine.reset_count == 0, f"reads {first} and {second}"
            assert found == list(range(1, next(numbers))), f"reads {first} and {second}"
            engine.close()


def test_a_reset_of_a_writer_that_lives_is_seen_in_its_redo_log(tmp_path):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        feed(store, range(1, 200))
        engine = FollowedDirectory(RealDisk(tmp_path))
        reader = reader_of(engine)
        assert len(numbers_of(reader)) == 199
        store.reset(GtidState.parse("0-1-500"))
        feed(store, [501])
        assert str(engine.state()) == "0-1-501"
        with pytest.raises(PositionPurgedError, match="the log was reset"):
            reader.next_group()
        assert numbers_of(reader_of(engine, "0-1-500")) == [501]


def test_a_reset_ends_no_reader_that_began_behind_it_whatever_was_missed_of_the_redo_log(tmp_path):
    with BinlogStore(RealDisk(tmp_path), replace(OPTIONS, redo_bytes=1 << 18)) as store:
        feed(store, range(1, 20))
        engine = FollowedDirectory(RealDisk(tmp_path))
        assert str(engine.state()) == "0-1-19"
        store.reset()
        feed(store, range(1, 20))
        engine.look()
        reader = reader_of(engine)
        assert numbers_of(reader) == list(range(1, 20))
        feed(store, range(20, 1000))  # both segments are begun anew
        assert str(engine.state()) == "0-1-999"
        assert numbers_of(reader) == list(range(20, 1000))


def test_a_killed_writer_takes_back_nothing_that_was_seen_and_what_is_recovered_is_seen(memory_path, pytestconfig):
    """A process that feeds is killed at a random group, again and again; another process would see this."""
    rng = random.Random(random.randrange(2**32))
    engine = FollowedDirectory(RealDisk(memory_path))
    seen, reader = 0, reader_of(engine)
    for number in range(pytestconfig.getoption("--follow-kills")):
        durability = rng.choice(list(Durability))
        writer = subprocess.Popen(
            [sys.executable, "-c", FEEDING, memory_path, str(durability.value)], stdout=subprocess.PIPE, text=True
        )
        recovered = int(writer.stdout.readline())
        assert recovered == seen, f"kill {number}: group {seen} was seen, and recovered is {recovered}"
        acknowledged = 0
        for _ in range(rng.randrange(1, 300)):
            acknowledged = int(writer.stdout.readline())
            if not rng.randrange(4):
                for seq_no in numbers_of(reader):
                    assert seq_no == seen + 1
                    seen = seq_no
                engine.wait_for_growth(0.0)
        seen += len(numbers_of(reader))
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        writer.wait()
        writer.stdout.close()
        while seen < acknowledged and durability is not Durability.LATER:  # a kill loses nothing that was written
            engine.wait_for_growth(GROWTH_S)
            seen += len(numbers_of(reader))
        engine.look(is_urgent=True)  # it may have been killed between a write and its acknowledgement
        seen += len(numbers_of(reader))
    with BinlogStore(RealDisk(memory_path), OPTIONS) as store:
        assert numbers_of(store.groups(store.seek(GtidPosition()))) == list(range(1, seen + 1))


def test_a_redo_log_that_does_not_apply_is_told_once_and_the_files_are_served(tmp_path, caplog):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        feed(store, range(1, 10))
    kept = bytes_at(tmp_path)
    for name in SEGMENT_NAMES:
        os.unlink(tmp_path / name)
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=1 << 16, state_interval_bytes=1 << 14) as writer:
        feed(writer, range(10, 20))
    for name in SEGMENT_NAMES:
        (tmp_path / name).write_bytes(kept[name])
    engine = FollowedDirectory(RealDisk(tmp_path))
    for _ in range(3):
        engine.look(is_urgent=True)
    assert str(engine.state()) == "0-1-19"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1
    assert "its redo log is left out: the files end at" in lines[0]
    assert "--salvage" in lines[0]


@pytest.mark.parametrize("state", ["", "0-1-500"])
def test_a_reset_ends_readers_and_the_new_log_is_served(tmp_path, state):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        into_files(store, range(1, 300))
        engine = FollowedDirectory(RealDisk(tmp_path))
        reader = reader_of(engine)
        assert reader.next_group().gtid.seq_no == 1
        store.reset(GtidState.parse(state))
        engine.look(is_urgent=True)
        with pytest.raises(PositionPurgedError, match="the log was reset"):
            reader.next_group()
        assert str(engine.state()) == state
        into_files(store, range(501, 520))
        grow_to(engine, "0-1-519")
        assert numbers_of(reader_of(engine, state)) == list(range(501, 520))


@pytest.mark.parametrize("is_followed", [True, False], ids=["seen as it grew", "there at first"])
def test_a_shorter_log_of_others_written_over_the_files_in_place_is_another_log(tmp_path, is_followed):
    kept, other = tmp_path / "kept", tmp_path / "other"
    kept.mkdir()
    other.mkdir()
    with BinlogStore(RealDisk(kept), OPTIONS) as store:
        engine = FollowedDirectory(RealDisk(kept))
        into_files(store, range(1, 20))
        if is_followed:
            grow_to(engine, "0-1-19")
        store.flush()
        into_files(store, [20])
    grow_to(engine, "0-1-20") if is_followed else engine.state()
    reader = reader_of(engine)
    with BinlogStore(RealDisk(other), OPTIONS) as store:
        into_files(store, range(70, 75))
    (kept / "binlog-000000.ibb").write_bytes((other / "binlog-000000.ibb").read_bytes())  # in place
    for path in kept.iterdir():
        if path.name != "binlog-000000.ibb":
            path.unlink()
    engine.look(is_urgent=True)
    with pytest.raises(PositionPurgedError, match="the log was reset"):
        reader.next_group()
    assert numbers_of(reader_of(engine)) == list(range(70, 75))


def test_a_purge_ends_the_readers_whose_files_are_gone_and_no_others(tmp_path):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        feed(store, range(1, 100))
        engine = FollowedDirectory(RealDisk(tmp_path))
        into_files(store)
        grow_to(engine, "0-1-99")
        slow, quick = reader_of(engine), reader_of(engine)
        assert slow.next_group().gtid.seq_no == 1
        assert numbers_of(quick) == list(range(1, 100))
        into_files(store, range(100, 500))
        grow_to(engine, "0-1-499")
        assert numbers_of(quick) == list(range(100, 500))
        assert store.purge(PurgeRequest(to_file_no=quick.file_no)).file_nos
        engine.look(is_urgent=True)
        with pytest.raises(PositionPurgedError, match=r"binlog-000000.ibb was removed while it was read"):
            slow.next_group()
        into_files(store, range(500, 600))
        grow_to(engine, "0-1-599")
        assert numbers_of(quick) == list(range(500, 600))
        with pytest.raises(PositionPurgedError):
            reader_of(engine)


def test_a_purge_of_the_one_file_that_a_reader_is_inside_of_ends_it(tmp_path):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        engine = FollowedDirectory(RealDisk(tmp_path))
        for file_no in range(2):  # the first purge, and a later one
            first = 10 * file_no + 1
            feed(store, range(first, first + 9))
            store.flush()
            feed(store, [first + 9])
            store.checkpoint()
            grow_to(engine, f"0-1-{first + 9}")
            reader = engine.groups(engine.start_of_file(file_no))
            assert reader.next_group() is not None
            assert store.purge(PurgeRequest(to_file_no=file_no + 1)).file_nos == (file_no,)
            engine.look(is_urgent=True)
            with pytest.raises(PositionPurgedError, match=rf"binlog-00000{file_no}\.ibb was removed while it was read"):
                reader.next_group()


def test_a_reader_at_the_very_end_of_a_file_that_is_flushed_and_purged_goes_on(tmp_path):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        engine = FollowedDirectory(RealDisk(tmp_path))
        feed(store, range(1, 10))
        store.flush()
        grow_to(engine, "0-1-9")
        reader = reader_of(engine)
        assert numbers_of(reader) == list(range(1, 10))
        feed(store, range(10, 20))
        store.purge(PurgeRequest(to_file_no=1))
        engine.look(is_urgent=True)
        into_files(store)
        grow_to(engine, "0-1-19")
        assert numbers_of(reader) == list(range(10, 20))


READ_ONLY = """
import os, sys
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.watch import DirectoryWatch
from ibbmaster.logs.store.followed import FollowedDirectory
os.setgid(65534); os.setuid(65534)
engine = FollowedDirectory(RealDisk(sys.argv[1]))
engine.wait_for_growth(0.3)
print(engine.state())
"""


def test_who_may_only_read_serves_a_store_without_a_word_of_failure(tmp_path):
    if os.getuid():
        pytest.skip("needs root, to become a user who may only read")
    killed_writer(tmp_path, 1, 50)
    tmp_path.chmod(0o555)
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    for parent in tmp_path.parents:  # the way there, for that user
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o001 and "pytest" in str(parent):
            parent.chmod(parent.stat().st_mode | 0o011)
    process = subprocess.run([sys.executable, "-c", READ_ONLY, tmp_path], capture_output=True, text=True, check=False)
    assert (process.stdout, process.returncode) == ("0-1-49\n", 0), process.stderr
    assert "fail" not in process.stderr


def test_a_read_only_mount_is_served(tmp_path):
    source, mount = tmp_path / "store", tmp_path / "mount"
    source.mkdir()
    mount.mkdir()
    killed_writer(source, 1, 50)
    binding = subprocess.run(["mount", "--bind", source, mount], capture_output=True, text=True, check=False)
    if binding.returncode:
        pytest.skip(f"a directory cannot be mounted here: {binding.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=True)
        engine = FollowedDirectory(RealDisk(mount))
        assert str(engine.state()) == "0-1-49"
        with BinlogStore(RealDisk(source), OPTIONS) as store:
            feed(store, range(50, 60))
        grow_to(engine, "0-1-59")
        assert numbers_of(reader_of(engine)) == list(range(1, 60))
    finally:
        engine.close()
        subprocess.run(["umount", mount], check=True)


def numbers(log, ranges):
    return [group.gtid.seq_no for one in ranges for group in log.groups_in(one) if group.gtid is not None]


def test_every_durable_group_is_read_range_by_range_while_it_is_written_and_after(tmp_path):
    with closing(BinlogStore(RealDisk(tmp_path), LARGER)) as store, closing(RealDisk(tmp_path)) as disk:
        assert has_redo_log(disk)
        with closing(WrittenDirectory(disk)) as planner:
            begin, last, late = LOG_START, 0, 0
            for count in (1, 10, 300, 900):
                feed(store, range(last + 1, last + count + 1), 500)
                end = planner.end()
                ranges = planner.ranges(begin, end, size=32 << 10)
                with closing(WrittenDirectory(RealDisk(tmp_path))) as worker:
                    assert numbers(worker, ranges) == list(range(last + 1, last + count + 1))
                begin, last = end, last + count
                late += not len(open_directory(tmp_path, is_strict=True).state())
            assert late >= 2  # those who look at the files alone
    with closing(WrittenDirectory(RealDisk(tmp_path))) as worker:
        ranges = worker.ranges(LOG_START, worker.end(), size=WHOLE_FILE)
        assert len(ranges) > 1
        assert numbers(worker, ranges) == list(range(1, last + 1))


def test_a_log_that_is_only_in_the_redo_log_of_a_killed_writer_is_read_in_ranges(tmp_path):
    (tmp_path / "log").mkdir()
    with closing(BinlogStore(RealDisk(tmp_path / "log"), LARGER)) as store:
        feed(store, range(1, 6), 500)
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with closing(WrittenDirectory(RealDisk(tmp_path / "copy"))) as log:
        assert numbers(log, log.ranges(LOG_START, log.end(), size=1)) == [1, 2, 3, 4, 5]
