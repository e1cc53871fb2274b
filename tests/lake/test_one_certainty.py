"""A table at a position has one answer: SELECT and the snapshots of archives have the same rows, or the same reason."""

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lanes.answers import OurTables
from lanes.replay import readable_captures

import ibbmaster
from ibbmaster.errors import ConfigurationError, IbbMasterError, InexactError
from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot
from ibbmaster.lake.doubts import find_doubts
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.maintain.rows import folded_batches
from ibbmaster.lake.maintain.source import LogSource
from ibbmaster.lake.row_versions import WHOLE, FoldedColumns, last_changes
from ibbmaster.lake.statements import after
from ibbmaster.primary.dialogue.log_tables import LogSnapshot
from ibbmaster.primary.select.table_reader import TableReader, UnknownRowsError
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.certainty import doubt_text
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import end_of, find_fields, open_log
from ibbmaster.tables.arrow.shape import RESERVED, ShapeField
from ibbmaster.tables.fold.whole_rows import LIKE_A_REPLACE
from tests.kept_tables import KeptTables
from tests.lake.random_log import NAMES, random_items
from tests.written_log import Item, inserted, updated, write_log

Answer = list[str] | str
RUNS = 3  # of a maintenance, each with more of a log


def told_by_select(path: Path, at: str | None) -> dict[str, tuple[TableVersion, OurTables]]:
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


def test_every_room_has_the_same_rows_and_reasons_at_each_position_of_a_random_log(tmp_path) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    items = random_items(rng, swaps=rng.random() < 0.3)
    swaps = any("RENAME" in str(one) for one in items)
    path = tmp_path / "log"
    kept = {kind: KeptTables("delta", tmp_path / kind) for kind in ("current", "history")}
    answered: dict[str, list[Answer]] = {f"d.{name}": [] for name in NAMES}
    written = 2
    write_log(path, *items[:written])
    for size in sorted({*rng.sample(range(3, len(items)), RUNS - 1), len(items)}):
        write_log(path, *items[written:size], first=written + 1)
        for number in range(written + 1, size + 1):
            for name, (of_select, of_lake) in answers(path, f"0-1-{number}").items():
                assert of_select == of_lake, (name, number)
                answered[name].append(of_lake)
        written = size
        for kind, tables in kept.items():
            for name, state in maintain(str(path), tables.target, kind=kind).tables.items():
                expected = answered[name][-1] if kind == "current" else history_of(path, name)
                if isinstance(expected, str):
                    assert _plain(doubt_text(state.since, state.because)) == expected, (kind, name, size)
                else:
                    found = tables.read(name)
                    there = found.filter(found["_is_current"]).select(["id", "a"]) if kind == "history" else found
                    assert texts_of(there) == answered[name][-1], (kind, name, size)
    for name, at_each in answered.items() if not swaps else ():
        history, refusals = history_of(path, name), [one for one in at_each if isinstance(one, str)]
        if isinstance(history, str):
            assert history == refusals[0], name
            continue
        assert not refusals, name
        for number, expected in enumerate(at_each, start=3):
            held = [row for row in history.to_pylist() if _holds(row, number)]
            assert sorted(repr((row["id"], row["a"])) for row in held) == expected, (name, number)


def _holds(row: dict[str, Any], number: int) -> bool:
    begin, end = (None if one is None else int(one.split("-")[2]) for one in (row["_gtid_from"], row["_gtid_to"]))
    return begin is not None and begin <= number and (end is None or number < end)


def history_of(path: Path, name: str) -> pa.Table | str:
    try:
        return arrow_history(parse_options({"path": str(path), "table": name}))
    except InexactError as error:
        return _plain(error.doubts[0])


def _plain(text: str) -> str:
    return CONTRADICTION if CONTRADICTION in text else text


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


def test_spark_folds_changes_by_key_to_the_rows_that_select_reports(spark, tmp_path) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    path = write_log(tmp_path / "log", *random_items(random.Random(seed), doubts=False, swaps=False))
    names = ["id", "a"]
    for name, (of_select, of_lake) in answers(path, None).items():
        with LogSource(parse_options({"path": str(path), "table": name})) as source:
            past = source.past(parse_table_name(name))
            is_enough = not find_doubts(source, past, has_gone=False, is_whole=True)
        frame = spark.read.format("ibb").options(table=name).load(str(path))

        def folded(changes: pa.Table) -> pa.Table:
            order = [(one, "ascending") for one in ("_file_no", "_offset", "_change_no")]
            found = last_changes(after(changes.sort_by(order), past.begin), FoldedColumns(["id"], names))  # noqa: B023
            return found.rows.filter(pa.array(found.outcomes == WHOLE))

        columns = "_file_no", "_offset", "_change_no", "_change_type", "_absent", *names
        changes = spark.read.format("ibb").options(table=name, columns=",".join(columns)).load(str(path))
        rows = changes.groupBy("id").applyInArrow(folded, frame.select(names).schema).collect() if is_enough else []
        assert of_select == of_lake
        assert not is_enough or sorted(repr(tuple(row)) for row in rows) == of_lake


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
    history = history_of(path, "d.t")
    assert isinstance(history, pa.Table)
    assert texts_of(history.select(["id", "v", "w"])) == rows
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
    assert not maintain(str(logs["untold"]), KeptTables("delta", tmp_path / "tables").target).tables["d.t"].is_exact


def test_a_default_of_many_digits_may_have_lost_some_to_an_alter(tmp_path) -> None:
    table = written_table("d.t", {"id": "int", "v": "float"}, table_id=1, primary_key=["id"])
    made = "CREATE TABLE t (id INT PRIMARY KEY, v FLOAT DEFAULT {})"
    for name, default in (("short", "0.5"), ("long", "67258.19743078321")):
        path = write_log(tmp_path / name, made.format(default), [inserted(table, [1, None], columns=[0])])
        of_select, of_lake = answers(path, None)["d.t"]
        assert of_select == of_lake
        assert (of_select == ["(1, 0.5)"]) if name == "short" else ("keeps six digits" in of_select)
