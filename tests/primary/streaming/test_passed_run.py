"""Large groups that a pump sends in one pass: the packets of the careful path, and no end of one that is damaged."""

import random
from dataclasses import dataclass

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.primary.streaming import page_blocks
from ibbmaster.primary.streaming.block_cache import KnownWay, KnownWays
from ibbmaster.primary.streaming.large_group import PassedRun
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import PacketReader
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.built_logs import sealed_page
from tests.machinery.events import XID_EVENT, make_event, new_group
from tests.machinery.stores import new_store, open_files
from tests.primary.streaming.conftest import PUMPS, check_same

EVENT_BYTES = 30_000
EVENTS = 20  # a run of more than one read of a pump
STATE_BYTES = 1 << 18
NAME = format_file_name(0)
PIECES = {"oob_piece_bytes": 50_000, "spill_bytes": 60_000}
OK, ERR, EOF = 0, 0xFF, 0xFE


@dataclass
class Sent:
    """What a dump has sent: the events of each group that ended, the event types after them, and its last word."""

    ended: list[list[bytes]]
    types: list[int]
    has_error: bool


def sent_by(dump):
    reader = PacketReader(limit=1 << 26, next_sequence=1)
    reader.receive_data(bytes(dump.data))
    found = Sent([], [], False)
    events: list[bytes] = []
    while (payload := reader.next_payload()) is not None:
        if payload[0] != OK:
            found.has_error = payload[0] == ERR
            continue
        event = payload[1:]
        found.types.append(event[TYPE_OFFSET])
        events.append(event)
        if event[TYPE_OFFSET] == EventType.XID:
            found.ended.append(events)
            events, found.types = [], []
    return found


def write(writer, seq_no, sizes):
    body = [make_event(23, 1, random.Random(seq_no).randbytes(size)) for size in sizes]
    writer.write_group(*new_group(seq_no, *body, XID_EVENT))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """One file: groups that fit one read, and between them two that take several."""
    disk = RealDisk(tmp_path_factory.mktemp("log"))
    with BinlogWriter(disk, max_file_bytes=8 << 20, state_interval_bytes=STATE_BYTES, **PIECES) as writer:
        for seq_no in range(1, 61):
            write(writer, seq_no, [EVENT_BYTES] * EVENTS if seq_no in (40, 42) else [9000])
    return disk


@pytest.fixture
def ways(monkeypatch):
    found = []

    class Noted(PassedRun):
        def __init__(self, *args):
            super().__init__(*args)
            found.append(self)

    monkeypatch.setattr(page_blocks, "PassedRun", Noted)
    return found


def copy_with(log, directory, changes, *, seals=False):
    """The log with other bytes at some places of its file; with `seals` their pages have the right checksums."""
    data = bytearray(log.read(NAME, 0, log.size(NAME)))
    for place, value in changes.items():
        data[place] = value
        if seals:
            first = place // PAGE_SIZE * PAGE_SIZE
            data[first : first + PAGE_SIZE] = sealed_page(data[first : first + PAGE_SIZE])
    directory.mkdir(exist_ok=True)
    (directory / NAME).write_bytes(data)
    return open_files(directory)


def large_group(log):
    engine = open_files(log)
    groups = engine.groups(engine.start_of_file(0))
    return next(group for group in iter(groups.next_group, None) if group.gtid and group.gtid.seq_no == 42)


@pytest.mark.parametrize("options", [{}, {"has_semi_sync": True}], ids=str)
@pytest.mark.parametrize("send_buffer", [4 << 20, 60_000, 5_000])
def test_the_packets_are_those_of_the_careful_path(dump_of, log, ways, options, send_buffer):
    check_same(dump_of, open_files(log), ways=[{"is_pumped": True, "send_buffer": send_buffer}], **options)
    assert len(ways) >= 2
    assert all(way.at.position == way.commit and way.sent_to is not None for way in ways[-2:])


def test_parts_of_groups_between_each_other_go_out_with_their_own_group(dump_of, tmp_path, ways):
    rng = random.Random(random.randrange(2**32))
    with new_store(tmp_path, StoreOptions(max_file_bytes=32 << 20, redo_bytes=64 << 20, **PIECES)) as store:
        for seq_no in range(1, 40):
            store.write_direct(*new_group(seq_no, make_event(23, 1, bytes(9000)), XID_EVENT, domain_id=1))
        open_groups = [(store.open_group(), 500 * one) for one in range(3)]
        for _ in range(80):
            group, _ = rng.choice(open_groups)
            (group.write_statement if rng.random() < 0.2 else group.write)(make_event(23, 1, rng.randbytes(40_000)))
        for group, seq_no in open_groups:
            group.write(XID_EVENT)
            group.commit(*new_group(seq_no + 1)[:2])
        store.checkpoint()
    check_same(dump_of, open_files(tmp_path), ways=PUMPS[1:2])
    assert ways


def test_nothing_ends_a_group_of_which_a_page_is_damaged(dump_of, log, memory_path, ways):
    group = large_group(log)
    whole = sent_by(dump_of(open_files(log), is_fast=False)).ended
    data = log.read(NAME, 0, log.size(NAME))
    rng = random.Random(5)
    pages = range(group.streams[0].first.page_no, group.start.page_no + 1)
    assert len(pages) > EVENTS * EVENT_BYTES // PAGE_SIZE
    for page_no in pages:
        first = page_no * PAGE_SIZE
        for place in (first + rng.randrange(3), first + rng.randrange(3, PAGE_SIZE)):
            engine = copy_with(log, memory_path, {place: data[place] ^ 1 << rng.randrange(8)})
            try:
                careful = dump_of(engine, is_fast=False)
            except IbbMasterError:
                assert page_no % (STATE_BYTES // PAGE_SIZE) == 0  # the seek meets it: a state
                continue
            pumped = dump_of(engine, is_fast=True, is_pumped=True, send_buffer=rng.choice([4 << 20, 60_000]))
            assert pumped.error is not None
            assert f"page {page_no}" in pumped.error
            sent = sent_by(pumped)
            assert sent.ended == sent_by(careful).ended
            assert sent.ended == whole[: len(sent.ended)]
            assert len(sent.ended) in (39, 40, 41)  # what the first page begins with is of the groups before
    assert len(ways) > len(pages)


def test_other_contents_under_right_checksums_are_refused_as_the_careful_path_refuses_them(dump_of, log, memory_path):
    """Heads of chunks above all: they lead the way."""
    rng = random.Random(random.randrange(2**32))
    group, refused = large_group(log), 0
    for _ in range(60):
        page_no = rng.randrange(group.streams[0].first.page_no, group.start.page_no + 1)
        place = page_no * PAGE_SIZE + rng.choice([0, 1, 2, rng.randrange(PAGE_SIZE - 4)])
        value = rng.choice([0, 1, 2, 3, 0x41, 0x43, 0x82, 0xC2, 0xFF])
        engine = copy_with(log, memory_path, {place: value}, seals=True)
        try:
            careful = dump_of(engine, is_fast=False)
        except IbbMasterError:
            continue  # the seek meets it: a state
        pumped = dump_of(engine, is_fast=True, is_pumped=True)
        assert sent_by(pumped).ended == sent_by(careful).ended
        assert (pumped.error is None) == (careful.error is None)
        refused += careful.error is not None
    assert refused


def test_what_a_head_leads_past_is_checked_before_the_group_ends(dump_of, log, tmp_path, monkeypatch):
    later = large_group(log).start

    def set_commit(self, _):
        self._later = later

    monkeypatch.setattr(PassedRun, "commit", property(lambda self: self._later, set_commit), raising=False)
    pumped = dump_of(open_files(log), is_fast=True, is_pumped=True)
    assert pumped.error is not None
    careful = sent_by(dump_of(open_files(log), is_fast=False)).ended
    assert sent_by(pumped).ended == careful[:39]


@pytest.mark.parametrize("send_buffer", [4 << 20, 60_000])
def test_later_dumps_take_the_ways_that_one_has_found(dump_of, log, ways, monkeypatch, send_buffer):
    shared, found = SharedBlocks(), []
    way = {"is_pumped": True, "send_buffer": send_buffer, "shared": shared}
    check_same(dump_of, open_files(log), ways=[way])
    assert len(shared._cache.ways) == 2
    places = [(way.begin.position.offset, way.commit.offset) for way in ways]
    monkeypatch.setattr(KnownWays, "note", lambda self, file, way: found.append(tuple(way)))
    check_same(dump_of, open_files(log), ways=[way])
    assert found == places
    for position in ("0-1-39", "0-1-40", "0-1-41", "0-1-42"):
        check_same(dump_of, open_files(log), position, [{"is_pumped": True, "shared": shared}])


def test_a_known_way_that_is_wrong_ends_no_group_and_is_forgotten(dump_of, log, ways):
    careful = sent_by(dump_of(open_files(log), is_fast=False)).ended
    shared = SharedBlocks()
    dump_of(open_files(log), is_fast=True, is_pumped=True, shared=shared)
    known = shared._cache.ways
    ((file, (first, second)),) = known._by_file.items()
    for commit in (second.commit, first.commit - 5000, second.begin + 40):
        known.forget(file)
        known.note(file, KnownWay(first.begin, commit))
        pumped = dump_of(open_files(log), is_fast=True, is_pumped=True, shared=shared)
        assert pumped.error is not None
        assert sent_by(pumped).ended == careful[:39]
        assert len(known) == 0
        assert sent_by(dump_of(open_files(log), is_fast=True, is_pumped=True, shared=shared)).ended == careful


def test_a_known_way_is_not_taken_where_the_group_may_not_be_sent_yet(dump_of, log, ways, monkeypatch):
    shared = SharedBlocks()
    dump_of(open_files(log), is_fast=True, is_pumped=True, shared=shared)
    count, end = len(ways), large_group(log).start.offset
    monkeypatch.setattr(page_blocks, "file_end", lambda *_: end)
    dump_of(open_files(log), is_fast=True, is_pumped=True, shared=shared)
    assert [way.commit.offset < end for way in ways[count:]] == [True]
