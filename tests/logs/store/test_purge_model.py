"""Which files a purge takes over a whole life of a log, against a small model that is written from the rules.

The model knows what was done to the log, and of the files their sizes, their times, and bytes 48
to 64 of their headers. It shares nothing with the store: it tries each place where the log could
begin (protocol/store/files.md, "What holds a file").
"""

import random
import struct
from dataclasses import dataclass, field, replace

import pytest

from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.storage.ibb.xa import Xid
from tests.machinery.events import make_event, new_group
from tests.machinery.log_checker import check_log
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import SMALL_FILES

PAGE = 16384
DATA = 16380
CHUNK_HEADER = 3  # bytes: fewer are left at the end of no page
LIVES = 50
STEPS = 120
OPTIONS = replace(SMALL_FILES, max_file_bytes=6 * PAGE, spill_bytes=2048, oob_piece_bytes=9000)


@dataclass
class Transaction:
    """What somebody writes out of band: the bytes of its events, and the file of its first record."""

    body: bytearray = field(default_factory=bytearray)
    file_no: int | None = None


@dataclass
class Reader:
    """`count` groups were read from the file `first` on; `body` is what is left to read of the last group."""

    reader: object
    first: int
    file_no: int
    count: int = 0
    body: object = None


class Life:
    def __init__(self, rng):
        self.rng = rng
        self.disk = SimulatedDisk()
        self.store = BinlogStore(self.disk, OPTIONS)
        self.count = 0
        self.groups = []  # (bytes, file of the commit record)
        self.readers = []
        self.oldest = {}  # of each file, the oldest one that anybody needed when it began
        self.open = {}  # GroupWriter -> Transaction
        self.prepared = {}  # XID -> Transaction
        usual = {
            self.feed: 16,
            **dict.fromkeys((self.read, self.purge), 10),
            **dict.fromkeys((self.write, self.finish), 6),
            **dict.fromkeys((self.prepare, self.finish_prepared, self.flush), 5),
            **dict.fromkeys((self.stop_reading, self.work), 4),
            **dict.fromkeys((self.begin, self.read_from_a_file, self.restart), 3),
            self.restart_twice: 1,
        }
        # each life has its habits: what some do all the time hides what others do
        self.verbs = {verb: weight * rng.choice((0.2, 1, 1, 3)) for verb, weight in usual.items()}
        self.pieces = rng.choice(((9000, 12_000, 30_000, 60_000), (9000,)))
        self.haste = rng.choice((0, 0, 0.2))
        self.readers_max = rng.choice((0, 0, 1, 3))

    # What is done to the log

    def step(self):
        self.disk.clock += 1
        active, held = self.active(), self.held()
        self.rng.choices(list(self.verbs), list(self.verbs.values()))[0]()
        if self.rng.random() < self.haste:
            self.flush()
        self.oldest |= dict.fromkeys(range(active + 1, self.active() + 1), min(active, *held, *self.held()))
        if self.rng.random() < self.haste:
            self.purge()

    def event(self, size):
        return make_event(160, 1, self.rng.randbytes(8).ljust(size, b"x"))

    def log(self, write, body):
        self.count += 1
        gtid, event, _ = new_group(self.count)
        self.groups.append((event + bytes(body), write(gtid, event).file_no))

    def feed(self):
        body = self.event(self.rng.choice((10, 900, 9000, 9000, 40_000)))
        self.log(lambda gtid, event: self.store.write_direct(gtid, event, [body]), body)

    def begin(self):
        if len(self.open) < 3:
            group = self.store.open_group()
            self.open[group] = Transaction()
            self.spill(group, self.open[group])

    def write(self):
        if self.open:
            group = self.rng.choice(list(self.open))
            self.spill(group, self.open[group])

    def spill(self, group, transaction):
        """Write more than stays in memory; a first record goes where there is room for its first byte."""
        if transaction.file_no is None:
            status = self.store.status()
            file_no = self.active()
            page_no, offset = divmod(status.end_offset, PAGE)
            if DATA - offset <= CHUNK_HEADER:
                page_no += 1
            transaction.file_no = file_no + 1 if (page_no * PAGE >= self.disk.size(status.active_file)) else file_no
        piece = self.event(self.rng.choice(self.pieces))
        group.write(piece)
        transaction.body += piece

    def finish(self):
        if not self.open:
            return
        group = self.rng.choice(list(self.open))
        transaction = self.open.pop(group)
        if self.rng.random() < 0.4:
            group.abandon()
        else:
            self.log(group.commit, transaction.body)

    def prepare(self):
        if not self.open:
            return
        group = self.rng.choice(list(self.open))
        transaction = self.open.pop(group)
        self.count += 1
        xid = Xid(format_id=1, gtrid=b"%06d" % self.count, bqual=b"")
        group.prepare(xid)
        self.prepared[xid] = transaction

    def finish_prepared(self):
        if not self.prepared:
            return
        xid = self.rng.choice(list(self.prepared))
        transaction = self.prepared.pop(xid)
        if self.rng.random() < 0.4:
            self.store.xa_rollback(xid)
        else:
            self.log(lambda gtid, event: self.store.xa_commit(xid, gtid, event), transaction.body)

    def flush(self):
        self.store.flush()

    def work(self):
        self.rng.choice((self.store.write_pages, self.store.checkpoint, self.store.prepare_next_file))()

    def restart(self):
        """By a crash, in order, or in order and without the redo log, when the files alone say what is prepared."""
        kind = self.rng.choice(("killed", "crashed", "closed", "closed and alone"))
        if kind.startswith("closed"):
            self.store.close()
        files = self.disk.durable_files() if kind == "crashed" else self.disk.files()
        if kind == "closed and alone":
            files = {name: data for name, data in files.items() if name not in SEGMENT_NAMES}
        times = {name: self.disk.modified_at(name) for name in files if name in self.disk.list()}
        self.disk, clock = SimulatedDisk(files), self.disk.clock
        self.disk.clock = clock
        self.disk._modified.update(times)
        self.open.clear()
        self.readers.clear()
        self.store = BinlogStore(self.disk, OPTIONS)
        assert set(self.store.xa_recover()) == self.prepared.keys()

    def restart_twice(self):
        self.restart()
        self.restart()

    # Readers

    def read_from_a_file(self):
        if len(self.readers) < self.readers_max:
            file_no = self.rng.choice(self.numbers())
            self.readers.append(Reader(self.store.groups(self.store.start_of_file(file_no)), file_no, file_no))

    def read(self):
        if self.readers:
            found = self.rng.choice(self.readers)
            for _ in range(self.rng.randrange(1, 30)):
                self.read_group(found)

    def read_group(self, found):
        self.read_body(found)
        before = found.reader.position.file_no
        group = found.reader.next_group()
        found.file_no = found.reader.position.file_no
        if group is not None:
            found.file_no = before
            found.body = bytes(group.gtid_event), group.body
        return group is not None

    def read_body(self, found):
        if found.body is not None:
            event, body = found.body
            assert event + b"".join(map(bytes, body)) == self.groups[self.number_of_next(found)][0]
            found.body = None
            found.count += 1

    def number_of_next(self, found):
        return sum(at < found.first for _, at in self.groups) + found.count

    def read_to_the_end(self, found):
        while self.read_group(found):
            pass
        assert self.number_of_next(found) == len(self.groups)

    def stop_reading(self):
        if self.readers:
            self.readers.pop().reader.close()

    # Purge

    def numbers(self):
        return sorted(int(name[7:13]) for name in self.disk.list() if name.startswith("binlog-"))

    def purge(self):
        self.store.checkpoint()
        numbers = self.numbers()
        match self.rng.randrange(4):
            case 0 | 1:
                request = PurgeRequest(to_file_no=self.rng.choice((numbers[-1], self.rng.choice(numbers))))
            case 2:
                request = PurgeRequest(before=self.disk.clock - self.rng.randrange(30))
            case _:
                request = PurgeRequest(total_bytes=self.rng.randrange(3, 40) * PAGE)
        wanted, first = self.expected(numbers, request)
        held = f"{request}: {self.held()} of {numbers}"
        result = self.store.purge(request)
        assert result.file_nos == tuple(range(numbers[0], first)), held
        assert (result.kept is not None) == (first < wanted), held
        assert self.numbers()[0] == first
        if result.file_nos:
            self.judge(first)

    def judge(self, first):
        found = [group.events for group in check_log(self.disk.files()).groups]
        assert found == [events for events, at in self.groups if at >= first]

    def expected(self, numbers, request):
        """Where the log is to begin by what was asked for, and where it may."""
        sizes = [self.disk.size(name) for name in map(file_name, numbers)]
        times = [self.disk.modified_at(name) for name in map(file_name, numbers)]
        wanted = numbers[0]
        for index, number in enumerate(numbers):
            is_old = request.before is not None and times[index] < request.before
            is_large = request.total_bytes is not None and sum(sizes[index:]) > request.total_bytes
            if not (is_old or is_large or (request.to_file_no is not None and number < request.to_file_no)):
                break
            wanted = number + 1
        references = {number: self.references(number) for number in numbers}
        for number, oldest in self.oldest.items():
            assert min(references.get(number, ()), default=oldest) >= oldest, f"{number} names a file too old"
        held = self.held()
        for first in range(wanted, numbers[0], -1):
            stays = [number for number in numbers if number >= first]
            if min(held) >= first and all(reference >= first for number in stays for reference in references[number]):
                return wanted, first
        return wanted, numbers[0]

    def active(self):
        return int(self.store.status().active_file[7:13])

    def held(self):
        holders = (*self.open.values(), *self.prepared.values(), *self.readers)
        return [self.active(), *(found.file_no for found in holders)]

    def references(self, number):
        header = self.disk.files()[file_name(number)][:64]
        return () if not any(header) else [at for at in struct.unpack_from("<QQ", header, 48) if at != 2**64 - 1]

    def end(self):
        for found in self.readers:
            self.read_to_the_end(found)
        for xid in list(self.prepared):
            transaction = self.prepared.pop(xid)
            self.log(lambda gtid, event, xid=xid: self.store.xa_commit(xid, gtid, event), transaction.body)
        for group, transaction in self.open.items():
            self.log(group.commit, transaction.body)
        first = self.store.files()[0].file_no
        self.readers.append(Reader(self.store.groups(self.store.start_of_file(first)), first, first))
        for found in self.readers:
            self.read_to_the_end(found)
        self.store.close()
        self.judge(first)


def file_name(number):
    return f"binlog-{number:06}.ibb"


@pytest.mark.parametrize("number", range(LIVES))
def test_a_purge_takes_what_was_asked_for_and_nobody_needs_and_the_rest_is_read_to_the_last_byte(number):
    life = Life(random.Random(random.randrange(2**32)))
    for _ in range(STEPS):
        life.step()
    life.end()
