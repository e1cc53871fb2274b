import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.logs.classic import following
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.storage.disk import local
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import LocalFile
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.tables.arrow import plan
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, maps_backwards, open_source, plan_tasks
from tests.table_versions import versions_of, write_log
from tests.written_log import inserted
from tests.written_log import write_log as write_groups


def test_a_log_that_grew_or_is_another_one_is_folded_anew(tmp_path) -> None:
    options = parse_options({"path": str(tmp_path)})
    write_log(tmp_path, "CREATE TABLE t (id INT)")
    assert len(versions_of(options).of("db", "t")) == 1
    write_log(tmp_path, "ALTER TABLE t ADD a INT", first=2)
    assert len(versions_of(options).of("db", "t")) == 2
    for path in tmp_path.iterdir():
        path.unlink()
    write_log(tmp_path, "CREATE TABLE u (id INT)")
    assert not versions_of(options).of("db", "t")


def test_a_table_that_was_last_written_long_ago_is_found_in_any_file(tmp_path) -> None:
    old, new = (
        written_table(f"d.{name}", {"id": "int", "a": "mediumtext"}, table_id=number)
        for number, name in enumerate("tu")
    )
    log = write_groups(
        tmp_path / "log", [inserted(old, [1, "x"])], *([inserted(new, [1, "x" * 200_000])] for _ in range(60))
    )
    assert len(list(log.glob("*.ibb"))) > 8
    assert [one.name for one in find_fields(parse_options({"path": str(log), "table": "d.t"}))[-2:]] == ["id", "a"]
    options = parse_options({"path": str(log)})
    with closing(open_source(options)) as source:
        places = [seen.place for part in maps_backwards(source, options, []) for seen in part]
    files = [place.position.file_no for place in places]
    assert files == sorted(files, reverse=True)
    assert len(places) == len(set(places)) == len(set(files)) + 1  # the first file has both tables


@pytest.fixture
def opened(monkeypatch):
    found: Counter[str] = Counter()
    open_regular, init = local._open_regular, LocalFile.__init__

    def counted_open(path, mode):
        found[Path(path).name] += 1
        return open_regular(path, mode)

    def counted_init(self, path, *given, **named):
        found[Path(path).name] += 1
        init(self, path, *given, **named)

    monkeypatch.setattr(local, "_open_regular", counted_open)
    monkeypatch.setattr(LocalFile, "__init__", counted_init)
    return found


@pytest.fixture
def small_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = written_table("d.t", {"id": "int", "a": "mediumtext"}, table_id=1)
    rows = [inserted(table, [number, "x" * 30_000]) for number in range(80)]
    log = write_groups(tmp_path / "log", *table.statements, *([one] for one in rows), file_bytes=4 * PAGE_SIZE)
    with ibbmaster.open(log) as read:
        (tmp_path / "classic").mkdir()
        disk = RealDisk(tmp_path / "classic")
        count = len(export_traditional(read.engine, disk, PROFILES["classic-10.11"], max_file_bytes=50_000).files)
    assert count >= 40
    return log, tmp_path / "classic"


@pytest.mark.parametrize(
    ("given", "again", "per_file"),
    [({"granularity": "events"}, False, 0), ({}, False, 1), ({"table": "d.t"}, False, 1), ({"table": "d.t"}, True, 0)],
)
def test_a_plan_opens_each_file_once_if_at_all(small_files, opened, monkeypatch, given, again, per_file):
    for directory, is_classic in zip(small_files, (False, True), strict=True):
        options = parse_options({"path": str(directory), **given}, is_classic=is_classic)
        if again:
            plan_tasks(options, find_fields(options))
            monkeypatch.setattr(plan, "_HISTORIES", {})  # as in another process, which takes it from its cache
        opened.clear()
        tasks = plan_tasks(options, find_fields(options))
        files = sorted(name for name in os.listdir(directory) if name.startswith("binlog") and "index" not in name)
        assert {opened[name] for name in files[10:-10]} == {per_file}
        assert len(tasks) >= len(files) - 1  # one may be ready for later use


def test_a_plan_looks_once_for_columns_and_once_for_ranges_which_files_there_are(small_files, monkeypatch):
    looked, find = [], following.find_files
    monkeypatch.setattr(following, "find_files", lambda paths: (looked.append(paths), find(paths))[1])
    options = parse_options({"path": str(small_files[1]), "table": "d.t"}, is_classic=True)
    fields = find_fields(options)
    assert len(looked) == 1
    plan_tasks(options, fields)
    assert len(looked) == 2


def test_a_plan_of_rows_loads_neither_pandas_nor_what_computes_with_arrays(small_files):
    program = (
        "import sys\n"
        "from ibbmaster.tables.arrow.plan import find_fields, plan_tasks\n"
        "from ibbmaster.tables.arrow.options import parse_options\n"
        "options = parse_options({'path': sys.argv[1], 'table': 'd.t'})\n"
        "assert plan_tasks(options, find_fields(options))\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, small_files[0]], capture_output=True, text=True, check=True)
    assert "ibbmaster.tables.arrow.table_maps" in done.stdout.split()
    assert {"pandas", "pyarrow.compute"}.isdisjoint(done.stdout.split())
