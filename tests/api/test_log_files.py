"""A log of either kind of files answers the same questions, each as its files are."""

import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.log_files import ClassicLogFiles, LogCheck, PagedLogFiles
from ibbmaster.errors import DamageError
from ibbmaster.ibb.page import PAGE_SIZE

FIXTURES = Path(__file__).parents[2] / "fixtures"
KINDS = {PagedLogFiles: FIXTURES / "ibb" / "domains", ClassicLogFiles: FIXTURES / "classic" / "10.11" / "domains"}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def log(request):
    with ibbmaster.open(KINDS[request.param]) as opened:
        assert type(opened.stored) is request.param
        yield opened


def test_a_plan_of_a_group_leads_to_that_group(log):
    for group in log.groups():
        plan = log.stored.plan_of_group(group.start)
        assert plan.position <= group.start
        reader, starts = log.engine.groups(plan), []
        while not starts or starts[-1] < group.start:
            starts.append(reader.next_group().start)
        assert starts[-1] == group.start
        reader.close()


def test_a_plan_of_a_group_in_a_file_that_is_not_there_is_a_lookup_error(log):
    (first, *_) = log.groups()
    with pytest.raises(LookupError):
        log.stored.plan_of_group(first.start._replace(file_no=99))


def test_a_position_is_shown_by_what_its_files_have(log):
    start = next(log.groups()).start
    place = log.stored.place(start)
    assert place == start
    if log.stored.is_classic:
        assert str(place) == f"{log.files[0].name} offset {start.offset}"
    else:
        assert str(place) == str(start)
        assert " page " in str(place)


def test_only_traditional_files_say_which_server_wrote_them(log):
    version = log.stored.server_version
    assert version.startswith("10.11.") if log.stored.is_classic else version is None


def test_all_bytes_are_read_to_find_faults(log):
    verified, heard = LogCheck(), []
    assert list(log.stored.faults(verified, jobs=2, on_bytes=heard.append)) == []
    assert verified.totals.files == len(log.files)
    assert verified.totals.groups == len(list(log.groups()))
    assert sum(heard) > PAGE_SIZE
    log.stored.expect_whole()


def test_groups_that_only_the_redo_log_has_are_missing_in_the_files(tmp_path):
    with ibbmaster.create(tmp_path / "log", has_background=False, max_file_bytes=1 << 20) as log:
        log.append("0-1-1", "CREATE TABLE s.t (id INT)")
        shutil.copytree(tmp_path / "log", tmp_path / "killed")
    with ibbmaster.open(tmp_path / "killed") as log, pytest.raises(DamageError, match="are in the redo log of a"):
        log.stored.expect_whole()
    with ibbmaster.open(tmp_path / "log") as log:
        log.stored.expect_whole()
