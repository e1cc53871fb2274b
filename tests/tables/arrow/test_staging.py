"""Record batches of a log after stages have what its groups have, and what a log has that was made of them."""

import pickle
import random
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest

import ibbmaster
from ibbmaster.api.group import UndecodableValue
from ibbmaster.api.log import Log
from ibbmaster.errors import ConfigurationError, EventError, IbbMasterError, InexactError, StageError, StoreError
from ibbmaster.logs.classic.convert import import_groups
from ibbmaster.logs.classic.exporting import LogRead
from ibbmaster.logs.stages.filtering import KINDS
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow.cell import text_of
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.read_options import Granularity, ReadOptions
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.tables.arrow.staging import named_as_options, option_names
from tests.logs.stages.test_engine import LOGS, gtids_of, state_after

FIXTURES = Path(__file__).parents[3] / "fixtures"
SMALL = 1 << 15  # bytes of a partition, so that captures have many
Row = tuple[object, ...]


class UnreadableError(Exception):
    """A value of a row cannot be read."""


def random_stages(name: str, tables: list[str], rng: random.Random) -> list[dict[str, object]]:
    """One or two calls of `through`; names and numbers of the second are those that the first leaves."""
    gtids = gtids_of(name)
    begin, end = sorted(rng.sample(range(1, len(gtids)), 2))
    some = rng.sample(tables, rng.randint(1, len(tables)))
    database = some[0].partition(".")[0]
    of_range = {"after": str(state_after(name, begin).position())} if rng.random() < 0.5 else {}
    if not of_range or rng.random() < 0.5:
        of_range["until"] = str(state_after(name, end).position())
    choices = [
        {"only": some},
        {"except_": some, "drop_empty": True},
        {"kinds": rng.sample(KINDS, rng.randint(1, 3))},
        {"domain": str(rng.choice(gtids).domain_id), "drop_empty": rng.random() < 0.5},
        {"server": str(rng.choice(gtids).server_id)},
        {"rename": f"{database}=another"},
        {"rename": f"{some[0]}=other.name", "only": f"{database}.*"},
        {"map_server_id": f"{gtids[0].server_id}=4321", "map_domain": f"{gtids[0].domain_id}=77"},
    ]
    first = rng.choice([of_range, {**of_range, **rng.choice(choices)}, rng.choice(choices)])
    second = {"kinds": "rows,ddl"} if rng.random() < 0.5 else {"map_server_id": f"{4321}=9"}
    return [first] if rng.random() < 0.6 or second.keys() & first.keys() else [first, second]


def tables_of(log: Log) -> list[str]:
    found = set(rows_read(log.read_options(), "_table")["_table"])
    return sorted(name for name in found if name.count(".") == 1 and name.isascii() and "," not in name) or ["no.such"]


def rows_read(options: ReadOptions, *columns: str) -> dict[str, list[object]]:
    options = replace(options, columns=columns)
    fields = find_fields(options)
    found: dict[str, list[object]] = {name: [] for name in columns}
    for task in plan_tasks(options, fields):
        for batch in read_task(task):
            for name in columns:
                found[name] += batch[name].to_pylist()
    return found


def changes_read(options: ReadOptions) -> list[Row]:
    columns = ("_gtid", "_commit_ts", "_table", "_change_type", "before", "after")
    return list(zip(*rows_read(options, *columns).values(), strict=True))


def changes_of_groups(part: Log) -> list[Row]:
    found = []
    for group in part.groups(asks_statements=True):
        for table, change in group.rows():
            kinds = ("update_preimage", "update_postimage") if change.kind == "update" else (change.kind,)
            images = [cells(change.before), cells(change.after)]
            found += [(str(group.gtid), group.timestamp, table.name, kind, *images) for kind in kinds]
    return found


def cells(row):
    if row is None:
        return None
    for value in row.values():
        if isinstance(value, UndecodableValue):
            raise UnreadableError
    return [(name, text_of(value)) for name, value in row.items()]


def outcome(read, *given):
    try:
        return read(*given)
    except (EventError, UnreadableError):
        return "cannot be read"
    except StageError as error:
        return str(error).partition(":")[0]


def without_time(rows):
    return rows if isinstance(rows, str) else [(row[0], *row[2:]) for row in rows]


@pytest.mark.some_of(5)
@pytest.mark.parametrize("name", LOGS)
def test_random_stages_give_the_same_rows_in_every_way(name, tmp_path, pytestconfig):
    rng = random.Random(seed := f"{pytestconfig.getoption('--seed')} {name}")
    print(f"seed {seed}")
    with ibbmaster.open(FIXTURES / name) as log:
        tables = tables_of(log)
        for number in range(4):
            part, said = log, random_stages(name, tables, rng)
            print(said)
            try:
                for options in said:
                    part = part.through(**options)
            except ConfigurationError:
                continue  # a number that is gone after the first of the two
            expected = outcome(changes_of_groups, part)
            options = part.read_options(stages=part.stages, spans=part.spans)
            for way in (
                options,
                replace(options, partition_bytes=SMALL),
                replace(options, partition_bytes=SMALL, uses_kernels=False),
            ):
                assert without_time(outcome(changes_read, way)) == without_time(expected)
            if isinstance(expected, str):
                continue
            if not any("after" in one for one in said):  # what is before it has the names of columns
                (target := tmp_path / f"{number}").mkdir()
                with closing(RealDisk(target)) as disk:
                    import_groups(LogRead(part.engine), disk)
                with ibbmaster.open(target) as made:
                    assert changes_read(made.read_options()) == changes_read(options)


@pytest.mark.parametrize("granularity", [Granularity.EVENTS, Granularity.GROUPS])
@pytest.mark.parametrize("drops", [False, True])
def test_events_and_groups_are_those_of_the_log_after_its_stages(granularity, drops):
    columns = {
        Granularity.EVENTS: ("_gtid", "event_no", "data"),
        Granularity.GROUPS: ("_gtid", "events", "tables", "query"),
    }
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        part = log.through(domain="1,2", map_domain="2=9").through(until="9-4294967295-20,1-77-4611686023427388920")
        part = part.through(server="77", drop_empty=drops)
        options = part.read_options(stages=part.stages, spans=part.spans, granularity=granularity)
        ways = [options, replace(options, uses_kernels=False), replace(options, partition_bytes=SMALL)]
        found = [rows_read(way, *columns[granularity]) for way in ways]
        groups = [(str(group.gtid), [event.data for event in group.events()]) for group in part.groups()]
    assert found[0] == found[1] == found[2]
    assert list(dict.fromkeys(found[0]["_gtid"])) == [gtid for gtid, _ in groups]
    assert {gtid.partition("-")[0] for gtid, _ in groups} == {"1", "9"}
    assert ({gtid.split("-")[1] for gtid, _ in groups} == {"77"}) is drops
    if granularity is Granularity.EVENTS:
        assert found[0]["data"] == [data for _, events in groups for data in events]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"domain": "9"}, "option domain 9: this log has nothing of it, but of 0"),
        ({"until": "0-1-3", "after": "0-1-7"}, "nothing is in this range: it ends at"),
        ({"after": "2040-01-01 00:00:00"}, "option after 2040-01-01 00:00:00.* is after the end of this log"),
        ({"mapDomain": "0=1,3=1"}, "option mapDomain 3: this log has nothing of it"),
        ({"until": "0-1-99999"}, "GTID 0-1-99999 is not in this log"),
    ],
)
def test_stages_that_cannot_be_of_a_log_are_one_line_and_nothing_is_read(given, text):
    options = parse_options({"path": str(FIXTURES / "ibb/types"), **given})
    for read in (find_fields, lambda options: plan_tasks(options, ())):
        with pytest.raises(IbbMasterError, match=text) as raised:
            read(replace(options, table="types.ints", tables=("types.ints",)))
        assert "\n" not in str(raised.value)


def test_a_range_of_a_log_stays_one_after_which_the_log_has_grown(tmp_path):
    with ibbmaster.create(tmp_path / "log", max_file_bytes="1M") as log:
        log.append("0-1-1", ["CREATE TABLE s.t (id INT)"])
        part = log.through(after="", until="0-1-1")
        log.append("0-1-2", ["CREATE TABLE s.u (id INT)"])
        part.bring_to_files()
        options = part.read_options(stages=part.stages, spans=part.spans, granularity=Granularity.GROUPS)
        assert rows_read(options, "_gtid")["_gtid"] == ["0-1-1"]


def test_a_time_stays_the_place_that_it_was_when_the_query_was_planned():
    path = str(FIXTURES / "ibb/types")
    options = parse_options({"path": path, "until": "2040-01-01 00:00:00", "granularity": "groups"})
    task = pickle.loads(pickle.dumps(plan_tasks(options, find_fields(options))[0]))
    assert [str(span.until) for span in task.options.spans] == ["0-1-151"]


def test_tables_are_known_by_the_names_that_stages_give_them():
    schema = "CREATE TABLE shop.t (id INT PRIMARY KEY, note VARCHAR(9))"
    with ibbmaster.open(FIXTURES / "ibb/xa-and-ddl", schema=schema) as log:
        part = log.through(rename="shop=one").through(rename="one.child=two.kid")
        assert part.to_arrow(table="two.kid") == log.to_arrow(table="shop.child")
        with pytest.raises(ConfigurationError, match=r"changes rows of table shop\.child, and none creates it"):
            part.to_arrow(table="shop.child")
        assert list(part._schema) == ["one.t"]


def test_a_snapshot_is_that_of_a_server_that_has_what_is_left():
    with ibbmaster.open(FIXTURES / "ibb/xa-and-ddl") as log:
        part = log.through(rename="shop=new", map_domain="0=7")
        for name, position in (("child", None), ("child", "0-1-60"), ("parts", "0-1-90")):
            found = part.snapshot(f"new.{name}", None if position is None else f"7{position[1:]}")
            expected = log.snapshot(f"shop.{name}", position)
            assert found.to_pylist() == expected.to_pylist()
            assert found.schema.metadata == {b"exact at GTID": b"7" + expected.schema.metadata[b"exact at GTID"][1:]}
        found = part.difference("new.child", "7-1-30", "7-1-90").to_pylist()
        assert found == log.difference("shop.child", "0-1-30", "0-1-90").to_pylist() != []
        with pytest.raises(
            InexactError, match=r"not exact since 0-1-40, because the log does not begin with its CREATE TABLE"
        ):
            log.through(after="0-1-40").snapshot("shop.child")
        with pytest.raises(InexactError, match="does not begin with its CREATE TABLE"):
            log.through(kinds="rows").history("shop.child")


@pytest.mark.parametrize("number", range(3))
def test_one_file_has_the_rows_of_its_groups_by_the_names_of_the_files_before_it(number):
    columns = ("_gtid", "_change_no", "_table", "before", "after")
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        whole = log.to_arrow(columns=(*columns, "_file_no"))
    expected = whole.filter(pa.compute.equal(whole["_file_no"], number)).select(columns)
    with ibbmaster.open(FIXTURES / f"ibb/types/binlog-{number:06d}.ibb") as one:
        assert one.to_arrow(columns=columns) == expected
        assert one.through(rename="types=t").to_arrow(columns=["_gtid"]) == expected.select(["_gtid"])
        with pytest.raises(ConfigurationError, match="reads whole logs"):
            one.verify()


def test_a_recording_that_is_played_has_no_files_to_read():
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        played = log.played("max")
        for part in (played, played.through(kinds="rows")):
            for read in (part.to_arrow, lambda part=part: part.snapshot("types.ints")):
                with pytest.raises(ConfigurationError, match="and a recording that is played has none: read that"):
                    read()


def test_names_of_stages_in_errors_are_those_of_options():
    assert option_names()["map_server_id"] == "mapServerId"
    assert option_names()["except_"] == "except"
    error = named_as_options(ConfigurationError("--map-server-id 1, --accept-inexact, --only a"))
    assert str(error) == "option mapServerId 1, --accept-inexact, option only a"


# Workers -----------------------------------------------------------------------------------------


@pytest.fixture
def hidden(fixtures, tmp_path, monkeypatch):
    shutil.copytree(fixtures / "ibb/domains", tmp_path / "driver/log")
    (tmp_path / "worker/log").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "driver")
    monkeypatch.setattr("socket.gethostname", lambda: "node7")
    return tmp_path


def planned(path, **given):
    options = parse_options({"path": path, "granularity": "groups", **given})
    return plan_tasks(options, find_fields(options))


def test_a_relative_path_is_one_of_the_driver_s_wherever_a_worker_stands(hidden, monkeypatch):
    tasks = planned("log")
    monkeypatch.chdir(hidden / "worker")
    assert sum(batch.num_rows for task in tasks for batch in read_task(pickle.loads(pickle.dumps(task)))) == 155


@pytest.mark.parametrize("given", [{}, {"failOnDataLoss": "false"}], ids=["strict", "lenient"])
@pytest.mark.parametrize("is_gone", [True, False], ids=["missing", "empty"])
def test_a_log_that_a_worker_does_not_see_is_an_error_that_names_the_worker(hidden, given, is_gone):
    tasks = planned("log", **given)
    shutil.rmtree(hidden / "driver/log")
    if not is_gone:
        (hidden / "driver/log").mkdir()
    with pytest.raises(StoreError, match=f"{hidden}/driver/log: not reachable from worker node7: .*same path"):
        list(read_task(tasks[0]))
