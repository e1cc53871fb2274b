"""What holds for every log, and for those that are written: the one on a disk and the one in memory."""

import contextlib
import lzma

import pytest

from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.disk.local import RealDisk
from ibbmaster.errors import BusyError, PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.log.purge import PurgeRequest
from ibbmaster.log.strictness import open_directory
from ibbmaster.position import LOG_START
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.followed import FollowedDirectory
from ibbmaster.store.store_options import StoreOptions
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.memory_binlog import MemoryBinlog
from tests.machinery.simulated_disk import SimulatedDisk

OPTIONS = StoreOptions(max_file_bytes=4 << 20)
ENGINES = {"on a disk": lambda: BinlogStore(SimulatedDisk(), OPTIONS), "in memory": MemoryBinlog}


@pytest.fixture(params=ENGINES.values(), ids=ENGINES)
def engine(request):
    return request.param()


def gtid(seq_no):
    return Gtid(domain_id=0, server_id=1, seq_no=seq_no)


def feed(engine, seq_no, size=100):
    engine.write_direct(gtid(seq_no), make_gtid_event(gtid(seq_no)), [make_event(160, 1, bytes(size))])


def read(engine, position=""):
    reader = engine.groups(engine.seek(GtidPosition.parse(position)))
    found = []
    while (group := reader.next_group()) is not None:
        found.append((group.gtid.seq_no, bytes(group.gtid_event) + b"".join(bytes(piece) for piece in group.body)))
    return found


def test_what_is_written_is_read(engine):
    feed(engine, 1)
    feed(engine, 2, 3_000_000)
    expected = [
        make_gtid_event(gtid(number)) + make_event(160, 1, bytes(size)) for number, size in ((1, 100), (2, 3_000_000))
    ]
    assert read(engine) == list(enumerate(expected, 1))
    assert str(engine.state()) == "0-1-2"
    assert str(engine.start_of_file().state) == ""


def test_growth_is_told_once(engine):
    engine.wait_for_growth(0)
    feed(engine, 1)
    assert engine.wait_for_growth(0)
    assert not engine.wait_for_growth(0)


def test_groups_in_order_are_made_durable_by_the_last(engine):
    tickets = [
        engine.write_direct_ordered(gtid(number), make_gtid_event(gtid(number)), [make_event(160, 1, b"")])
        for number in (1, 2, 3)
    ]
    engine.group_commit_ordered(tickets[-1])
    assert [number for number, _ in read(engine)] == [1, 2, 3]


def test_groups_come_in_pieces_with_savepoints(engine):
    group = engine.open_group()
    first, last = make_event(160, 1, b"a" * 2_000_000), make_event(16, 1, bytes(8))
    group.write(first)
    group.savepoint("s")
    group.write(make_event(160, 1, b"b" * 2_000_000))
    group.roll_back_to("s")
    group.write(last)
    group.commit(gtid(1), make_gtid_event(gtid(1)))
    assert read(engine) == [(1, make_gtid_event(gtid(1)) + first + last)]


def test_flush_begins_another_file_and_purge_removes_what_is_before_it(engine):
    feed(engine, 1)
    engine.flush()
    feed(engine, 2)
    assert engine.file_name(engine.end().file_no) == "binlog-000001.ibb"
    assert engine.purge(PurgeRequest(to_file_no=1)).file_nos == (0,)
    assert str(engine.start_of_file().state) == "0-1-1"
    assert [number for number, _ in read(engine, "0-1-1")] == [2]
    with pytest.raises(PositionPurgedError):
        engine.seek(GtidPosition())


def test_reset_begins_again(engine):
    feed(engine, 1)
    engine.reset(GtidState.parse("0-1-9"))
    assert (engine.end().file_no, str(engine.state())) == (0, "0-1-9")
    feed(engine, 10)
    assert [number for number, _ in read(engine, "0-1-9")] == [10]


def test_a_domain_in_use_is_not_forgotten(engine):
    feed(engine, 1)
    with pytest.raises(BusyError, match="domain 0"):
        engine.flush(delete_domain_ids=[0])


def test_a_file_that_is_none_is_a_key_error(engine):
    with pytest.raises(KeyError):
        engine.start_of_file(9)


@pytest.fixture(params=["store", "followed", "directory", "lenient", "classic", "packed", "memory"])
def log(request, grow, fixtures, tmp_path):
    """A log of several files, of each kind."""
    capture = "11.8/domains"
    match request.param:
        case "classic":
            return ClassicBinlog([fixtures / "classic" / capture])
        case "packed":
            for path in (fixtures / "classic" / capture).glob("binlog.0*[0-9]"):
                (tmp_path / f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
            return ClassicBinlog([tmp_path])
        case "memory":
            memory = MemoryBinlog()
            for number in range(1, 20):
                feed(memory, number)
                if number % 5 == 0:
                    memory.flush()
            return memory
        case "store":
            return BinlogStore(RealDisk(grow(99)))
        case "followed":
            return FollowedDirectory(RealDisk(grow(99)))
    return open_directory(grow(99), is_strict=request.param == "directory")


def all_of(groups):
    return [(group.gtid, group.start, b"".join(map(bytes, [group.gtid_event, *group.body]))) for group in groups]


def read_on(reader):
    with contextlib.closing(reader):
        while (group := reader.next_group()) is not None:
            yield group


@pytest.mark.parametrize("size", [1, 100_000, WHOLE_FILE])
def test_ranges_hold_every_group_once(log, size):
    with contextlib.closing(log):
        expected = all_of(read_on(log.groups(log.start_of_file())))
        assert len(expected) > 10
        ranges = log.ranges(LOG_START, log.end(), size=size)
        assert all_of(group for one in ranges for group in log.groups_in(one)) == expected
        _, start, _ = expected[len(expected) // 2]
        _, end, _ = expected[-3]
        between = [group for one in log.ranges(start, end, size=size) for group in all_of(log.groups_in(one))]
        assert between == [group for group in expected if start <= group[1] < end]


def test_each_file_is_read_from_its_head_with_what_was_logged_before(log):
    with contextlib.closing(log):
        files, end = log.files(), log.end()
        assert [file.name for file in files] == [log.file_name(file.file_no) for file in files]
        state = log.start_of_file().state
        for file in files:
            if file.file_no > end.file_no:
                continue  # it is ready for later use
            plan = log.start_of_file(file.file_no)
            assert plan.state == state, file
            for group in read_on(log.groups(plan)):
                if group.start.file_no == file.file_no and group.gtid is not None:
                    state.log(group.gtid)
        assert log.state() == state
        with pytest.raises(KeyError):
            log.start_of_file(999)
