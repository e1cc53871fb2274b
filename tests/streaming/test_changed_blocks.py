"""Groups that are changed on their way go out by blocks as they do group by group."""

from __future__ import annotations

import random

import pytest

from ibbmaster.disk.local import RealDisk
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.stages.engine import StagedLog
from ibbmaster.stages.renumbering import OriginMap
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.streaming.shared import SharedBlocks
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.random_log import random_log
from tests.streaming.test_parts_of_logs import (
    GROUPS_AT_ENDS,
    LOGS,
    border_log,
    check_same,
    engine_of,
    gtids_of,
    part_of,
)

PROFILES = ["engine", "compat", "classic-10.11", "classic-11.8"]
SELECTED = [{}, {"wants_annotate_rows": False, "leaves_out_marked": True}, {"has_semi_sync": True}, {"capability": 2}]


def renumbered(engine, rng: random.Random) -> StagedLog:
    """The log under other numbers of some of its domains and servers."""
    gtids = gtids_of(engine)
    servers = {gtid.server_id for gtid in gtids}
    domains = {gtid.domain_id for gtid in gtids}
    stage = OriginMap(
        server_ids={number: number ^ 0x5000 for number in servers if rng.random() < 0.7},
        domain_ids={number: number ^ 0x40000000 for number in domains if rng.random() < 0.7},
    )
    return StagedLog(engine, [stage])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_captures_of_each_kind_under_other_numbers_and_as_each_kind_of_primary(dump_of, path, pytestconfig):
    seed = f"{pytestconfig.getoption('--seed')} {path.name}"
    print(f"seed {seed}")
    rng = random.Random(seed)
    engine = engine_of(path)
    gtids = gtids_of(engine)
    end = rng.randint(len(gtids) // 2, len(gtids))
    part = part_of(engine, gtids, 0, end)
    for log in (part, renumbered(part, rng)):
        options = {"profile": rng.choice(PROFILES), "knows_checksums": True, **rng.choice(SELECTED)}
        check_same(dump_of, log, ways=[{}, {"is_pumped": True}], **options)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(2))
def test_random_logs_from_any_position(dump_of, tmp_path, seed, profile):
    store, rng = random_log(seed, RealDisk(tmp_path)), random.Random(seed)
    log = renumbered(store, rng)
    known = [str(log._renaming[0].renamed(gtid)) for gtid in rng.sample(gtids_of(store), 2)]
    for position in ("", *known):
        for options in SELECTED:
            check_same(
                dump_of, log, position, ways=[{}, {"is_pumped": True}], profile=profile, knows_checksums=True, **options
            )


@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
def test_nothing_is_decided_group_by_group_but_at_the_ends(dump_of, tmp_path, profile):
    store, gtids = border_log(tmp_path)
    stage = OriginMap(server_ids={1: 7}, domain_ids={0: 3})
    log = StagedLog(part_of(store, gtids, 0, 450), [stage])
    shared = SharedBlocks()
    ways = [{}, {"is_pumped": True}, *({"shared": shared, "stays": True} for _ in range(9))]
    careful, dumps = check_same(dump_of, log, ways=ways, profile=profile, knows_checksums=True)
    assert careful.careful_groups == 450
    assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)
    middle = Gtid(domain_id=3, server_id=7, seq_no=200)
    _, dumps = check_same(dump_of, log, str(middle), profile=profile, knows_checksums=True)
    assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)
    store.close()


@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
def test_events_of_more_than_a_packet_and_groups_of_more_than_a_block(dump_of, tmp_path, profile):
    store = BinlogStore(RealDisk(tmp_path), StoreOptions(max_file_bytes=80 << 20))
    for number, size in enumerate((100, 17 << 20, 100, 300_000, 100, (1 << 24) - 20, 100), 1):
        gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
        body = [make_event(EventType.WRITE_ROWS_V1, 1, bytes(size)), make_event(EventType.XID, 1, bytes(8))]
        store.write_direct(gtid, make_gtid_event(gtid), body)
    log = StagedLog(store, [OriginMap(server_ids={1: 7})])
    check_same(dump_of, log, ways=[{}, {"is_pumped": True}], profile=profile, knows_checksums=True)
    store.close()
