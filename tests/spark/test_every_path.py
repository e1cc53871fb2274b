"""One table of logs, read in every way there is: each gives the same rows.

Of `.ibb` files, traditional files and a running primary; by kernels and by the reference; in one
batch and as a stream of many, begun anew on its way.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from lanes.primary import login_of
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ibbmaster.errors import PositionPurgedError
from ibbmaster.spark.partition import read_partition
from ibbmaster.spark.stream import IbbStreamReader
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.testkit.primary import FixturePrimary
from tests.case_table import data_beside

GROUPS_IN_BATCH = 3


@dataclass
class Log:
    """What a primary logs under binlog_row_metadata=NO_LOG, and what is then read of d.t.

    A step is a statement, or a table and the rows that one group inserts into it; with a number before it, it is of
    that domain. `rows` are those of all paths, `streamed` those of a stream from the beginning where these are others.
    """

    steps: list[Any]
    rows: list[dict[str, object]] | None
    options: dict[str, str] = field(default_factory=dict)

    def write(self, primary: FixturePrimary) -> None:
        primary.ddl("CREATE DATABASE d")
        for step in self.steps:
            domain, step = (step[0], step[1:]) if isinstance(step[0], int) else (0, step)
            if isinstance(step, str) or len(step) == 1:
                primary.ddl(step if isinstance(step, str) else step[0], database="d", domain=domain)
                continue
            name, *rows = step
            with primary.transaction(domain=domain):
                primary.table(f"d.{name}").insert(*rows)


LOGS = {name: Log(**log) for name, log in data_beside(__file__).items()}


@pytest.fixture
def logged():
    with FixturePrimary(metadata="NO_LOG", server_id=3, profile="classic-11.8") as primary:
        yield primary


def directory(primary: FixturePrimary, tmp_path) -> dict[str, str]:
    primary.log.bring_to_files()
    return {"path": str(primary.log.path)}


def traditional(primary: FixturePrimary, tmp_path) -> dict[str, str]:
    primary.save_classic(tmp_path / "classic")
    return {"path": str(tmp_path / "classic")}


def running(primary: FixturePrimary, tmp_path) -> dict[str, str]:
    return {name: str(value) for name, value in login_of(primary).items()}


SOURCES: dict[str, Callable[..., dict[str, str]]] = {
    "directory": directory,
    "traditional": traditional,
    "live": running,
}
READERS: dict[str, dict[str, str]] = {
    "kernels": {},
    "reference": {"without": "kernels"},
    "lenient": {"failOnDataLoss": "false"},
    "bytes": {"onUndecodable": "binary"},
}


def own(found: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: cell for name, cell in one.items() if not name.startswith("_")} for one in found]


def without_kernels(monkeypatch, reader: dict[str, str]) -> dict[str, str]:
    if reader.get("without") != "kernels":
        return reader
    monkeypatch.setattr("ibbmaster.tables.arrow.plan.load", lambda: None)
    monkeypatch.setattr("ibbmaster.tables.arrow.ddl_scan.load", lambda: None)
    return {}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", LOGS)
def test_a_batch(name, source, logged, tmp_path, monkeypatch):
    LOGS[name].write(logged)
    given = SOURCES[source](logged, tmp_path) | LOGS[name].options | {"table": "d.t"}
    for reader in READERS.values():
        with monkeypatch.context() as patch:
            options = parse_options(given | without_kernels(patch, reader))
            tasks = pickle.loads(pickle.dumps(plan_tasks(options, find_fields(options))))
            found = [one for task in tasks for batch in read_task(task) for one in batch.to_pylist()]
            assert own(found) == LOGS[name].rows, reader


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", LOGS)
def test_a_stream_that_is_begun_anew_for_every_batch(name, source, logged, tmp_path, monkeypatch):
    LOGS[name].write(logged)
    given = SOURCES[source](logged, tmp_path) | LOGS[name].options
    given |= {"table": "d.t", "maxGroupsPerTrigger": str(GROUPS_IN_BATCH)}
    for reader in READERS.values():
        for goes_on in (True, False):
            with monkeypatch.context() as patch:
                options = parse_options(given | without_kernels(patch, reader))
                assert own(streamed(options, goes_on=goes_on)) == LOGS[name].rows, (reader, goes_on)


def streamed(options, *, goes_on: bool, limit=None) -> list[dict[str, object]]:
    reader = IbbStreamReader(options, find_fields(options))
    start, found = reader.initialOffset(), []
    while (end := json.loads(json.dumps(reader.latestOffset(start, limit or ReadMaxRows(1))))) != start:
        if not goes_on:
            reader.stop()
            reader = IbbStreamReader(options, find_fields(options))
        for partition in reader.partitions(start, end):
            found += [
                one for batch in read_partition(pickle.loads(pickle.dumps(partition))) for one in batch.to_pylist()
            ]
        start = end
    reader.stop()
    return found


DOMAINS = ("0-1-1", "1-1-1", "1-1-2", "1-1-3", "0-1-2", "0-1-3", "1-1-4", "0-1-4")
POSITIONS = {  # what a reader that has it lacks
    "": DOMAINS,
    "0-1-3,1-1-1": ("1-1-2", "1-1-3", "1-1-4", "0-1-4"),
    "0-1-3": ("1-1-1", "1-1-2", "1-1-3", "1-1-4", "0-1-4"),
    "1-1-3": ("0-1-1", "0-1-2", "0-1-3", "1-1-4", "0-1-4"),
    "0-1-2,1-1-3": ("0-1-3", "1-1-4", "0-1-4"),
    "0-1-4,1-1-1": ("1-1-2", "1-1-3", "1-1-4"),
    "0-1-4,1-1-4": (),
}


@pytest.mark.parametrize("source", ["directory", "traditional"])
@pytest.mark.parametrize("drops", ["false", "true"])
def test_positions_and_ranges_are_those_of_the_log_after_its_stages(source, drops, tmp_path):
    with FixturePrimary(server_id=1, profile="classic-11.8") as primary:
        for gtid in DOMAINS:
            primary.ddl(f"CREATE DATABASE IF NOT EXISTS d{gtid[-1]}", gtid=gtid)
        given = SOURCES[source](primary, tmp_path) | {"granularity": "groups", "dropEmpty": drops}
        given |= {"after": "1-1-1", "until": "0-1-4,1-1-3", "mapDomain": "1=7", "mapServerId": "1=3", "except": "d3.*"}
        left = {"0-3-1", "7-3-2", "0-3-2", "0-3-4"} | ({"7-3-3", "0-3-3"} if drops == "false" else set())
        last = {"0-3-3,7-3-3": {"0-3-4"}, "0-3-4,7-3-3": set(), "7-3-2": left - {"7-3-2"}, "": left}
        for position, found in last.items():
            start = {"startingGtid": position, "startingOffsets": position} if position else {}
            options = parse_options(given | start | {"maxGroupsPerTrigger": "2"})
            tasks = plan_tasks(options, find_fields(options))
            rows = [one for task in tasks for batch in read_task(task) for one in batch.to_pylist()]
            assert {one["_gtid"] for one in rows} == found, position
            if source == "directory":
                for goes_on in (True, False):
                    assert streamed(options, goes_on=goes_on) == rows, position
        with pytest.raises(PositionPurgedError, match="begins after 1-1-1"):
            plan_tasks(parse_options(given | {"startingGtid": "0-3-2"}), ())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("size", [None, 1, 2])
def test_no_position_makes_a_reader_pass_over_what_it_lacks(source, position, size, tmp_path):
    """Domains interleave otherwise on each server: the position of another one is no prefix of this log."""
    with FixturePrimary(server_id=1, profile="classic-11.8") as primary:
        for gtid in DOMAINS:
            primary.ddl("CREATE DATABASE IF NOT EXISTS d", gtid=gtid)
        given = SOURCES[source](primary, tmp_path) | {"granularity": "groups"}
        limits = {} if size is None else {"maxGroupsPerTrigger": str(size)}
        start = {"startingOffsets": position} if position else {}

        def gtids(found):
            return tuple(one["_gtid"] for one in found)

        options = parse_options(given | limits | start)
        limit = ReadAllAvailable() if size is None else ReadMaxRows(size)
        assert gtids(streamed(options, goes_on=True, limit=limit)) == POSITIONS[position]
        assert gtids(streamed(options, goes_on=False, limit=limit)) == POSITIONS[position]
        options = parse_options(given | {"startingGtid": position})
        tasks = plan_tasks(options, find_fields(options))
        assert (
            gtids(one for task in tasks for batch in read_task(task) for one in batch.to_pylist())
            == (POSITIONS[position])
        )
        if source == "directory":
            assert tuple(str(group.gtid) for group in primary.log.groups(after=position)) == POSITIONS[position]
