"""Snapshots, histories and differences without a JVM: exact, or said not to be; beside SELECT, `test_one_certainty`."""

import hashlib
import json
import random
from collections import Counter
from contextlib import closing

import pytest
from lanes.replay import CLASSIC, as_sql, created_table, expected_tables, raw_events, readable_captures

import ibbmaster
from ibbmaster.errors import ConfigurationError, InexactError, PositionError
from ibbmaster.lake import arrow_snapshots, noting
from ibbmaster.lake.arrow_snapshots import EXACT_AT, INEXACT, arrow_snapshot
from ibbmaster.lake.maintain import rows as maintained_rows
from ibbmaster.logs.log.group_content import table_name
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableVersion
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_shape, open_log
from ibbmaster.tables.fold.whole_rows import LIKE_A_REPLACE
from tests.lake.random_log import random_log
from tests.written_log import deleted, inserted, updated, write_log

T = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
CREATE_T = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"


def rows_of(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture
def small_log(tmp_path):
    path = write_log(
        tmp_path / "log",
        CREATE_T,
        [inserted(T, [1, 10], [2, 20])],
        [updated(T, ([1, 10], [1, 11]), ([2, 20], [7, 20]))],
        [deleted(T, [7, 20])],
        "TRUNCATE t",
        [inserted(T, [1, 10], [3, 30])],
    )
    with ibbmaster.open(path) as log:
        yield log


def test_a_snapshot_says_at_which_gtid_it_is_exact(small_log):
    assert rows_of(small_log.snapshot("d.t")) == [(1, 10), (3, 30)]
    assert small_log.snapshot("d.t").schema.metadata == {EXACT_AT: b"0-1-6"}
    at = small_log.snapshot("d.t", at="0-1-3")
    assert (rows_of(at), at.schema.metadata) == ([(1, 11), (7, 20)], {EXACT_AT: b"0-1-3"})


def test_rows_are_folded_one_by_one_only_where_changes_alone_are_not_enough(small_log, tmp_path, monkeypatch):
    folded = []
    was = maintained_rows.folded_batches
    monkeypatch.setattr(maintained_rows, "folded_batches", lambda *args: folded.append(1) or was(*args))
    assert rows_of(small_log.snapshot("d.t")) == [(1, 10), (3, 30)]
    assert len(small_log.difference("d.t", "0-1-2")) == 2
    assert not folded
    keyless = write_log(tmp_path / "keyless", "CREATE TABLE t (id INT, a INT)", [inserted(T, [1, 1], [1, 1])])
    with ibbmaster.open(keyless) as log:
        assert rows_of(log.snapshot("d.t")) == [(1, 1), (1, 1)]
        assert rows_of(log.difference("d.t", "0-1-1")) == [("insert", 1, 1), ("insert", 1, 1)]
    assert folded


def test_a_history_has_each_version_of_each_row_with_what_began_and_ended_it(small_log):
    history = small_log.history("d.t")
    names = ("id", "a", "_gtid_from", "_gtid_to", "_is_current")
    assert history.column_names == ["id", "a", "_valid_from", "_valid_to", "_gtid_from", "_gtid_to", "_is_current"]
    assert [tuple(row[name] for name in names) for row in history.to_pylist()] == [
        (1, 10, "0-1-2", "0-1-3", False),
        (1, 11, "0-1-3", "0-1-5", False),
        (1, 10, "0-1-6", None, True),
        (2, 20, "0-1-2", "0-1-3", False),
        (7, 20, "0-1-3", "0-1-4", False),
        (3, 30, "0-1-6", None, True),
    ]


def test_a_difference_has_a_change_of_each_row_that_is_another_one(small_log):
    found = small_log.difference("d.t", "0-1-2", "0-1-3")
    expected = [("update_preimage", 1, 10), ("update_postimage", 1, 11), ("delete", 2, 20), ("insert", 7, 20)]
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    again = small_log.difference("d.t", "0-1-2")  # row 1 has come back as it was
    assert rows_of(again) == [("delete", 2, 20), ("insert", 3, 30)]
    assert len(small_log.difference("d.t", "0-1-6", "0-1-6")) == 0
    assert rows_of(small_log.difference("d.t", "0-1-1", "0-1-2")) == [("insert", 1, 10), ("insert", 2, 20)]


def test_a_difference_follows_a_table_through_its_names_and_columns(tmp_path):
    later = written_table("d.v", {"id": "int", "b": "bigint", "c": "int"}, table_id=2, primary_key=["id"])
    path = write_log(
        tmp_path / "log",
        CREATE_T,
        [inserted(T, [1, 10], [2, 20])],
        "RENAME TABLE t TO v",
        "ALTER TABLE v CHANGE a b BIGINT, ADD c INT DEFAULT 5",
        [updated(later, ([2, 20, 5], [2, 21, 5]))],
    )
    with ibbmaster.open(path) as log:
        assert [tuple(row.values()) for row in log.difference("d.v", "0-1-2").to_pylist()] == [
            ("update_preimage", 2, 20, None),
            ("update_postimage", 2, 21, 5),
        ]


def test_what_the_log_does_not_tell_is_refused_or_heard(tmp_path):
    path = write_log(tmp_path / "log", CREATE_T, [inserted(T, [1, 1])], "CALL p()")
    doubt = f"not exact since 0-1-3, because {in_statement_format('CALL p()')}"
    with ibbmaster.open(path) as log:
        for ask in (log.snapshot, log.history):
            with pytest.raises(InexactError, match=r"^d\.t: not exact since 0-1-3, because CALL p\(\)"):
                ask("d.t")
            heard = []
            found = ask("d.t", on_doubt=heard.append)
            assert heard == [f"d.t: {doubt}"]
            assert found["id"].to_pylist() == [1]
            assert found.schema.metadata == {INEXACT: doubt.encode()}
        with pytest.raises(InexactError):
            log.difference("d.t", "0-1-2")
        assert len(log.difference("d.t", "0-1-1", "0-1-2")) == 1


def test_wrong_questions_are_one_line(small_log):
    with pytest.raises(ConfigurationError, match=r"changes rows of table d\.nope, and none creates it"):
        small_log.snapshot("d.nope")
    with pytest.raises(ConfigurationError, match=r"'t' is not the name of a table: expected database\.table"):
        small_log.history("t")
    with pytest.raises(ConfigurationError, match="zero_dates is 'zero', expected null or text"):
        small_log.snapshot("d.t", zero_dates="zero")
    with pytest.raises(ConfigurationError, match="no column nope"):
        small_log.snapshot("d.t", key=["nope"])
    with pytest.raises(PositionError):
        small_log.snapshot("d.t", at="0-1-99")
    view = small_log.played("max")
    for ask in (view.snapshot, view.history, view.difference):
        with pytest.raises(ConfigurationError, match="reads the files of a log"):
            ask("d.t", "0-1-2")


def test_a_table_without_a_key_has_its_rows_too(tmp_path):
    table = written_table("d.t", {"a": "int"}, table_id=1)
    path = write_log(
        tmp_path / "log", "CREATE TABLE t (a INT)", [inserted(table, [1], [1], [2])], [deleted(table, [1])]
    )
    with ibbmaster.open(path) as log:
        assert rows_of(log.snapshot("d.t")) == [(1,), (2,)]
        assert rows_of(log.difference("d.t", "0-1-2")) == [("delete", 1)]
        periods = [("0-1-2", "0-1-3"), ("0-1-2", None), ("0-1-2", None)]
        assert [(row["_gtid_from"], row["_gtid_to"]) for row in log.history("d.t").to_pylist()] == periods


def test_what_was_rolled_back_is_in_no_history(tmp_path):
    group = [inserted(T, [1, 10]), "SAVEPOINT a", inserted(T, [2, 20]), "ROLLBACK TO a", inserted(T, [3, 30])]
    with ibbmaster.open(write_log(tmp_path / "log", CREATE_T, group, [deleted(T, [1, 10])])) as log:
        history = log.history("d.t").select(["id", "_gtid_from", "_gtid_to", "_is_current"])
        assert rows_of(history) == [(1, "0-1-2", "0-1-3", False), (3, "0-1-2", None, True)]


def test_a_history_that_takes_too_much_memory_is_refused(small_log, tmp_path, monkeypatch):
    monkeypatch.setattr(noting, "NOTES_MAX", 2)
    assert len(small_log.history("d.t")) == 6  # changes alone are enough
    keyless = write_log(tmp_path / "keyless", "CREATE TABLE t (id INT, a INT)", [inserted(T, [1, 1], [1, 1], [2, 2])])
    with (
        ibbmaster.open(keyless) as log,
        pytest.raises(InexactError, match=r"since 0-1-2, because .* more than 2 changes"),
    ):
        log.history("d.t")


def tables_of(log):
    from ibbmaster.tables.arrow.plan import history_of

    for table in history_of(log.read_options(), log.engine).at().tables.values():
        if isinstance(table, TableVersion) and table.kind.name == "BASE":
            index = row_key(table)
            if index is not None and index.kind.name == "PRIMARY":
                names = {column.id: column.name for column in table.columns}
                yield table.full_name, [names[part.column_id] for part in index.parts]


@pytest.mark.some_of(12)
@pytest.mark.parametrize("capture", readable_captures())
def test_changes_done_again_are_the_rows_that_select_has_or_are_said_not_to_be(capture, request):
    if "big" in capture and not request.config.getoption("--interop-all"):
        pytest.skip("20 s each: --interop-all")
    told = Counter()
    with ibbmaster.open(CLASSIC / capture) as log:
        for name, key in tables_of(log):
            options = log._table_options("snapshot", name, None, "text", None)
            heard = []
            try:
                with closing(open_log(options)) as opened:
                    again = arrow_snapshots._as_changed(
                        arrow_snapshots._asked(options, opened), key, [], heard.append, has_history=False
                    )
            except (ConfigurationError, ibbmaster.errors.EventError):
                continue  # no name, or images that are not whole
            try:
                folded = arrow_snapshot(options)
            except InexactError:
                assert heard, name
                told["refused"] += 1
                continue
            if not heard:
                assert sorted(map(repr, again.to_pylist())) == sorted(map(repr, folded.to_pylist())), name
                told["equal"] += 1
    assert told or capture not in ("11.8/domains", "10.11/domains")


def test_differences_lead_from_one_snapshot_to_another(tmp_path):
    rng = random.Random(random.getrandbits(32))
    with ibbmaster.open(random_log(rng, tmp_path / "log", doubts=False, swaps=False)) as log:
        last = log.position[0].seq_no
        for _ in range(6):
            first, second = sorted(rng.sample(range(3, last + 1), 2))
            for name in ("d.t", "d.u"):
                try:
                    before, after = (log.snapshot(name, at=f"0-1-{at}") for at in (first, second))
                except InexactError:
                    continue
                rows = Counter(map(repr, before.to_pylist()))
                for one in log.difference(name, f"0-1-{first}", f"0-1-{second}").to_pylist():
                    kind = one.pop("_change_type")
                    rows[repr(one)] += 1 if kind in ("insert", "update_postimage") else -1
                assert +rows == Counter(map(repr, after.to_pylist())), (name, first, second)
                assert not -rows, (name, first, second)


REFUSED = {  # tables whose rows the log does not tell, and why
    "shop.parts": "DROP PARTITION changes or removes rows"
}
UNTOLD = "11.8/types-minimal-none"  # no annotations tell a REPLACE from an INSERT … ON DUPLICATE KEY UPDATE
HIDDEN = ("row_start", "row_end")  # of a table with system versioning, which SELECT * leaves out
OTHER_IMAGES = ("11.8/types-full_nodup", "11.8/types-minimal-none", "11.8/types-noblob-compressed")
"""Of the same tables, whose rows are logged in other ways: each table is read in one of them."""


@pytest.mark.parametrize("capture", [name for name in readable_captures() if "/statement" not in name])
def test_snapshots_are_the_tables_that_the_server_had(imported, capture, tmp_path, request):
    has_twin = capture.startswith("10.11")
    takes_all = request.config.getoption("--interop-all")
    if has_twin and not takes_all:
        pytest.skip("as another capture; --interop-all has no such exceptions")
    directory = imported(capture)
    declared = declarations_of(capture)
    if capture.endswith("ddl-trx-xa-none-compressed"):
        del declared["shop.parent"]  # gets more columns, and the binlog names none
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(declared))
    checked = 0
    for number, (name, expected) in enumerate(sorted(expected_tables(capture).items())):
        if name not in declared:
            continue  # or it was created as a copy, by another name, or is a sequence
        if not takes_all and capture in OTHER_IMAGES and OTHER_IMAGES[number % len(OTHER_IMAGES)] != capture:
            continue
        options = parse_options({"path": str(directory), "table": name, "schema": str(schema), "zeroDates": "text"})
        found = find_shape(options, name).schema
        try:
            table = arrow_snapshot(options)
        except InexactError as refused:
            is_untold = capture == UNTOLD and LIKE_A_REPLACE in str(refused)
            if not is_untold and REFUSED.get(name, "nothing") not in str(refused):
                raise
            continue
        rows = sorted(
            tuple(
                as_sql(column, tuple(value) if isinstance(value, list) else value)
                for column, value in zip(found.columns, row, strict=True)
                if column.name not in HIDDEN
            )
            for row in map(dict.values, table.to_pylist())
        )
        assert hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()[:16] == expected["content"], name
        checked += 1
    assert checked


def declarations_of(capture):
    declared, changed = {}, set()
    for event in raw_events(CLASSIC / capture):
        if (created := created_table(event)) is not None:
            declared[created[0]] = created[1]
        elif event[4] == EventType.TABLE_MAP:
            changed.add(str(table_name(event)))
    return {name: columns for name, columns in declared.items() if name in changed}
