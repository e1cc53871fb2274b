"""A recording that comes again and again goes out by blocks as it does group by group."""

import random

import pytest

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.player.played_log import Pace, PlayedLog
from ibbmaster.logs.player.repeated_log import RepeatedLog
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.renumbering import OriginMap
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.random_log import random_log
from tests.primary.streaming.conftest import PUMPS, check_same, gtids_of
from tests.primary.streaming.test_changed_blocks import PROFILES, SELECTED
from tests.primary.streaming.test_parts_of_logs import GROUPS_AT_ENDS, LOGS, border_log, engine_of, part_of

ROUNDS = 3
WAYS = [{}, {"is_pumped": True}, {"is_pumped": True, "is_clear": False}]


def repeated(engine, rng):
    gtids = gtids_of(engine)
    begin, end = rng.choice([0, rng.randrange(len(gtids))]), len(gtids)
    part = part_of(engine, gtids, begin, end)
    servers = {gtid.server_id: gtid.server_id ^ 0x5000 for gtid in gtids}
    return RepeatedLog(StagedLog(part, [OriginMap(server_ids=servers)]) if rng.random() < 0.3 else part, ROUNDS)


def positions_in(log, rng):
    found = gtids_of(log)
    cuts = [rng.randrange(1, len(found)) for _ in range(2)]
    chosen = [GtidState([*log.start_of_file().state, *found[:cut]]).position() for cut in cuts]
    mixed = GtidPosition(rng.choice(chosen)[domain] for domain in chosen[0] if all(domain in one for one in chosen))
    return [str(log.start_of_file().state.position()), *map(str, chosen), str(mixed)]


@pytest.mark.some_of(12)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_captures_again_and_again_from_anywhere(dump_of, path):
    rng = random.Random(random.randrange(2**32))
    log = repeated(engine_of(path), rng)
    for position in positions_in(log, rng):
        options = {"profile": rng.choice(PROFILES), "knows_checksums": True, **rng.choice(SELECTED)}
        check_same(dump_of, log, position, ways=rng.sample(WAYS, 2), **options)


@pytest.mark.parametrize("seed", range(3))
def test_random_logs_again_and_again_from_anywhere(dump_of, tmp_path, seed):
    rng = random.Random(seed)
    log = repeated(random_log(seed, RealDisk(tmp_path)), rng)
    for position in positions_in(log, rng):
        check_same(dump_of, log, position, ways=WAYS, profile=rng.choice(PROFILES), knows_checksums=True)


@pytest.mark.parametrize("is_played", [False, True])
def test_nothing_is_decided_group_by_group_but_where_a_round_ends(dump_of, tmp_path, is_played):
    store, gtids = border_log(tmp_path)
    log: LogEngine = RepeatedLog(part_of(store, gtids, 0, 450), ROUNDS)
    if is_played:
        log = PlayedLog(log, Pace.parse("max"), lambda: 0.0)
    shared = SharedBlocks()
    ways = [*PUMPS[:2], *({"shared": shared, "stays": True} for _ in range(9))]
    careful, dumps = check_same(dump_of, log, ways=ways, profile="engine", knows_checksums=True)
    assert careful.careful_groups == ROUNDS * 450
    assert all(dump.careful_groups <= ROUNDS * GROUPS_AT_ENDS for dump in dumps)
