"""A schema history that begins with a scan by kernels is the one that was folded group by group."""

import pytest

import ibbmaster
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.directory import open_directory
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.tables.arrow import ddl_scan
from ibbmaster.tables.arrow.ddl_scan import scan_ddl

CAPTURES = ("10.11/ddl-trx-xa", "11.8/alter-two-phase", "11.8/types-noblob-compressed", "10.11/domains", "11.8/crashed")


@pytest.fixture
def count_folds(monkeypatch):
    found = []
    fold = GroupFolding.fold
    monkeypatch.setattr(GroupFolding, "fold", lambda *given: (found.append(given[1]), fold(*given)))
    return found


def expect_the_same(log, count_folds, **given):
    careful = LoggedSchema(log, **given)
    expected = careful.history()
    count_folds.clear()
    scanned = LoggedSchema(log, scan=scan_ddl, **given)
    history = scanned.history()
    assert count_folds == []
    assert (history.lines, history.places, history.end) == (expected.lines, expected.places, expected.end)
    assert history.at() == expected.at()
    (up_to, own), (expected_up_to, other) = (
        (one._last, GtidState.parse(one._last.state)) for one in (scanned, careful)
    )
    assert (up_to._replace(state=""), own) == (expected_up_to._replace(state=""), other)
    return history


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_scan_finds_what_groups_hold(imported, fixtures, count_folds, capture):
    classic = ClassicBinlog(sorted((fixtures / "classic" / capture).glob("binlog.0*[0-9]")))
    assert expect_the_same(classic, count_folds).at().tables
    directory = imported(capture)
    history = expect_the_same(open_directory(directory, is_strict=True), count_folds)
    expect_the_same(ibbmaster.open(directory).engine, count_folds, behind=GtidPosition.parse("0-1-5"))
    assert history.at().tables


def test_a_log_that_is_written_is_scanned_and_goes_on(tmp_path, count_folds, monkeypatch):
    monkeypatch.setattr(ddl_scan, "RANGE_BYTES", 1 << 16)
    with ibbmaster.create(tmp_path / "log", max_file_bytes="256k", state_interval_bytes="64k") as log:
        for number in range(1, 300):
            log.append(f"0-1-{2 * number}", f"CREATE TABLE t{number} (a INT COMMENT '{'x' * 900}')", database="d")
            log.append(f"0-1-{2 * number + 1}", "INSERT INTO t VALUES (1)", database="d")
        schema = LoggedSchema(log.engine, scan=scan_ddl)
        assert len(schema.history().at().tables) == 299
        assert count_folds == []
        expect_the_same(log.engine, count_folds)
        log.append("0-1-1000", "CREATE TABLE last (a INT)", database="d")
        assert schema.history().table_at("d", "last") is not None
        assert len(log.files) > 1


def test_where_there_are_temporary_tables_restarts_are_looked_for(tmp_path, count_folds):
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("0-1-1", "CREATE TABLE t (a INT)", database="d")
        log.append("0-1-2", "CREATE TEMPORARY TABLE t (b INT)", database="d")
        history = LoggedSchema(log.engine, scan=scan_ddl).history()
        assert len(count_folds) == 2
        assert [column.name for column in history.table_at("d", "t").columns] == ["a"]


def test_without_kernels_and_of_an_empty_log_there_is_no_scan(tmp_path, monkeypatch):
    with ibbmaster.create(tmp_path / "log") as log:
        assert LoggedSchema(log.engine, scan=scan_ddl).history().at().tables == {}
        log.append("0-1-1", "CREATE TABLE t (a INT)", database="d")
        monkeypatch.setattr(ddl_scan, "load", lambda: None)
        assert len(LoggedSchema(log.engine, scan=scan_ddl).history().at().tables) == 1
