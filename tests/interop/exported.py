"""Exports beside their log, cell by cell, as a program: delta-rs holds up all threads of its process, as of a store."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet

import ibbmaster
from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.reading import read_task
from ibbmaster.disk.object_store import client_of, storage_options
from ibbmaster.disk.place import ObjectPath
from ibbmaster.disk.place import place as named_place
from ibbmaster.lake.exporting import GROUPS, RUNS
from ibbmaster.lake.table_directory import table_name
from ibbmaster.spark.options import parse_options

ORDER = ("_file_no", "_offset", "_change_no")


def main(log: str, *targets: str) -> None:
    with ibbmaster.open(log) as opened:
        expected = {name: table.to_pylist() for name, table in opened.to_arrow_tables().items() if len(table)}
    options = parse_options({"path": log, "granularity": "groups"})
    tasks = plan_tasks(options, find_fields(options))
    expected[GROUPS] = [row for task in tasks for batch in read_task(task) for row in batch.to_pylist()]
    counts = {target: compare(named_place(target), expected) for target in targets}
    print(json.dumps(counts), flush=True)
    os._exit(0)  # what delta-rs has started may abort Python at its end


def compare(place: Path, expected: dict[str, list[dict[str, object]]]) -> int:
    """How many cells are those of the log, with which no other ones are there."""
    names = [name for name in files_of(place) if "/_delta_log/" not in name and name != RUNS]
    assert all(name.endswith(".parquet") for name in names), names
    of_groups = {GROUPS: GROUPS}
    tables = {one: of_groups.get(one) or table_name(one) for one in {name.partition("/")[0] for name in names}}
    assert sorted(tables.values()) == sorted(expected)
    count = 0
    for directory, table in tables.items():
        own = sorted(expected[table], key=place_of)
        for found in (of_files(place, directory, names), of_delta(place / directory)):
            if found is not None:
                rows = [{name: row[name] for name in own[0]} for row in sorted(found, key=place_of)]
                assert rows == own, f"{place}/{directory}"
                count += len(rows) * len(own[0])
    return count


def files_of(place: Path) -> Iterator[str]:
    if isinstance(place, ObjectPath):
        yield from (one.name for one in client_of(str(place)).walk())
    else:
        yield from (str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def place_of(row: dict[str, object]) -> list[object]:
    return [row[name] for name in ORDER if name in row]


def of_files(place: Path, directory: str, names: list[str]) -> list[dict[str, object]]:
    found = []
    for name in names:
        if name.startswith(f"{directory}/"):
            with (place / name).open("rb") as file:
                found += parquet.read_table(pa.BufferReader(file.read())).to_pylist()
    return found


def of_delta(place: Path) -> list[dict[str, object]] | None:
    options = storage_options() if isinstance(place, ObjectPath) else None
    if not DeltaTable.is_deltatable(str(place), options):
        return None
    rows = DeltaTable(str(place), storage_options=options).to_pyarrow_dataset()
    return list(rows.to_table(use_threads=False).to_pylist())  # threads may abort Python at its end


if __name__ == "__main__":
    main(*sys.argv[1:])
