"""Changes of rows as Parquet, one table each, and a table of the groups.

A run writes beside the tables first. Its files get their places when all are there, under
names that carry the run's number, and count once the run is in the list of runs: what a
killed run has left is removed by the next one. The logs of Delta tables follow that list.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import open_log
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.lake.continuing import tables_to_export
from ibbmaster.lake.failure import plain_errors
from ibbmaster.lake.maintain.changes import doubts_of
from ibbmaster.lake.placing import make_directory, only_writer, replace_file, sync
from ibbmaster.lake.table_directory import directory_of, rename_older, table_name
from ibbmaster.spark.options import parse_options, schema_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNS = "_ibbmaster-runs.json"
STAGING = "_ibbmaster-staging"
GROUPS = "_groups"
FAULTS = "_faults"  # all that the latest run has skipped
RUN_MARK = "ibb-run-"


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
    place = Path(target)
    source = {"path": path, "failOnDataLoss": str(not keeps_going).lower(), **schema_options(schema or None, name_case)}
    with only_writer(place), plain_errors(place):
        runs = read_runs(place)
        clean(place, runs)
        if as_delta:
            rename_older(place)
            _publish(place, runs)
        start = str(runs[-1]["gtid"]) if runs else ""
        with closing(open_log(parse_options(source))) as log:
            end = str(log.state().position())
        common = source | {"endingGtid": end} | ({"startingGtid": start} if start else {})
        done: dict[str, object] = {"from": start, "to": end}
        with _staging(place) as staging:
            counts = _write_tables(session, common, place, staging, tables=tables, zero_dates=zero_dates)
            faults = _write_faults(session, source, staging) if keeps_going else {}
            if not counts["groups"] and not any(faults.values()):
                return done | {"groups": 0, "rows": {}} | faults
            token = uuid.uuid4().hex[:12]
            _place_files(staging, place, token)
        doubts = {} if keeps_going else doubts_of(source | {"endingGtid": end}, _tables_in(place))
        runs.append({"run": token, "gtid": end, **counts})
        replace_file(place / RUNS, json.dumps(runs, indent=1).encode())
        clean(place, runs)
        if as_delta:
            _publish(place, runs)
        return done | counts | faults | ({"inexact": doubts} if doubts else {})


def _tables_in(place: Path) -> list[str]:
    """The tables that an export has."""
    names = {Path(name).parts[0] for name in _files(place)}
    return sorted(table_name(name) for name in names - {GROUPS, FAULTS})


@contextmanager
def _staging(place: Path) -> Iterator[Path]:
    """Where a run writes before its files get their places; what is left there goes with it."""
    staging = place / STAGING
    make_directory(staging)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_tables(
    session: SparkSession,
    common: dict[str, str],
    place: Path,
    staging: Path,
    *,
    tables: Sequence[str],
    zero_dates: str,
) -> dict[str, object]:
    """Write groups, and the tables that they change; returns how many rows each has."""
    groups = _frame(session, common, granularity="groups")
    names = groups.selectExpr("explode(tables) AS table").distinct().collect()
    start, end = common.get("startingGtid", ""), common["endingGtid"]
    source = {name: value for name, value in common.items() if name not in ("startingGtid", "endingGtid")}
    written = [row.table for row in names if row.table is not None]
    found = tables_to_export(source, written, place, start, end, only=tables)
    for name in tables:
        if name not in found and not directory_of(place, name).exists():
            raise ConfigurationError(f"no group in {common['path']} changes rows of table {name}")
    count = _write(groups, staging / GROUPS)
    rows = {
        name: _write(
            _frame(session, common, table=name, zeroDates=zero_dates), staging / directory_of(place, name).name
        )
        for name in found
        if not tables or name in tables
    }
    return {"groups": count, "rows": rows}


def _write_faults(session: SparkSession, source: dict[str, str], staging: Path) -> dict[str, int]:
    """Write what damage a run has skipped."""
    _frame(session, source, granularity="faults").write.parquet(str(staging / FAULTS))
    return {"faults": _count(session, staging / FAULTS)}


def _frame(session: SparkSession, common: dict[str, str], **options: str) -> DataFrame:
    return session.read.format("ibb").options(**common, **options).load()


def _write(frame: DataFrame, directory: Path) -> int:
    """Write a frame, divided by the day of the commit; returns how many rows it has."""
    from pyspark.sql import functions as f

    dated = frame.withColumn("_date", f.to_date("_commit_ts"))
    dated.write.mode("overwrite").partitionBy("_date").parquet(str(directory))
    return _count(frame.sparkSession, directory)


def _count(session: SparkSession, directory: Path) -> int:
    """Rows that were written to a directory."""
    if not any(directory.rglob("*.parquet")):
        return 0
    return session.read.parquet(str(directory)).count()


def read_runs(place: Path) -> list[dict[str, object]]:
    """The runs that count.

    Raises:
        StoreError: the list cannot be read, or the directory holds something else.
    """
    path = place / RUNS
    if not path.exists():
        others = [one.name for one in place.iterdir() if one.name != STAGING] if place.is_dir() else []
        if others and not any(RUN_MARK in name for name in _files(place)):
            raise StoreError(f"{place}: holds {others[0]}, and no export: give an empty directory")
        return []
    try:
        runs = json.loads(path.read_text())
        assert all(isinstance(run["run"], str) and isinstance(run["gtid"], str) for run in runs)
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise StoreError(f"{path}: this is no list of runs: {error}") from None
    return list(runs)


def clean(place: Path, runs: Sequence[dict[str, object]]) -> None:
    """Remove what a run has left that does not count, and the faults of all runs but the latest."""
    shutil.rmtree(place / STAGING, ignore_errors=True)
    known = [str(run["run"]) for run in runs]
    for name in _files(place):
        mark = _run_of(name)
        if mark and mark not in (known[-1:] if Path(name).parts[0] == FAULTS else known):
            (place / name).unlink()


def _run_of(name: str) -> str:
    """The number of the run that has written a file; empty if it is none of ours."""
    return Path(name).name.partition(RUN_MARK)[2].partition("-")[0]


def _publish(place: Path, runs: Sequence[dict[str, object]]) -> None:
    """Bring the Delta logs of all tables up to the latest run."""
    from ibbmaster.lake.delta import publish

    numbers = {str(run["run"]): number for number, run in enumerate(runs)}
    tables: dict[str, list[list[Path]]] = {}
    for name in sorted(_files(place)):
        table, number = Path(name).parts[0], numbers.get(_run_of(name))
        if number is not None and table != FAULTS:
            tables.setdefault(table, [[] for _ in runs])[number].append(place / name)
    for table, files in tables.items():
        publish(place / table, files)


def _files(place: Path) -> Iterator[str]:
    if place.is_dir():
        yield from (str(path.relative_to(place)) for path in place.rglob("*.parquet"))


def _place_files(staging: Path, place: Path, token: str) -> None:
    """Move the files of a run to their tables, and make that durable."""
    directories = set()
    for number, name in enumerate(sorted(_files(staging))):
        source = staging / name
        target = place / Path(name).parent / f"{RUN_MARK}{token}-{number:05}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        sync(source)
        os.rename(source, target)
        directories.add(target.parent)
    for directory in directories:
        sync(directory)
