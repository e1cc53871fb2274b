import itertools
import random
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, StageError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.player.repeated_log import RepeatedLog
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.span import span_of
from ibbmaster.replication.event.gtid_event import GtidExtraFlag, decode_gtid_event
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.types import EventType
from tests.built_logs import FIXTURES
from tests.logs.stages.test_engine import check_group, sent_gtids

LOGS = ("ibb/domains", "ibb/types", "ibb/xa-and-ddl", "classic/10.11/domains", "classic/11.8/alter-two-phase")
ROUNDS = 3


def repeated(name, rounds=ROUNDS, **part):
    log = ibbmaster.open(FIXTURES / name)
    return RepeatedLog(log.through(**{"until": str(log.position), **part}).engine, rounds)


def groups_of(log, count=1 << 30):
    with closing(log.groups(log.start_of_file())) as groups:
        while count and (group := groups.next_group()) is not None:
            if group.gtid is not None:
                count -= 1
                yield group


@pytest.mark.parametrize("name", LOGS)
def test_each_round_has_newer_numbers_later_times_and_later_places(name):
    log = repeated(name)
    groups = list(groups_of(log))
    size = len(groups) // ROUNDS
    gtids = [group.gtid for group in groups]

    assert size == log.round_count
    assert len(set(gtids)) == ROUNDS * size
    assert all(one.end <= other.start for one, other in itertools.pairwise(groups))
    assert log.state() == GtidState(gtids)
    for number in range(1, ROUNDS):
        for first, again in zip(groups[:size], groups[number * size :], strict=False):
            domain = first.gtid.domain_id
            assert again.gtid.domain_id == domain
            assert again.gtid.server_id == first.gtid.server_id
            assert again.gtid.seq_no > max(gtid.seq_no for gtid in gtids[: number * size] if gtid.domain_id == domain)
    times = [decode_event_header(group.gtid_event).timestamp for group in groups]
    assert max(times[:size]) < max(times[size : 2 * size]) < max(times[2 * size :])


@pytest.mark.parametrize("name", LOGS)
def test_a_replica_goes_on_in_the_round_where_it_is(name, dumped):
    log = repeated(name)
    gtids = [group.gtid for group in groups_of(log)]
    for cut in random.sample(range(1, len(gtids)), 12):
        events, error = dumped(log, GtidState(gtids[:cut]).position(), waits_at_end=False)
        assert error is None, cut
        assert sent_gtids(events) == gtids[cut:], cut


def test_a_part_of_a_log_is_repeated_after_what_is_before_it(dumped):
    log = repeated("ibb/types", after="0-1-40", until="0-1-50")
    gtids = [group.gtid.seq_no for group in groups_of(log)]
    assert gtids == [*range(41, 51), *range(91, 101), *range(141, 151)]
    for cut in (45, 50, 93, 100):
        position = GtidState.parse(f"0-1-{cut}").position()
        assert [gtid.seq_no for gtid in sent_gtids(dumped(log, position, waits_at_end=False)[0])] == [
            number for number in gtids if number > cut
        ]


def test_a_part_whose_numbers_begin_below_those_before_it_is_not_taken_for_a_later_round(new_log, event, dumped):
    log = new_log()
    for text in ("0-7-90", "0-1-100", "0-2-3", "0-2-4"):
        log.commit(text, event(50))
    stored = BinlogDirectory(log.disk)
    played = RepeatedLog(
        StagedLog(stored, span=span_of(stored, GtidPosition.parse("0-1-100"), GtidPosition.parse("0-2-4"))), 2
    )
    wanted = ["0-2-3", "0-2-4", "0-2-103", "0-2-104"]
    for cut, position in enumerate(["0-1-100", *wanted]):
        events, error = dumped(played, GtidPosition.parse(position), waits_at_end=False)
        assert (list(map(str, sent_gtids(events))), error) == (wanted[cut:], None), position
    assert str(played.state()) == "0-7-90,0-1-100,0-2-104"


def test_without_an_end_it_goes_on_as_far_as_it_is_read():
    log = repeated("ibb/types", None)
    size = log.round_count
    assert sum(1 for _ in groups_of(log, 5 * size + 1)) == 5 * size + 1
    assert not log.is_over
    assert log.state().highest_seq_no(0) == 6 * 151
    names = [file.name for file in log.files()]
    assert len(set(names)) == len(names)


def test_it_ends_where_the_numbers_of_a_domain_end():
    with pytest.raises(
        ConfigurationError, match=r"^the numbers of domain 1 end after 3 rounds, as a round takes 46116860"
    ):
        repeated("classic/11.8/domains", 4)
    log = repeated("classic/11.8/domains", None)
    groups = groups_of(log)
    assert sum(1 for _ in itertools.islice(groups, 3 * log.round_count)) == 3 * log.round_count
    with pytest.raises(StageError, match=r"^the loop has ended: the numbers of domain 1 end after 3 rounds"):
        next(groups)
    assert log.is_over


@pytest.mark.parametrize("name", ["classic/10.11/alter-two-phase", "classic/11.8/alter-two-phase"])
def test_what_ends_an_alter_names_the_one_that_was_started_in_its_round(name, dumped):
    log = repeated(name)
    events, _ = dumped(log, log.start_of_file().state.position(), waits_at_end=False)
    sent = [event for event in events if event[TYPE_OFFSET] == EventType.GTID]
    for heads in (sent, [group.gtid_event for group in groups_of(log)]):
        values = [decode_gtid_event(head) for head in heads]
        size, ended = len(values) // ROUNDS, 0
        assert size == log.round_count
        for number in range(ROUNDS):
            started = set()
            for value in values[number * size : (number + 1) * size]:
                if value.extra_flags is not None and value.extra_flags & GtidExtraFlag.START_ALTER:
                    started.add((value.gtid.domain_id, value.gtid.seq_no))
                elif value.alter_seq_no is not None:
                    started.remove((value.gtid.domain_id, value.alter_seq_no))
                    ended += 1
            assert not started
        assert ended >= 2 * ROUNDS


def test_groups_of_each_round_are_valid_by_every_way_to_read_them():
    log = repeated("classic/11.8/alter-two-phase", 2)
    by_reader = [(group.gtid, b"".join(map(bytes, group.body))) for group in groups_of(log)]
    by_range = [
        (group.gtid, b"".join(map(bytes, group.body)))
        for one in log.ranges(log.start_of_file().position, log.end(), size=1)
        for group in log.groups_in(one)
        if group.gtid is not None
    ]
    assert by_range == by_reader
    with ibbmaster.open(FIXTURES / "classic/11.8/alter-two-phase") as opened:
        for group in opened.played("max", rounds=2):
            check_group(group)


def test_nothing_is_not_repeated(tmp_path):
    with ibbmaster.open(tmp_path) as empty, pytest.raises(ConfigurationError, match="no transaction to repeat"):
        RepeatedLog(empty.engine)
