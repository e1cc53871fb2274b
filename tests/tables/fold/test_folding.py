"""Rows folded out of a log: every capture's tables at its end, and the same whichever way a position is reached."""

import contextlib
import hashlib
import ipaddress
import random
import re
from pathlib import Path

import pytest
from lanes.answers import SESSIONS, OurTables, values_of
from lanes.capture import Capture, load_captures

import ibbmaster
from ibbmaster.errors import IbbMasterError, InexactError
from ibbmaster.lake.pasts import past_of
from ibbmaster.lake.statements import statements_of
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.schema.model import TableVersion, UnknownTable
from ibbmaster.sqltext.sql_mode import NO_ENGINE_SUBSTITUTION
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.fold.folding import RowFold
from ibbmaster.tables.fold.kept_rows import KeptRows, RowFile
from ibbmaster.tables.fold.whole_rows import LIKE_A_REPLACE
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.case_table import data_beside
from tests.written_log import Said, inserted, write_log

AS_STORED = SESSIONS[3]
REFUSED = {  # tables whose rows the log does not tell, and why
    "shop.parts": "DROP PARTITION changes or removes rows",
    "stmt.l": "LOAD DATA in statement format",
    "stmt.t": "INSERT in statement format",
}
CAPTURES = [
    pytest.param(one, id=one.id, marks=[pytest.mark.slow] if "big" in one.name else [])
    for one in load_captures()
    if not one.is_encrypted
]


def as_sql(table: TableVersion, names: list[str], row: list[bytes | None]) -> tuple[str | None, ...]:
    found: list[str | None] = []
    for name, value in zip(names, row, strict=True):
        column = table.column(name)
        assert column is not None
        if value is None:
            found.append(None)
        elif column.type.word == "uuid":
            found.append(value.decode().replace("-", "").upper())
        elif column.type.word in ("inet4", "inet6"):
            found.append(ipaddress.ip_address(value.decode()).packed.hex().upper())
        else:
            found.append(value.hex().upper())
    return tuple(found)


def content_of(ours: OurTables, table: TableVersion) -> tuple[int, str]:
    """Number of rows, and the hash that fixtures/classic/README.md defines."""
    names = [column.name for column in table.columns if not column.is_hidden]
    quoted = ", ".join(f"`{name}`" for name in names)
    answered = ours.answer(f"SELECT {quoted} FROM `{table.database}`.`{table.name}`", AS_STORED)
    rows = sorted(repr(as_sql(table, names, values_of(row, len(names)))) for row in answered.rows)
    digest = hashlib.sha256()
    for number, row in enumerate(rows):
        digest.update(f"\n{row}".encode() if number else row.encode())
    return len(rows), digest.hexdigest()[:16]


@pytest.mark.parametrize("capture", CAPTURES)
def test_tables_have_the_rows_that_the_server_had_or_are_refused(capture: Capture, memory_path: Path) -> None:
    capture.unpack(memory_path)
    ours = OurTables(ibbmaster.open(memory_path).engine)
    snapshot = ours.snapshot()
    for name, facts in capture.facts["tables"].items():
        table = ours.table(name, snapshot)
        try:
            found: object = content_of(ours, table)
        except RefusedError as refused:
            found = refused.err.text
        reasons = REFUSED.get(name, "nothing").split("|")
        if capture.facts["options"].get("binlog-annotate-row-events") == "OFF":
            reasons.append(LIKE_A_REPLACE)  # or one of ON DUPLICATE KEY UPDATE, which nothing tells
        is_refused = isinstance(found, str) and any(reason in found for reason in reasons)
        assert is_refused or found == (facts["rows"], facts["content"]), name


def test_tables_that_are_dropped_take_no_room() -> None:
    engine = ibbmaster.open(Path(__file__).parents[3] / "fixtures/classic/11.8/ddl-trx-xa").engine
    history = LoggedSchema(engine).history()
    fold = RowFold(engine, history, KeptRows(RowFile()), LOG_START)

    fold.advance(engine.end())

    alive = {table.generation for table in history.at().tables.values() if isinstance(table, TableVersion)}
    assert set(fold.tables) <= alive
    assert set(fold.kept.numbers()) <= alive
    assert len(list(history.names())) > len(alive)


@pytest.mark.parametrize("name", ["types-minimal-none", "ddl-trx-xa-none-compressed"])
def test_a_damaged_log_gives_rows_or_errors_of_ours(tmp_path: Path, name: str) -> None:
    whole = (Path(__file__).parents[3] / "fixtures/classic/11.8" / name / "binlog.000001").read_bytes()
    for _ in range(8):
        damaged = bytearray(whole)
        for _ in range(random.choice([1, 3])):
            damaged[random.randrange(300, len(damaged))] = random.choice([0, 1, 128, 255])
        (tmp_path / "binlog.000001").write_bytes(damaged)
        with contextlib.suppress(IbbMasterError):
            ours = OurTables(ibbmaster.open(tmp_path).engine)
            snapshot = ours.snapshot()
            for table in ours.base_tables(snapshot):
                with contextlib.suppress(RefusedError):
                    ours.answer(f"SELECT * FROM `{table.database}`.`{table.name}`", snapshot=snapshot)


T = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
U = written_table("d.u", {"id": "int", "a": "int"}, table_id=2, primary_key=["id"])
CREATE = "CREATE TABLE {} (id INT PRIMARY KEY, a INT) {}"
BY_RANGE = "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN (20))"
CASES = data_beside(__file__)


def rows_of(ours: OurTables, name: str) -> list[tuple[str, ...]] | str | None:
    if (found := ours.history.at().table("d", name)) is None:
        return None
    if isinstance(found, UnknownTable):
        return found.reason
    try:
        rows = ours.answer(f"SELECT * FROM d.{name}").rows
    except RefusedError as refused:
        return refused.err.text
    return sorted(tuple((value or b"").decode() for value in values_of(row, 2)) for row in rows)


@pytest.mark.parametrize(("steps", "expected"), CASES["told_in_two_rooms"].values(), ids=CASES["told_in_two_rooms"])
def test_select_and_the_snapshots_of_archives_know_and_refuse_the_same_tables(
    tmp_path, tables_of, steps, expected
) -> None:
    groups = [
        Said(*step) if isinstance(step, list) else [inserted(U, *step["u"])] if isinstance(step, dict) else step
        for step in steps
    ]
    ours = tables_of(CREATE.format("t", BY_RANGE), [inserted(T, [1, 1], [11, 11])], *groups)
    options = parse_options({"path": str(tmp_path / "log"), "granularity": "groups"})
    told = [one for task in plan_tasks(options, find_fields(options)) for one in statements_of(task)]

    for name, wanted in expected.items():
        found, past = rows_of(ours, name), past_of(ours.history, ("d", name), None, told)
        if isinstance(wanted, str):
            assert re.search(wanted, str(found)), found
            assert re.search(wanted, " ".join(doubt.reason for doubt in past.doubts))
        elif isinstance(wanted, dict):  # who keeps no rows cannot move them
            assert [*map(list, found)] == wanted["rows"]
            assert re.search(wanted["reason"], " ".join(doubt.reason for doubt in past.doubts))
        else:
            assert (None if found is None else [*map(list, found)]) == wanted


@pytest.mark.parametrize(("changes", "expected"), CASES["changed_types"].values(), ids=CASES["changed_types"])
def test_values_are_what_alter_table_makes_of_them(tables_of, changes, expected) -> None:
    rows = [inserted(T, [1, 1], [11, 11])]

    found = rows_of(tables_of(CREATE.format("t", ""), rows, *[f"ALTER TABLE t {change}" for change in changes]), "t")

    assert ([row[1] for row in found] if isinstance(found, list) else expected) == expected
    assert isinstance(found, list) or expected in found


@pytest.mark.parametrize(
    ("alters", "zero"),
    [
        (["ALTER TABLE t MODIFY a INT NOT NULL"], "0"),
        (["ALTER TABLE t MODIFY a TEXT", "ALTER TABLE t MODIFY a TEXT NOT NULL"], ""),
        (["ALTER TABLE t MODIFY a INT NOT NULL AUTO_INCREMENT, ADD KEY (a)"], None),
    ],
    ids=["a number", "a text", "one that counts"],
)
def test_null_becomes_zero_where_it_may_not_be_any_more(tables_of, alters, zero) -> None:
    found = rows_of(tables_of(CREATE.format("t", ""), [inserted(T, [1, None], [2, 7])], *alters), "t")

    if zero is None:
        assert "column a may change its values: it was NULL" in found
    else:
        assert found == [("1", zero), ("2", "7")]


def test_a_generated_column_is_not_known_once_what_it_is_made_of_is_converted(tables_of) -> None:
    wide = written_table("d.t", {"id": "int", "a": "int", "g": "int"}, table_id=1, primary_key=["id"])
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (length(a)) STORED)"
    ours = tables_of(create, [inserted(wide, [1, 2, 1])], "ALTER TABLE t MODIFY a DOUBLE(5,1)")

    assert values_of(ours.answer("SELECT id, a FROM d.t").rows[0], 2) == [b"1", b"2.0"]
    with pytest.raises(RefusedError, match="what column g is made of changes"):
        ours.answer("SELECT g FROM d.t")


@pytest.mark.parametrize(("between", "left"), CASES["savepoints"].values(), ids=CASES["savepoints"])
def test_a_rollback_undoes_what_stands_behind_its_savepoint_however_it_is_called(tables_of, between, left) -> None:
    group = [inserted(T, [1, 0])]
    for number, statement in enumerate(between, start=2):
        statement = Said(*statement) if isinstance(statement, list) else statement
        group += [*([] if statement is None else [statement]), inserted(T, [number, 0])]
    assert "".join(row[0] for row in rows_of(tables_of(CREATE.format("t", ""), group), "t")) == left


def test_reading_rows_is_broken_off_inside_a_group(tmp_path) -> None:
    path = write_log(tmp_path / "log", CREATE.format("t", ""), [inserted(T, [number, 0]) for number in range(20)])
    engine = ibbmaster.open(path).engine
    fold = RowFold(engine, LoggedSchema(engine).history(), KeptRows(RowFile()), LOG_START)
    looks: list[bool] = []
    work = Work(lambda: 0.0)
    work.check = lambda: looks.append(True) or (len(looks) > 9 and Work.check(work))  # type: ignore[func-returns-value, method-assign]
    work.break_off(BreakReason.KILLED)

    with doing(work), pytest.raises(BrokenOffError):
        fold.advance(engine.end())

    assert len(looks) == 10


def test_a_rollback_to_no_savepoint_refuses_the_tables_of_its_group_and_no_other(tables_of) -> None:
    lost = [inserted(T, [1, 0]), "ROLLBACK TO `s t`"]
    ours = tables_of(CREATE.format("t", ""), CREATE.format("u", ""), lost, [inserted(U, [2, 2])])

    assert "0-1-3, because ROLLBACK TO S T, which is no savepoint of its group" in rows_of(ours, "t")
    assert rows_of(ours, "u") == [("2", "2")]


def test_a_rollback_over_several_savepoints_doubts_what_an_engine_keeps(tables_of) -> None:
    group = ["SAVEPOINT a", inserted(T, [1, 0]), "SAVEPOINT b", inserted(U, [1, 0]), "ROLLBACK TO a"]
    ours = tables_of(CREATE.format("t", "ENGINE=MyISAM"), CREATE.format("u", ""), group)

    assert "a ROLLBACK, which its engine does not know" in rows_of(ours, "t")
    assert rows_of(ours, "u") == []


def test_an_engine_that_may_have_been_replaced_by_another_refuses_its_table(tmp_path, tables_of) -> None:
    ours = tables_of(
        *(CREATE.format("t", "ENGINE=BLACKHOLE"), [inserted(T, [1, 0])]),
        *(Said(CREATE.format("u", "ENGINE=BLACKHOLE"), 0, NO_ENGINE_SUBSTITUTION), [inserted(U, [1, 0])]),
        *("CREATE TABLE w LIKE t", "TRUNCATE TABLE t", "TRUNCATE TABLE w", [inserted(T, [1, 0])]),
        *(CREATE.format("x", "ENGINE=BLACKHOLE"), "ALTER TABLE x ENGINE=InnoDB", "TRUNCATE TABLE x"),
    )

    for name in ("t", "w"):
        assert "keeps no rows, and sql_mode lets a server take another one" in rows_of(ours, name)
        with (
            pytest.raises(InexactError, match="sql_mode lets a server take another one"),
            ibbmaster.open(tmp_path / "log") as log,
        ):
            log.snapshot(f"d.{name}")
    assert rows_of(ours, "u") == []
    assert rows_of(ours, "x") == []
