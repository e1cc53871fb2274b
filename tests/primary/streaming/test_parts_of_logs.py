"""A part of a log goes out by blocks as it does group by group, and ends at its place wherever that is."""

import random
from contextlib import closing
from pathlib import Path

import pytest

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.player.played_log import Pace, PlayedLog
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.span import span_of
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import XID_EVENT, make_event, new_group
from tests.machinery.random_log import random_log
from tests.machinery.stores import new_store, open_files
from tests.primary.streaming.conftest import PUMPS, check_same, gtids_of, write_all

FIXTURES = Path(__file__).parents[3] / "fixtures"
FORGETFUL = ("delete-domain", "two-restarts")  # end without a domain that they had
CAPTURES = [path.parent for path in sorted((FIXTURES / "classic").glob("*/*/expected.json"))]
LOGS = [
    *sorted((FIXTURES / "ibb").iterdir()),
    *sorted(path for path in (FIXTURES / "ibb-mariadb").iterdir() if path.is_dir() and path.name not in FORGETFUL),
    *(path for path in CAPTURES if path.name not in ("encrypted", "big", "big-none")),
]
GROUPS_AT_ENDS = 6  # take the careful path where a log, a file or a part begins or ends


def engine_of(path):
    return open_files(path) if list(path.glob("*.ibb")) else ClassicBinlog([path])


def part_of(engine, gtids, begin, end):
    logged = list(engine.start_of_file().state)
    after, until = (GtidState([*logged, *gtids[:count]]).position() for count in (begin, end))
    return StagedLog(engine, span=span_of(engine, after if begin else None, until))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_part_between_any_two_groups_of_a_capture(dump_of, path, pytestconfig):
    rng = random.Random(random.randrange(2**32))
    engine = engine_of(path)
    gtids = gtids_of(engine)
    for _ in range(max(1, pytestconfig.getoption("--range-cuts") // 5 // len(LOGS))):
        begin, end = sorted(rng.sample(range(len(gtids) + 1), 2))
        part = part_of(engine, gtids, begin, end)
        options = rng.choice([{}, {"wants_annotate_rows": False}, {"has_semi_sync": True}])
        careful, _ = check_same(dump_of, part, str(part.span.after), **options)
        assert careful.careful_groups >= end - begin


def border_log(directory, *, domains=1):
    """Groups of about 1.6 KB, some longer than a page, so that blocks of every length end inside and between them."""
    rng, groups = random.Random(7), []
    store = new_store(directory, max_file_bytes=8 << 20, state_interval_bytes=64 << 10)
    for number in range(500):
        rows = make_event(23, 1, rng.randbytes(40_000 if number % 97 == 50 else rng.randrange(20, 3000)))
        groups.append(new_group(number + 1, rows, XID_EVENT, domain_id=number % domains))
    write_all(store, groups)
    return store, [gtid for gtid, *_ in groups]


def ends_at_borders(engine, size):
    """How many groups there are up to the last before each multiple of a size in a file, and up to those around it."""
    found, count, before = set(), 0, 0
    with closing(engine.groups(engine.start_of_file())) as groups:
        for group in iter(groups.next_group, None):
            if group.gtid is not None:
                count += 1
                if group.end.offset // size != before:
                    found |= {count - 2, count - 1, count, count + 1}
                before = group.end.offset // size
    return sorted(number for number in found if 0 < number <= count)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_part_that_ends_anywhere_beside_the_border_of_a_block(dump_of, tmp_path, is_shared):
    store, gtids = border_log(tmp_path)
    for end in ends_at_borders(store, 64 << 10):
        part = part_of(store, gtids, 0, end)
        shared = SharedBlocks() if is_shared else None
        others = [dump_of(part, is_fast=True, shared=shared, stays=True) for _ in range(8 * is_shared)]
        careful, dumps = check_same(dump_of, part, ways=[{}, {"shared": shared}, {"is_pumped": True}])
        assert careful.careful_groups == end
        assert all(dump.data == careful.data for dump in others)
        assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)


@pytest.mark.parametrize("name", ["10.11/big", "10.11/domains-none", "11.8/chained"])
def test_a_part_of_traditional_files_that_ends_beside_the_border_of_a_block(dump_of, name):
    engine = ClassicBinlog([FIXTURES / "classic" / name])
    gtids = gtids_of(engine)
    for end in (ends_at_borders(engine, 256 << 10) or [len(gtids) // 2])[:3]:
        _, dumps = check_same(dump_of, part_of(engine, gtids, 0, end), ways=PUMPS[:2])
        assert all(dump.careful_groups <= GROUPS_AT_ENDS + len(engine.files()) for dump in dumps)


def test_domains_that_end_at_different_places_go_by_blocks_up_to_the_first_of_them(dump_of, tmp_path):
    store, gtids = border_log(tmp_path, domains=3)
    for ends in ((300, 450, 499), (10, 450, 499), (300, None, 499), (498, 499, None)):
        until = GtidPosition(gtids[end - (end - domain) % 3] for domain, end in enumerate(ends) if end is not None)
        careful, dumps = check_same(dump_of, StagedLog(store, span=span_of(store, None, until)))
        wanted = [gtid for gtid in gtids if gtid.domain_id in until and gtid.seq_no <= until[gtid.domain_id].seq_no]
        assert careful.data.count(bytes([EventType.GTID])) >= len(wanted)
        assert careful.careful_groups == len(wanted)
        if None not in ends:
            assert dumps[0].careful_groups <= len(wanted) - min(ends) + GROUPS_AT_ENDS


def test_a_replica_in_the_middle_of_a_part_is_served_from_there(dump_of, tmp_path):
    store, gtids = border_log(tmp_path)
    part = part_of(store, gtids, 100, 400)
    for position in (100, 101, 250, 399, 400):
        careful, dumps = check_same(dump_of, part, str(gtids[position - 1]))
        assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)
        assert (position == 400) == (bytes([EventType.GTID]) not in careful.data[-60:] and len(careful.data) < 1000)


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_random_logs(dump_of, tmp_path, seed):
    store = random_log(seed, RealDisk(tmp_path))
    gtids, rng = gtids_of(store), random.Random(seed)
    for _ in range(4):
        begin, end = sorted(rng.sample(range(len(gtids) + 1), 2))
        part = part_of(store, gtids, begin, end)
        check_same(dump_of, part, str(part.span.after), ways=rng.sample(PUMPS, 2))


def test_a_log_that_grows_behind_the_end_of_a_part_adds_nothing_to_it(dump_of, tmp_path):
    store, gtids = border_log(tmp_path)
    part = part_of(store, gtids, 0, len(gtids))
    before = dump_of(part, is_fast=True).data
    store.write_direct(*new_group(len(gtids) + 1, make_event(23, 1, bytes(99)), XID_EVENT))
    for way in PUMPS:
        assert dump_of(part, is_fast=True, **way).data == before
    assert len(dump_of(store, is_fast=True).data) > len(before)


@pytest.mark.parametrize("name", ["ibb/domains", "ibb/large-groups", "classic/10.11/domains", "classic/11.8/chained"])
def test_a_recording_goes_by_blocks_up_to_what_is_logged_by_now(dump_of, name):
    engine, rng = engine_of(FIXTURES / name), random.Random(name)
    gtids = gtids_of(engine)
    played = PlayedLog(part_of(engine, gtids, 0, len(gtids)), Pace(factor=0), lambda: 0.0)
    played.start()
    while not played.is_over:
        played.step(rng.randint(1, 1 + len(gtids) // 5))
        count = len(gtids_of(played))
        position = str(gtids[rng.randrange(count)]) if rng.random() < 0.3 else ""
        careful, _ = check_same(dump_of, played, position, ways=rng.sample(PUMPS, 2))
        assert careful.careful_groups == count
