from dataclasses import replace

import pytest

import ibbmaster
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.stages.renumbering import OriginMap, Repetition
from ibbmaster.replication.event.gtid_event import GtidExtraFlag, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import decode_event_header
from tests.logs.stages.test_engine import FIXTURES, check_group, gtids_of, sent_gtids
from tests.logs.stages.test_filtering import group_of
from tests.machinery.events import make_event

DOMAINS = "ibb/domains"


@pytest.mark.parametrize(
    ("servers", "domains"), [({1: 700, 2: 1}, {}), ({}, {0: 9, 7: 0}), ({77: 5}, {1: 2, 2: 1, 4294967295: 3})]
)
@pytest.mark.parametrize("name", [DOMAINS, "classic/10.11/domains"])
def test_a_replica_of_other_numbers_follows_from_any_position(name, servers, domains, dumped):
    expected = [
        replace(
            gtid,
            domain_id=domains.get(gtid.domain_id, gtid.domain_id),
            server_id=servers.get(gtid.server_id, gtid.server_id),
        )
        for gtid in gtids_of(name)
    ]
    with ibbmaster.open(FIXTURES / name) as log:
        part = log.through(
            map_server_id=[f"{old}={new}" for old, new in servers.items()] or None,
            map_domain=",".join(f"{old}={new}" for old, new in domains.items()) or None,
        )
        assert part.state == GtidState(expected)
        for cut in range(0, len(expected), 13):
            events, error = dumped(part.engine, GtidState(expected[:cut]).position(), waits_at_end=False)
            assert error is None
            assert sent_gtids(events) == expected[cut:]


def test_each_event_has_the_new_server_id_and_nothing_else_is_changed():
    with ibbmaster.open(FIXTURES / DOMAINS) as log:
        for one, other in zip(log.groups(), log.through(map_server_id="1=700").groups(), strict=True):
            check_group(other)
            for before, after in zip(list(one.events())[1:], list(other.events())[1:], strict=True):
                header = decode_event_header(before.data)
                server_id = 700 if header.server_id == 1 else header.server_id
                assert decode_event_header(after.data) == header._replace(server_id=server_id)
                assert after.data[19:] == before.data[19:]


BODY = make_event(160, 1, b"SELECT 1"), make_event(23, 2, bytes(50)), make_event(16, 1, bytes(8))


@pytest.mark.parametrize("size", [1, 7, 18, 19, 40, 1000])
def test_headers_are_changed_however_their_group_is_cut(size):
    passed = OriginMap(server_ids={1: 700}).pass_on(group_of(*BODY, cut=size))
    assert b"".join(passed.body) == b"".join(
        event[:5] + (700 if event[5] == 1 else 2).to_bytes(4, "little") + event[9:] for event in BODY
    )


def test_a_repeated_group_has_no_number_of_the_round_before():
    flags = GtidFlag.STANDALONE | GtidFlag.DDL
    group = group_of(*BODY, flags=flags, extra_flags=GtidExtraFlag.COMMIT_ALTER, alter_seq_no=5)
    value = decode_gtid_event(Repetition(number=1, steps={3: 100}, seconds=60).pass_on(group).gtid_event)
    assert (value.gtid, value.alter_seq_no) == (Gtid.parse("3-1-107"), 105)
