"""Files of an export as a worker writes them: all rows, by table and day, in a directory or an object store."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest
from pyarrow import parquet

import ibbmaster
from ibbmaster.arrow.many_tables import NO_TABLE, find_tables, plan_tables
from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.reading import read_task
from ibbmaster.disk.object_store import client_of
from ibbmaster.disk.place import place as named_place
from ibbmaster.errors import StoreError
from ibbmaster.lake import export_files
from ibbmaster.lake.export_files import DayFiles, ExportTarget, run_and_attempt, write_bundle
from ibbmaster.spark.options import parse_options

DAY_US = 86_400_000_000
RUN = "0123456789ab"


def target_of(place: object, *tables: str, **more: object) -> ExportTarget:
    directories = {NO_TABLE: "_groups"} | {name: name for name in tables}
    return ExportTarget(place=str(place), staging="new", run=RUN, directories=directories, **more)


def rows_of(days, first=0):
    """Rows that were committed on these days since 1970."""
    numbers = pa.array(range(first, first + len(days)))
    return pa.record_batch(
        {"_commit_ts": pa.array([day * DAY_US for day in days], pa.timestamp("us", "UTC")), "n": numbers}
    )


def opened(place, name):
    if "://" in str(place):
        return named_place(f"{place}/{name}").open("rb")
    return (place / "new" / name).open("rb")


def written_to(place, log):
    """By table the rows of a log that tasks of it have written, by their numbers in it."""
    options = parse_options({"path": str(log), "partitionBytes": "32k"})
    fields = find_tables(options)
    target = target_of(place, *fields)
    tasks = [write_bundle(target, [one]) for one in plan_tables(options, fields, with_groups=True)]
    assert len(tasks) > 1
    assert len({one.attempt for one in tasks}) == len(tasks)
    found: dict[str, list[pa.Table]] = {}
    for one in tasks:
        for file in one.files:
            assert run_and_attempt(file.name) == (RUN, one.attempt)
            with opened(place, file.name) as opened_file:
                data = opened_file.read()
            table = parquet.read_table(pa.BufferReader(data))
            assert (len(table), len(data)) == (file.rows, file.size)
            found.setdefault(file.directory, []).append(table)
    order = [("_file_no", "ascending"), ("_offset", "ascending")]
    return {
        name: pa.concat_tables(tables).sort_by(
            [*order, *([("_change_no", "ascending")] if "_change_no" in tables[0].column_names else [])]
        )
        for name, tables in found.items()
    }


def test_the_files_have_the_rows_that_a_reader_of_each_table_has(grow, tmp_path) -> None:
    directory = grow(9)
    found = written_to(tmp_path / "out", directory)
    with ibbmaster.open(directory) as log:
        expected = {name: table for name, table in log.to_arrow_tables().items() if len(table)}
    options = parse_options({"path": str(directory), "granularity": "groups"})
    tasks = plan_tasks(options, find_fields(options))
    groups = [row for task in tasks for batch in read_task(task) for row in batch.to_pylist()]
    assert found.pop("_groups").to_pylist() == groups
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert found[name].to_pylist() == table.to_pylist()


def test_an_object_store_gets_the_same_files_as_a_directory(grow, tmp_path, object_store) -> None:
    url = object_store.new_place()
    assert written_to(url, grow(9)) == written_to(tmp_path / "out", grow(9))


def test_rows_are_divided_by_the_day_of_their_commit(tmp_path, monkeypatch) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    monkeypatch.setattr(export_files, "HELD_BYTES", 500)
    monkeypatch.setattr(export_files, "OPEN_MAX", 3)
    expected: dict[str, list[int]] = {}
    with DayFiles(target_of(tmp_path, "d.t")) as files:
        for first in range(0, 400, 20):
            days = [rng.randrange(8) for _ in range(20)]
            files.add("d.t", rows_of(days, first))
            for number, day in enumerate(days, start=first):
                expected.setdefault(f"{datetime.date(1970, 1, 1 + day)}", []).append(number)
        written = files.finish().files
    found: dict[str, list[int]] = {}
    for file in written:
        day = file.name.split("/")[1].removeprefix("_date=")
        found.setdefault(day, []).extend(parquet.ParquetFile(tmp_path / "new" / file.name).read()["n"].to_pylist())
    assert found == expected
    assert len(written) > 8  # more than three were never open at once


def test_a_batch_without_rows_makes_no_file(tmp_path) -> None:
    with DayFiles(target_of(tmp_path, "d.t")) as files:
        files.add("d.t", rows_of([]))
        assert files.finish().files == []
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_refuses_is_one_line(object_store) -> None:
    url = object_store.new_place()
    object_store.fault = lambda request: 403 if request.method == "PUT" else None
    with DayFiles(target_of(url, "d.t")) as files:
        files.add("d.t", rows_of([1]))
        with pytest.raises(StoreError, match=rf"^{url}/d.t/.*: the object store refuses access"):
            files.finish()
    assert list(client_of(url).walk()) == []


def test_names_of_older_versions_have_no_attempt() -> None:
    assert run_and_attempt("d.t/_date=2026-01-01/ibb-run-0123456789ab-00001.parquet") == (RUN, "")
    assert run_and_attempt("d.t/part-00000.parquet") == ("", "")
