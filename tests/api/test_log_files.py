import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.log_files import ClassicLogFiles, LogVerification, PagedLogFiles, opened_files
from ibbmaster.errors import ConfigurationError, DamageError, StoreError
from tests.damage import flip

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


def test_places_and_the_server_are_those_that_the_files_have(log):
    start = next(log.groups()).start
    place = log.stored.place(start)
    assert place == start
    assert str(place) == (f"{log.files[0].name} offset {start.offset}" if log.stored.is_classic else str(start))
    assert log.stored.is_classic or " page " in str(place)
    version = log.stored.server_version
    assert version.startswith("10.11.") if log.stored.is_classic else version is None
    (first, *_) = log.groups()
    with pytest.raises(LookupError):
        log.stored.plan_of_group(first.start._replace(file_no=99))


def test_groups_that_only_the_redo_log_has_are_missing_in_the_files(tmp_path):
    with ibbmaster.create(tmp_path / "log", has_background=False, max_file_bytes=1 << 20) as log:
        log.append("0-1-1", "CREATE TABLE s.t (id INT)")
        shutil.copytree(tmp_path / "log", tmp_path / "killed")
    with ibbmaster.open(tmp_path / "killed") as log, pytest.raises(DamageError, match="are in the redo log of a"):
        log.stored.expect_whole()
    with ibbmaster.open(tmp_path / "log") as log:
        log.stored.expect_whole()


MODULES = """
import json, sys
from ibbmaster.commands.cli.main import main
main(["verify", sys.argv[1]])
print(json.dumps(sorted(sys.modules)))
"""


def verified(path):
    with opened_files(path) as files:
        check = LogVerification(path, files, jobs=1, on_bytes=lambda count: None)
        return [str(fault) for fault in check], check.totals, sum(one.stat().st_size for one in files.paths())


@pytest.mark.parametrize("path", KINDS.values(), ids=lambda path: path.parts[-2])
def test_files_without_a_log_around_them_have_the_faults_that_the_log_has(tmp_path, path):
    copy = tmp_path / "log"
    shutil.copytree(path, copy)
    changed = max(copy.iterdir(), key=lambda one: one.stat().st_size if one.suffix != ".index" else 0)
    found = changed.stat().st_size
    flip(changed, found - (200_000 if found > 300_000 else 300))
    size = sum(one.stat().st_size for one in copy.iterdir() if one.name.startswith("binlog"))
    with ibbmaster.open(copy) as log:
        check = log.verify()
        faults = [str(fault) for fault in check]
        assert verified(copy) == (faults, check.totals, size)
    assert faults


@pytest.mark.parametrize("path", KINDS.values(), ids=lambda path: path.parts[-2])
def test_the_command_loads_nothing_that_reads_rows_or_sql(path):
    done = subprocess.run([sys.executable, "-c", MODULES, path], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    rooms = ("schema", "replication.event.column_types", "logs.stages", "sqltext", "lake", "tables", "primary")
    for room in (*rooms, "replication.dump"):
        importlib.import_module(f"ibbmaster.{room}")  # there is one of that name
        assert not [name for name in loaded if name.startswith(f"ibbmaster.{room}")], room
    assert not {"numpy", "trio"} & set(loaded)  # for so little


def test_what_is_no_log_is_refused_as_where_a_log_is_opened(tmp_path):
    with pytest.raises(StoreError, match="no such file or directory"), opened_files(tmp_path / "missing") as files:
        files.paths()
    with (
        pytest.raises(ConfigurationError, match=r"verify reads whole logs, and .*/binlog-000000.ibb is one file"),
        opened_files(KINDS[PagedLogFiles] / "binlog-000000.ibb"),
    ):
        pass
    (tmp_path / "text.000001").write_text("no binlog")
    with pytest.raises(ibbmaster.IbbMasterError, match=r"text\.000001"), opened_files(tmp_path / "text.000001"):
        pass
