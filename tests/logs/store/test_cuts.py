import contextlib
import random
from dataclasses import replace

import pytest

from ibbmaster.errors import DiskFullError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import new_group
from tests.machinery.log_checker import check_log
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import SMALL_FILES

OPTIONS = replace(SMALL_FILES, max_file_bytes=6 * PAGE_SIZE)
LIVES = 4
FLUSHES = 6


class Life:
    """A log on a disk that may refuse to cut; `kept` is the bytes that each file keeps that was ended."""

    def __init__(self, rng):
        self.rng = rng
        self.disk = SimulatedDisk()
        self.store = BinlogStore(self.disk, OPTIONS)
        self.groups = []
        self.kept = {}
        self.is_full = False
        self.disk.fail = self.refuse
        self.starts = 0

    def refuse(self, verb, name):
        if verb == "truncate" and self.is_full:
            raise DiskFullError(f"{name}: planted")

    def feed(self, size):
        group = new_group(len(self.groups) + 1, size)
        try:
            self.store.write_direct(*group)
        except DiskFullError:  # nothing was appended; now there is room
            self.is_full = False
            self.store.write_direct(*group)
        self.groups.append(group[1] + group[2][0])

    def flush(self):
        """End the file behind the page of its last record; a crash comes at each call of the disk, and behind them."""
        self.feed(10)
        status = self.store.status()
        self.is_full = self.rng.random() < 0.5
        self.disk.after = lambda verb: self.crash(0.3)
        with contextlib.suppress(DiskFullError):  # the log has ended the file all the same
            self.store.flush()
        self.disk.after = lambda verb: None
        self.kept[status.active_file] = -(-status.end_offset // PAGE_SIZE) * PAGE_SIZE
        self.crash(1)

    def crash(self, share):
        for state in (self.disk.files, self.disk.durable_files, lambda: self.disk.crash_state(self.rng)):
            if self.rng.random() < share:
                self.start(state())

    def start(self, files):
        self.starts += 1
        disk, interrupted = SimulatedDisk(files), []
        disk.after = lambda verb: interrupted.append(disk.durable_files())
        BinlogStore(disk, OPTIONS)
        self.judge(disk.durable_files())
        if interrupted:
            disk = SimulatedDisk(self.rng.choice(interrupted))
            BinlogStore(disk, OPTIONS)
            self.judge(disk.durable_files())

    def judge(self, files):
        assert [group.events for group in check_log(files).groups] == self.groups
        assert {name: len(files[name]) for name in self.kept} == self.kept

    def restart(self):
        self.disk = SimulatedDisk(self.disk.durable_files())
        self.disk.fail = self.refuse
        self.is_full = False
        self.store = BinlogStore(self.disk, OPTIONS)


@pytest.mark.parametrize("number", range(LIVES))
def test_a_file_that_a_flush_has_ended_is_cut_whenever_the_crash_came(number):
    rng = random.Random(random.randrange(2**32))
    life = Life(rng)
    for _ in range(FLUSHES):
        for _ in range(rng.randrange(6)):
            life.feed(rng.choice((10, 5000, 20_000)))
        life.flush()
        if rng.random() < 0.3:
            life.restart()
    assert life.starts > FLUSHES
