import functools
import random

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.interface import ReadPlan
from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.logs.stages.filtering import KINDS
from ibbmaster.logs.stages.span import LogSpan, span_of
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import decode_gtid_event
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.types import EventType
from tests.built_logs import FIXTURES

LOGS = (
    *("ibb/domains", "ibb/types", "ibb/xa-and-ddl", "ibb/large-groups"),
    *("ibb-mariadb/mixed", "ibb-mariadb/large-pieces"),
    *(f"classic/{version}/{name}" for version in ("10.11", "11.8") for name in ("domains", "chained", "group-commit")),
    *("classic/10.11/statement", "classic/11.8/alter-two-phase", "classic/11.8/ddl-trx-xa"),
)


@functools.cache
def gtids_of(name):
    with ibbmaster.open(FIXTURES / name) as log:
        return tuple(group.gtid for group in log.groups())


def state_after(name, count):
    with ibbmaster.open(FIXTURES / name) as log:
        state = log.engine.start_of_file().state.copy()
    for gtid in gtids_of(name)[:count]:
        state.log(gtid)
    return state


def cuts_of(name, options, rng):
    count = max(1, options.getoption("--range-cuts") // len(LOGS))
    size = len(gtids_of(name))
    pairs = [sorted(rng.sample(range(size + 1), 2)) for _ in range(count)]
    return [(begin, end) for begin, end in pairs if begin and end > begin]


def sent_gtids(events):
    return [decode_gtid_event(event).gtid for event in events if event[4] == EventType.GTID]


@pytest.mark.parametrize("name", LOGS)
def test_a_range_between_any_two_gtids_is_what_a_replica_gets(name, dumped, pytestconfig):
    gtids = gtids_of(name)
    with ibbmaster.open(FIXTURES / name) as log:
        for begin, end in cuts_of(name, pytestconfig, random.Random(random.randrange(2**32))):
            after, until = (state_after(name, count) for count in (begin, end))
            part = log.through(after=str(after.position()), until=str(until.position()))

            events, error = dumped(part.engine, after.position(), waits_at_end=False)

            assert error is None, (begin, end)
            assert sent_gtids(events) == list(gtids[begin:end]), (begin, end)
            assert [group.gtid for group in part.groups()] == list(gtids[begin:end])
            assert part.state == until, (begin, end)


@pytest.mark.parametrize("name", LOGS)
def test_stages_chosen_at_random_give_a_valid_log_with_the_gtids_of_the_input(name):
    rng = random.Random(random.randrange(2**32))
    gtids = gtids_of(name)
    with ibbmaster.open(FIXTURES / name) as log:
        for _ in range(4):
            begin, end = sorted(rng.sample(range(len(gtids) + 1), 2))
            part, said = log, []
            for options in rng.sample(choices(name, gtids, begin, end, rng), 3):
                said.append(options)
                part = part.through(**options)
            left = gtids[begin if any("after" in one for one in said) else 0 :]
            left = left[: end - len(gtids) or None] if any("until" in one for one in said) else left
            found = []
            for group in part.groups():
                check_group(group)
                found.append(group.gtid)
            assert found == list(left), said


def choices(name, gtids, begin, end, rng):
    return [
        {"after": str(state_after(name, begin).position())} if begin else {"kinds": "rows"},
        {"until": str(state_after(name, end).position())} if end < len(gtids) else {"kinds": list(KINDS)},
        {"kinds": rng.sample(KINDS, rng.randint(1, 3))},
        {"domain": str(rng.choice(gtids).domain_id)},
        {"server": str(rng.choice(gtids).server_id)},
    ]


def check_group(group):
    """One GTID event, sizes that are those of the bytes, and an end where the group ends and nowhere before."""
    head, *events = (event.data for event in group.events())
    value = decode_gtid_event(head)
    assert value.gtid == group.gtid
    boundary, ends = GroupBoundary(value.flags), []
    for event in events:
        header = decode_event_header(event)
        assert header.size == len(event)
        ends.append(boundary.ends_with(header, event))
    assert ends == [False] * (len(events) - 1) + [True], group.gtid


@pytest.mark.parametrize("name", ["ibb/domains", "classic/10.11/domains"])
def test_a_filter_of_tables_leaves_every_gtid_and_no_other_table(name):
    with ibbmaster.open(FIXTURES / name) as log:
        tables = sorted({table.name for group in log for table, _ in group.rows()})
        rows = {table: [] for table in tables}
        for group in log:
            for table, change in group.rows():
                rows[table.name].append((change.before, change.after))
        for chosen in tables:
            part, found = log.through(only=chosen), []
            for group in part.groups():
                check_group(group)
                found += [(change.before, change.after) for _, change in group.rows()]
            assert found == rows[chosen]
            assert tuple(group.gtid for group in part.groups()) == gtids_of(name)


def test_who_lacks_what_is_before_the_range_is_refused_with_the_position_to_take(dumped):
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        part = log.through(after="0-1-40", until="0-1-60")
        for position in ("", "0-1-39"):
            with pytest.raises(PositionPurgedError, match="set the replica's gtid_slave_pos to '0-1-40'"):
                part.engine.seek(GtidPosition.parse(position))
        events, _ = dumped(part.engine, GtidPosition.parse("0-1-50"), waits_at_end=False)
        assert [gtid.seq_no for gtid in sent_gtids(events)] == list(range(51, 61))


def test_a_replica_that_asks_for_an_end_itself_stops_there_as_at_any_primary(dumped):
    position = GtidPosition.parse("0-1-30")
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        part = log.through(after="0-1-20", until="0-1-60")
        for until, last in (("0-1-40", 40), ("0-1-60", 60)):
            events, error = dumped(part.engine, position, until=GtidPosition.parse(until))
            assert error is None
            assert [gtid.seq_no for gtid in sent_gtids(events)] == list(range(31, last + 1))
            assert events[-1][4] == EventType.GTID_LIST
        with pytest.raises(DumpError, match="which is not in the master's binlog"):
            dumped(part.engine, GtidPosition.parse("0-1-70"))


def test_domains_that_the_end_does_not_name_have_nothing_and_those_the_begin_does_not_name_have_all():
    gtids = gtids_of("ibb/domains")
    domains = list(dict.fromkeys(gtid.domain_id for gtid in gtids))
    last = {domain: [gtid for gtid in gtids if gtid.domain_id == domain][-1] for domain in domains}
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        one = log.through(until=str(last[domains[1]]))
        assert [group.gtid for group in one.groups()] == [g for g in gtids if g.domain_id == domains[1]]
        assert one.position == GtidPosition([last[domains[1]]])
        others = log.through(after=str(last[domains[1]]))
        assert [group.gtid for group in others.groups()] == [g for g in gtids if g.domain_id != domains[1]]


def test_what_was_logged_before_the_range_is_known_to_who_asks_for_tables():
    with ibbmaster.open(FIXTURES / "ibb/xa-and-ddl") as log:
        part = log.through(after="0-1-40")
        assert sum(1 for _ in part.groups()) == len(gtids_of("ibb/xa-and-ddl")) - 40
        with_past = part.engine.with_past
        whole = with_past.groups_in(with_past.ranges(log.engine.start_of_file().position, log.engine.end(), size=1)[0])
        assert next(iter(whole)).gtid == gtids_of("ibb/xa-and-ddl")[0]


def test_a_domain_that_is_left_out_is_missing_to_no_replica(dumped, tmp_path):
    """Also where the log begins after something of it."""
    with ibbmaster.create(tmp_path / "log", state="0-1-5,1-1-9") as log:
        for gtid in ("1-1-10", "0-1-6", "0-1-7"):
            log.append(gtid, ["INSERT INTO t VALUES (1)"])
        with pytest.raises(PositionPurgedError):
            log.engine.seek(GtidPosition.parse("0-1-5"))
        part = log.through(domain="0", drop_empty=True)
        events, error = dumped(part.engine, GtidPosition.parse("0-1-5"), waits_at_end=False)
        assert (error, [gtid.seq_no for gtid in sent_gtids(events)]) == (None, [6, 7])


def test_what_checks_or_copies_files_is_refused_after_stages(tmp_path):
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        part = log.through(until="0-1-40")
        for read in (part.verify, lambda: part.back_up(tmp_path / "copy")):
            with pytest.raises(ConfigurationError, match="a log after stages has none"):
                read()


def test_a_span_without_an_end_begins_where_each_domain_does():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        gtids = gtids_of("ibb/domains")
        span = span_of(log.engine, GtidPosition(gtids[:1]), None)
        assert [gtid for gtid in gtids if span.has(gtid, log.engine.end())] == list(gtids)
        assert not span.has(gtids[0], log.engine.start_of_file().position)


def test_before_a_domain_begins_its_state_is_that_of_the_begin_and_after_that_what_was_logged():
    """A replica at the begin has its GTID: it must not wait for it."""
    begin, logged = Gtid.parse("0-1-5"), [Gtid.parse("0-1-3"), Gtid.parse("0-1-9")]
    start = LogPosition(0, 1000)
    span = LogSpan(begin=GtidState([begin]), groups=GroupSelection(starts=((0, start),)), end=start)
    for offset, gtid, known in ((500, logged[0], begin), (1500, logged[1], logged[1])):
        plan = ReadPlan(position=LogPosition(0, offset), state=GtidState([gtid]))
        assert list(span.state_from(plan)) == [known]
