"""From where to where a database is brought: by the log, and by what the server and its backup say."""

import pytest

import ibbmaster
from ibbmaster.api.restore_plan import RestorePlan, TargetFacts, end_of, expect_between, expect_usable, start_of
from ibbmaster.errors import PositionError, RestoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState

GTIDS = ["0-1-1", "1-1-1", "0-1-2", "2-3-7", "1-1-2", "0-2-3", "2-3-8", "1-1-3"]


def at(text: str) -> GtidPosition:
    return GtidPosition.parse(text)


@pytest.fixture
def engine(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        for number, gtid in enumerate(GTIDS):
            log.append(gtid, f"CREATE DATABASE d{number}")
        yield log.engine


@pytest.mark.parametrize("place", range(len(GTIDS)))
@pytest.mark.parametrize("before", [False, True])
def test_a_gtid_ends_all_domains_at_its_place(engine, place, before):
    state = GtidState(map(Gtid.parse, GTIDS[: place + (not before)]))
    assert end_of(engine, GTIDS[place], before=before) == (state.position(), ())


def test_each_of_several_gtids_ends_its_domain_and_the_last_one_the_others(engine):
    assert str(end_of(engine, "0-1-2,1-1-2", before=False)[0]) == "0-1-2,1-1-2,2-3-7"
    assert str(end_of(engine, "0-2-3,1-1-1", before=False)[0]) == "0-2-3,1-1-1,2-3-7"


@pytest.mark.parametrize("gtid", ["0-1-3", "0-2-2", "2-3-6", "3-1-1"])
def test_a_gtid_that_is_not_in_the_log_is_refused(engine, gtid):
    with pytest.raises(PositionError, match=f"GTID {gtid} is not in this log"):
        end_of(engine, gtid, before=False)


@pytest.mark.parametrize(
    ("facts", "backup", "expected"),
    [
        ({}, {}, ("", "an empty server")),
        ({}, {"info": "0-1-5"}, ("0-1-5", "info")),
        ({"slave_position": "0-1-5", "has_tables": True}, {}, ("0-1-5", "gtid_slave_pos")),
        ({"slave_position": "0-1-5", "binlog_position": "0-1-5"}, {"info": "0-1-5"}, ("0-1-5", "gtid_slave_pos")),
        ({"slave_position": "0-1-5,1-1-1", "binlog_position": "0-1-3"}, {}, ("0-1-5,1-1-1", "gtid_slave_pos")),
        ({"slave_position": "0-1-5"}, {"info": "0-1-6"}, r"gtid_slave_pos says \[0-1-5\] and info says \[0-1-6\]"),
        ({}, {"info": "0-1-5", "slave": "0-1-6"}, r"info says \[0-1-5\] and slave says \[0-1-6\]: .*--position"),
        ({"slave_position": "0-1-5", "binlog_position": "0-1-6"}, {}, "gtid_binlog_pos says .0-1-6."),
        ({"binlog_position": "0-1-6"}, {}, "only its binlog says a position: --position 0-1-6 if"),
        ({"has_tables": True}, {}, "it has tables, and nothing says their position: name their backup"),
    ],
)
def test_sources_must_agree_about_where_the_server_is(facts, backup, expected):
    said = {name: at(value) if isinstance(value, str) else value for name, value in facts.items()}
    asked = TargetFacts(**said), {name: at(value) for name, value in backup.items()}
    if isinstance(expected, tuple):
        position, source = start_of("db2", *asked)
        assert (str(position), source) == expected
        return
    with pytest.raises(RestoreError, match=expected):
        start_of("db2", *asked)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"version": "8.4.3"}, "it is 8.4.3: expected MariaDB with GTIDs, as 10.2 or later"),
        ({"version": "5.5.68-MariaDB"}, "expected MariaDB with GTIDs"),
        ({"primaries": ("db1:3306",)}, "it is a replica of db1:3306: STOP ALL SLAVES there first"),
        ({"skipped_errors": "1062"}, "start it without slave_skip_errors=1062"),
        (
            {"binlog_state": (Gtid.parse("0-9-1"),)},
            r"its binlog has 0-9-1, and the log \[0-1-5\] .* RESET MASTER there",
        ),
    ],
)
def test_some_servers_cannot_be_restored(facts, problem):
    with pytest.raises(RestoreError, match=problem):
        expect_usable("db2", TargetFacts(**facts), GtidState.parse("0-1-5"))
    expect_usable("db2", TargetFacts(binlog_state=(Gtid.parse("0-1-4"),)), GtidState.parse("0-1-5"))


@pytest.mark.parametrize(
    ("start", "end", "skipped", "problem"),
    [
        ("0-1-2", "0-1-1,1-1-1", "", "it has 0-1-2 already, and is to end at 0-1-1: restore an earlier backup"),
        ("1-1-1", "0-1-1", "", "it has 1-1-1 already, and is to end at nothing of domain 1"),
        ("0-9-1", "0-1-1", "", r"it has 0-9-1, and the log \[0-1-2,0-2-3\] in domain 0: another history"),
        ("0-1-1", "0-2-3", "0-1-1", r"--skip 0-1-1 is not among what is applied, from \[0-1-1\] to \[0-2-3\]"),
        ("0-1-1", "0-1-2", "0-2-3", "--skip 0-2-3 is not among"),
        ("", "0-1-2", "1-1-1", "--skip 1-1-1 is not among"),
        ("", "0-1-2", "0-7-1", "GTID 0-7-1 is not in this log"),
        ("0-1-1", "0-2-3", "0-1-2", None),
    ],
)
def test_the_end_is_after_the_start_and_what_is_left_out_between(engine, start, end, skipped, problem):
    plan = RestorePlan("db2", at(start), "", at(end), tuple(at(skipped).values()), ())
    if problem is None:
        expect_between(plan, engine)
        assert plan.done(at(end)) == 2
        return
    with pytest.raises((RestoreError, PositionError), match=problem):
        expect_between(plan, engine)
