"""What a query reads is decided by what the log holds now."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.arrow.plan import find_fields, find_versions, maps_backwards, plan_tasks
from ibbmaster.classic.exporting import export_traditional
from ibbmaster.disk import local
from ibbmaster.disk.local import RealDisk
from ibbmaster.disk.place import LocalFile
from ibbmaster.dump.profile import PROFILES
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.spark.options import parse_options
from tests.table_versions import write_log
from tests.written_log import inserted
from tests.written_log import write_log as write_groups


def test_a_log_that_grew_or_is_another_one_is_folded_anew(tmp_path) -> None:
    options = parse_options({"path": str(tmp_path)})
    write_log(tmp_path, "CREATE TABLE t (id INT)")
    assert len(find_versions(options).of("db", "t")) == 1
    write_log(tmp_path, "ALTER TABLE t ADD a INT", first=2)
    assert len(find_versions(options).of("db", "t")) == 2
    for path in tmp_path.iterdir():
        path.unlink()
    write_log(tmp_path, "CREATE TABLE u (id INT)")
    assert not find_versions(options).of("db", "t")


def test_a_table_that_was_last_written_long_ago_is_found_in_any_file(tmp_path) -> None:
    """Files are looked through from the end: one, then two, then four at once, each of them once."""
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
    places = [seen.place for part in maps_backwards(options, []) for seen in part]
    files = [place.position.file_no for place in places]
    assert files == sorted(files, reverse=True)
    assert len(places) == len(set(places)) == len(set(files)) + 1  # the first file has both tables


@pytest.fixture
def opened(monkeypatch):
    """How often each file is opened from here on, by its name."""
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


@pytest.mark.parametrize(
    (
        "given",
        "per_file",
    ),  # of `.ibb` files; of others, into which each looks who opens the log
    [({"granularity": "events"}, (0, 1)), ({}, (1, 3)), ({"table": "d.t"}, (1, 5))],
)
def test_a_plan_opens_each_file_a_few_times_whatever_their_number(tmp_path, monkeypatch, opened, given, per_file):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = written_table("d.t", {"id": "int", "a": "mediumtext"}, table_id=1)
    rows = [inserted(table, [number, "x" * 30_000]) for number in range(80)]
    log = write_groups(tmp_path / "log", *table.statements, *([one] for one in rows), file_bytes=4 * PAGE_SIZE)
    with ibbmaster.open(log) as read:
        (tmp_path / "classic").mkdir()
        disk = RealDisk(tmp_path / "classic")
        count = len(export_traditional(read.engine, disk, PROFILES["classic-10.11"], max_file_bytes=50_000).files)
    assert count >= 40
    for directory, is_classic in ((log, False), (tmp_path / "classic", True)):
        options = parse_options({"path": str(directory), **given}, is_classic=is_classic)
        opened.clear()
        tasks = plan_tasks(options, find_fields(options))
        middle = [times for name, times in sorted(opened.items()) if name.startswith("binlog")][10:-10]
        assert max(middle, default=0) <= per_file[is_classic]
        assert len(tasks) >= count
