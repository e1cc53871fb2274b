"""`ibbmaster.restore` before it has asked a server; tests/interop/test_restore.py has real ones."""

from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.restore_plan import RestorePlan, TargetFacts, end_of, expect_between, expect_usable, start_of
from ibbmaster.api.restoring import PART_SIZE, backup_positions
from ibbmaster.errors import ConfigurationError, PositionError, RestoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from tests.case_table import data_beside


@pytest.fixture
def log(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        for number in range(1, 6):
            log.append(f"0-1-{number}", f"CREATE DATABASE d{number}")
        yield log


def test_a_dry_run_for_a_new_server_needs_none(log):
    plan = ibbmaster.restore(log, None, until="0-1-4", before=True, skip=["0-1-2"], dry_run=True)
    assert (str(plan.start), str(plan.end), [*map(str, plan.skipped)]) == ("", "0-1-3", ["0-1-2"])


@pytest.mark.parametrize(
    ("into", "options", "problem"),
    [
        ("db1", {}, "expected mysql://USER@HOST"),
        ("mysql://root@db1,db2", {}, "one server is restored at a time"),
        (
            "mysql://root@192.0.2.1",
            {},
            "may be another machine, which cannot reach 127.0.0.1 of this one: give --listen",
        ),
        ("mysql://root@127.0.0.1", {"ca": "/nothing"}, "is for TLS that is verified"),
    ],
)
def test_what_names_no_server_is_refused(log, into, options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        ibbmaster.restore(log, into, until="0-1-4", **options)


CASES = data_beside(__file__)
LOG = Path(__file__).parents[2] / "fixtures" / "classic" / "10.11" / "domains"


def positions(path: Path) -> dict[str, str]:
    with ibbmaster.open(LOG) as log:
        return {name: str(position) for name, position in backup_positions(path, log.engine).items()}


def backup_of(files: dict[str, str], tmp_path: Path) -> Path:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "dump.sql" if "dump.sql" in files else tmp_path


@pytest.mark.parametrize("name", CASES["read"])
def test_each_file_says_its_position(name, tmp_path):
    files, expected = CASES["read"][name]
    assert positions(backup_of(files, tmp_path)) == expected


@pytest.mark.parametrize("name", CASES["refused"])
def test_what_says_nothing_or_two_things_is_refused(name, tmp_path):
    files, problem = CASES["refused"][name]
    with pytest.raises(ConfigurationError, match=problem):
        positions(backup_of(files, tmp_path))


def test_a_long_dump_is_read_at_its_ends_only(tmp_path):
    rows = "-- SET GLOBAL gtid_slave_pos='9-9-9';\n" + "INSERT INTO t VALUES (1);\n" * PART_SIZE
    text = "-- MariaDB dump\n" + "x" * PART_SIZE + rows + "-- SET GLOBAL gtid_slave_pos='0-1-3';\n"
    (tmp_path / "dump.sql").write_text(text)
    assert positions(tmp_path / "dump.sql") == {"dump.sql": "0-1-3"}


def between(log: ibbmaster.Log, first: str, last: str) -> tuple[str, str, str]:
    """Places in the only file of a log where a backup may have ended, in the words of mariadb-backup, and its GTIDs."""
    groups = {str(group.gtid): group for group in log}
    assert groups[first].start.file_no == groups[last].end.file_no
    name = log.engine.file_name(groups[first].start.file_no)
    state = ibbmaster.GtidState()
    for gtid in list(groups)[: list(groups).index(last) + 1]:
        state.log(ibbmaster.Gtid.parse(gtid))
    recorded, of_data = (f"{name}\t{groups[gtid].end.offset}" for gtid in (last, first))
    return f"{recorded}\t{state.position()}\n", f"./{of_data}\n", str(state.position())


@pytest.mark.parametrize(("last", "lacks"), [("0-1-3", False), ("0-1-8", True)])
def test_the_log_tells_whether_data_that_are_behind_lack_a_transaction(tmp_path, last, lacks):
    with ibbmaster.create(tmp_path / "log") as log:
        for number in range(1, 10):
            text = f"CREATE DATABASE d{number}" if number < 5 else ["INSERT INTO d1.t VALUES (1)"]
            log.append(f"0-1-{number}", text)
        recorded, of_data, position = between(log, "0-1-1", last)
        backup = backup_of(
            {"xtrabackup_binlog_info": recorded, "xtrabackup_binlog_pos_innodb": of_data}, tmp_path / "log"
        )
        if lacks:
            with pytest.raises(
                ConfigurationError, match=f"was recorded: .* give --position; the recorded one is {position}"
            ):
                backup_positions(backup, log.engine)
        else:
            assert {str(one) for one in backup_positions(backup, log.engine).values()} == {position}


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
