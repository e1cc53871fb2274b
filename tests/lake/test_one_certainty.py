"""A table at a position has one answer: SELECT and the snapshots of archives have the same rows, or the same reason."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lanes.answers import OurTables
from lanes.replay import readable_captures

import ibbmaster
from ibbmaster.arrow.plan import end_of, find_fields, open_log, plan_tasks
from ibbmaster.arrow.reading import read_task
from ibbmaster.arrow.shape import RESERVED, ShapeField
from ibbmaster.dialogue.log_tables import LogSnapshot
from ibbmaster.errors import ConfigurationError, IbbMasterError, InexactError
from ibbmaster.event.header import encode_event
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.event.types import EventType
from ibbmaster.fold.contents import LIKE_A_REPLACE
from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.maintain.rows import folded_batches
from ibbmaster.rows.certainty import doubt_text
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.select.table_reader import TableReader, UnknownRowsError
from ibbmaster.spark.options import parse_options
from ibbmaster.wire.refusal import RefusedError
from tests.kept_tables import KeptTables
from tests.lake.random_log import NAMES, random_log
from tests.written_log import Item, deleted, inserted, updated, write_log

Answer = list[str] | str
GTIDS = 3  # positions of a log at which its tables are looked at


def told_by_select(path: Path, at: str | None) -> dict[str, tuple[TableVersion, OurTables]]:
    """The tables that SELECT knows at a position."""
    ours = OurTables(open_log(parse_options({"path": str(path)})))
    return {
        table.full_name: (table, ours)
        for table in ours.history.at(SchemaPlace(_end(path, at), 0)).tables.values()
        if isinstance(table, TableVersion) and table.kind is TableKind.BASE
    }


def _end(path: Path, at: str | None) -> Any:
    if at is None:
        return open_log(parse_options({"path": str(path)})).end()
    options = parse_options({"path": str(path), "endingGtid": at})
    with closing(open_log(options)) as log:
        return end_of(at, options, log)


CONTRADICTION = "an INSERT of a key that is there already"


def answers(path: Path, at: str | None) -> dict[str, tuple[Answer, Answer]]:
    """By table what SELECT and a snapshot say at a position; tables that have no key are in no snapshot."""
    found = {}
    for name, (table, ours) in told_by_select(path, at).items():
        given = {"path": str(path), "table": name, "zeroDates": "text"} | ({} if at is None else {"endingGtid": at})
        options = parse_options(given)
        try:
            fields = [one for one in find_fields(options) if one.name not in RESERVED]
            rows = arrow_snapshot(options)
            assert rows.column_names == [field.name for field in fields]
            of_lake: Answer = texts_of(rows)
        except InexactError as error:
            of_lake = CONTRADICTION if CONTRADICTION in error.doubts[0] else error.doubts[0]
        except ConfigurationError:
            continue  # no key, no row yet
        of_select = _folded(ours, table, _end(path, at), fields)
        found[name] = (CONTRADICTION if CONTRADICTION in of_select and of_lake == CONTRADICTION else of_select, of_lake)
    return found


def texts_of(rows: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in rows.to_pylist())


def doubts_of_history(path: Path, name: str) -> str:
    """Why a table has no history."""
    with pytest.raises(InexactError) as refused:
        arrow_history(parse_options({"path": str(path), "table": name}))
    return "; ".join(refused.value.doubts)


def replayed(path: Path, name: str, at: str, read: Callable[[dict[str, str]], list[dict[str, Any]]]) -> list[str]:
    """The rows that the changes of a table leave, as whoever keeps them by their key has them."""
    rows: dict[object, tuple[object, ...]] = {}
    given = {"path": str(path), "table": name, "endingGtid": at}
    for change in sorted(read(given), key=lambda one: (one["_file_no"], one["_offset"], one["_change_no"])):
        if change["_change_type"] in ("delete", "update_preimage"):
            del rows[change["id"]]
        else:
            rows[change["id"]] = (change["id"], change["a"])
    return sorted(map(repr, rows.values()))


def arrow_changes(given: dict[str, str]) -> list[dict[str, Any]]:
    """What `to_arrow` reads."""
    options = parse_options(given)
    fields = find_fields(options)
    return [row for task in plan_tasks(options, fields) for batch in read_task(task) for row in batch.to_pylist()]


def _folded(ours: OurTables, table: TableVersion, end: Any, fields: list[ShapeField]) -> Answer:
    snapshot = LogSnapshot(end=end, file_name="", state=ours.engine.state())
    try:
        with closing(TableReader(ours.engine, ours.history)) as reader:
            rows = pa.Table.from_batches(folded_batches(reader, snapshot, table, fields))
    except UnknownRowsError as error:
        return doubt_text(error.unknown.gtid, error.unknown.reason)
    return texts_of(rows)


STATEMENTS = {  # by the table that they leave in doubt, with what the sentence calls them
    "p": ("UPDATE p SET a = x'07' WHERE id = 1", "UPDATE"),
    "q": ("INSERT INTO q SELECT * FROM p", "INSERT"),
    "s": ("REPLACE INTO s VALUES (1, b'111')", "REPLACE"),
    "u": ("DELETE FROM u LIMIT 1", "DELETE"),
    "w": ("INSERT INTO t VALUES (1, 1)", "INSERT"),  # by a trigger
}


def test_everyone_says_the_same_of_a_change_in_statement_format(tmp_path) -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW UPDATE w SET a = 1"
    tables = [*STATEMENTS, "t", "known"]
    items: list[Item] = [f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)" for name in tables]
    for number, name in enumerate(tables):
        columns = {"id": "int", "a": "int"}
        items.append([inserted(written_table(f"d.{name}", columns, table_id=number, primary_key=["id"]), [5, 5])])
    items += [trigger, *(text for text, _ in STATEMENTS.values()), "DELETE FROM t"]
    path = write_log(tmp_path / "log", *items)
    ours = OurTables(open_log(parse_options({"path": str(path)})))
    kept = {
        kind: maintain(str(path), f"delta://{tmp_path}/{kind}", kind=kind).tables
        for kind in ("current", "changes", "history")
    }

    for number, (name, (_, verb)) in enumerate(STATEMENTS.items(), start=2 * len(tables) + 2):
        table, sentence = f"d.{name}", doubt_text(f"0-1-{number}", in_statement_format(verb))
        with pytest.raises(RefusedError) as refused:
            ours.answer(f"SELECT * FROM {table}")
        assert refused.value.err.text == f"{table}: {sentence}"
        with ibbmaster.open(path) as log:
            for ask in (log.snapshot, log.history):
                with pytest.raises(InexactError) as inexact:
                    ask(table)
                assert inexact.value.doubts[0] == sentence
        for kind, found in kept.items():
            assert found[table].verdict.startswith(f"{sentence}; "), kind
    with ibbmaster.open(path) as log:
        assert (log.snapshot("d.known").num_rows, log.snapshot("d.t").num_rows) == (1, 0)


def test_select_and_a_snapshot_agree_on_a_log_of_random_statements(tmp_path) -> None:
    rng = random.Random(random.getrandbits(32))
    path = random_log(rng, tmp_path / "log")
    for at in sorted(rng.sample(range(3, 27), GTIDS)):
        found = answers(path, f"0-1-{at}")
        assert len(found) == len(NAMES)
        for name, (of_select, of_lake) in found.items():
            assert of_select == of_lake, (name, at)


def test_select_and_a_snapshot_agree_on_the_tables_of_a_server(imported, request) -> None:
    rng = random.Random(random.getrandbits(32))
    captures = [name for name in readable_captures() if "big" not in name and "10.11" not in name]
    for capture in captures if request.config.getoption("--interop-all") else [rng.choice(captures)]:
        path = imported(capture)
        with ibbmaster.open(path) as log:
            gtids = [str(group.gtid) for group in log.groups()]
            has_places = len(log.position.values()) == 1
        for at in (None, *([rng.choice(gtids[len(gtids) // 2 :])] if has_places else [])):
            try:
                found = answers(path, at)
            except IbbMasterError as error:
                raise AssertionError(f"{capture} at {at}: {error}") from error
            for name, (of_select, of_lake) in found.items():
                assert of_select == of_lake, (capture, name, at)


def test_changes_leave_the_rows_that_select_reports(spark, tmp_path) -> None:
    rng = random.Random(random.getrandbits(32))
    table = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
    steps: list[Item] = ["CREATE TABLE t (id INT PRIMARY KEY, a INT)"]
    rows: dict[int, int] = {}
    for number in range(20):
        one = rng.choice([*rows, number])
        if one not in rows:
            rows[one] = number
            steps.append([inserted(table, [one, number])])
        elif rng.random() < 0.5:
            steps.append([updated(table, ([one, rows[one]], [one + 100, number]))])
            del rows[one]
            rows[one + 100] = number
        else:
            steps.append([deleted(table, [one, rows.pop(one)])])
    path = write_log(tmp_path / "log", *steps)

    def spark_changes(given: dict[str, str]) -> list[dict[str, Any]]:
        return [row.asDict() for row in spark.read.format("ibb").options(**given).load().collect()]

    for at in ("0-1-9", "0-1-21"):
        (of_select, of_lake) = answers(path, at)["d.t"]
        assert (
            of_select == of_lake == replayed(path, "d.t", at, arrow_changes) == replayed(path, "d.t", at, spark_changes)
        )


OF_THREE = written_table("d.t", {"id": "int", "v": "int", "w": "int"}, table_id=1, primary_key=["id"])


def test_an_insert_takes_the_default_of_its_own_time(tmp_path) -> None:
    path = write_log(
        tmp_path / "log",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT 5, w INT)",
        [inserted(OF_THREE, [10, None, None], columns=[0])],
        "ALTER TABLE t ALTER v SET DEFAULT NULL",
        [inserted(OF_THREE, [11, None, None], columns=[0])],
    )
    rows = ["(10, 5, None)", "(11, None, None)"]
    assert answers(path, None)["d.t"] == (rows, rows)
    assert "an INSERT has no value for some columns" in doubts_of_history(path, "d.t")
    kept = KeptTables("delta", tmp_path / "tables")
    assert maintain(str(path), kept.target).tables["d.t"].is_exact
    assert [tuple(row.values()) for row in kept.read().to_pylist()] == [(10, 5, None), (11, None, None)]


def test_an_update_that_has_its_key_is_perhaps_a_replace(tmp_path) -> None:
    changed = updated(OF_THREE, ([1, None, None], [1, None, 5]), columns=([0], [0, 2]))
    statement = encode_event(event_type=EventType.ANNOTATE_ROWS, body=b"UPDATE t SET id = 1, w = 5", server_id=1)
    logs = {}
    for name, group in (("told", [[statement], changed]), ("untold", [changed])):
        made = "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)", [inserted(OF_THREE, [1, 1, 1])]
        logs[name] = write_log(tmp_path / name, *made, group)
    told, untold = (answers(path, None)["d.t"] for path in logs.values())
    assert told == (["(1, 1, 5)"], ["(1, 1, 5)"])
    assert untold[0] == untold[1]
    assert LIKE_A_REPLACE in untold[0]
    kept = KeptTables("delta", tmp_path / "tables")
    assert not maintain(str(logs["untold"]), kept.target).tables["d.t"].is_exact


def test_a_default_of_many_digits_may_have_lost_some_to_an_alter(tmp_path) -> None:
    table = written_table("d.t", {"id": "int", "v": "float"}, table_id=1, primary_key=["id"])
    made = "CREATE TABLE t (id INT PRIMARY KEY, v FLOAT DEFAULT {})"
    for name, default in (("short", "0.5"), ("long", "67258.19743078321")):
        path = write_log(tmp_path / name, made.format(default), [inserted(table, [1, None], columns=[0])])
        of_select, of_lake = answers(path, None)["d.t"]
        assert of_select == of_lake
        assert (of_select == ["(1, 0.5)"]) if name == "short" else ("keeps six digits" in of_select)
