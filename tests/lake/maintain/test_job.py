"""Tables are brought to the end of a log again and again: with what is new, once, and with a verdict."""

import datetime
import functools
import itertools
import json
import random
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import ibbmaster
from ibbmaster.errors import BusyError, ConfigurationError, EventError, PositionError, StoreError
from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot
from ibbmaster.lake.maintain import delta as maintained_delta
from ibbmaster.lake.maintain import job
from ibbmaster.lake.maintain import rows as maintained_rows
from ibbmaster.lake.maintain.job import Maintained, maintain
from ibbmaster.lake.maintain.source import LogSource
from ibbmaster.lake.maintain.state import HISTORY, LIST
from ibbmaster.lake.placing import only_writer
from ibbmaster.replication.event.rows.encoding import WrittenTable, written_table
from ibbmaster.tables.arrow.options import parse_options
from tests.kept_tables import KINDS, KeptTables
from tests.kill_switch import TARGETS, KilledError, KillSwitch
from tests.written_log import Item, deleted, inserted, updated, write_log

CREATED = "CREATE TABLE t (id INT PRIMARY KEY, a INT)"


def of(name: str = "t", **columns: str) -> WrittenTable:
    number = sum(name.encode())
    return written_table(f"d.{name}", {"id": "int", "a": "int", **columns}, table_id=number, primary_key=["id"])


LOG: list[Item] = [
    CREATED,
    [inserted(of(), [1, 10], [2, 20], [3, 30])],
    [updated(of(), ([1, 10], [1, 11]), ([2, 20], [5, 20]))],
    [deleted(of(), [3, 30])],
]
ROWS = {1: 11, 5: 20}


@pytest.fixture(params=KINDS)
def kept(request, tmp_path: Path) -> KeptTables:
    return KeptTables(request.param, tmp_path / "lake")


@pytest.fixture
def run(tmp_path: Path, kept):
    def go(*items: Item, **options) -> Maintained:
        shutil.rmtree(tmp_path / "log", ignore_errors=True)
        write_log(tmp_path / "log", *items)
        return maintain(str(tmp_path / "log"), kept.target, **options)

    return go


@pytest.fixture
def target_class(kept):
    return TARGETS[kept.kind]


def verdicts(done: Maintained) -> dict[str, str]:
    return {name: state.verdict for name, state in done.tables.items()}


def test_each_run_brings_what_is_new_and_no_more(run, kept) -> None:
    for end in range(1, len(LOG) + 1):
        done = run(*LOG[:end])
        assert done.rewritten == []
        assert verdicts(done) == {"d.t": f"exact at 0-1-{end}"}
    assert kept.rows() == sorted(ROWS.items())
    kept.expect_commits(["written", "patched", "patched", "patched"])
    assert run(*LOG).written == []
    assert len(kept.commits()) == 4
    assert verdicts(run(*LOG, "CREATE TABLE other (id INT PRIMARY KEY)")) == {
        "d.t": "exact at 0-1-5",
        "d.other": "exact at 0-1-5",
    }
    assert len(kept.commits()) == 4


ALTERED: dict[str, tuple[list[Item], list[tuple]]] = {
    "a column with a default": (["ALTER TABLE t ADD c INT DEFAULT 7"], [(1, 11, 7), (5, 20, 7)]),
    "a column of another kind": (["ALTER TABLE t MODIFY a DECIMAL(12)"], [(1, 11), (5, 20)]),
    "emptied": (["TRUNCATE t", [inserted(of(), [9, 9])]], [(9, 9)]),
    "emptied and of another type": (
        ["ALTER TABLE t MODIFY a VARCHAR(9)", "TRUNCATE t", [inserted(of(a="varchar(9)"), [1, "x"])]],
        [(1, "x")],
    ),
    "made anew": (["DROP TABLE t", CREATED, [inserted(of(), [1, 1])]], [(1, 1)]),
    "of another type": (
        ["CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a VARCHAR(9))", [inserted(of(a="varchar(9)"), [1, "x"])]],
        [(1, "x")],
    ),
    "swapped": (["CREATE TABLE u LIKE t", [inserted(of("u"), [7, 7])], "RENAME TABLE t TO v, u TO t"], [(7, 7)]),
    "without its key": (["ALTER TABLE t DROP PRIMARY KEY", [inserted(of(), [1, 11])]], [(1, 11), (1, 11), (5, 20)]),
}


@pytest.mark.parametrize(("steps", "expected"), ALTERED.values(), ids=ALTERED)
def test_a_table_that_is_altered_has_one_shape_and_its_own_values(run, kept, steps, expected) -> None:
    run(*LOG)
    done = run(*LOG, *steps)
    assert done.tables["d.t"].is_exact
    assert done.rewritten == ["d.t"]
    assert kept.rows() == expected
    kept.expect_commits(["written", "written"])


def named(**columns: str) -> WrittenTable:
    return written_table("d.t", columns, table_id=77, primary_key=["id"])


MOMENT = datetime.datetime(2024, 2, 29, 12, 30)
RESHAPED: dict[str, tuple[str, WrittenTable, list[object], list[tuple], tuple[str, ...]]] = {
    # what is altered, how a row is written then, all rows, and in which targets no file is written anew
    "a column of NULLs": ("ADD c INT", of(c="int"), [6, 6, 6], [(1, 11, None), (5, 20, None), (6, 6, 6)], KINDS),
    "a moment without a zone": (
        "ADD c DATETIME",
        of(c="datetime"),
        [6, 6, str(MOMENT)],
        [(1, 11, None), (5, 20, None), (6, 6, MOMENT)],
        KINDS,
    ),
    "a column renamed": (
        "RENAME COLUMN a TO z",
        named(id="int", z="int"),
        [6, 6],
        [(1, 11), (5, 20), (6, 6)],
        KINDS[1:],
    ),
    "a column widened": ("MODIFY a BIGINT", of(a="bigint"), [6, 1 << 40], [(1, 11), (5, 20), (6, 1 << 40)], KINDS[1:]),
    "the key widened": ("MODIFY id BIGINT", of(id="bigint"), [1 << 40, 6], [(1, 11), (5, 20), (1 << 40, 6)], KINDS[1:]),
    "a column dropped": ("DROP a", named(id="int"), [6], [(1,), (5,), (6,)], KINDS[1:]),
    "another column of that name": ("DROP a, ADD a INT", of(), [6, 6], [(1, None), (5, None), (6, 6)], KINDS[1:]),
}


@pytest.mark.parametrize("kind", ["current", "history", "changes"])
@pytest.mark.parametrize(("altered", "table", "row", "expected", "kinds"), RESHAPED.values(), ids=RESHAPED)
def test_columns_of_rows_that_are_there_become_those_of_now(
    run, kept, kind, altered, table, row, expected, kinds
) -> None:
    def read() -> list[tuple]:
        rows = [one for one in kept.read().to_pylist() if one.get("_is_current", True)]
        if kind == "changes":  # those that the rows of now have come with
            last = {"0-1-2": (), "0-1-3": ("update_postimage",), "0-1-6": ("insert",)}
            rows = [one for one in rows if one["_change_type"] in last.get(one["_gtid"], ())]
        return sorted(tuple(value for name, value in one.items() if name[0] != "_") for one in rows)

    run(*LOG, kind=kind)
    before = kept.data_files()
    steps = [*LOG, f"ALTER TABLE t {altered}"]
    done = run(*steps, kind=kind)
    assert verdicts(done) == {"d.t": "exact at 0-1-5"}
    assert read() == expected[:2]
    stays = kept.kind in kinds and not (kind == "changes" and {"RENAME", "DROP"} & set(altered.split()))
    assert done.rewritten == ([] if stays else ["d.t"])
    if stays:
        assert kept.data_files() == before
    for _ in range(2):
        assert verdicts(run(*steps, [inserted(table, row)], kind=kind)) == {"d.t": "exact at 0-1-6"}
        assert read() == expected
        assert len(kept.commits()) == 3


@pytest.mark.parametrize("kept", ["delta"], indirect=True)
def test_a_table_that_lacks_the_feature_of_its_columns_gets_it(run, kept, monkeypatch) -> None:
    run(*LOG)
    altered = [*LOG, "ALTER TABLE t ADD c DATETIME"]
    monkeypatch.setattr(maintained_delta, "have_features", lambda *_: None)
    assert "timestampNtz" in run(*altered).tables["d.t"].because
    monkeypatch.undo()
    for _ in range(2):
        assert verdicts(run(*altered, [inserted(of(c="datetime"), [6, 6, str(MOMENT)])])) == {"d.t": "exact at 0-1-6"}
        assert kept.rows() == [(1, 11, None), (5, 20, None), (6, 6, MOMENT)]


def test_columns_in_another_order_are_no_change(run, kept) -> None:
    run(*LOG)
    moved = written_table("d.t", {"a": "int", "id": "int"}, table_id=9, primary_key=["id"])
    assert run(*LOG, "ALTER TABLE t MODIFY a INT FIRST", [inserted(moved, [7, 6])]).tables["d.t"].is_exact
    assert kept.rows() == [(1, 11), (5, 20), (6, 7)]
    kept.expect_commits(["written", "patched"])


def test_rows_that_the_log_does_not_tell_stay_as_they_were_and_the_verdict_says_since_when(run, kept) -> None:
    run(*LOG)
    doubted = [*LOG, [inserted(of(), [6, 6])], "UPDATE t SET a = RAND()", [inserted(of(), [8, 8])]]
    done = run(*doubted)
    assert not done.tables["d.t"].is_exact
    assert "not exact since 0-1-6, because" in done.tables["d.t"].verdict
    assert done.tables["d.t"].verdict.endswith("its rows here are those at 0-1-4")
    assert kept.rows() == sorted(ROWS.items())
    assert verdicts(run(*doubted, "TRUNCATE t", [inserted(of(), [8, 8])])) == {"d.t": "exact at 0-1-9"}
    assert kept.rows() == [(8, 8)]


def test_a_table_whose_rows_are_not_known_stays_so_where_nothing_is_new(run, kept) -> None:
    run(*LOG[:2])
    absent = [updated(of(), ([9, 1], [9, 2]))]
    verdict = "not exact since 0-1-3, because an UPDATE of a row that is not there; its rows here are those at 0-1-2"
    for more in ([], [], ["CREATE TABLE v (a INT)"], ["CREATE TABLE v (a INT)"]):
        assert verdicts(run(*LOG[:2], absent, *more))["d.t"] == verdict
    assert kept.rows() == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("kind", ["current", "changes", "history"])
def test_a_table_that_runs_have_passed_over_gets_all_that_was_new_since(run, kept, kind) -> None:
    run(*LOG[:2], kind=kind)
    other = ["CREATE TABLE u LIKE t", [inserted(of("u"), [1, 1])]]
    run(*LOG[:3], *other, kind=kind, only=["d.u"])
    assert run(*LOG[:3], *other, kind=kind).tables["d.t"].is_exact
    assert len(kept.read()) == {"current": 3, "changes": 3 + 2 * 2, "history": 3 + 2}[kind]


def test_rows_that_a_merge_did_not_find_as_the_log_has_them_are_made_anew_even_after_a_kill(
    run, kept, target_class, monkeypatch
) -> None:
    run(*LOG[:2])
    was = maintained_rows.last_changes

    def counting(*args):
        found = was(*args)
        return found._replace(were_there=np.zeros_like(found.were_there))

    def killed(*_):
        raise KilledError

    monkeypatch.setattr(maintained_rows, "last_changes", counting)
    monkeypatch.setattr(target_class, "replace", killed)
    with pytest.raises(KilledError):
        run(*LOG[:2], [deleted(of(), [1, 10], [2, 20])])
    merged = ["patched"] if kept.kind == "delta" else []  # Iceberg tables see it before they commit
    kept.expect_commits(["written", *merged])
    monkeypatch.undo()
    assert verdicts(run(*LOG[:2], [deleted(of(), [1, 10], [2, 20])])) == {"d.t": "exact at 0-1-3"}
    kept.expect_commits(["written", *merged, "written"])
    assert kept.rows() == [(3, 30)]


def test_a_table_that_is_gone_keeps_its_last_rows(run, kept) -> None:
    run(*LOG)
    assert verdicts(run(*LOG, "DROP TABLE t")) == {"d.t": "gone, dropped or renamed; its rows here are those at 0-1-4"}
    assert kept.rows() == sorted(ROWS.items())
    run(*LOG, "DROP TABLE t", CREATED)
    assert kept.rows() == []


def test_patterns_choose_tables(run, tmp_path) -> None:
    both = [*LOG, "CREATE TABLE u LIKE t", [inserted(of("u"), [1, 1])]]
    assert set(run(*both, only=["d.u"]).tables) == {"d.u"}
    assert set(run(*both, leaves_out=["d.u"]).tables) == {"d.t", "d.u"}
    assert not (tmp_path / "lake" / "other").exists()


def test_a_log_may_be_purged_between_runs(run, kept, tmp_path) -> None:
    go = lambda **options: maintain(str(tmp_path / "log"), kept.target, **options)  # noqa: E731
    run(*LOG)
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.flush()
        for number, events in enumerate(([inserted(of(), [7, 70])], [updated(of(), ([1, 11], [1, 12]))]), start=90):
            log.append(f"0-1-{number}", [event for part in events for event in part])
        log.purge(to=log.files[-1].name)
        assert log.files[0].name != "binlog-000000.ibb"
    assert verdicts(go())["d.t"] == "exact at 0-1-91"
    assert kept.rows() == [(1, 12), (5, 20), (7, 70)]
    kept.expect_commits(["written", "patched"])
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.append("0-1-92", ["ALTER TABLE d.t ADD c INT DEFAULT 7"])
    assert "not exact since" in go().tables["d.t"].verdict
    assert kept.rows() == [(1, 12), (5, 20), (7, 70)]
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.append("0-1-93", ["TRUNCATE d.t"])
    assert verdicts(go())["d.t"] == "exact at 0-1-93"
    assert kept.rows() == []


def test_changes_are_added_once_each_and_keep_one_shape(run, kept) -> None:
    def read() -> list[tuple]:
        found = kept.read().to_pylist()
        own = [name for name in found[0] if not name.startswith("_")]
        return [(row["_gtid"], row["_change_type"], *(row[name] for name in own)) for row in found]

    for end in range(1, len(LOG) + 1):
        done = run(*LOG[:end], kind="changes")
        assert verdicts(done) == {"d.t": f"exact at 0-1-{end}"}
    changes = [
        ("0-1-2", "insert", 1, 10),
        ("0-1-2", "insert", 2, 20),
        ("0-1-2", "insert", 3, 30),
        ("0-1-3", "update_preimage", 1, 10),
        ("0-1-3", "update_postimage", 1, 11),
        ("0-1-3", "update_preimage", 2, 20),
        ("0-1-3", "update_postimage", 5, 20),
        ("0-1-4", "delete", 3, 30),
    ]
    assert sorted(read()) == sorted(changes)
    kept.expect_commits(["written", "written", "written", "written"])
    run(*LOG, "ALTER TABLE t ADD c INT DEFAULT 7", "ALTER TABLE t RENAME COLUMN a TO z", kind="changes")
    assert sorted(read()) == sorted((*change, 7) for change in changes)
    assert kept.read().column_names[-2] == "z"
    done = run(
        *LOG,
        "ALTER TABLE t ADD c INT DEFAULT 7",
        "ALTER TABLE t RENAME COLUMN a TO z",
        "UPDATE t SET z = 1",
        kind="changes",
    )
    assert "not exact since 0-1-7, because" in done.tables["d.t"].verdict
    with pytest.raises(ConfigurationError, match="made with --as changes, not current"):
        run(*LOG)


@pytest.mark.parametrize("is_older", [False, True], ids=["a list of now", "a list of an older version"])
def test_changes_that_were_in_doubt_are_so_when_the_log_is_purged_and_after_an_error(
    run, kept, tmp_path, monkeypatch, is_older
) -> None:
    go = lambda: maintain(str(tmp_path / "log"), kept.target, kind="changes").tables["d.t"].verdict  # noqa: E731
    run(*LOG, "UPDATE t SET a = RAND()", kind="changes")
    first = go().partition(";")[0]
    assert first.startswith("not exact since 0-1-5, because")
    if is_older:
        path = kept.place / LIST
        table_list = json.loads(path.read_text())
        del table_list["tables"]["d.t"]["doubted"]
        path.write_text(json.dumps(table_list))
    for number in (90, 91, 92):
        with ibbmaster.open(tmp_path / "log", writable=True) as log:
            log.flush()
            log.append(f"0-1-{number}", list(inserted(of(), [number, 70])))
            if number > 90:
                log.purge(to=log.files[-1].name)
        if number == 90:
            monkeypatch.setattr(job._Run, "_begin", raised)
            assert "no room" in go()
            monkeypatch.undo()
        assert go().partition(";")[0] == first
    assert {row["id"] for row in kept.read().to_pylist()} >= {90, 91, 92}


def raised(*_) -> None:
    raise EventError("no room")


def test_changes_that_a_foreign_key_makes_without_an_event_are_named(run) -> None:
    child: Item = "CREATE TABLE c (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES t (id) ON DELETE CASCADE)"
    steps = [CREATED, child, [inserted(of("c"), [1, 1])]]
    assert verdicts(run(*steps, kind="changes"))["d.c"] == "exact at 0-1-3"
    verdict = "not exact since 0-1-4, because its foreign key to d.t deletes or changes rows without an event"
    done = run(*steps, [deleted(of(), [1, 1])], kind="changes")
    assert verdicts(done)["d.c"].startswith(verdict)
    assert done.tables["d.t"].is_exact


def test_history_has_each_version_of_a_row_and_when_it_held(run, kept) -> None:
    def read() -> list[tuple]:
        names = ["id", "a", "_gtid_from", "_gtid_to", "_is_current"]
        return sorted(tuple(row[name] for name in names) for row in kept.read().to_pylist())

    for end in range(1, len(LOG) + 1):
        assert verdicts(run(*LOG[:end], kind="history")) == {"d.t": f"exact at 0-1-{end}"}
    versions = [
        (1, 10, "0-1-2", "0-1-3", False),
        (1, 11, "0-1-3", None, True),
        (2, 20, "0-1-2", "0-1-3", False),
        (3, 30, "0-1-2", "0-1-4", False),
        (5, 20, "0-1-3", None, True),
    ]
    assert read() == versions
    kept.expect_commits(["written", "patched", "patched", "patched"])
    emptied = [*LOG, "ALTER TABLE t ADD c INT DEFAULT 7", "TRUNCATE t", [inserted(of(c="int"), [1, 1, 1])]]
    run(*emptied, kind="history")
    ended = [(key, a, since, to or "0-1-6", False) for key, a, since, to, _ in versions]
    assert read() == sorted([*ended, (1, 1, "0-1-7", None, True)])
    assert {row["c"] for row in kept.read().to_pylist()} == {7, 1}
    done = run(*emptied, "UPDATE t SET a = RAND()", kind="history")
    assert "not exact since 0-1-8, because" in done.tables["d.t"].verdict


XA = Path(__file__).parents[3] / "fixtures" / "ibb" / "xa-and-ddl"
CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"


def test_changes_of_a_transaction_in_two_phases_are_those_of_its_commit(kept) -> None:
    done = maintain(str(XA), kept.target, kind="changes")
    with LogSource(parse_options({"path": str(XA)})) as source:
        completed = [one.gtid for one in source.prepared.values() if one is not None]
        assert len(completed) < len(source.prepared)  # some were rolled back
    found = set()
    for name in done.tables:
        found |= set(kept.read(name)["_gtid"].to_pylist())
    plain = {
        row["_gtid"]
        for batch in [ibbmaster.open(XA).to_arrow(columns=["_gtid", "_file_no", "_offset"])]
        for row in batch.to_pylist()
        if (row["_file_no"], row["_offset"]) not in source.prepared
    }
    assert found & set(completed)
    assert found <= plain | set(completed)


def plain_rows(rows: pa.Table) -> list[str]:
    names = sorted(rows.column_names)
    return sorted(repr([row[name] for name in names]) for row in rows.to_pylist())


@pytest.mark.parametrize("log", [XA, CLASSIC / "10.11" / "ddl-trx-xa"], ids=["ibb files", "traditional files"])
def test_tables_and_histories_are_those_that_a_snapshot_finds(tmp_path, kept, log) -> None:
    compared = 0
    for kind, find in (("current", arrow_snapshot), ("history", arrow_history)):
        tables = KeptTables(kept.kind, tmp_path / kind)
        for name, state in maintain(str(log), tables.target, kind=kind).tables.items():
            if state.is_exact:
                wanted = find(parse_options({"path": str(log), "table": name}))
                assert plain_rows(tables.read(name)) == plain_rows(wanted), name
                compared += 1
    assert compared > 6


GROWN = [*LOG, "CREATE TABLE u LIKE t", [inserted(of("u"), [1, 1]), updated(of(), ([1, 11], [1, 12]))]]


@pytest.mark.parametrize("before", [[], LOG], ids=["the first run", "a later run"])
def test_a_run_that_is_killed_at_any_step_is_taken_up_and_brings_each_change_once(
    run, kept, monkeypatch, tmp_path, before, pytestconfig
) -> None:
    """At each second step, from one of the seed on; --interop-all: at each."""
    first, step = (1, 1) if pytestconfig.getoption("--interop-all") else (random.randint(1, 2), 2)
    print(f"from step {first} on")
    if before:
        run(*before)
        shutil.copytree(kept.place, tmp_path / "saved")
    switch = KillSwitch(kept.place, kept.kind, monkeypatch)
    for wanted in itertools.count(first, step):
        if not switch.killed(wanted, lambda: run(*GROWN)):
            break
        what = switch.seen[-1]
        assert verdicts(run(*GROWN)) == {"d.t": "exact at 0-1-6", "d.u": "exact at 0-1-6"}, what
        assert kept.rows() == [(1, 12), (5, 20)], what
        assert kept.rows("d.u") == [(1, 1)], what
        kept.expect_commits(["written", *(["patched"] if before else [])])
        kept.expect_commits(["written"], "d.u")
        run(*GROWN, [deleted(of(), [1, 12])])
        assert kept.rows() == [(5, 20)], what
        assert not [path.name for path in kept.place.iterdir() if path.name.endswith(".new")]
        shutil.rmtree(kept.place)
        if before:
            shutil.copytree(tmp_path / "saved", kept.place)
    renamed = [f"os.rename {name}" for name in (LIST, HISTORY)]
    assert {*renamed, "after replace", *(["after merge"] if before else [])} <= set(switch.seen), switch.seen
    print(switch.seen)


@pytest.mark.parametrize("kind", ["current", "history", "changes"])
def test_a_killed_run_of_a_purged_log_takes_in_each_statement_once(run, kept, monkeypatch, tmp_path, kind) -> None:
    log, saved = tmp_path / "log", tmp_path / "saved"
    run(*LOG, kind=kind)
    with ibbmaster.open(log, writable=True) as opened:
        opened.flush()
        opened.append("0-1-5", ["ALTER TABLE d.t ADD c INT, ADD KEY (a)"])
        opened.append("0-1-6", inserted(of(c="int"), [7, 70, 700]))
        opened.append("0-1-7", ["ALTER TABLE d.t ADD e INT, DROP KEY a"])
        opened.append("0-1-8", ["CREATE TABLE d.u LIKE d.t"])
        opened.purge(to=opened.files[-1].name)
    shutil.copytree(kept.place, saved)
    switch = KillSwitch(kept.place, kept.kind, monkeypatch)
    go = functools.partial(maintain, str(log), kept.target, kind=kind)
    assert not switch.killed(0, go)
    last = {step: number for number, step in enumerate(switch.seen, 1)}
    for name in (LIST, HISTORY):  # between the two one is older than the other
        shutil.rmtree(kept.place)
        shutil.copytree(saved, kept.place)
        assert switch.killed(last[f"os.rename {name}"], go)
        assert verdicts(go()) == {"d.t": "exact at 0-1-8", "d.u": "exact at 0-1-8"}, name


def test_files_that_a_killed_run_has_left_are_removed_and_named(run, kept, target_class, monkeypatch) -> None:
    run(*LOG)
    orphan = kept.directory() / "part-00000-left-c000.snappy.parquet"

    def killed(self, *_):
        orphan.write_bytes(b"")
        raise KilledError

    monkeypatch.setattr(target_class, "merge", killed)
    with pytest.raises(KilledError):
        run(*GROWN)
    monkeypatch.undo()
    assert run(*GROWN).removed == [f"d.t/{orphan.name}"]
    assert not orphan.exists()
    assert kept.rows() == [(1, 12), (5, 20)]


def test_another_log_is_refused_and_nothing_is_written(run, kept, tmp_path) -> None:
    run(*LOG)
    before = (tmp_path / "lake" / LIST).read_text()
    with pytest.raises(PositionError, match="this binlog does not hold 0-1-4"):
        run(*LOG[:2])
    table_list = json.loads(before)
    table_list["marks"]["0"][1] += 1  # the last group of that log was written a second later
    (tmp_path / "lake" / LIST).write_text(json.dumps(table_list))
    with pytest.raises(PositionError, match="GTID 0-1-4 is another group in this log than in that of the last run"):
        run(*LOG)
    assert kept.rows() == sorted(ROWS.items())


REFUSED = {
    "no table": ({"only": ["d.x"]}, ConfigurationError, r"no table of .* matches d\.x: it has d\.t$"),
    "no pattern": ({"only": ["x"]}, ConfigurationError, "'x' is not a pattern"),
    "other dates": ({"zero_dates": "text"}, ConfigurationError, "made with --zero-dates null, not text"),
}


@pytest.mark.parametrize(("options", "kind", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_and_nothing_is_written(run, tmp_path, options, kind, text) -> None:
    run(*LOG[:2])
    before = sorted(path for path in (tmp_path / "lake").rglob("*"))
    with pytest.raises(kind, match=text):
        run(*LOG, **options)
    assert sorted(path for path in (tmp_path / "lake").rglob("*")) == before


def test_a_list_of_an_older_version_is_read_where_it_says_which_table_it_means(run, tmp_path) -> None:
    run(*LOG[:2])
    path = tmp_path / "lake" / LIST
    table_list = json.loads(path.read_text())
    table_list["tables"]["d.a,b"] = table_list["tables"]["d.t"]
    path.write_text(json.dumps(table_list))
    assert set(run(*LOG).tables) == {"d.t", "d.`a,b`"}
    table_list["tables"]["d.a.b"] = table_list["tables"]["d.t"]
    path.write_text(json.dumps(table_list))
    with pytest.raises(StoreError, match=r"an older version wrote it: 'd\.a\.b' is not .*: give an empty directory"):
        run(*LOG)


def test_a_target_that_holds_something_else_is_refused(run, tmp_path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "mine").touch()
    with pytest.raises(StoreError, match="holds mine, and no maintained tables"):
        run(*LOG)
    with pytest.raises(ConfigurationError, match="expected delta://PATH or iceberg://PATH"):
        maintain(str(tmp_path), "detla://x")


def test_one_job_writes_at_a_time(run, tmp_path) -> None:
    run(*LOG[:2])
    with only_writer(tmp_path / "lake"), pytest.raises(BusyError, match="another job writes here"):
        run(*LOG)


def test_a_list_that_is_none_is_refused(run, tmp_path) -> None:
    for text in ("{", "[]", '{"format": 1}', '{"format": 2}'):
        (tmp_path / "lake").mkdir(exist_ok=True)
        (tmp_path / "lake" / LIST).write_text(text)
        with pytest.raises(StoreError, match="this is no list of maintained tables"):
            run(*LOG)


def test_a_table_that_somebody_else_has_written_to_is_left_alone_and_said_so(run, kept) -> None:
    run(*LOG[:2])
    row = pa.table({"id": pa.array([8], pa.int32()), "a": pa.array([8], pa.int32())})
    if kept.kind == "delta":
        write_deltalake(kept.delta(), row, mode="append")
    else:
        with kept.iceberg() as table:
            table.append(row)
    done = run(*LOG)
    what = r"\(WRITE, version 1\)" if kept.kind == "delta" else r"\(snapshot \d+\)"
    assert re.search(f"another program has written to it {what}", done.tables["d.t"].verdict)
    assert kept.rows() == [(1, 10), (2, 20), (3, 30), (8, 8)]


def test_a_table_may_be_compacted_and_its_directory_removed(run, kept, tmp_path) -> None:
    run(*LOG[:2])
    run(*LOG[:3])
    kept.compact()
    assert run(*LOG).tables["d.t"].is_exact
    assert kept.rows() == sorted(ROWS.items())
    shutil.rmtree(tmp_path / "lake" / "d.t")
    assert run(*LOG).tables["d.t"].is_exact
    assert kept.rows() == sorted(ROWS.items())


@pytest.mark.parametrize("kind", ["current", "history"])
def test_processes_that_are_killed_at_any_time_leave_each_change_once(request, tmp_path, kept, kind) -> None:
    steps: list[Item] = [CREATED]
    program = Path(sysconfig.get_path("scripts")) / "ibbmaster"
    command = [str(program), "lake", "maintain", str(tmp_path / "log"), "--to", kept.target]
    killed = 0
    for number in range(request.config.getoption("--maintain-kills")):
        steps += [[inserted(of(), [2 * number, 0], [2 * number + 1, 0])], [updated(of(), ([number, 0], [number, 1]))]]
        shutil.rmtree(tmp_path / "log", ignore_errors=True)
        write_log(tmp_path / "log", *steps)
        with subprocess.Popen([*command, "--as", kind], stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=random.uniform(0.3, 3))
            except subprocess.TimeoutExpired:
                process.kill()
                killed += 1
    print(f"{killed} killed")
    maintain(str(tmp_path / "log"), kept.target, kind=kind)
    count = request.config.getoption("--maintain-kills")
    found = [row for row in kept.read().to_pylist() if row.get("_is_current", True)]
    assert sorted((row["id"], row["a"]) for row in found) == [(one, int(one < count)) for one in range(2 * count)]
    if kind == "history":
        assert len(kept.read()) == 3 * count


def test_a_table_without_changes_in_a_log_with_transactions_in_two_phases_is_empty(tmp_path, kept) -> None:
    shutil.copytree(XA, tmp_path / "log")
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.append("0-1-94", ["CREATE TABLE shop.empty (id INT PRIMARY KEY)"])
    for kind in ("current", "changes", "history"):
        tables = KeptTables(kept.kind, tmp_path / kind)
        done = maintain(str(tmp_path / "log"), tables.target, kind=kind, only=["shop.empty"])
        assert verdicts(done) == {"shop.empty": "exact at 0-1-94"}
        assert len(tables.read("shop.empty")) == 0


FAULTS = {
    "of the target": StoreError("the disk is gone"),
    "of the system": OSError(5, "Input/output error", "x"),
    "not foreseen": ValueError("this was\nnot foreseen"),
}


@pytest.mark.parametrize("where", ["reading", "reading on", "writing"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_error_of_one_table_is_its_verdict_and_others_are_brought(
    run, kept, target_class, monkeypatch, fault, where
) -> None:
    write, read = target_class.replace, maintained_rows.folded_batches

    def replaced(self, *args) -> None:
        if self._directory.name == "d.b":
            raise fault
        write(self, *args)

    def folded(*args):
        if where == "reading on":
            yield from itertools.islice(read(*args), 1)
        raise fault

    if where == "writing":
        monkeypatch.setattr(target_class, "replace", replaced)
    else:  # a table without a key is folded row by row
        monkeypatch.setattr(maintained_rows, "folded_batches", folded)
    both: list[Item] = ["CREATE TABLE b (id INT, a INT)", [inserted(of("b"), [1, 1])], *LOG]
    done = run(*both)
    text = " ".join(str(fault).split())
    assert done.tables["d.b"].because == (f"ValueError: {text}" if isinstance(fault, ValueError) else text)
    assert done.written == ["d.t"]
    assert verdicts(done)["d.t"] == "exact at 0-1-6"
    assert not list(kept.directory("d.b").rglob("*.parquet"))
    monkeypatch.undo()
    assert verdicts(run(*both)) == {"d.b": "exact at 0-1-6", "d.t": "exact at 0-1-6"}
    assert kept.rows("d.b") == [(1, 1)]


def test_a_value_that_cannot_be_read_costs_its_table_and_no_other(tmp_path: Path, kept: KeptTables) -> None:
    created = "CREATE TABLE {} (id INT PRIMARY KEY, a INT, c VARCHAR(9)) CHARACTER SET utf8mb4"
    rows = inserted(of("bad", c="varchar(9)"), [1, 10, "ok"], [2, 20, "zz"])
    log = write_log(
        tmp_path / "log",
        *(created.format(name) for name in ("bad", "good")),
        [[event.replace(b"zz", b"\xff\xfe") for event in rows]],
        [inserted(of("good", c="varchar(9)"), [1, 10, "ok"])],
    )

    done = maintain(str(log), kept.target)

    assert "d.bad column c of type VARCHAR" in done.tables["d.bad"].because
    assert kept.rows("d.good") == [(1, 10, "ok")]
    assert done.tables["d.good"].because == ""
    assert not list(kept.directory("d.bad").rglob("*.parquet"))


def test_a_value_that_cannot_be_read_is_the_reason_also_where_the_log_was_purged(tmp_path, kept) -> None:
    created = "CREATE TABLE t (id INT PRIMARY KEY, a INT, c VARCHAR(9)) CHARACTER SET utf8mb4"
    log = write_log(tmp_path / "log", created, [inserted(of(c="varchar(9)"), [1, 10, "ok"])])
    maintain(str(log), kept.target)
    with ibbmaster.open(log, writable=True) as opened:
        opened.flush()
        rows = inserted(of(c="varchar(9)"), [2, 20, "zz"])
        opened.append("0-1-90", [event.replace(b"zz", b"\xff\xfe") for event in rows])
        opened.purge(to=opened.files[-1].name)
    assert "d.t column c of type VARCHAR" in maintain(str(log), kept.target).tables["d.t"].because
    assert kept.rows() == [(1, 10, "ok")]
