import pickle
import random
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from ibbmaster.errors import ConfigurationError, EventError, FormatError
from ibbmaster.kernel.loading import load
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow import collecting
from ibbmaster.tables.arrow.many_tables import TablesTask, find_tables, plan_tables, read_tables
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, open_log, plan_tasks
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.tables.arrow.shape import arrow_schema
from tests.damage import flip
from tests.lake.random_log import random_log
from tests.written_log import inserted, updated, write_log

LOGS = {  # tables whose columns have names, by fixture
    "xa-and-ddl": "shop.*",
    "large-groups": "*.*",
    "11.8/types-full_nodup": "types.a*",
    "10.11/types-noblob-compressed": "types.g*,types.i*",
    "11.8/vectors": "vec.*",
}


@pytest.fixture(scope="module", autouse=True)
def kernels():
    ready = load()
    assert ready is not None
    return ready


@pytest.fixture
def seed() -> int:
    return random.randrange(2**32)


def together(options: ReadOptions) -> dict[str, pa.Table]:
    fields = find_tables(options)
    found = {name: arrow_schema(one).empty_table() for name, one in fields.items()}
    for task in plan_tables(options, fields):
        for name, batch in read_tables(pickle.loads(pickle.dumps(task))):
            found[name] = pa.concat_tables([found[name], pa.Table.from_batches([batch])])
    return found


def alone(given: dict[str, str], name: str) -> pa.Table:
    options = parse_options({**{key: value for key, value in given.items() if key != "tables"}, "table": name})
    fields = find_fields(options)
    batches = [batch for task in plan_tasks(options, fields) for batch in read_task(task)]
    return pa.Table.from_batches(batches, schema=arrow_schema(fields))


def compare(given: dict[str, str]) -> int:
    found = together(parse_options(given))
    for name, table in found.items():
        expected = alone(given, name)
        assert table.schema == expected.schema
        for column in expected.column_names:
            assert table[column].combine_chunks() == expected[column].combine_chunks(), (given, name, column)
    return sum(len(table) for table in found.values())


@pytest.mark.parametrize("name", LOGS)
def test_each_table_is_as_it_is_alone(name, imported, fixtures, monkeypatch):
    given = {"path": str(imported(name) if "/" in name else fixtures / "ibb" / name), "tables": LOGS[name]}
    count = compare(given)
    assert count > 1
    monkeypatch.setattr(collecting, "DATA_BYTES", 1_100_000)
    monkeypatch.setattr(collecting, "GROUPS_MAX", 3)
    assert compare({**given, "partitionBytes": "32k"}) == count


def test_traditional_files_and_parts_of_a_log_are_read_so_too(fixtures):
    assert compare({"path": str(fixtures / "classic/11.8/domains"), "tables": "*.*"}) > 20
    part = {"path": str(fixtures / "ibb/xa-and-ddl"), "startingGtid": "0-1-20", "endingGtid": "0-1-60"}
    assert compare({**part, "completeKeys": "true", "zeroDates": "text"}) > 20
    assert compare({"path": part["path"], "rename": "shop=stage", "only": "shop.*", "tables": "stage.*"}) > 20


@pytest.mark.parametrize("mode", ["latest", "asWritten"])
def test_tables_that_change_their_names_and_columns_are_followed(tmp_path, mode, seed):
    for number in range(6):
        directory = random_log(random.Random(f"{seed} {number}"), tmp_path / f"{number}", doubts=False)
        assert compare({"path": str(directory), "tables": "d.*", "schemaMode": mode}) > 0


def test_only_changed_tables_are_those_with_changes_in_the_part_that_is_read(tmp_path):
    make = {name: written_table(f"d.{name}", {"id": "int"}, table_id=number) for number, name in enumerate("tuv", 1)}
    steps = [f"CREATE TABLE {name} (id INT)" for name in make]
    rows = [[inserted(make[name], (number,))] for number, name in enumerate("tuvtu")]
    write_log(tmp_path, *steps, *rows)  # GTIDs 1 to 3 and 4 to 8
    for start, end, expected in (
        ("", "0-1-4", "t"),
        ("0-1-4", "0-1-6", "uv"),
        ("0-1-6", "0-1-8", "tu"),
        ("", "", "tuv"),
    ):
        given = (
            {"path": str(tmp_path)} | ({"startingGtid": start} if start else {}) | ({"endingGtid": end} if end else {})
        )
        assert list(find_tables(parse_options(given), only_changed=True)) == [f"d.{name}" for name in expected]


def test_without_kernels_tables_are_read_one_by_one_and_are_the_same(tmp_path, seed):
    given = {"path": str(random_log(random.Random(seed), tmp_path / "log", doubts=False))}
    expected = together(parse_options(given))
    assert together(parse_options({**given, "failOnDataLoss": "false"})) == expected
    assert expected.keys() == {"d.t", "d.u"}


def test_one_number_may_be_that_of_one_table_and_later_of_another(tmp_path):
    """As after a restart of the server, and where several have written a log."""
    columns = {"id": "int", "a": "int"}
    one, other = (written_table(f"d.{name}", columns, table_id=7, primary_key=["id"]) for name in "tu")
    log = write_log(
        tmp_path / "log",
        [inserted(one, [1, 10])],
        [inserted(other, [2, 20]), updated(one, ([1, 10], [1, 11]))],
        [inserted(one, [3, 30]), inserted(other, [4, 40])],
    )
    found = together(parse_options({"path": str(log)}))
    assert found["d.t"].select(["_seq", "id", "a"]).to_pydict() == {
        "_seq": [1, 2, 2, 3], "id": [1, 1, 1, 3], "a": [10, 10, 11, 30]
    }  # fmt: skip
    assert found["d.u"]["id"].to_pylist() == [2, 4]


def test_a_row_event_of_no_table_is_an_error_that_names_its_group(tmp_path):
    table = written_table("d.t", {"id": "int"}, table_id=7)
    stray = inserted(written_table("d.u", {"id": "int"}, table_id=8), [1])[1:]
    log = write_log(tmp_path / "log", [inserted(table, [1])], [stray])
    with pytest.raises(EventError, match=r"group 0-1-2 .*row event of table 8, which no TABLE_MAP of its group names"):
        together(parse_options({"path": str(log)}))


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    names = [f"t{number}" for number in range(8)]
    columns = {"id": "int", "a": "text"}
    tables = [written_table(f"d.{name}", columns, table_id=number + 1) for number, name in enumerate(names)]
    groups = [[inserted(table, [number, "x" * 9000]) for table in tables] for number in range(40)]
    return write_log(tmp_path / "log", *(f"CREATE TABLE {name} (id INT, a TEXT)" for name in names), *groups)


def test_blocks_are_read_once_however_many_tables_there_are(wide, monkeypatch):
    options = parse_options({"path": str(wide)})
    fields = find_tables(options)
    counts = {}
    for count in (1, 8):
        counts[count] = reads_of(plan_tables(options, dict(list(fields.items())[:count])), monkeypatch)
    assert counts[1] == counts[8] > 8


def reads_of(tasks: list[TablesTask], monkeypatch: pytest.MonkeyPatch) -> int:
    reads = []
    with monkeypatch.context() as patch:
        for name in ("read", "read_into"):
            before = getattr(RealDisk, name)
            patch.setattr(RealDisk, name, lambda *given, before=before: (reads.append(given[1:3]), before(*given))[1])
        for task in tasks:
            for _ in read_tables(task):
                pass
    return len(reads)


def test_damage_stops_all_or_is_left_out(wide):
    with closing(open_log(parse_options({"path": str(wide)}))) as engine:
        size = engine.end().offset
    flip(wide / "binlog-000000.ibb", size // 2)
    with pytest.raises(FormatError):
        together(parse_options({"path": str(wide)}))
    left = together(parse_options({"path": str(wide), "failOnDataLoss": "false"}))
    assert {name: 0 < len(table) < 40 for name, table in left.items()} == dict.fromkeys(left, True)
    assert len(left) == 8


def test_a_pattern_that_matches_nothing_names_what_there_is(fixtures, tmp_path):
    path = str(fixtures / "ibb/xa-and-ddl")
    with pytest.raises(ConfigurationError, match=r"no table of .* matches shopp\.\*: it has shop\.audit, "):
        find_tables(parse_options({"path": path, "tables": "shop.*,shopp.*"}))
    empty = write_log(tmp_path / "log", "CREATE DATABASE d")
    with pytest.raises(ConfigurationError, match=r"matches d\.\*: nothing in it names a table"):
        find_tables(parse_options({"path": str(empty), "tables": "d.*"}))
