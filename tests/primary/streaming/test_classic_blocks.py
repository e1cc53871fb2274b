"""Traditional files go out by kernels as they do group by group, whatever is in them and wherever a dump begins."""

import lzma
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic import framing, series
from ibbmaster.logs.classic.binlog import ClassicGroups
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.primary.streaming import block_cache
from ibbmaster.primary.streaming.classic_blocks import SHORT_BYTES, ClassicBlocks
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.profile import PROFILES
from tests.built_logs import captures
from tests.primary.streaming.conftest import PUMPS as EVERY_PUMP
from tests.primary.streaming.conftest import check_same, noted, positions_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
CLASSIC = FIXTURES / "classic"
OPTIONS = [
    {},
    {"wants_annotate_rows": False, "leaves_out_marked": True},
    {"has_semi_sync": True},
    {"capability": 2},
    {"knows_checksums": False},
]
PUMPS = EVERY_PUMP[:3]
GTID, GTID_LIST, STOP, ROWS, XID, CHECKPOINT = 162, 163, 3, 23, 16, 161


def check_classic(dump_of, engine, **options):
    return check_same(dump_of, engine, **{"knows_checksums": True, "ways": PUMPS, **options})


@pytest.mark.parametrize("capture", captures("encrypted", "big", "big-none"))
def test_captures_of_real_servers(dump_of, capture):
    rng = random.Random(capture)
    engine = ClassicBinlog([CLASSIC / capture])
    for profile in PROFILES:
        careful, dumps = check_classic(dump_of, engine, profile=profile)
        assert all(dump.careful_groups <= len(engine.files()) for dump in dumps)
        assert careful.error is None
        check_classic(dump_of, engine, ways=[rng.choice(PUMPS)], profile=profile, **rng.choice(OPTIONS))


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8", "engine"])
@pytest.mark.parametrize("name", ["10.11/domains", "11.8/group-commit"])
def test_from_any_position_to_any_other(dump_of, name, profile):
    rng = random.Random(name + profile)
    engine = ClassicBinlog([CLASSIC / name])
    positions = positions_of(engine)[1:]
    for _ in range(8):
        position = rng.choice(positions)
        until = GtidPosition(gtid for gtid in rng.choice(positions).values() if rng.random() < 0.7)
        text = str(position) if rng.random() < 0.7 else f"{position},12345-1-1"
        for options in ({}, {"is_strict": True}, {"until": until, "until_is_before": rng.random() < 0.5}):
            ways = [rng.choice(PUMPS)]
            careful, dumps = check_classic(dump_of, engine, ways=ways, profile=profile, position=text, **options)
            if "until" not in options and len(careful.data) > 10_000 and len(position) == 1:
                assert dumps[0].careful_groups < 20 + len(engine.files())


def test_a_dump_begins_without_a_visit_to_a_thread_and_with_a_short_block(dump_of, tmp_path, monkeypatch):
    shutil.copy(CLASSIC / "11.8/group-commit/binlog.000001", tmp_path)
    engine = ClassicBinlog([tmp_path])
    positions = list(map(str, positions_of(engine)))
    calls = noted(monkeypatch, BlockSource, "next_block")
    whole = 0
    for position in positions[1 : len(positions) // 2]:
        calls.clear()
        dump_of(engine, is_fast=True, profile="classic-11.8", position=position, knows_checksums=True)
        assert not calls[0].named["may_wait"]
        size = 0 if calls[0].found is None else len(calls[0].found)
        assert size < 2 * SHORT_BYTES
        whole += size > SHORT_BYTES // 2  # what opens the stream, and the first groups
    assert whole > len(positions) // 3  # others have many events on the way that are in no group


@pytest.mark.parametrize("profile", ["classic-11.8", "engine"])
@pytest.mark.parametrize("seed", range(6))
def test_wherever_a_file_is_not_in_memory_a_thread_goes_on(dump_of, tmp_path, monkeypatch, seed, profile):
    shutil.copytree(FIXTURES / ("gtid-index" if seed % 2 else "classic/10.11/domains"), tmp_path, dirs_exist_ok=True)
    engine, rng, refused = ClassicBinlog([tmp_path]), random.Random(seed), [0, 0]
    fill = series.fill

    def fill_some(descriptor, offset, target, *, only_cached=False):
        assert only_cached
        is_refused = rng.random() < 0.4
        refused[is_refused] += 1
        return None if is_refused else fill(descriptor, offset, target, only_cached=True)

    monkeypatch.setattr(framing, "SKIPPED_BYTES", (700, *framing.SKIPPED_BYTES))
    monkeypatch.setattr(series, "fill", fill_some)
    shared = SharedBlocks()
    for position in map(str, positions_of(engine)[seed::5]):
        check_classic(dump_of, engine, ways=[{"shared": shared}], profile=profile, position=position)
    assert profile == "engine" or min(refused) > 10


def test_what_stops_the_way_to_a_position_is_not_looked_at_by_those_who_go_there_later(dump_of, tmp_path, monkeypatch):
    shutil.copytree(FIXTURES / "gtid-index", tmp_path, dirs_exist_ok=True)
    engine, shared = ClassicBinlog([tmp_path]), SharedBlocks()
    positions = list(map(str, positions_of(engine)[1:]))
    tries, skip = [], ClassicBlocks.skip

    def note(self, at, limits, *, only_cached):
        block = skip(self, at, limits, only_cached=only_cached)
        if not self.groups.is_before_other:
            tries.append(block)
        return block

    monkeypatch.setattr(ClassicBlocks, "skip", note)
    counts = Counter()
    for position in positions[10:-10:7]:
        dumps = []
        for reader in ("first", "later"):
            tries.clear()
            dumps.append(dump_of(engine, is_fast=True, shared=shared, position=position, profile="engine").data)
            counts[reader] += len(tries)
        assert dumps[0] == dumps[1]
    assert counts["later"] < counts["first"] / 2


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
def test_by_file_and_offset(dump_of, profile):
    engine = ClassicBinlog([CLASSIC / "11.8/domains"])
    whole, _ = check_classic(dump_of, engine, profile=profile, file_name="binlog.000002")
    places, offset = [4], 0
    while offset < len(whole.data):  # where events end in the file, as the replica counts
        size = int.from_bytes(whole.data[offset : offset + 3], "little")
        places.append(int.from_bytes(whole.data[offset + 18 : offset + 22], "little"))
        offset += 4 + size
    for position in [*places[:40:3], places[20] + 1, 10**6]:
        place = {"file_name": "binlog.000002", "file_position": max(position, 4)}
        check_classic(dump_of, engine, ways=PUMPS[:2], profile=profile, **place)


def test_a_position_is_found_without_a_look_into_other_files(dump_of, tmp_path, monkeypatch):
    shutil.copytree(CLASSIC / "10.11/domains", tmp_path, dirs_exist_ok=True)
    engine = ClassicBinlog([tmp_path])
    files = engine.files()
    last = engine.start_of_file(len(files) - 3)
    engine.state()
    for file in files[:-3]:
        (tmp_path / file.name).unlink()
    careful, _ = check_classic(dump_of, engine, position=str(last.state.position()))
    assert careful.data


def before_error(data):
    """What was sent before the packet that tells of an error, if one could be sent."""
    told = data.rfind(b"\xff" + (1236).to_bytes(2, "little") + b"#HY000")
    return data if told < 0 else data[: told - 4]


def problem(error):
    """What is wrong in a file, and where; whether the group was begun depends on how much was read at once."""
    return re.search(r"binlog\.\d+ offset \d+: .*", error)[0].rpartition("binlog.")[2]


def check_damage(dump_of, engine, way, profile):
    """Both ways send the same up to the damage, but for how much of a group in parts, and say the same of it."""
    options = {"profile": profile, "knows_checksums": True}
    careful = dump_of(engine, is_fast=False, **options)
    fast = dump_of(engine, is_fast=True, **way, **options)
    if careful.error is None:
        assert (fast.data, fast.error) == (careful.data, None)
        return None
    assert problem(fast.error) == problem(careful.error)
    sent, others = sorted((before_error(dump.data) for dump in (careful, fast)), key=len)
    assert others.startswith(sent)
    assert len(before_error(fast.data)) - len(before_error(careful.data)) < 1_100_000  # of a group that has begun
    return careful.error


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/checksum-switch", "10.11/domains-none"])
def test_damage_ends_the_dump_where_and_as_it_does_group_by_group(dump_of, tmp_path, name):
    rng = random.Random(random.randrange(2**32))
    shutil.copytree(CLASSIC / name, tmp_path, dirs_exist_ok=True)
    files = sorted(path for path in tmp_path.glob("binlog.0*") if path.suffix[1:].isdigit())
    for _ in range(60):
        path = rng.choice(files)
        whole = path.read_bytes()
        data = bytearray(whole)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            engine = ClassicBinlog([tmp_path])
            engine.state()
            engine.seek(GtidPosition(""))  # reads the heads
        except IbbMasterError:
            continue  # that is found before anything is sent
        else:
            check_damage(dump_of, engine, rng.choice(PUMPS), rng.choice(list(PROFILES)))
        finally:
            path.write_bytes(whole)


def write_file(path, groups, file, *, in_use=False, is_closed=True):
    """A file with groups, each of which is a list of sizes of row events; returns where each begins."""
    file.data[4 + 17] |= in_use
    rng = random.Random(1)
    file.add(GTID_LIST, bytes(6))
    begins = []
    for seq_no, sizes in enumerate(groups, 1):
        begins.append(len(file.data))
        file.begin_group(seq_no)
        for size in sizes:
            file.add(ROWS, rng.randbytes(min(size, 1000)) * (size // 1000 + 1))
        file.add(XID, bytes(8))
    if is_closed:
        file.add(STOP, b"")
    path.write_bytes(file.data)
    return begins


LONG = [[100], [400_000] * 3, [100], [2_000_000, 50], [17_000_000], [30_000] * 40, [10], [600_000]]


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8", "engine"])
@pytest.mark.parametrize("with_checksums", [True, False])
def test_long_groups_and_events_go_out_in_parts(dump_of, tmp_path, with_checksums, profile, new_classic_file):
    write_file(tmp_path / "binlog.000001", LONG, new_classic_file(with_checksums=with_checksums))
    engine = ClassicBinlog([tmp_path])
    for position in ("", "0-1-1", "0-1-4"):
        _, dumps = check_classic(dump_of, engine, profile=profile, position=position)
        assert max(dumps[0].blocks) < 600_000
        assert dumps[0].careful_groups < 4
    assert dumps[1].pumped > 1 << 20


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8", "engine"])
def test_the_way_to_a_position_is_skipped_whatever_stands_between_groups(dump_of, tmp_path, profile, new_classic_file):
    file = new_classic_file()
    file.add(GTID_LIST, bytes(6))
    for seq_no in range(1, 3001):
        if seq_no == 1 or seq_no % 1000 == 0:
            file.add(CHECKPOINT, b"\x0d\0\0\0binlog.000001")
        file.begin_group(seq_no)
        file.add(ROWS, bytes(60))
        file.add(XID, bytes(8))
    (tmp_path / "binlog.000001").write_bytes(file.data)
    engine = ClassicBinlog([tmp_path])

    for position in ("0-1-999", "0-1-2500"):
        careful, dumps = check_classic(dump_of, engine, profile=profile, position=position)
        assert careful.error is None
        assert all(dump.careful_groups < 10 for dump in dumps)


def test_damage_in_a_long_group_is_told_where_it_is_met(dump_of, memory_path, new_classic_file):
    begins = write_file(memory_path / "binlog.000001", LONG, new_classic_file())
    path = memory_path / "binlog.000001"
    whole = path.read_bytes()
    rng = random.Random(3)
    for index in range(40):
        data = bytearray(whole)
        if index % 4 == 0:
            del data[rng.randrange(begins[1], len(whole) - 30) :]
        else:
            data[rng.randrange(begins[1], len(whole) - 100)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        engine = ClassicBinlog([memory_path])
        engine.state = GtidState  # what is damaged is met by the dump
        is_found = check_damage(dump_of, engine, rng.choice(PUMPS), "classic-11.8") is not None
        assert is_found == (len(data) == len(whole))  # what is missing at the end of the last file may still come


@pytest.mark.parametrize("count", range(1, len(LONG) + 1))
def test_of_a_file_in_use_a_long_group_goes_out_if_it_is_whole(dump_of, memory_path, count, new_classic_file):
    path = memory_path / "binlog.000001"
    begins = write_file(path, LONG, new_classic_file(), in_use=True, is_closed=False)
    whole = path.read_bytes()
    end = [*begins, len(whole)][count]
    for missing in (0, 1, 12):
        path.write_bytes(whole[: end - missing])
        careful, _ = check_classic(dump_of, ClassicBinlog([memory_path]), ways=PUMPS[:2], profile="classic-11.8")
        assert careful.error is None


@pytest.mark.parametrize("name", ["10.11/domains", "10.11/types-full-crc32", "long"])
def test_packed_files(dump_of, tmp_path, name, new_classic_file):
    if name == "long":
        write_file(tmp_path / "binlog.000001", LONG[:4], new_classic_file())
    else:
        shutil.copytree(CLASSIC / name, tmp_path, dirs_exist_ok=True)
    for path in list(tmp_path.glob("binlog.0*")):
        path.with_name(path.name + ".xz").write_bytes(lzma.compress(path.read_bytes(), preset=0))
        path.unlink()
    engine = ClassicBinlog([tmp_path])
    _, [dump, _] = check_classic(dump_of, engine, ways=PUMPS[:2], profile="classic-11.8")
    assert dump.careful_groups <= len(engine.files())
    path = tmp_path / "binlog.000001.xz"
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2] ^= 1
    path.write_bytes(packed)
    if len(engine.files()) == 1:  # that is another file now
        engine = ClassicBinlog([tmp_path])
    engine.state = GtidState
    assert check_damage(dump_of, engine, {}, "classic-11.8") is not None


@pytest.mark.parametrize("readers_of_shared", [99, 2], ids=["kept", "shared"])
def test_dumps_at_the_same_place_share_their_blocks(dump_of, monkeypatch, readers_of_shared):
    monkeypatch.setattr(block_cache, "READERS_OF_SHARED", readers_of_shared)
    engine, framed = ClassicBinlog([CLASSIC / "10.11/types-full-crc32"]), noted(monkeypatch, ClassicGroups, "read_into")
    for profile in ("engine", "classic-11.8"):  # of one primary each
        shared = SharedBlocks()
        options = {"profile": profile, "knows_checksums": True}
        dump_of(engine, is_fast=True, shared=shared, stays=True, **options)
        for position in ("", "0-1-5"):  # other numbers of packets
            careful = dump_of(engine, is_fast=False, position=position, **options)
            for _ in range(3):
                framed.clear()
                dump = dump_of(engine, is_fast=True, shared=shared, stays=True, position=position, **options)
                assert dump.data == careful.data
            assert len(framed) <= 4  # where a file begins and ends, and behind what is skipped


def test_the_event_loop_reads_only_what_is_in_memory(dump_of, monkeypatch):
    next_block = BlockSource.next_block
    may_read, at_once = True, 0

    def watch(source, generation, *, may_wait):
        nonlocal may_read
        may_read = may_wait
        return next_block(source, generation, may_wait=may_wait)

    def watched(read):
        def watching(source, *given):
            nonlocal at_once
            assert may_read or source.only_cached
            at_once += source.only_cached
            return read(source, *given)

        return watching

    monkeypatch.setattr(BlockSource, "next_block", watch)
    for name in ("read", "read_into"):
        monkeypatch.setattr(series.ClassicSource, name, watched(getattr(series.ClassicSource, name)))
    engine = ClassicBinlog([CLASSIC / "10.11/types-full-crc32"])
    check_classic(dump_of, engine, ways=[{}], profile="classic-11.8", position=str(positions_of(engine)[2]))
    assert at_once > 2
    check_classic(dump_of, engine, ways=[{}], profile="classic-11.8")
