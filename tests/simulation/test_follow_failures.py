"""What a log that follows keeps when the disk fails: each call of the disk in turn, with a crash after it and without.

It is followed again from what is left; no group is lost, twice, or acknowledged before it was durable."""

import contextlib
import random

import pytest

from ibbmaster.errors import DiskFullError, StoreError
from ibbmaster.kernel import loading
from ibbmaster.logs.capture import storing
from ibbmaster.logs.capture.storing import StoredDump
from ibbmaster.logs.classic.convert import GroupConverter
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.replication.wire.packet import frame_payloads
from tests.machinery.disk_failure import NEED_ROOM, DiskFailure
from tests.machinery.events import XID_EVENT, groups_of, new_group
from tests.machinery.simulated_disk import SimulatedDisk

GROUPS = 200
PER_PIECE = 10  # groups that come at once, and the half of one more
VERBS = {
    StoreError: ("read", "write", "sync", "create", "allocate", "truncate", "unlink", "sync_dir"),
    DiskFullError: NEED_ROOM,
}
OPTIONS = StoreOptions(
    max_file_bytes=1 << 18, redo_bytes=1 << 18, state_interval_bytes=1 << 16, spill_bytes=1 << 14, full_disk_retry_s=0
)
SAMPLE = 6  # of the failures, without --interop-all
STATES = 4  # that a crash may leave, for each


LOGGED = [new_group(no, 40_000 if no % 40 == 0 else no * 37 % 900, XID_EVENT) for no in range(1, GROUPS + 1)]
WANTED = [(gtid, b"".join((event, *body))) for gtid, event, body in LOGGED]


def dump_after(seq_no):
    """What a primary sends, in pieces that end inside a group."""
    events = [event for _, head, body in LOGGED[seq_no:] for event in (head, *body)]
    data = frame_payloads([*(b"\0" + event for event in events), b"\xfe\0\0\0\0"], 1)[0]
    ends = range(0, len(data), max(1, len(data) // (GROUPS // PER_PIECE)))
    return [data[at : at + ends.step] for at in ends]


class Pieces:
    """A dump that comes piece by piece; meanwhile the store does what it does in the background."""

    is_empty = True

    def __init__(self, store, pieces):
        self._store, self._pieces = store, pieces

    def next(self):
        self._store.write_pages()
        self._store.prepare_next_file()
        if self._store.needs_checkpoint():
            self._store.checkpoint()
        return self._pieces.pop(0) if self._pieces else b""


def content(store):
    return groups_of(store.groups(store.start_of_file()))


def follow(store, path, told):
    """Follow to the end; `told` gets the numbers of groups of which it was said that they are durable."""
    bulk = GroupConverter(store, loading.load()) if path == "kernels" else None
    pieces = Pieces(store, dump_after(store.state().highest_seq_no(0) or 0))
    storer = StoredDump(store, bulk, pieces, lambda stored: told.append(stored.last_gtid.seq_no))
    assert storer.run(has_checksums=False, has_heads=False)


def judge(files, told, path, what):
    """Follow on from these files."""
    with BinlogStore(SimulatedDisk(files), OPTIONS) as store:
        found = content(store)
        assert found == WANTED[: len(found)], what
        assert len(found) >= max(told, default=0), what
        follow(store, path, [])
        assert content(store) == WANTED, what


@pytest.fixture(params=["kernels", "reference"])
def path(request, monkeypatch) -> str:
    monkeypatch.setattr(storing, "GROUPS_PER_SYNC", PER_PIECE)
    return request.param


@pytest.mark.parametrize("error", [StoreError, DiskFullError])
def test_whichever_call_of_the_disk_fails_no_group_is_lost_twice_or_acknowledged_early(path, error, request, capsys):
    rng = random.Random(request.config.getoption("--stream-seed") or 1)
    disk = SimulatedDisk()
    disk.fail = counting = DiskFailure(VERBS[error], 10**9, 1, error)
    with BinlogStore(disk, OPTIONS) as store:
        follow(store, path, [])
        assert content(store) == WANTED
    every = range(1, counting.count + 1)
    chosen = every if request.config.getoption("--interop-all") else rng.sample(every, SAMPLE)
    crashes = 0
    for nth in chosen:
        disk, told = SimulatedDisk(), []
        disk.fail = failure = DiskFailure(VERBS[error], nth, 1, error)
        with contextlib.suppress(StoreError), BinlogStore(disk, OPTIONS) as store:
            follow(store, path, told)
        judge(disk.files(), told, path, f"after call {nth} {failure.hit} had failed")
        for state, _ in zip(disk.crash_states(rng), range(STATES), strict=False):
            judge(state, told, path, f"after call {nth} {failure.hit} had failed and a crash")
            crashes += 1
    with capsys.disabled():
        print(f"\n{len(chosen)} of {counting.count} calls failed ({error.__name__}), {crashes} crashes after them")
