"""The fast path puts the bytes of the careful one on the wire, whatever is in the log and wherever a dump begins."""

import contextlib
import random
import re
from pathlib import Path

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.out_of_band import OutOfBandReader
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LogPosition
from ibbmaster.primary.streaming import block_cache, page_blocks
from ibbmaster.primary.streaming.block import Block, FramingState, Packets, joined
from ibbmaster.primary.streaming.block_cache import BlockCache, KnownSkips
from ibbmaster.primary.streaming.buffers import OUT_BYTES, SHARED_BYTES, SHARED_OUT_BYTES
from ibbmaster.primary.streaming.page_blocks import SHORT_PAGES, PageBlocks
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.built_logs import CLASSIC, captures
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import XID_EVENT, gtid_of, make_event, new_group
from tests.machinery.importing import import_classic
from tests.machinery.random_log import random_log
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import feed, new_store, open_files
from tests.primary.streaming.conftest import PUMPS, check_same, noted, positions_of, run_dump, write_all

FIXTURES = Path(__file__).parents[3] / "fixtures"
EOF = b"\xfe\0\0"
SMALL_CAPTURES = [CLASSIC / name for name in captures("encrypted", "big", "big-none") if name != "11.8/large-commit"]


@pytest.mark.parametrize("directory", sorted((FIXTURES / "ibb").iterdir()), ids=lambda path: path.name)
@pytest.mark.parametrize("options", [{}, {"wants_annotate_rows": False}, {"has_semi_sync": True}], ids=str)
def test_sample_directories(dump_of, directory, options):
    careful, (fast, pumped) = check_same(dump_of, open_files(directory), ways=PUMPS[:2], **options)
    assert fast.careful_groups < careful.careful_groups
    assert pumped.pumped


@pytest.mark.parametrize("capture", SMALL_CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("profile", ["engine", "compat", "classic-11.8"])
def test_captures_of_real_servers(dump_of, tmp_path, capture, profile):
    files = sorted(path for path in capture.iterdir() if path.suffix[1:].isdigit())
    import_classic(files, RealDisk(tmp_path), max_file_bytes=1 << 18, state_interval_bytes=1 << 15)
    check_same(dump_of, open_files(tmp_path), ways=PUMPS[:2], profile=profile, knows_checksums=True)


@pytest.mark.some_of(5)
@pytest.mark.parametrize("seed", range(12))
def test_random_logs_from_any_position(dump_of, tmp_path, seed):
    store = random_log(seed, RealDisk(tmp_path))
    rng, shared = random.Random(seed), SharedBlocks()
    some = ({gtid.domain_id: str(gtid) for gtid in store.state() if rng.random() < 0.5} for _ in range(4))
    for position in ("", str(store.state().position()), *(",".join(gtids.values()) for gtids in some)):
        for options in ({}, {"wants_annotate_rows": False, "leaves_out_marked": True}, {"has_semi_sync": True}):
            check_same(dump_of, store, position, [{"shared": shared}, *PUMPS[1:3]], **options)
    assert dump_of(store, is_fast=True).careful_groups < dump_of(store, is_fast=False).careful_groups


@pytest.mark.parametrize("first", [1, 2**63 - 1000, 2**64 - 3001], ids=["small", "over 2^63", "up to 2^64"])
def test_the_way_to_a_position_is_walked_group_by_group_only_where_something_is_decided(dump_of, tmp_path, first):
    store = new_store(tmp_path, max_file_bytes=4 << 20, state_interval_bytes=4 << 20)
    bodies = [make_event(23, 1, bytes(30_000 if index % 500 == 0 else 60)) for index in range(3000)]
    pairs = [{"domain_id": index % 3 and 7, "server_id": 1 + index % 2} for index in range(3000)]
    write_all(store, (new_group(first + index, bodies[index], XID_EVENT, **pairs[index]) for index in range(3000)))
    zero, seven = f"0-1-{first + 2400}", f"7-1-{first + 2500}"
    hole = f"7-2-{first + 2502}"  # the log has that number in domain 0
    until = GtidPosition.parse(f"{zero},7-1-{first + 2900}")
    for position, careful_max in [
        (f"{zero},{seven}", 50),  # those of domain 0 behind its position
        (f"{zero},{hole}", 50),
        (seven, 850),  # all of domain 0
        (f"{zero},{seven},9-9-9", 50),  # the log does not know domain 9
        ("9-9-9", 10),
    ]:
        for options in ({}, {"is_strict": True}, {"until": until}):
            _, (fast, _) = check_same(dump_of, store, position, PUMPS[:2], **options)
            assert fast.careful_groups <= careful_max or "until" in options


@pytest.mark.parametrize("is_pumped", [False, True])
@pytest.mark.parametrize(("wanted", "is_error"), [(6, False), (19, False), (30, True)])
def test_a_domain_that_only_the_replica_knew_is_judged_when_it_turns_up(dump_of, tmp_path, wanted, is_error, is_pumped):
    calls = 0
    for name in ("True", "False"):
        (tmp_path / name).mkdir()

    def write(domain_id, numbers):
        body = make_event(23, 1, bytes(1000)), XID_EVENT
        write_all(store, (new_group(seq_no, *body, domain_id=domain_id) for seq_no in numbers))

    def come(session):
        nonlocal calls
        calls += 1
        if calls == 1:
            write(0, range(1000, 1400))
            write(9, range(1, 20))
            write(0, range(1400, 3000))
        elif calls > 30:
            session.end_of_service()

    dumps = []
    for is_fast in (False, True):
        store = new_store(tmp_path / str(is_fast), max_file_bytes=8 << 20)
        calls = 0
        write(0, range(1, 500))
        way = {"is_fast": is_fast, "is_pumped": is_pumped and is_fast}
        dumps.append(dump_of(store, **way, position=f"9-1-{wanted}", between=come))
    careful, fast = dumps
    assert calls > 1
    assert (fast.data, fast.error) == (careful.data, careful.error)
    assert (fast.error is not None) == is_error
    if not is_error:
        assert fast.careful_groups < 1000 < 2000 < careful.careful_groups


@pytest.mark.parametrize("seed", range(100, 106))
def test_blocks_for_many_readers_hold_the_same_packets(dump_of, tmp_path, monkeypatch, seed):
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", 2)
    store = random_log(seed, RealDisk(tmp_path))
    state = store.state()
    some = ",".join(str(state.latest(domain_id)) for domain_id in state.domain_ids if domain_id)
    shared = SharedBlocks()
    dumps = [
        dump_of(store, is_fast=True, shared=shared, position=position, stays=True, **options)
        for position, options in [("", {}), ("", {}), (some, {}), ("", {"has_semi_sync": True}), (some, {}), ("", {})]
    ]
    assert dumps[0].data == dumps[1].data == dumps[5].data == dump_of(store, is_fast=False).data
    assert dumps[2].data == dumps[4].data == dump_of(store, is_fast=False, position=some).data
    assert dumps[3].data == dump_of(store, is_fast=False, has_semi_sync=True).data


def test_a_dump_that_was_ended_early_marks_no_end_for_others(dump_of, tmp_path):
    store, shared = random_log(3, RealDisk(tmp_path)), SharedBlocks()
    ended = dump_of(store, is_fast=True, shared=shared, between=lambda session: session.end_of_service())
    careful = dump_of(store, is_fast=False)
    assert len(ended.data) < len(careful.data)
    assert dump_of(store, is_fast=True, shared=shared).data == careful.data


def check_broken_off(dump, whole):
    assert dump.error is not None
    places = r"binlog-\d+\.ibb( \(node \d+ of a group\))? offset \d+"
    found = re.search(rf"the stream ended at ({places}), and ({places}) would come next", dump.error)
    assert found is not None, dump.error
    assert found[1] != found[3]
    assert dump.error.startswith("error 1236 (the stream would not go on where it ended: ")
    sent = bytes(dump.data)
    last = sent.rfind(b"\xff" + (1236).to_bytes(2, "little") + b"#HY000the stream would not go on")
    if last >= 0:  # not inside an event
        sent = sent[: last - 4]
    assert whole.startswith(sent)


PATHS = {
    "careful": {"is_fast": False},
    "blocks": {"is_fast": True},
    "pump": {"is_fast": True, "is_pumped": True, "send_buffer": 60_000},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(5))
def test_a_group_that_somebody_else_takes_away_ends_the_dump(dump_of, memory_path, path, seed):
    store, readers, calls = random_log(seed, RealDisk(memory_path)), [], 0
    whole, groups = bytes(dump_of(store, is_fast=False).data), store.groups
    store.groups = lambda place: readers.append(groups(place)) or readers[-1]

    def take_one(session):
        nonlocal calls
        calls += 1
        if calls == 3 + 2 * seed:
            assert readers[-1].next_group() is not None
        assert calls < 1000

    check_broken_off(dump_of(store, between=take_one, **PATHS[path]), whole)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [200, 100_000, 3 << 20], ids=["small", "out of band", "long records"])
def test_nothing_of_a_log_that_began_anew_follows_the_old_one(dump_of, memory_path, path, size):
    sizes = {"max_file_bytes": 16 << 20, "state_interval_bytes": 4 << 20, "redo_bytes": 64 << 20}
    store = new_store(memory_path, **sizes, spill_bytes=60_000 if size < 1 << 20 else 8 << 20)

    def feed(content):
        count, body = max(4, (6 << 20) // max(size, 2000)), make_event(23, 1, content * size)
        write_all(store, (new_group(seq_no, body, XID_EVENT) for seq_no in range(1, 1 + count)))
        store.checkpoint()

    feed(b"o")
    whole = bytes(dump_of(store, is_fast=False).data)
    for at in (1, 2, 3):
        calls = 0

        def begin_anew(session, at=at):
            nonlocal calls
            calls += 1
            if calls == at:
                store.reset()
                feed(b"n")
            assert calls < 1000

        dump = dump_of(store, between=begin_anew, **{**PATHS[path], "send_buffer": 1 << 20})
        assert dump.error is None, "its replica comes back, and is judged anew"
        sent = dump.data[:-9] if dump.data[-5:-2] == EOF else dump.data  # nothing is said inside an event
        assert whole.startswith(sent)
        store.reset()
        feed(b"o")


@pytest.mark.parametrize("again", [False, True], ids=["another block", "the same block again"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "shared"])
def test_a_block_from_another_place_is_not_sent(dump_of, tmp_path, monkeypatch, is_shared, again):
    store = random_log(3, RealDisk(tmp_path))
    whole = bytes(dump_of(store, is_fast=False).data)
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", 1 if is_shared else 99)
    find = BlockCache.find
    count = len(recorded_blocks(dump_of, store, monkeypatch))
    assert count > 20
    for wrong in range(1, count, 5):
        found = []

        def confuse(cache, key, sequence, make, *, found=found, wrong=wrong, **how):
            block = find(cache, key, sequence, make, **how)
            if block is None:
                return None
            found.append(block)
            if len(found) - 1 != wrong:
                return block
            return found[wrong - 1] if again else renumbered_like(block)

        monkeypatch.setattr(BlockCache, "find", confuse)
        dump = dump_of(store, is_fast=True)
        monkeypatch.setattr(BlockCache, "find", find)
        check_broken_off(dump, whole)


def recorded_blocks(dump_of, store, monkeypatch):
    with monkeypatch.context() as patched:
        calls = noted(patched, BlockCache, "find")
        dump_of(store, is_fast=True)
    return [call.found for call in calls if call.found is not None]


def renumbered_like(block):
    before = FramingState(block.begin._replace(offset=block.begin.offset + 1))
    packets = Packets(bytearray(block.data()), sequence=block.sequence_after)
    return Block(packets, before, block.after, block.groups)


def test_blocks_that_do_not_follow_each_other_are_not_joined():
    def block(before, after):
        return Block(Packets(bytes(40_000)), *(FramingState(LogPosition(3, at)) for at in (before, after)))

    assert len(joined([block(16384, 20000), block(20000, 30000)])) == 80_000
    with pytest.raises(DumpError, match=r"binlog-000003\.ibb offset 20000, and binlog-000003\.ibb offset 20001"):
        joined([block(16384, 20000), block(20001, 30000)])


@pytest.mark.parametrize("kind", ["pages", "traditional"])
def test_reading_goes_on_where_a_group_ended_whatever_stands_between(memory_path, kind):
    if kind == "pages":
        engines = [random_log(seed, RealDisk(make_directory(memory_path / str(seed)))) for seed in range(4)]
        engines += [open_files(path) for path in sorted((FIXTURES / "ibb").iterdir())]
        engines.append(long_records(RealDisk(make_directory(memory_path / "long"))))
    else:
        engines = [
            ClassicBinlog(sorted(path for path in capture.iterdir() if path.suffix[1:].isdigit()))
            for capture in SMALL_CAPTURES
        ]
    rng = random.Random(1)
    for engine in engines:
        place = engine.start_of_file()
        with contextlib.closing(engine.groups(place)) as groups:
            ended = place.position
            for group in iter(groups.next_group, None):
                assert group.start < group.end
                for _ in group.body if rng.random() < 0.5 else ():
                    if rng.random() < 0.2:
                        break
                assert groups.position == group.end
                ended = group.end
            assert groups.position == ended


def make_directory(path):
    path.mkdir()
    return path


def long_records(disk):
    store = new_store(disk, max_file_bytes=2 << 20, spill_bytes=8 << 20, redo_bytes=64 << 20)
    for seq_no in range(1, 12):
        store.write_direct(*new_group(seq_no, make_event(23, 1, bytes(10 if seq_no % 3 else 3 << 20)), XID_EVENT))
    return store


def test_long_records_go_out_whole_whichever_way_they_take(dump_of, memory_path):
    store = long_records(RealDisk(memory_path))
    for position in ("", "0-1-2", "0-1-6"):
        careful, _ = check_same(dump_of, store, position, PUMPS[:2])
        assert careful.error is None


@pytest.mark.parametrize(
    "size", [0xFFFFFF - 20, 0xFFFFFF - 19, 0xFFFFFF - 1 - 19, 0xFFFFFF, 2 * 0xFFFFFF - 20, 35 << 20]
)
def test_an_event_of_more_than_a_packet(dump_of, memory_path, size):
    store = new_store(memory_path, max_file_bytes=8 << 20, redo_bytes=64 << 20)
    for seq_no, length in enumerate((1000, size, 1000), 1):
        store.write_direct(*new_group(seq_no, make_event(23, 1, bytes(length)), XID_EVENT))
    for options in ({}, {"has_semi_sync": True}):
        _, (fast, pumped) = check_same(dump_of, store, ways=PUMPS[:2], **options)
        assert pumped.pumped > 1 << 20
    assert max(fast.blocks) < 600_000


def large_groups(directory, count):
    store = new_store(directory, max_file_bytes=8 << 20, spill_bytes=10_000)
    bodies = [make_event(23, 1, bytes(20_000)), make_event(23, 1, bytes(100))] * count
    write_all(store, (new_group(seq_no, body, XID_EVENT) for seq_no, body in enumerate(bodies, 1)))
    return store


def test_a_pump_goes_on_over_the_ends_of_groups(dump_of, tmp_path):
    _, [pumped] = check_same(dump_of, large_groups(tmp_path, 8), ways=PUMPS[1:2])
    assert pumped.pumped > 7 * 20_000  # all behind the first block
    assert len(pumped.blocks) <= 2  # what opens the stream, and that block


@pytest.mark.parametrize("node_bytes", [700, 5000, 16_000, 60_000])
def test_many_nodes_in_one_read_go_out_without_a_look_at_each(dump_of, tmp_path, monkeypatch, node_bytes):
    rng = random.Random(node_bytes)
    disk = RealDisk(tmp_path)
    sizes = {"spill_bytes": node_bytes, "oob_piece_bytes": node_bytes}
    with BinlogWriter(disk, max_file_bytes=16 << 20, state_interval_bytes=1 << 20, **sizes) as writer:
        for seq_no in range(1, 9):
            events = [make_event(23, 1, rng.randbytes(rng.choice([0, 50, 9000, 70_000]))) for _ in range(20)]
            writer.write_group(*new_group(seq_no, *events, XID_EVENT))
    engine = open_files(disk)
    for options in ({}, {"has_semi_sync": True}):
        careful = dump_of(engine, is_fast=False, **options)
        with monkeypatch.context() as patched:
            if node_bytes > 1000:  # of small ones some header is cut by the end of a page
                patched.setattr(OutOfBandReader, "nodes", None)
            dumps = [dump_of(engine, is_fast=True, **way, **options) for way in PUMPS[:3]]
        assert all(dump.data == careful.data for dump in dumps)
        assert all(dump.pumped > len(careful.data) // 8 for dump in dumps[1:])


def test_blocks_are_long_where_many_read_or_packets_do_not_go_to_a_socket_as_they_are(dump_of, tmp_path, monkeypatch):
    store = new_store(tmp_path, max_file_bytes=32 << 20, redo_bytes=64 << 20)
    small, large = make_event(23, 1, bytes(3000)), make_event(23, 1, bytes(5 << 20))
    write_all(store, (new_group(seq_no, large if seq_no == 2000 else small) for seq_no in range(1, 3001)))
    careful = dump_of(store, is_fast=False)
    alone = dump_of(store, is_fast=True)
    opaque = dump_of(store, is_fast=True, is_pumped=True, is_clear=False)
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", 1)
    shared = dump_of(store, is_fast=True)
    assert alone.data == opaque.data == shared.data == careful.data
    assert max(alone.blocks) < OUT_BYTES
    for dump in (opaque, shared):
        assert SHARED_BYTES // 2 < max(dump.blocks) <= SHARED_OUT_BYTES
        assert len(dump.blocks) < len(alone.blocks) / 2


def test_a_dump_goes_into_a_group_that_another_one_is_in_without_reading_its_commit_record(dump_of, tmp_path):
    store = large_groups(tmp_path, 3)
    alone, shared = dump_of(store, is_fast=True), SharedBlocks()
    begun, others = set(), []

    def look(session):
        begun.update([session._position] if session.is_inside_group else [])
        if len(begun) == 2 and session.is_inside_group:  # the first one comes behind the head of the file
            others.append(dump_of(store, is_fast=True, shared=shared))
            session.end_of_service()

    dump_of(store, is_fast=True, shared=shared, between=look)
    assert others[0].data == alone.data
    assert others[0].careful_groups == alone.careful_groups - 1


def test_the_way_over_the_parts_of_a_large_group_is_one_step_for_many_who_come_later(dump_of, tmp_path, monkeypatch):
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", 2)
    store = new_store(tmp_path, max_file_bytes=16 << 20, spill_bytes=10_000)
    for seq_no in (1, 2):
        store.write_direct(*new_group(seq_no, make_event(23, 1, bytes(5 << 20)), XID_EVENT))
    steps, shared = noted(monkeypatch, BlockSource, "_go_behind"), SharedBlocks()
    dumps, passed = [], []
    for _ in range(5):
        steps.clear()
        dumps.append(dump_of(store, is_fast=True, shared=shared, stays=True))
        passed.append(sum(not len(call.given[1]) for call in steps))
    assert {bytes(dump.data) for dump in dumps} == {bytes(dump_of(store, is_fast=False).data)}
    assert passed[-1] <= 2 < 8 <= max(passed)


def test_many_known_ways_that_follow_each_other_are_one_for_those_who_come_later(dump_of, tmp_path, monkeypatch):
    with BinlogWriter(RealDisk(tmp_path)) as writer:
        gtids = [gtid_of(number) for number in range(1, 60)]
        feed(writer, range(1, 60), 3000)
    log, shared = open_files(tmp_path), SharedBlocks()
    whole = dump_of(log, is_fast=True, position="0-1-50").data
    found, note = noted(monkeypatch, KnownSkips, "find"), KnownSkips.note

    def note_each(self, key, blocks, limits=()):
        for block in blocks:
            note(self, (key[0], block.before), [block])

    with monkeypatch.context() as patch:
        patch.setattr(KnownSkips, "note", note_each)
        for gtid in gtids[9:50:4]:
            dump_of(log, is_fast=True, shared=shared, position=str(gtid))
    steps = []
    for _ in range(3):
        found.clear()
        assert dump_of(log, is_fast=True, shared=shared, position="0-1-50").data == whole
        steps.append(sum(call.found is not None for call in found))
    assert steps[0] >= 10
    assert max(steps[1:]) <= 2


def test_what_a_slow_socket_does_not_take_never_outgrows_its_buffer(dump_of, memory_path):
    tiny, long = make_event(23, 1, b"") * 20_000, make_event(23, 1, bytes(130_000))
    for spill_bytes in (60_000, 8 << 20):  # out of band, and in the commit record
        disk = RealDisk(memory_path / str(spill_bytes))
        disk.directory.mkdir()
        store = new_store(disk, max_file_bytes=16 << 20, spill_bytes=spill_bytes, redo_bytes=64 << 20)
        for seq_no in range(8, 21, 2):
            store.write_direct(*new_group(seq_no, *(tiny[: 19 * 1_000 * seq_no], long) * 5, XID_EVENT))
        store.close()
        way = {"is_pumped": True, "send_buffer": 20_000}
        _, [pumped] = check_same(dump_of, open_files(disk), ways=[way], has_semi_sync=True)
        assert OUT_BYTES // 2 < pumped.rest_max <= OUT_BYTES


def test_damage_ends_the_dump_where_and_as_the_careful_path_does(dump_of):
    disk = SimulatedDisk()
    random_log(7, disk).close()
    files = {name: data for name, data in disk.files().items() if name.endswith(".ibb")}
    rng = random.Random(random.randrange(2**32))
    for _ in range(60):
        name = rng.choice([name for name in files if any(files[name])])
        data = bytearray(files[name])
        data[rng.randrange(PAGE_SIZE, len(data))] ^= 1 << rng.randrange(8)
        engines = [open_files(MemoryDisk({**files, name: bytes(data)})) for _ in range(2)]
        try:
            careful = dump_of(engines[0], is_fast=False)
        except IbbMasterError:
            continue  # the seek meets it already
        shared = SharedBlocks()
        fast = run_dump(engines[1], is_fast=True, shared=shared, stays=True)
        again = dump_of(engines[1], is_fast=True, shared=shared)  # also where the first one was inside a group
        fast.source.close()
        assert (again.data, again.error) == (fast.data, fast.error)
        if careful.error is None:
            assert (fast.data, fast.error) == (careful.data, None)
        else:
            assert fast.error == careful.error
            assert fast.data[: len(careful.data) // 2] == careful.data[: len(careful.data) // 2]


def small_groups(directory, count=3000, **options):
    store = new_store(directory, **options)
    write_all(store, (new_group(seq_no, make_event(23, 1, bytes(200)), XID_EVENT) for seq_no in range(1, count + 1)))
    store.checkpoint()
    return store


@pytest.mark.parametrize("position", ["", "0-1-1", "0-1-1500", "0-1-2999"])
def test_a_dump_begins_without_a_visit_to_a_thread_and_with_a_short_block(dump_of, tmp_path, monkeypatch, position):
    store = small_groups(tmp_path)
    careful = dump_of(store, is_fast=False, position=position)
    visits = noted(monkeypatch, BlockSource, "next_block")
    fast = dump_of(store, is_fast=True, position=position)
    assert fast.data == careful.data
    assert sum(call.named["may_wait"] for call in visits) == 1  # at the end of the log
    framed = [size for size in fast.blocks if size > 1000]
    assert all(size < 2 * SHORT_PAGES * PAGE_SIZE for size in framed[:1])
    assert all(size > framed[0] for size in framed[1:-1])
    if position in ("0-1-1", "0-1-1500"):
        assert fast.blocks[0] == framed[0]  # with what opens the stream


@pytest.mark.parametrize("size", [300, 5000, 40_000])
def test_the_rest_of_a_group_that_a_state_lies_in_is_skipped_with_what_follows(dump_of, tmp_path, size):
    options = StoreOptions(max_file_bytes=8 << 20, state_interval_bytes=1 << 16)
    store, groups = new_store(tmp_path, options), (2 << 20) // size
    write_all(store, (new_group(1 + index, make_event(23, 1, bytes(size)), XID_EVENT) for index in range(groups)))
    inside, careful_groups = 0, []
    for seq_no in range(1, groups, max(1, groups // 40)):
        if store.seek(GtidPosition.parse(f"0-1-{seq_no}")).position.page_no == 1:
            continue  # it begins with the file, whose state is read with care
        careful, [fast] = check_same(dump_of, store, f"0-1-{seq_no}", [{}])
        inside += careful.careful_groups > 1
        careful_groups.append(fast.careful_groups)
    assert inside > 5
    assert max(careful_groups) <= 2  # where the way ends, and the last of the log
    assert min(careful_groups) <= 1


@pytest.mark.parametrize("is_in_order", [True, False], ids=["in order", "with steps back"])
def test_the_last_group_of_a_replica_is_skipped_with_those_before_it(dump_of, tmp_path, is_in_order):
    store, shared = new_store(tmp_path, StoreOptions(state_interval_bytes=1 << 16, gtid_strict=False)), SharedBlocks()
    position, positions = {}, []
    groups = []
    for index in range(240):
        number, body = index if is_in_order or index % 50 else index // 2, make_event(23, 1, bytes(index * 331 % 3000))
        pair = {"domain_id": index % 3 and 7, "server_id": 1 + index % 2}
        groups.append(new_group(1 + number // 2, body, XID_EVENT, **pair))
        position[pair["domain_id"]] = str(groups[-1][0])
        positions += [",".join(position.values()), ",".join(reversed(position.values()))]
    write_all(store, groups)
    careful_groups = []
    for place in positions[4:-4:3]:
        _, (fast, _) = check_same(dump_of, store, place, [{}, {"shared": shared, "stays": True}])
        careful_groups.append(fast.careful_groups)
    assert sorted(careful_groups)[len(careful_groups) // 2] <= 1  # the look at the end


def test_replicas_at_the_same_place_take_one_way_to_it(dump_of, tmp_path, monkeypatch):
    store, shared, ways = small_groups(tmp_path), SharedBlocks(), noted(monkeypatch, PageBlocks, "skip")
    monkeypatch.setattr(page_blocks, "SKIPPED_PAGES", 16)
    check_same(dump_of, store, "0-1-2500", [{"shared": shared, "stays": True}])
    dump_of(store, is_fast=True, position="0-1-2500", shared=shared, stays=True)
    assert len(ways) > 2
    ways.clear()
    check_same(dump_of, store, "0-1-2500", [{"shared": shared}])
    assert len(ways) <= 2  # before it, where it begins, and whether there is more
    for position in ("0-1-2499", "0-1-2501", "", "0-1-3000"):
        check_same(dump_of, store, position, [{"shared": shared}])


@pytest.mark.parametrize("is_classic", [False, True], ids=["ibb", "traditional"])
@pytest.mark.parametrize("seed", range(3))
def test_dumps_that_share_what_they_found_are_as_those_alone_wherever_each_begins(dump_of, tmp_path, seed, is_classic):
    if is_classic:
        capture = [path for path in SMALL_CAPTURES if path.name == "domains"][seed % 2]
        engine = ClassicBinlog(sorted(path for path in capture.iterdir() if path.suffix[1:].isdigit()))
    else:
        engine = random_log(seed, RealDisk(tmp_path), groups=60)
    rng, shared = random.Random(seed), SharedBlocks()
    positions = [""]
    for position in positions_of(engine)[1:]:
        some = GtidPosition(gtid for gtid in position.values() if rng.random() < 0.6)
        positions += [str(position), str(some)]
    first = rng.randrange(len(positions) - 8)
    wishes = ({}, {"wants_annotate_rows": False}, {"has_semi_sync": True})
    asked = [(position, options) for position in positions[first : first + 8] for options in wishes]
    rng.shuffle(asked)
    for position, options in [*asked, *asked[:12]]:
        check_same(dump_of, engine, position, [{"shared": shared, "stays": True}], **options)


def test_dumps_that_share_what_they_found_know_nothing_of_the_log_before_a_reset(dump_of, tmp_path):
    options = StoreOptions(spill_bytes=20_000, oob_piece_bytes=9000, state_interval_bytes=1 << 20)
    store, shared = new_store(tmp_path, options), SharedBlocks()
    for content in (b"o", b"n", b"m"):
        for seq_no, size in enumerate((100, 60_000, 100, 300_000, 100), start=1):
            store.write_direct(*new_group(seq_no, make_event(23, 1, content * size), XID_EVENT))
        store.checkpoint()
        for position in ("", "0-1-3", "0-1-1", "", "0-1-3"):
            ways = [{"is_pumped": is_pumped, "shared": shared, "stays": not is_pumped} for is_pumped in (False, True)]
            check_same(dump_of, store, position, ways)
        store.reset()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_in_memory_the_dump_is_the_same(dump_of, tmp_path, monkeypatch, seed):
    store, rng = random_log(seed, RealDisk(tmp_path)), random.Random(seed)
    read_into = RealDisk.read_into

    def read_some(self, name, offset, target, *, only_cached=False):
        if only_cached and rng.random() < 0.5:
            return None
        return read_into(self, name, offset, target, only_cached=only_cached)

    monkeypatch.setattr(RealDisk, "read_into", read_some)
    for position in ["", *(str(gtid) for gtid in rng.sample(list(store.state()), 2))]:
        careful = dump_of(store, is_fast=False, position=position)
        for _ in range(4):
            assert dump_of(store, is_fast=True, position=position).data == careful.data, (seed, position)


@pytest.mark.parametrize("at_first", [1, 8, 64])
def test_skipping_ends_before_the_first_group_after_an_end(tmp_path, monkeypatch, at_first):
    monkeypatch.setattr(page_blocks, "SKIPPED_AT_FIRST", at_first)
    store, starts = small_groups(tmp_path), []
    groups, others = (store.groups(store.start_of_file()) for _ in range(2))
    groups.next_group()
    at = FramingState(groups.position)
    starts += [(group.start, group.gtid.seq_no) for group in iter(others.next_group, None)]
    limit = Gtid(domain_id=0, server_id=1, seq_no=10**6)
    for page_no in (*range(2, 24), 40):
        end = LogPosition.on_page(0, page_no)
        maker = PageBlocks(groups, BlockCache(), loading.load(), lambda: end)  # noqa: B023
        block = maker.skip(at, [limit], only_cached=False)
        last = max(seq_no for start, seq_no in starts if start < end)  # which may not be whole before that
        assert block.gtids[0].seq_no in (last - 1, last)
