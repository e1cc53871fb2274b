"""Jobs over whole archives: faults, exports, tables as the log leaves them, counts, changes of a row."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from lanes.replay import CLASSIC, as_sql, expected_tables, readable_captures
from pyarrow import parquet

from ibbmaster.arrow.plan import find_shape
from ibbmaster.cli.main import main
from ibbmaster.disk.object_store import client_of
from ibbmaster.disk.place import place as named_place
from ibbmaster.errors import InexactError
from ibbmaster.fold.contents import LIKE_A_REPLACE
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.lake.delta import APPLICATION
from ibbmaster.lake.export_files import RUN_MARK, run_and_attempt
from ibbmaster.lake.exporting import RUNS, STAGING
from ibbmaster.lake.placing import only_writer
from ibbmaster.lake.snapshots import snapshot
from ibbmaster.lake.spreading import spread
from ibbmaster.spark.options import parse_options


@pytest.fixture
def lake(spark, monkeypatch, capsys):
    """Runs `ibbmaster lake` with the session of all tests; gives exit code, output and errors."""

    class Shared:
        def __getattr__(self, name):
            return getattr(spark, name)

        def stop(self):
            pass

    monkeypatch.setattr("ibbmaster.lake.session.open_session", lambda master, **options: Shared())

    def run(job, *arguments):
        engine = ["--engine", "spark"] if job == "snapshot" and "--engine" not in arguments else []
        code = main(["lake", job, *engine, *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def copy_of(directory, tmp_path):
    target = tmp_path / "copy"
    target.mkdir()
    for path in directory.glob("*.ibb"):
        (target / path.name).write_bytes(path.read_bytes())
    return target


def flip(path: Path, place: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bit]))


def test_an_export_holds_every_change_and_a_later_one_adds_what_is_new(spark, lake, grow, tmp_path):
    target = tmp_path / "parquet"
    for count in (3, 3, 9):
        directory = grow(count)
        code, out, _ = lake("export", directory, "--to", target, "--json")
        assert code == 0
    assert json.loads(out)["from"]
    reader = spark.read.format("ibb")
    groups = spark.read.parquet(str(target / "_groups")).drop("_date")
    names = groups.columns
    assert sorted(groups.collect()) == sorted(
        reader.option("granularity", "groups").load(str(directory)).select(names).collect()
    )
    assert len(groups.collect()) == 155
    for path in target.glob("dom_*"):
        exported = spark.read.parquet(str(path)).drop("_date")
        own = spark.read.format("ibb").option("table", path.name).load(str(directory)).select(exported.columns)
        assert sorted(map(str, exported.collect())) == sorted(map(str, own.collect()))
    assert len(json.loads((target / RUNS).read_text())) == 2  # nothing was new the second time


def test_what_a_killed_export_has_left_does_not_count(spark, lake, fixtures, tmp_path):
    target = tmp_path / "parquet"
    assert lake("export", fixtures / "ibb/domains", "--to", target, "--table", "dom_7.t")[0] == 0
    whole = spark.read.parquet(str(target / "dom_7.t")).count()
    placed = next((target / "dom_7.t").rglob("*.parquet"))
    left = placed.with_name(f"{RUN_MARK}0123456789ab-00001.parquet")
    os.link(placed, left)
    (target / STAGING).mkdir()
    (target / STAGING / "half").write_text("x")
    assert lake("export", fixtures / "ibb/domains", "--to", target)[0] == 0
    assert not left.exists()
    assert not (target / STAGING).exists()
    assert spark.read.parquet(str(target / "dom_7.t")).count() == whole


def test_what_an_attempt_has_left_that_does_not_count_is_removed(lake, fixtures, tmp_path):
    """As a task has it that Spark has run twice: its file has the number of a run that counts."""
    target = tmp_path / "parquet"
    assert lake("export", fixtures / "ibb/domains", "--to", target)[0] == 0
    placed = next((target / "dom_7.t").rglob("*.parquet"))
    run, attempt = run_and_attempt(placed.name)
    left = placed.with_name(f"{RUN_MARK}{run}-{attempt[::-1]}x-00000.parquet")
    os.link(placed, left)
    assert lake("export", fixtures / "ibb/domains", "--to", target)[0] == 0
    assert not left.exists()
    assert placed.exists()


def test_what_an_attempt_has_left_is_no_table_while_its_run_goes_on(lake, fixtures, monkeypatch, tmp_path):
    """As Spark has run each task twice, and has taken one result of it."""

    def spread_twice(session, write, bundles):
        for bundle in bundles:
            write(bundle)
        return spread(session, write, bundles)

    said = lake("export", fixtures / "ibb/domains", "--to", tmp_path / "once", "--json")
    assert said[0] == 0
    monkeypatch.setattr("ibbmaster.lake.exporting.spread", spread_twice)
    assert lake("export", fixtures / "ibb/domains", "--to", tmp_path / "twice", "--json") == said
    assert len(list((tmp_path / "twice").rglob("*"))) == len(list((tmp_path / "once").rglob("*")))


def test_an_export_in_an_object_store_is_that_of_a_directory(lake, grow, object_store, tmp_path):
    url, directory = object_store.new_place(), tmp_path / "tables"
    store = client_of(url)
    left = f"dom_7.t/_date=2026-01-01/{RUN_MARK}0123456789ab-0123456789ab-00000.parquet"
    for count in (3, 9, 9):
        log = grow(count)
        said = [lake("export", log, "--to", place, "--json") for place in (url, directory)]
        assert said[0] == said[1]
        assert said[0][0] == 0
        assert left not in {one.name for one in store.walk()}
        store.create(left, b"of a run that was killed")
    with only_writer(named_place(url)):
        code, _, err = lake("export", log, "--to", url)
        assert (code, err.count("\n")) == (2, 1)
        assert f"{url}: another job writes here" in err
    runs = [json.loads((place / RUNS).read_text()) for place in (named_place(url), directory)]
    assert [(run["gtid"], run["groups"], run["rows"]) for run in runs[0]] == [
        (run["gtid"], run["groups"], run["rows"]) for run in runs[1]
    ]
    script = """if True:
        import sys, deltalake
        from ibbmaster.disk.place import place as named_place
        from ibbmaster.lake.exporting import publish_runs, read_runs
        place = named_place(sys.argv[1])
        publish_runs(place, read_runs(place))
        options = {"allow_http": "true"} if "://" in sys.argv[1] else None
        for name in sorted(path.name for path in place.iterdir() if not path.name.startswith("_ibbmaster")):
            table = deltalake.DeltaTable(f"{place}/{name}", storage_options=options)
            rows = table.to_pyarrow_dataset().to_table(use_threads=False).to_pylist()
            print(name, table.version(), len(rows), sorted(map(str, rows)))
    """  # in a process of its own, as delta-rs holds up all threads of one
    found = [subprocess.check_output([sys.executable, "-c", script, str(one)], text=True) for one in (url, directory)]
    assert found[0] == found[1]
    assert "\ndom_7.t " in found[0]
    assert found[0].startswith("_groups 2 155 ")


def test_an_export_can_be_delta_tables_also_after_runs_that_were_not(spark, lake, grow, tmp_path):
    target = tmp_path / "delta"
    for count, form in ((2, "parquet"), (3, "delta"), (5, "parquet"), (9, "delta"), (9, "delta")):
        assert lake("export", grow(count), "--to", target, "--format", form)[0] == 0
    runs = json.loads((target / RUNS).read_text())
    for path in sorted(target.iterdir()):
        if path.name.startswith("_ibbmaster"):
            continue
        table = DeltaTable(str(path))
        columns = sorted(set(table.schema().to_arrow().names) - {"_date"})
        found = [without_zones(row) for row in table.to_pyarrow_table(columns=columns).to_pylist()]
        written = spark.read.parquet(str(path)).select(columns).collect()
        assert sorted(map(repr, found)) == sorted(repr(row.asDict()) for row in written)
        assert table.transaction_version(APPLICATION) == len(runs)
    assert len(DeltaTable(str(target / "_groups")).to_pyarrow_table()) == 155


def without_zones(row):
    """Spark gives moments without a zone."""
    return {
        name: value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
        for name, value in row.items()
    }


def test_a_run_that_never_reached_the_delta_log_is_there_after_the_next_one(lake, fixtures, tmp_path):
    target = tmp_path / "delta"
    assert lake("export", fixtures / "ibb/domains", "--to", target, "--format", "delta")[0] == 0
    count = len(DeltaTable(str(target / "dom_7.t")).to_pyarrow_table())
    shutil.rmtree(target / "dom_7.t/_delta_log")
    assert lake("export", fixtures / "ibb/domains", "--to", target, "--format", "delta")[0] == 0
    assert len(DeltaTable(str(target / "dom_7.t")).to_pyarrow_table()) == count > 0


def test_an_export_that_keeps_going_lists_what_it_has_passed_over(spark, lake, grow, fixtures, tmp_path):
    target, copy = tmp_path / "parquet", tmp_path / "copy"
    for count in (3, 9):
        directory = grow(count)
        copy.mkdir(exist_ok=True)
        for path in directory.glob("*.ibb"):
            (copy / path.name).write_bytes(path.read_bytes())
        flip(copy / "binlog-000000.ibb", 2 * PAGE_SIZE + 500, 4)
        assert lake("export", copy, "--to", tmp_path / "strict")[0] == 2
        code, out, err = lake("export", copy, "--to", target, "--keep-going", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["faults"] == 1
    (fault,) = spark.read.parquet(str(target / "_faults")).collect()
    assert (fault.file_no, fault.offset // PAGE_SIZE) == (0, 2)
    kept = {row._gtid for row in spark.read.parquet(str(target / "_groups")).select("_gtid").collect()}
    whole = spark.read.format("ibb").option("granularity", "groups").load(str(directory)).collect()
    lost = [row for row in whole if row._gtid not in kept]
    assert len(kept) + len(lost) == 155
    assert all(row._file_no == 0 and row._offset < 3 * PAGE_SIZE and row.end_offset > 2 * PAGE_SIZE for row in lost)


def test_a_snapshot_replaces_only_what_an_earlier_one_has_written(spark, lake, fixtures, tmp_path):
    target, log = tmp_path / "parent", fixtures / "ibb/xa-and-ddl"
    assert lake("snapshot", log, "shop.parent", "--at", "0-1-20", "--to", target)[0] == 0
    before = spark.read.parquet(str(target)).count()
    assert lake("snapshot", log, "shop.parent", "--to", target)[0] == 0
    assert spark.read.parquet(str(target)).count() != before
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]
    (target / "mine.txt").write_text("x")
    code, _, err = lake("snapshot", log, "shop.parent", "--to", target)
    assert (code, "holds mine.txt, and no table written before" in err) == (2, True)
    assert (target / "mine.txt").exists()


def test_what_a_killed_snapshot_has_left_is_in_nobodys_way(spark, lake, fixtures, tmp_path):
    target, log = tmp_path / "parent", fixtures / "ibb/xa-and-ddl"
    assert lake("snapshot", log, "shop.parent", "--to", target)[0] == 0
    whole = spark.read.parquet(str(target)).count()
    (tmp_path / ".parent.new").mkdir()
    (tmp_path / ".parent.new/half.parquet").write_text("x")
    target.rename(tmp_path / ".parent.old")  # between its two renames
    assert lake("snapshot", log, "shop.parent", "--to", target)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]
    assert spark.read.parquet(str(target)).count() == whole


def test_a_directory_with_something_else_is_left_alone(lake, fixtures, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    code, _, err = lake("export", fixtures / "ibb/domains", "--to", tmp_path)
    assert (code, [path.name for path in tmp_path.iterdir()]) == (2, ["mine.txt"])
    assert "holds mine.txt, and no export" in err


def contents(place):
    return sorted((path, path.read_bytes()) for path in place.rglob("*") if path.is_file())


def test_an_export_of_another_log_or_without_its_table_writes_nothing(lake, fixtures, tmp_path):
    target, log = tmp_path / "tables", fixtures / "ibb/xa-and-ddl"
    assert lake("export", log, "--to", target, "--table", "shop.parent")[0] == 0
    other = ["export", fixtures / "ibb/domains", "--to", target]
    missing = ["export", log, "--to", target, "--table", "shop.none"]
    as_delta = ["--format", "delta"]  # what is there would become so first
    before = contents(target)
    for arguments, problem in (
        ([*other, *as_delta], r"position \[0-1-93\]: this binlog does not hold 0-1-93"),
        ([*missing, *as_delta], "no group in .* changes rows of table shop.none"),
    ):
        code, out, err = lake(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert re.search(problem, err)
        assert contents(target) == before
    runs = json.loads((target / RUNS).read_text())
    runs[0]["marks"]["0"][1] += 1  # a log whose last group of that GTID was written a second later
    (target / RUNS).write_text(json.dumps(runs))
    before = contents(target)
    code, out, err = lake("export", log, "--to", target, *as_delta)
    assert (code, out) == (2, "")
    assert err == "ibbmaster: GTID 0-1-93 is another group in this log than in that of the last run\n"
    assert contents(target) == before


REFUSED = {  # tables whose rows the log does not tell, and why
    "shop.parts": "DROP PARTITION changes or removes rows",
}
UNTOLD = "11.8/types-minimal-none"  # no annotations tell a REPLACE from an INSERT … ON DUPLICATE KEY UPDATE
HIDDEN = ("row_start", "row_end")  # of a table with system versioning, which SELECT * leaves out
WITHOUT_KEY = ("types.no_pk", "gc.my")
OTHER_IMAGES = ("11.8/types-full_nodup", "11.8/types-minimal-none", "11.8/types-noblob-compressed")
"""Of the same tables, whose rows are logged in other ways: each table is read in one of them."""


@pytest.mark.parametrize("capture", [name for name in readable_captures() if "/statement" not in name])
def test_snapshots_are_the_tables_that_the_server_had(spark, imported, capture, tmp_path, request):
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
        if name in WITHOUT_KEY or name not in declared:
            continue  # or it was created as a copy, by another name, or is a sequence
        if not takes_all and capture in OTHER_IMAGES and OTHER_IMAGES[number % len(OTHER_IMAGES)] != capture:
            continue
        options = parse_options({"path": str(directory), "table": name, "schema": str(schema)})
        found = find_shape(options, name).schema
        columns = [column.name for column in found.columns]
        key = [found.columns[number].name for number in found.primary_key] or columns[:1]
        try:
            frame = snapshot(spark, str(directory), name, key=key, schema=str(schema), zero_dates="text")
        except InexactError as refused:
            is_untold = capture == UNTOLD and LIKE_A_REPLACE in str(refused)
            if not is_untold and REFUSED.get(name, "nothing") not in str(refused):
                raise
            continue
        rows = sorted(
            tuple(
                as_sql(column, plain(value))
                for column, value in zip(found.columns, row, strict=True)
                if column.name not in HIDDEN
            )
            for row in frame.collect()
        )
        text = "\n".join(map(repr, rows))
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == expected["content"], name
        checked += 1
    assert checked


def declarations_of(capture):
    """The tables that have names for their columns, with what CREATE TABLE says of them."""
    from lanes.replay import created_table, raw_events

    from ibbmaster.event.types import EventType
    from ibbmaster.log.group_content import table_name

    declared, changed = {}, set()
    for event in raw_events(CLASSIC / capture):
        if (created := created_table(event)) is not None:
            declared[created[0]] = created[1]
        elif event[4] == EventType.TABLE_MAP:
            changed.add(str(table_name(event)))
    return {name: columns for name, columns in declared.items() if name in changed}


def plain(value):
    """A value as the row decoder gives it."""
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(value) if isinstance(value, list) else value


def test_history_tells_when_each_version_held(spark, tmp_path):
    changes = [
        ("0-1-1", "insert", 0, 1, "a", 100),
        ("0-1-1", "insert", 1, 2, "b", 100),
        ("0-1-2", "update_preimage", 0, 1, "a", 200),
        ("0-1-2", "update_postimage", 1, 1, "c", 200),
        ("0-1-3", "update_preimage", 0, 2, "b", 300),
        ("0-1-3", "update_postimage", 1, 5, "b", 300),
        ("0-1-4", "delete", 0, 1, "c", 400),
    ]
    frame = spark.createDataFrame(
        changes, "_gtid string, _change_type string, _change_no bigint, id int, word string, at bigint"
    ).selectExpr("_gtid", "_change_type", "_change_no", "timestamp_seconds(at) AS _commit_ts", "id", "word")
    log = str(tmp_path / "log")
    frame.write.format("ibb").mode("append").option("table", "db.t").option("primaryKey", "id").save(log)
    accepted = {"on_doubt": lambda text: None}  # the log has no CREATE TABLE
    history = snapshot(spark, log, "db.t", with_history=True, **accepted)
    rows = history.selectExpr(
        "id",
        "word",
        "unix_timestamp(_valid_from)",
        "unix_timestamp(_valid_to)",
        "_gtid_from",
        "_gtid_to",
        "_is_current",
    )
    assert sorted(map(tuple, rows.collect())) == [
        (1, "a", 100, 200, "0-1-1", "0-1-2", False),
        (1, "c", 200, 400, "0-1-2", "0-1-4", False),
        (2, "b", 100, 300, "0-1-1", "0-1-3", False),
        (5, "b", 300, None, "0-1-3", None, True),
    ]
    assert sorted(map(tuple, snapshot(spark, log, "db.t", **accepted).collect())) == [(5, "b")]
    assert sorted(map(tuple, snapshot(spark, log, "db.t", at="0-1-2", **accepted).collect())) == [(1, "c"), (2, "b")]


def test_the_changes_of_a_row_are_found(lake, fixtures):
    code, out, _ = lake("find", fixtures / "ibb/xa-and-ddl", "shop.parent", "id=3", "--json")
    assert code == 0
    assert [(row["_gtid"], row["_change_type"]) for row in json.loads(out)] == [
        ("0-1-11", "insert"),
        ("0-1-23", "update_preimage"),
        ("0-1-23", "update_postimage"),
        ("0-1-34", "delete"),
    ]
    assert lake("find", fixtures / "ibb/xa-and-ddl", "shop.parent", "id=99999")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["find", "{log}", "shop.none", "id=1"], "no group in .* changes rows of table shop.none"),
        (["find", "{log}", "shop.parent", "nope=1"], "shop.parent has no column nope"),
        (["find", "{log}", "shop.parent", "nope"], "'nope' is not NAME=VALUE"),
        (["find", "{log}", "shop.parent", "id=x"], "id"),
        (["snapshot", "{log}", "shop.parent", "--key", "nope"], "no column nope"),
        (["snapshot", "{log}", "shop.parent", "--at", "0-1-99999"], "0-1-99999"),
        (["export", "{log}", "--to", "/dev/null/x"], "^ibbmaster: /dev/null/x: cannot be made: /dev/null is not"),
        (["export", "{log}", "--to", "/dev/null"], "^ibbmaster: /dev/null: this is not a directory$"),
        (
            ["export", "{log}", "--to", "{new}", "--table", "shop.none"],
            "no group in .* changes rows of table shop.none",
        ),
        (["snapshot", "{log}", "shop.parent", "--to", "/dev/null/x"], "^ibbmaster: /dev/null/x: cannot be made"),
        (["snapshot", "{log}", "shop.none", "--to", "{new}"], "no group in .* changes rows of table shop.none"),
    ],
)
def test_what_cannot_be_done_is_one_line(lake, fixtures, tmp_path, arguments, problem):
    places = {"{log}": fixtures / "ibb/xa-and-ddl", "{new}": tmp_path / "new"}
    code, out, err = lake(*(places.get(argument, argument) for argument in arguments))
    assert code == 2
    assert re.search(problem, err), err
    assert len(err.splitlines()) == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


ASKED = {
    "snapshot": ["snapshot", "{log}", "shop.parent", "--json"],
    "history": ["snapshot", "{log}", "shop.parent", "--history", "--json"],
    "position": ["snapshot", "{log}", "shop.parent", "--at", "0-1-20", "--json"],
    "text": ["snapshot", "{log}", "shop.parent"],
    "no table": ["snapshot", "{log}", "shop.none"],
    "no position": ["snapshot", "{log}", "shop.parent", "--at", "0-1-99999"],
    "no key": ["snapshot", "{log}", "shop.parent", "--key", "nope"],
}


@pytest.mark.parametrize("arguments", ASKED.values(), ids=ASKED)
def test_both_engines_say_the_same(lake, fixtures, arguments):
    arguments = [fixtures / "ibb/xa-and-ddl" if one == "{log}" else one for one in arguments]
    of_spark, of_arrow = (lake(*arguments, "--engine", engine) for engine in ("spark", "arrow"))
    assert (of_arrow[0], of_arrow[2]) == (of_spark[0], of_spark[2])
    assert sorted(of_arrow[1].splitlines()) == sorted(of_spark[1].splitlines())


def run_alone(capsys, *arguments):
    code = main(["lake", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_small_log_is_read_without_spark_and_that_is_said(fixtures, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ibbmaster.lake.session.open_session", None)  # it would fail
    log, target = fixtures / "ibb/xa-and-ddl", tmp_path / "parent"
    said = r"ibbmaster: engine arrow, for 0\.\d MB of log\n"
    code, out, err = run_alone(capsys, "snapshot", log, "shop.parent", "--to", target)
    assert (code, out) == (0, "shop.parent: 18 rows\n")
    assert re.fullmatch(said, err)
    assert parquet.read_table(target).num_rows == 18
    assert run_alone(capsys, "snapshot", log, "shop.parent", "--to", target, "--engine", "arrow")[2] == ""
    (target / "mine.txt").write_text("x")
    code, _, err = run_alone(capsys, "snapshot", log, "shop.parent", "--to", target)
    assert (code, "holds mine.txt, and no table written before" in err, err.count("\n")) == (2, True, 1)
    monkeypatch.setattr("ibbmaster.cli.lake_engine.ARROW_BYTES_MAX", 0)
    with pytest.raises(TypeError):  # that session
        run_alone(capsys, "snapshot", log, "shop.parent")


DAMAGE = r"ibbmaster: binlog-000001\.ibb page 3 offset 0: page checksum is [0-9a-f]{8}, its bytes give [0-9a-f]{8}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "{log}", "--to", "{new}"],
        ["snapshot", "{log}", "types.no_pk", "--key", "a", "--to", "{new}"],
        ["find", "{log}", "types.no_pk", "a=1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_damage_that_a_worker_finds_is_one_line(lake, fixtures, tmp_path, arguments):
    copy = copy_of(fixtures / "ibb/types", tmp_path)
    flip(copy / "binlog-000001.ibb", 3 * PAGE_SIZE + 5000, 4)
    places = {"{log}": copy, "{new}": tmp_path / "new"}
    code, out, err = lake(*(places.get(argument, argument) for argument in arguments))
    assert re.fullmatch(DAMAGE, err), err
    assert (code, out) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


@pytest.mark.usefixtures("java")
def test_a_failed_job_says_one_line_and_spark_says_nothing(fixtures, tmp_path):
    copy = copy_of(fixtures / "ibb/types", tmp_path)
    flip(copy / "binlog-000001.ibb", 3 * PAGE_SIZE + 5000, 4)
    command = [sys.executable, "-m", "ibbmaster", "lake", "export", copy, "--to", tmp_path / "new"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.splitlines(keepends=True)
    assert re.fullmatch(DAMAGE, said[-1]), done.stderr
    assert all(line.startswith("WARNING: ") for line in said[:-1]), done.stderr  # Java does, of its modules
    assert (done.returncode, done.stdout) == (2, "")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 150 kB."""
    directory = tmp_path / "small"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", directory]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)  # Spark leaves files open whose writing failed


def test_a_full_disk_is_one_line_and_nothing_is_left_on_it(lake, fixtures, small_disk):
    log, target = fixtures / "ibb/types", small_disk / "new"
    assert lake("export", log, "--to", target, "--zero-dates", "text") == (
        2,
        "",
        f"ibbmaster: {target}: No space left on device\n",
    )
    assert list(small_disk.iterdir()) == []
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
    code, out, err = lake("snapshot", fixtures / "ibb/xa-and-ddl", "shop.parent", "--to", target)
    assert (code, out, err) == (2, "", f"ibbmaster: {target}: No space left on device\n")
    assert list(small_disk.iterdir()) == [filler]


def test_a_disk_that_is_read_only_is_named(lake, fixtures, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    log = fixtures / "ibb/xa-and-ddl"
    for target in (small_disk / "new", small_disk):
        code, out, err = lake("export", log, "--to", target)
        assert (code, out) == (2, "")
        assert re.fullmatch(f"ibbmaster: {target}.*: cannot be written: Read-only file system\n", err), err
    code, out, err = lake("snapshot", log, "shop.parent", "--to", small_disk / "new")
    assert (code, out, err) == (2, "", f"ibbmaster: {small_disk / 'new'}: cannot be written: Read-only file system\n")


@pytest.mark.parametrize(
    ("job", "held", "half"),
    [(["export"], "tables", STAGING), (["snapshot", "shop.parent"], ".tables.new", "table")],
    ids=["export", "snapshot"],
)
def test_a_second_job_in_the_same_place_stops_and_disturbs_nothing(
    lake, fixtures, monkeypatch, tmp_path, job, held, half
):
    target = tmp_path / "tables"
    arguments = [job[0], fixtures / "ibb/xa-and-ddl", *job[1:], "--to", target]
    refusal = f"ibbmaster: {target}: another job writes here: wait until it has ended, or give another directory\n"
    with only_writer(tmp_path / held):  # as the first job has it
        (tmp_path / held / half).mkdir()
        (tmp_path / held / half / "file").touch()
        with monkeypatch.context() as patch:
            patch.setattr("ibbmaster.lake.session.open_session", None)  # it stops before Spark starts
            assert lake(*arguments) == (2, "", refusal)
        with monkeypatch.context() as patch:
            patch.setattr("ibbmaster.lake.placing.check_free", lambda place: None)  # the first came after that
            assert lake(*arguments) == (2, "", refusal)
        assert [path.name for path in tmp_path.rglob("*")] == [held, half, "file"]
    shutil.rmtree(tmp_path / held)
    assert lake(*arguments)[0] == 0
