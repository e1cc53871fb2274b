"""Changes of rows as Parquet, one table each, and a table of the groups: all out of one scan of the log.

Workers write the files under names that carry the run's number and their attempt's. In a directory they do so
beside the tables, and the files get their places when all are there; in an object store they are put there at once.
They count once the run is in the list of runs: what a killed run has left is removed by the next one. The logs of
Delta tables follow that list.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.arrow.many_tables import NO_TABLE, TablesTask, find_tables, plan_tables
from ibbmaster.arrow.plan import bundled, end_of, find_fields, open_log, plan_tasks
from ibbmaster.arrow.read_options import Granularity, ReadOptions
from ibbmaster.arrow.shape import TableFields
from ibbmaster.disk.object_store import client_of
from ibbmaster.disk.place import ObjectPath, whole_place
from ibbmaster.disk.place import place as named_place
from ibbmaster.errors import ClassicFormatError, ConfigurationError, FormatError, StoreError
from ibbmaster.lake.continuing import tables_to_export
from ibbmaster.lake.export_files import RUN_MARK, ExportTarget, TaskFiles, run_and_attempt, write_bundle
from ibbmaster.lake.failure import plain_errors
from ibbmaster.lake.maintain.changes import doubts_of
from ibbmaster.lake.marks import Marks, expect_same, marks_at
from ibbmaster.lake.placing import foreign_in, make_directory, only_writer, replace_file, sync
from ibbmaster.lake.spreading import spread
from ibbmaster.lake.table_directory import directory_of, rename_older, table_name
from ibbmaster.spark.options import parse_options, schema_options
from ibbmaster.sqltext.table_name import parse_table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = "_ibbmaster-runs.json"
STAGING = "_ibbmaster-staging"
GROUPS = "_groups"
FAULTS = "_faults"  # all that the latest run has skipped


def export(
    session: SparkSession,
    path: str,
    target: str,
    *,
    tables: Sequence[str] = (),
    schema: str | None = None,
    name_case: int | None = None,
    zero_dates: str = "null",
    keeps_going: bool = False,
    as_delta: bool = False,
) -> dict[str, object]:
    """Export what came since the last run into the same directory; returns what was written.

    With `keeps_going` what is damaged is skipped, and listed in a table of faults. With
    `as_delta` the tables are Delta tables, too; those of earlier runs become so.

    Of tables whose rows have changed in a way that no event shows, it says since when, and why.

    Raises:
        ConfigurationError: a table is not in the log, or its columns have no names and are not declared.
        PositionError: the archive does not hold the position of the last run.
        BusyError: another job writes there.
        SparkJobError: Spark cannot read or write the tables.
        StoreError: the directory holds something else, or cannot be written; or tables have changed since the last
            run, so that what it has written is no longer what they have.
    """
    place = named_place(target)
    tables = [str(parse_table_name(name)) for name in tables]
    given = {"path": path, "failOnDataLoss": str(not keeps_going).lower(), **schema_options(schema or None, name_case)}
    source = parse_options({**given, "zeroDates": zero_dates})
    with only_writer(place), plain_errors(place):
        runs = read_runs(place)
        start, end, marks = _span(source, runs)
        options = replace(source, starting_gtid=start or None, ending_gtid=end)
        done: dict[str, object] = {"from": start, "to": end}
        run = uuid.uuid4().hex[:12]
        fields = _tables_of(options, given, place, tables)
        clean(place, runs)
        if as_delta:  # what a run has written that was killed then
            rename_older(place)
            publish_runs(place, runs)
        with _removed_unless_done(place, runs):
            written = _write_tables(session, options, fields, place, run)
            faults = _write_faults(session, source, place, run) if keeps_going else []
            counts = _counts_of(written)
            fault_counts = {"faults": _rows_in(FAULTS, faults)} if keeps_going else {}
            if not counts["groups"] and not any(fault_counts.values()):
                return done | {"groups": 0, "rows": {}} | fault_counts
            if not isinstance(place, ObjectPath):
                _place_files([file.name for one in (*written, *faults) for file in one.files], place)
            doubts = {} if keeps_going else doubts_of(given | {"endingGtid": end}, _tables_in(place))
            attempts = [one.attempt for one in (*written, *faults) if one.files]
            runs.append({"run": run, "gtid": end, "marks": marks, **counts, "attempts": attempts})
            replace_file(place / RUNS, json.dumps(runs, indent=1).encode())
        clean(place, runs)
        if as_delta:
            publish_runs(place, runs)
        return done | counts | fault_counts | ({"inexact": doubts} if doubts else {})


def _span(source: ReadOptions, runs: Sequence[dict[str, Any]]) -> tuple[str, str, Marks]:
    """From where to where a run reads, and the marks of its end.

    Raises:
        PositionError: this log does not have the end of the last run, or is another one.
    """
    start = str(runs[-1]["gtid"]) if runs else ""
    with closing(open_log(source)) as log:
        end = str(log.state().position())
        with nullcontext() if source.is_strict else suppress(FormatError, ClassicFormatError):  # damage is skipped
            if start:
                expect_same(log, runs[-1].get("marks", {}), start, end_of(start, source, log))
            return start, end, marks_at(log, end, end_of(end, source, log))
    return start, end, {}


def _tables_in(place: Path) -> list[str]:
    """The tables that an export has; what attempts have left that do not count waits to be removed."""
    names = {Path(name).parts[0] for name in _files(place)}
    return sorted(table_name(name) for name in names - {GROUPS, FAULTS, STAGING})


@contextmanager
def _removed_unless_done(place: Path, runs: Sequence[dict[str, object]]) -> Iterator[None]:
    """Leave nothing of a run that fails or has nothing to write."""
    known = list(runs)
    if not isinstance(place, ObjectPath):
        make_directory(place / STAGING)
    try:
        yield
    finally:
        if len(known) == len(runs):
            with suppress(OSError, StoreError):  # what has failed says why
                clean(place, known)


def _tables_of(
    options: ReadOptions, given: Mapping[str, str], place: Path, only: Sequence[str]
) -> dict[str, TableFields]:
    """The tables of which a run has rows, under the names that they have at its end, and their columns."""
    start, end = options.starting_gtid or "", options.ending_gtid or ""
    fields = find_tables(replace(options, tables=tuple(only)), only_changed=True)
    tables_to_export(given, fields, place, start, end)
    for name in only:
        if name not in fields and not directory_of(place, name).exists():
            raise ConfigurationError(f"no group in {options.path} changes rows of table {name}")
    return fields


def _write_tables(
    session: SparkSession, options: ReadOptions, fields: Mapping[str, TableFields], place: Path, run: str
) -> list[TaskFiles]:
    """Write groups, and the tables that they change."""
    directories = {NO_TABLE: GROUPS} | {name: directory_of(place, name).name for name in fields}
    target = ExportTarget(place=whole_place(place), staging=STAGING, run=run, directories=directories)
    bundles = bundled(plan_tables(options, fields, with_groups=True))
    return spread(session, partial(write_bundle, target), bundles)


def _write_faults(session: SparkSession, source: ReadOptions, place: Path, run: str) -> list[TaskFiles]:
    """Write what damage a run has skipped."""
    options = replace(source, granularity=Granularity.FAULTS)
    target = ExportTarget(
        place=whole_place(place), staging=STAGING, run=run, directories={NO_TABLE: FAULTS}, has_days=False
    )
    tasks = plan_tasks(options, find_fields(options))
    bundles = [[TablesTask({}, task) for task in bundle] for bundle in bundled(tasks)]
    return spread(session, partial(write_bundle, target), bundles)


def _counts_of(written: Sequence[TaskFiles]) -> dict[str, object]:
    """How many groups were written, and how many rows of each table."""
    directories = {file.directory for one in written for file in one.files} - {GROUPS}
    rows = {table_name(directory): _rows_in(directory, written) for directory in sorted(directories)}
    return {"groups": _rows_in(GROUPS, written), "rows": rows}


def _rows_in(directory: str, written: Sequence[TaskFiles]) -> int:
    return sum(file.rows for one in written for file in one.files if file.directory == directory)


def read_runs(place: Path) -> list[dict[str, object]]:
    """The runs that count.

    Raises:
        StoreError: the list cannot be read, or the directory holds something else.
    """
    path = place / RUNS
    if not path.exists():
        foreign = foreign_in(place, STAGING, RUNS)
        if foreign is not None and not any(RUN_MARK in name for name in _files(place)):
            raise StoreError(f"{place}: holds {foreign}, and no export: give an empty directory")
        return []
    try:
        runs = json.loads(path.read_text())
        assert all(isinstance(run["run"], str) and isinstance(run["gtid"], str) for run in runs)
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise StoreError(f"{path}: this is no list of runs: {error}") from None
    return list(runs)


def clean(place: Path, runs: Sequence[dict[str, object]]) -> None:
    """Remove what a run has left that does not count, and the faults of all runs but the latest."""
    if not isinstance(place, ObjectPath):
        shutil.rmtree(place / STAGING, ignore_errors=True)
    for name in _files(place):
        run, _ = run_and_attempt(name)
        if run and not _counts(name, runs[-1:] if Path(name).parts[0] == FAULTS else runs):
            _remove(place, name)


def _counts(name: str, runs: Sequence[dict[str, object]]) -> bool:
    """Whether a file is one of these runs, by an attempt that they have taken."""
    return _number_of(name, runs) is not None


def _number_of(name: str, runs: Sequence[dict[str, object]]) -> int | None:
    """Which of these runs has a file; None if none has."""
    number, attempt = run_and_attempt(name)
    for place, run in enumerate(runs):
        if run["run"] == number:
            attempts = run.get("attempts")
            return place if not isinstance(attempts, list) or attempt in attempts else None
    return None


def _remove(place: Path, name: str) -> None:
    if isinstance(place, ObjectPath):
        client_of(str(place)).remove(name)
    else:
        (place / name).unlink()


def publish_runs(place: Path, runs: Sequence[dict[str, object]]) -> None:
    """Bring the Delta logs of all tables up to the latest run."""
    from ibbmaster.lake.delta import publish

    tables: dict[str, list[list[Path]]] = {}
    for name in sorted(_files(place)):
        table, number = Path(name).parts[0], _number_of(name, runs)
        if number is not None and table != FAULTS:
            tables.setdefault(table, [[] for _ in runs])[number].append(place / name)
    for table, files in tables.items():
        publish(place / table, files)


def _files(place: Path) -> Iterator[str]:
    if isinstance(place, ObjectPath):
        yield from (one.name for one in client_of(str(place)).walk() if one.name.endswith(".parquet"))
    elif place.is_dir():
        yield from (str(path.relative_to(place)) for path in place.rglob("*.parquet"))


def _place_files(names: Sequence[str], place: Path) -> None:
    """Move the files of a run to their tables, and make that durable."""
    directories = set()
    for name in names:
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(place / STAGING / name, target)
        except FileNotFoundError:
            raise StoreError(
                f"{place}: a worker has written {name}, which is not here: workers on other machines need this "
                f"directory, or an object store; there it is in {STAGING}, to be removed"
            ) from None
        directories.add(target.parent)
    for directory in directories:
        sync(directory)
