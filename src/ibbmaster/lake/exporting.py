"""Changes of rows as Parquet, one table each, and a table of the groups.

A run writes beside the tables first. Its files get their places when all are there, under
names that carry the run's number, and count once the run is in the list of runs: what a
killed run has left is removed by the next one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ibbmaster.errors import StoreError
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.plan import open_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUNS = "_ibbmaster-runs.json"
STAGING = "_ibbmaster-staging"
GROUPS = "_groups"
RUN_MARK = "ibb-run-"


def export(
    session: SparkSession,
    path: str,
    target: str,
    *,
    tables: Sequence[str] = (),
    schema: str | None = None,
    zero_dates: str = "null",
) -> dict[str, object]:
    """Export what came since the last run into the same directory; returns what was written.

    Raises:
        ConfigurationError: a table's columns have no names and are not declared.
        PositionError: the archive does not hold the position of the last run.
        StoreError: the directory holds something else.
    """
    place = Path(target)
    runs = read_runs(place)
    clean(place, runs)
    start = str(runs[-1]["gtid"]) if runs else ""
    common = {"path": path, **({"startingGtid": start} if start else {})}
    with closing(open_options(parse_options({"path": path}))) as archive:
        end = str(archive.end_position())
    common["endingGtid"] = end
    token = uuid.uuid4().hex[:12]
    staging = place / STAGING
    rows: dict[str, int] = {}
    groups = _groups(session, common)
    found = sorted(
        row.table for row in groups.selectExpr("explode(tables) AS table").distinct().collect() if row.table is not None
    )
    wanted = [name for name in found if not tables or name in tables]
    count = _write(groups, staging / GROUPS)
    for name in wanted:
        options = common | {"table": name, "zeroDates": zero_dates} | ({"schema": schema} if schema else {})
        rows[name] = _write(session.read.format("ibb").options(**options).load(), staging / quote(name, safe=""))
    if not count:
        shutil.rmtree(staging)
        return {"from": start, "to": end, "groups": 0, "rows": {}}
    _place_files(staging, place, token)
    runs.append({"run": token, "gtid": end, "groups": count, "rows": rows})
    _write_runs(place, runs)
    shutil.rmtree(staging)
    return {"from": start, "to": end, "groups": count, "rows": rows}


def _groups(session: SparkSession, options: dict[str, str]) -> DataFrame:
    return session.read.format("ibb").options(granularity="groups", **options).load()


def _write(frame: DataFrame, directory: Path) -> int:
    """Write a frame, divided by the day of the commit; returns how many rows it has."""
    from pyspark.sql import functions as f

    dated = frame.withColumn("_date", f.to_date("_commit_ts"))
    dated.write.mode("overwrite").partitionBy("_date").parquet(str(directory))
    if not any(directory.rglob("*.parquet")):
        return 0
    return frame.sparkSession.read.parquet(str(directory)).count()


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
    """Remove what a run has left that does not count."""
    shutil.rmtree(place / STAGING, ignore_errors=True)
    known = {str(run["run"]) for run in runs}
    for name in _files(place):
        mark = Path(name).name.partition(RUN_MARK)[2].partition("-")[0]
        if mark and mark not in known:
            (place / name).unlink()


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
        _sync(source)
        os.rename(source, target)
        directories.add(target.parent)
    for directory in directories:
        _sync(directory)


def _write_runs(place: Path, runs: Sequence[dict[str, object]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    fresh = place / f"{RUNS}.new"
    fresh.write_text(json.dumps(runs, indent=1))
    _sync(fresh)
    os.rename(fresh, place / RUNS)
    _sync(place)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
