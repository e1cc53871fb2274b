import gzip
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import trio
import trio.testing

import ibbmaster
from ibbmaster.errors import FormatError, StoreError
from ibbmaster.kernel import loading
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.primary.server import preparation
from ibbmaster.primary.server.preparation import WAIT_S, LookAhead, Preparation
from ibbmaster.primary.streaming.block_cache import KnownSkips
from ibbmaster.primary.streaming.page_blocks import PageBlocks
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.storage.disk.local import RealDisk
from tests.damage import flip
from tests.machinery.events import new_group
from tests.primary.server.conftest import dumping
from tests.primary.streaming.conftest import noted


@pytest.mark.parametrize("problem", [None, StoreError("gone")], ids=["sound", "unreadable"])
async def test_a_primary_with_kernels_finds_the_end_and_imports_what_makes_blocks(problem):
    engine = Mock()
    engine.state.side_effect = problem
    prepared = Preparation(engine, has_kernels=True, holds_dumps=True)
    await prepared.run()
    engine.state.assert_called_once()
    assert "ibbmaster.primary.streaming.page_blocks" in sys.modules
    await prepared.wait()


async def test_without_kernels_nothing_is_done_and_nobody_waits():
    engine = Mock()
    prepared = Preparation(engine, has_kernels=False, holds_dumps=True)
    await prepared.run()
    await prepared.wait()
    engine.state.assert_not_called()


async def test_a_dump_that_is_held_waits_a_little_and_not_longer_and_no_other(autojump_clock):
    begun = trio.current_time()
    await Preparation(Mock(), has_kernels=True, holds_dumps=True).wait()  # which nobody runs
    assert trio.current_time() - begun == pytest.approx(WAIT_S)
    with trio.fail_after(0):
        await Preparation(Mock(), has_kernels=True, holds_dumps=False).wait()  # which nobody runs


async def test_what_is_walked_while_dumps_begin_ends_between_two_steps():
    steps, ended = [], trio.Event()

    def walk():
        try:
            while True:
                steps.append(len(steps))
                yield
        finally:
            trio.from_thread.run_sync(ended.set)

    prepared = Preparation(Mock(), has_kernels=True, holds_dumps=True, walk=walk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepared.run)
        await prepared.wait()
        while not steps:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert ended.is_set()


async def test_a_walk_that_fails_is_logged_and_harms_nobody(caplog):

    def walk():
        yield
        raise RuntimeError("as the test says")

    prepared = Preparation(Mock(), has_kernels=True, holds_dumps=True, walk=walk)
    await prepared.run()
    await prepared.wait()
    assert "as the test says" in caplog.text


GROUPS = 600
STARTS_MAX = 20


@pytest.fixture(scope="module", autouse=True)
def kernels():
    assert loading.load() is not None


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("log")
    with BinlogWriter(RealDisk(directory), max_file_bytes=1 << 20, state_interval_bytes=1 << 17) as writer:
        for number in range(GROUPS):
            size = 40_000 if number % 50 == 7 else 1000
            writer.write_group(*new_group(number + 1, size, domain_id=number % 3, server_id=1 + number % 2))
    return directory


def positions() -> list[str]:
    found = [
        ",".join(f"{one % 3}-{1 + one % 2}-{one + 1}" for one in range(number, number + 3))
        for number in range(0, GROUPS - 3, 23)
    ]
    return [*found, "", "0-1-1", "7-7-7", f"0-1-{GROUPS * 2}"]


def dumped(port: int, position: str) -> bytes:
    connection, data = dumping(port, position, flags=1), b""  # to the end, and no further
    while not data.endswith(bytes.fromhex("fe00000200")) and (more := connection._sock.recv(1 << 18)):
        data += more
    connection._force_close()
    return data


async def dumps_of(serving, directory) -> list[bytes]:
    async with serving(FollowedDirectory(RealDisk(directory))) as (_, port):
        return [await trio.to_thread.run_sync(dumped, port, position) for position in positions()]


async def test_each_dump_is_the_same_as_without(serving, directory, monkeypatch):
    ahead = await dumps_of(serving, directory)
    monkeypatch.setattr(LookAhead, "is_new", lambda *_: False)
    assert ahead == await dumps_of(serving, directory)
    assert len({len(data) for data in ahead}) > 20


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
async def test_a_damaged_log_gives_the_same_errors_as_without(serving, directory, tmp_path, monkeypatch, at):
    damaged = tmp_path / "log"
    shutil.copytree(directory, damaged)
    file = sorted(damaged.glob("*.ibb"))[0]
    flip(file, round(file.stat().st_size * at))
    with ibbmaster.open(damaged) as log, pytest.raises(FormatError):
        list(log.groups())
    ahead = await dumps_of(serving, damaged)
    monkeypatch.setattr(LookAhead, "is_new", lambda *_: False)
    assert ahead == await dumps_of(serving, damaged)


async def test_the_dump_goes_the_way_in_one_step(serving, directory, monkeypatch):
    """A look gives up where it would have to wait: one of several primaries that have just begun looks undisturbed."""
    steps = noted(monkeypatch, PageBlocks, "skip")
    found: list[int] = []
    find_way = LookAhead.find_way

    def look(self, open_dump):
        find_way(self, open_dump)
        found.append(len(steps))

    monkeypatch.setattr(LookAhead, "find_way", look)
    counts = []
    for _ in range(STARTS_MAX):
        for path in directory.iterdir():
            path.read_bytes()  # the system may have dropped it from memory
        async with serving(FollowedDirectory(RealDisk(directory))) as (_, port):
            await trio.to_thread.run_sync(dumped, port, positions()[5])
            counts.append((found[0], len(steps)))
            await trio.to_thread.run_sync(dumped, port, positions()[5])
        assert len(found) == 1
        if steps and counts[-1] == (found[0], found[0]):
            return
        steps.clear()
        found.clear()
    pytest.fail(f"steps of the look and of all, at each start: {counts}")


def test_only_statements_that_say_a_position_are_worth_it_and_each_once():
    ahead = LookAhead(SharedBlocks())
    assert not ahead.is_new(b"SET @slave_gtid_strict_mode=0")
    said = [b"SET @slave_connect_state='0-1-%d'" % number for number in range(preparation.REMEMBERED_MAX + 1)]
    assert all(map(ahead.is_new, said))
    assert not any(map(ahead.is_new, said[1:]))
    assert ahead.is_new(said[0])  # too many came since
    assert len(ahead._said) == preparation.REMEMBERED_MAX


@pytest.mark.parametrize("error", [StoreError, BlockingIOError])
def test_what_goes_wrong_is_left_to_the_dump(error):
    def fail():
        raise error("as the test says")

    LookAhead(SharedBlocks()).find_way(fail)


CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"


@pytest.mark.parametrize("state", ["whole", "cut", "damaged", "packed"])
async def test_a_traditional_file_is_walked_before_and_dumps_are_as_without(serving, tmp_path, monkeypatch, state):
    directory = tmp_path / "log"
    directory.mkdir()
    data = bytearray(max(CLASSIC.glob("binlog.0*"), key=lambda path: path.stat().st_size).read_bytes())
    (tmp_path / "binlog.000001").write_bytes(data)
    with ibbmaster.open(tmp_path / "binlog.000001") as sound:
        logged = sound.engine.state()
    asked = ["", *(str(logged.latest(domain_id)) for domain_id in logged.domain_ids)]
    if state == "damaged":
        data[len(data) // 2] ^= 0xFF
    name = "binlog.000001.gz" if state == "packed" else "binlog.000001"
    (directory / name).write_bytes(
        gzip.compress(data) if state == "packed" else data[: -30 if state == "cut" else None]
    )
    with ibbmaster.open(directory) as log:
        dumps, notes = [], []
        note = KnownSkips.note
        monkeypatch.setattr(KnownSkips, "note", lambda *args: notes.append(note(*args)))
        async with serving(log.engine, profile="classic-10.11") as (primary, port):
            steps = await trio.to_thread.run_sync(lambda: list(primary._parts.preparation._walk()))
            assert bool(steps) == bool(notes) == (state in ("whole", "cut"))
            dumps.append([await trio.to_thread.run_sync(dumped, port, position) for position in asked])
        monkeypatch.setattr(LookAhead, "is_new", lambda *_: False)
        monkeypatch.setattr(LookAhead, "walk_last_file", lambda *_: (step for step in ()))
        async with serving(log.engine, profile="classic-10.11") as (_, port):
            dumps.append([await trio.to_thread.run_sync(dumped, port, position) for position in asked])
    assert dumps[0] == dumps[1]
