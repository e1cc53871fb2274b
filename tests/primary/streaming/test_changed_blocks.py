import contextlib
import random
import struct
from dataclasses import replace

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.event_stream import EventStream, mapped_table
from ibbmaster.logs.stages.filtering import KINDS
from ibbmaster.logs.stages.options import staged
from ibbmaster.logs.stages.renumbering import OriginMap
from ibbmaster.primary.streaming import packet_changes
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.name_case import NameCase
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import XID_EVENT, make_event, new_group
from tests.machinery.random_log import random_log
from tests.machinery.stores import new_store
from tests.primary.streaming.conftest import PUMPS, check_same, gtids_of, write_all
from tests.primary.streaming.test_parts_of_logs import GROUPS_AT_ENDS, LOGS, border_log, engine_of, part_of

PROFILES = ["engine", "compat", "classic-10.11", "classic-11.8"]
SELECTED = [{}, {"wants_annotate_rows": False, "leaves_out_marked": True}, {"has_semi_sync": True}, {"capability": 2}]


def renumbered(engine, rng):
    gtids = gtids_of(engine)
    servers = {gtid.server_id: gtid.server_id ^ 0x5000 for gtid in gtids if rng.random() < 0.7}
    domains = {gtid.domain_id: gtid.domain_id ^ 0x40000000 for gtid in gtids if rng.random() < 0.7}
    return StagedLog(engine, [OriginMap(server_ids=servers, domain_ids=domains)])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_captures_of_each_kind_under_other_numbers_and_as_each_kind_of_primary(dump_of, path):
    rng = random.Random(random.randrange(2**32))
    engine = engine_of(path)
    gtids = gtids_of(engine)
    part = part_of(engine, gtids, 0, rng.randint(len(gtids) // 2, len(gtids)))
    for log in (part, renumbered(part, rng)):
        options = {"profile": rng.choice(PROFILES), "knows_checksums": True, **rng.choice(SELECTED)}
        check_same(dump_of, log, ways=PUMPS[:2], **options)


@pytest.mark.some_of(3)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(2))
def test_random_logs_from_any_position(dump_of, tmp_path, seed, profile):
    store, rng = random_log(seed, RealDisk(tmp_path)), random.Random(seed)
    log = renumbered(store, rng)
    for position in ("", *[str(log._renaming[0].renamed(gtid)) for gtid in rng.sample(gtids_of(store), 2)]):
        for options in SELECTED:
            check_same(dump_of, log, position, PUMPS[:2], profile=profile, knows_checksums=True, **options)


@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
def test_nothing_is_decided_group_by_group_but_at_the_ends(dump_of, tmp_path, profile):
    store, gtids = border_log(tmp_path)
    log = StagedLog(part_of(store, gtids, 0, 450), [OriginMap(server_ids={1: 7}, domain_ids={0: 3})])
    shared = SharedBlocks()
    ways = [{}, {"is_pumped": True}, *({"shared": shared, "stays": True} for _ in range(9))]
    careful, dumps = check_same(dump_of, log, ways=ways, profile=profile, knows_checksums=True)
    assert careful.careful_groups == 450
    assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)
    middle = Gtid(domain_id=3, server_id=7, seq_no=200)
    _, dumps = check_same(dump_of, log, str(middle), profile=profile, knows_checksums=True)
    assert all(dump.careful_groups <= GROUPS_AT_ENDS for dump in dumps)


@pytest.mark.parametrize("profile", ["engine", "classic-11.8"])
def test_events_of_more_than_a_packet_and_groups_of_more_than_a_block(dump_of, memory_path, profile):
    store = new_store(memory_path, max_file_bytes=80 << 20)
    for number, size in enumerate((100, 17 << 20, 100, 300_000, 100, (1 << 24) - 20, 100), 1):
        store.write_direct(*new_group(number, make_event(EventType.WRITE_ROWS_V1, 1, bytes(size)), XID_EVENT))
    log = StagedLog(store, [OriginMap(server_ids={1: 7})])
    check_same(dump_of, log, ways=PUMPS[:2], profile=profile, knows_checksums=True)


def options_for(engine, rng):
    tables, gtids = set(), gtids_of(engine)
    with contextlib.closing(engine.groups(engine.start_of_file())) as groups:
        for group in iter(groups.next_group, None):
            events = EventStream(group.body)
            while (header := events.next_event()) is not None:
                if header.event_type == EventType.TABLE_MAP:
                    tables.add(str(mapped_table(events.whole())))
    names = sorted(name for name in tables if name.count(".") == 1 and name.isascii()) or ["no.such"]
    some = rng.sample(names, rng.randint(1, len(names)))
    return rng.choice(
        [
            {"only": some},
            {"except_": some},
            {"kinds": rng.sample(KINDS, rng.randint(1, 3))},
            {"domain": str(rng.choice(gtids).domain_id)},
            {"server": str(rng.choice(gtids).server_id)},
            {"rename": f"{some[0]}=other.name"},
            {"only": some, "kinds": "rows", "map_server_id": f"{gtids[0].server_id}=4321"},
            {"except_": some, "domain": str(gtids[-1].domain_id), "rename": f"{some[0].partition('.')[0]}=another"},
        ]
    )


@pytest.mark.some_of(15)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_captures_of_which_something_is_left_out(dump_of, path, pytestconfig):
    rng = random.Random(f"{pytestconfig.getoption('--seed')} {path.name}")
    engine = engine_of(path)
    for _ in range(4):
        given = options_for(engine, rng)
        print(given)
        log = staged(engine, given, NameCase.EXACT, SchemaHistory)
        options = {"profile": rng.choice(PROFILES), "knows_checksums": True, **rng.choice(SELECTED[:3])}
        check_same(dump_of, log, ways=[{"is_pumped": rng.random() < 0.5}], **options)


@pytest.mark.parametrize("name", ["alter-two-phase", "ddl-trx-xa"])
def test_the_end_of_a_group_without_rows_is_the_same_whatever_database_its_session_was_in(dump_of, name):
    (path,) = (path for path in LOGS if (path.parent.name, path.name) == ("10.11", name))
    engine = engine_of(path)
    for given in ({"except_": ["alt.big2", "alt.big"], "rename": "alt=another"}, {"rename": "shop=another"}):
        log = staged(engine, given, NameCase.EXACT, SchemaHistory)
        check_same(dump_of, log, ways=PUMPS[:2], profile="classic-11.8", knows_checksums=True)


FILTERS = {
    "one of the tables": {"only": "shop.t1"},
    "all but one": {"except_": "shop.t1"},
    "no rows": {"kinds": "ddl,statements"},
    "one domain": {"domain": "1"},
    "names that come": {"rename": "shop.t1=shop.other"},
}


@pytest.mark.parametrize("given", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("profile", ["engine", "classic-10.11"])
def test_only_groups_of_which_more_is_decided_go_through_the_stage(dump_of, tmp_path, given, profile, monkeypatch):
    rng = random.Random(7)
    store = new_store(tmp_path, max_file_bytes=8 << 20)
    for number in range(1500):
        gtid = Gtid(domain_id=number % 2, server_id=1, seq_no=number + 1)
        tables = rng.choice([("t1",), ("t2",), ("t1", "t2")]) if number % 100 == 3 else (f"t{1 + number % 3}",)
        flags = GtidFlag.GROUP_COMMIT if rng.random() < 0.3 else GtidFlag(0)
        head = GtidEvent(gtid=gtid, flags=flags, commit_id=number if flags else None)
        events = [make_event(EventType.ANNOTATE_ROWS, 1, b"INSERT")] if rng.random() < 0.5 else []
        events += [make_event(EventType.TABLE_MAP, 1, map_body(index, name)) for index, name in enumerate(tables)]
        rows = [struct.pack("<IHH", index, 0, index == len(tables) - 1) for index in range(len(tables))]
        events += [make_event(EventType.WRITE_ROWS_V1, 1, one + rng.randbytes(rng.randrange(2000))) for one in rows]
        if number == 700:
            events = [encode_query(statement("DROP TABLE shop.t3"), server_id=1)]
            head = replace(head, flags=head.flags | GtidFlag.STANDALONE | GtidFlag.DDL)
        else:
            events.append(make_event(EventType.XID, 1, bytes(8)))
        ticket = store.write_direct_ordered(gtid, encode_gtid_event(head, timestamp=1700000000 + number), events)
    store.group_commit_ordered(ticket)
    log, decided = staged(store, given, NameCase.EXACT, SchemaHistory), []
    for stage in log.stages:
        kind, was = type(stage), type(stage).pass_on
        monkeypatch.setattr(kind, "pass_on", lambda self, group, was=was: decided.append(1) or was(self, group))
    careful = dump_of(log, is_fast=False, profile=profile, knows_checksums=True)
    assert len(decided) == careful.careful_groups == 1500
    del decided[:]
    fast = dump_of(log, is_fast=True, profile=profile, knows_checksums=True)
    assert fast.data == careful.data
    assert fast.careful_groups <= GROUPS_AT_ENDS
    assert len(decided) <= (600 if "rename" in given else 60)


def test_of_more_tables_than_are_known_at_once_each_is_asked_for_again(dump_of, tmp_path, monkeypatch):
    monkeypatch.setattr(packet_changes, "TABLES_MIN", 8)
    monkeypatch.setattr(packet_changes, "TABLES_MAX", 16)
    store, rng = new_store(tmp_path, max_file_bytes=8 << 20), random.Random(3)
    bodies = (map_body(5, f"{'t' * rng.randint(1, 60)}{rng.randrange(40)}") for _ in range(399))
    rest = make_event(EventType.WRITE_ROWS, 1, struct.pack("<IHH", 5, 0, 1) + bytes(20)), make_event(16, 1, b"")
    maps = (make_event(EventType.TABLE_MAP, 1, body) for body in bodies)
    write_all(store, (new_group(number, one, *rest) for number, one in enumerate(maps, 1)))
    _, dumps = check_same(dump_of, staged(store, {"except_": "shop.*7"}, NameCase.EXACT, SchemaHistory), ways=[{}])
    assert dumps[0].careful_groups <= GROUPS_AT_ENDS


def map_body(table_id, name):
    names = b"".join(bytes([len(one)]) + one + b"\0" for one in (b"shop", name.encode()))
    return struct.pack("<IHH", table_id, 0, 1) + names + b"\x01\x03\x00\x01"


def statement(text):
    return Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"shop", text=text.encode())
