"""What Iceberg tables have besides: catalogs of others, columns by their numbers, files that stay as they are."""

import datetime
import random
import re
import shutil
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ibbmaster
from ibbmaster.errors import BusyError, ConfigurationError
from ibbmaster.lake.maintain import iceberg
from ibbmaster.lake.maintain.iceberg import NONE, IcebergLake, as_changed, as_ended, numbers_of
from ibbmaster.lake.maintain.job import Maintained, maintain
from ibbmaster.lake.placing import only_writer
from ibbmaster.lake.row_versions import DELETED, PATCHED, WHOLE, LastChanges
from ibbmaster.replication.event.rows.encoding import WrittenTable
from ibbmaster.storage.disk.object_store import client_of
from ibbmaster.storage.disk.place import place
from tests.kept_tables import KeptTables
from tests.kill_switch import KilledError
from tests.lake.maintain.test_job import CREATED, LOG, ROWS, named, of, verdicts
from tests.written_log import Item, deleted, inserted, updated, write_log

pytest.importorskip("pyiceberg")


@pytest.fixture
def kept(tmp_path: Path) -> KeptTables:
    return KeptTables("iceberg", tmp_path / "lake")


@pytest.fixture
def run(tmp_path: Path, kept):
    def go(*items: Item, **options) -> Maintained:
        shutil.rmtree(tmp_path / "log", ignore_errors=True)
        write_log(tmp_path / "log", *items)
        return maintain(str(tmp_path / "log"), kept.target, **options)

    return go


def configured(monkeypatch, tmp_path, warehouse: str, **more: str):
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/ours.db", "WAREHOUSE": warehouse, **more}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__OURS__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # which it reads once
    return load_catalog


def test_a_catalog_of_the_configuration_gets_the_tables(run, kept, tmp_path, monkeypatch) -> None:
    load_catalog = configured(monkeypatch, tmp_path, f"file://{tmp_path}/warehouse")
    for end in (2, len(LOG)):
        assert verdicts(run(*LOG[:end], catalog="ours")) == {"d.t": f"exact at 0-1-{end}"}
    with closing(load_catalog("ours")) as catalog:
        assert {row["id"]: row["a"] for row in catalog.load_table(("d", "t")).scan().to_arrow().to_pylist()} == ROWS
        catalog.create_table(("d", "u"), catalog.load_table(("d", "t")).schema(), f"file://{tmp_path}/u")
    assert sorted(path.name for path in kept.place.iterdir()) == ["_ibbmaster-maintain.json", "_ibbmaster-schema.cache"]
    done = run(*LOG, "CREATE TABLE u LIKE t", catalog="ours")
    assert done.tables["d.u"].because == "d.u: this Iceberg table was not made by `lake maintain`"
    assert done.tables["d.t"].is_exact
    with pytest.raises(ConfigurationError, match="made with --to iceberg in catalog ours, not iceberg"):
        run(*LOG)


def test_a_catalog_whose_warehouse_is_in_an_object_store_has_the_tables_there(
    run, tmp_path, object_store, monkeypatch
) -> None:
    url = object_store.new_place()
    of_store = {"ENDPOINT": object_store.endpoint, "ACCESS_KEY_ID": "tests", "SECRET_ACCESS_KEY": "tests"}
    of_store = {f"S3__{name}": value for name, value in {**of_store, "REGION": "us-east-1"}.items()}
    load_catalog = configured(monkeypatch, tmp_path, f"{url}/warehouse", **of_store)
    target = f"iceberg://{url}/list"
    for end in (2, len(LOG)):
        shutil.rmtree(tmp_path / "log", ignore_errors=True)
        write_log(tmp_path / "log", *LOG[:end])
        assert verdicts(maintain(str(tmp_path / "log"), target, catalog="ours")) == {"d.t": f"exact at 0-1-{end}"}
    with closing(load_catalog("ours")) as catalog:
        table = catalog.load_table(("d", "t"))
        assert {row["id"]: row["a"] for row in table.scan().to_arrow().to_pylist()} == ROWS
        assert len(table.snapshots()) == 2
    assert sorted(client_of(url).list()[1]) == ["list", "warehouse"]
    closed = []
    close = IcebergLake.close
    monkeypatch.setattr(IcebergLake, "close", lambda lake: closed.append(close(lake)))
    with only_writer(place(f"{url}/list")), pytest.raises(BusyError, match="another job writes here"):
        maintain(str(tmp_path / "log"), target, catalog="ours")
    assert closed
    with pytest.raises(ConfigurationError, match=rf"^--to: {url}/list: a catalog of its own is a database"):
        maintain(str(tmp_path / "log"), target)


def test_a_catalog_that_is_not_configured_and_a_target_of_another_kind_are_refused(run, kept, tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="the configuration of PyIceberg has no catalog 'thiers'"):
        run(*LOG, catalog="thiers")
    run(*LOG)
    with pytest.raises(ConfigurationError, match="made with --to iceberg, not delta"):
        maintain(str(tmp_path / "log"), f"delta://{kept.place}")
    with pytest.raises(ConfigurationError, match="--catalog is for iceberg:// alone"):
        maintain(str(tmp_path / "log"), f"delta://{tmp_path / 'other'}", catalog="ours")
    with pytest.raises(ConfigurationError, match=r"no # or \? may be in their path"):
        maintain(str(tmp_path / "log"), f"iceberg://{tmp_path}/a#b")


def test_names_of_tables_and_columns_may_have_any_letters(run, kept) -> None:
    columns = {"a.b": "int", "ü `": "varchar(9)", "id": "int"}
    table = of("t,1 ü")
    run("CREATE TABLE `t,1 ü` (id INT PRIMARY KEY, a INT)", [inserted(table, [1, 1])])
    done = run(
        "CREATE TABLE `t,1 ü` (id INT PRIMARY KEY, a INT)",
        [inserted(table, [1, 1])],
        "ALTER TABLE `t,1 ü` RENAME COLUMN a TO `a.b`, ADD `ü ``` VARCHAR(9)",
    )
    assert verdicts(done) == {"d.`t,1 ü`": "exact at 0-1-3"}
    assert kept.read("d.t,1 ü").to_pylist() == [{"id": 1, "a.b": 1, "ü `": None}]
    assert set(columns) == set(kept.read("d.t,1 ü").column_names)


PURGED: dict[str, tuple[str, WrittenTable, list[tuple]]] = {
    "renamed": ("RENAME COLUMN a TO z", named(id="int", z="int"), [(1, 12), (5, 20)]),
    "renamed without rows": ("RENAME COLUMN a TO z", named(id="int", z="int"), [(1, 11), (5, 20)]),
    "swapped": ("RENAME COLUMN a TO id, RENAME COLUMN id TO a", named(a="int", id="int"), [(1, 12), (5, 20)]),
    "added": ("ADD c INT", of(c="int"), [(1, 12, None), (5, 20, None)]),
    "an index added": ("ADD KEY (a)", of(), [(1, 12), (5, 20)]),
}


@pytest.mark.parametrize(("altered", "table", "expected"), PURGED.values(), ids=PURGED)
@pytest.mark.parametrize("kind", ["current", "history"])
def test_a_table_of_a_log_that_was_purged_is_altered_as_it_would_be_in_the_whole_log(
    run, kept, tmp_path, kind, altered, table, expected
) -> None:
    run(*LOG, kind=kind)
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.flush()
        if expected != [(1, 11), (5, 20)]:
            log.append("0-1-90", updated(of(), ([1, 11], [1, 12])))
        log.append("0-1-91", [f"ALTER TABLE d.t {altered}"])
        log.purge(to=log.files[-1].name)
    done = maintain(str(tmp_path / "log"), kept.target, kind=kind)
    rows = [row for row in kept.read().to_pylist() if row.get("_is_current", True)]
    found = sorted(tuple(value for name, value in row.items() if name[0] != "_") for row in rows)
    assert done.tables["d.t"].is_exact
    assert found == expected


WIDENED = {
    "decimal(10,2)": ("decimal(12,2)", Decimal("12345678.25")),
    "float": ("double", 0.1),
    "int": ("bigint", 7),
    "varchar(9)": ("text", "ü"),
}


@pytest.mark.parametrize("then", WIDENED)
def test_columns_whose_names_have_points_are_widened_renamed_and_dropped(run, kept, then) -> None:
    now, value = WIDENED[then]
    narrow, wide = named(**{"id": "int", "a.b": then, "c.d": "int"}), named(**{"id": "int", "a.b": now, "e.f": "int"})
    steps: list[Item] = [
        f"CREATE TABLE t (id INT PRIMARY KEY, `a.b` {then}, `c.d` INT)",
        [inserted(narrow, [1, value, 1])],
    ]
    run(*steps)
    steps += [f"ALTER TABLE t MODIFY `a.b` {now}, RENAME COLUMN `c.d` TO `e.f`", [inserted(wide, [2, value, 2])]]
    files = kept.data_files()
    assert verdicts(run(*steps)) == {"d.t": "exact at 0-1-4"}
    assert files < kept.data_files()
    was = float(np.float32(value)) if then == "float" else value
    assert kept.rows() == [(1, was, 1), (2, value, 2)]
    assert verdicts(run(*steps, "ALTER TABLE t DROP `a.b`, DROP `e.f`, ADD `e.f` DATE")) == {"d.t": "exact at 0-1-5"}
    assert kept.rows() == [(1, None), (2, None)]
    assert files < kept.data_files()


@pytest.mark.parametrize("step", ["write_file", "write_manifest_list", "_write_metadata", "commit_table"])
@pytest.mark.parametrize("end", [2, 4])
def test_a_run_that_is_killed_inside_a_commit_leaves_no_file_behind(run, kept, monkeypatch, step, end) -> None:
    import pyiceberg.io.pyarrow
    import pyiceberg.table.update.snapshot
    from pyiceberg.catalog.sql import SqlCatalog

    owners = {"write_file": pyiceberg.io.pyarrow, "write_manifest_list": pyiceberg.table.update.snapshot}
    owner = owners.get(step, SqlCatalog)
    was = getattr(owner, step)

    def killed(*args, **options):
        found = was(*args, **options)
        if step == "write_file":
            list(found)
        raise KilledError

    steps = LOG[: end - 1] if end > 2 else ["CREATE DATABASE other"]
    run(*steps)
    monkeypatch.setattr(owner, step, staticmethod(killed) if step == "_write_metadata" else killed)
    with pytest.raises(KilledError):
        run(*LOG[:end])
    monkeypatch.undo()
    done = run(*LOG[:end])
    assert verdicts(done) == {"d.t": f"exact at 0-1-{end}"}
    assert bool(done.removed) == (step != "commit_table")
    with kept.iceberg() as table:
        wanted = set(iceberg._files_of(table, [path.name for path in kept.directory().rglob("*.avro")]))
    assert {path.name for path in kept.directory().rglob("*") if path.is_file()} == {Path(one).name for one in wanted}


@pytest.mark.parametrize("kind", ["current", "history"])
def test_files_without_a_changed_row_stay_as_they_are(run, kept, monkeypatch, kind) -> None:
    monkeypatch.setattr(iceberg, "FILE_BYTES", 1000)
    steps = [CREATED, [inserted(of(), *([number, 0] for number in range(1000)))]]
    run(*steps, kind=kind)
    files = kept.data_files()
    assert len(files) > 5
    run(*steps, [updated(of(), ([500, 0], [500, 1])), inserted(of(), [2000, 0])], kind=kind)
    assert len(files - kept.data_files()) == 1
    assert len(kept.read()) == {"current": 1001, "history": 1002}[kind]


def test_a_table_that_was_set_back_is_left_alone_and_said_so(run, kept) -> None:
    run(*LOG[:2])
    with kept.iceberg() as table:
        first = table.current_snapshot().snapshot_id
    run(*LOG[:3])
    with kept.iceberg() as table:
        table.manage_snapshots().set_current_snapshot(first).commit()
    assert f"it was set back to snapshot {first}" in run(*LOG).tables["d.t"].verdict
    assert kept.rows() == [(1, 10), (2, 20), (3, 30)]


def test_random_changes_of_tables_in_many_files_are_all_there(run, kept, monkeypatch) -> None:
    monkeypatch.setattr(iceberg, "FILE_BYTES", 400)
    rows: dict[int, int] = {}
    steps: list[Item] = [CREATED]
    for _ in range(12):
        for _ in range(4):
            fresh = [key for key in {random.randrange(60) for _ in range(6)} if key not in rows]
            if fresh:
                steps.append([inserted(of(), *([key, 0] for key in fresh))])
                rows |= dict.fromkeys(fresh, 0)
            key = random.choice(sorted(rows))
            steps.append([updated(of(), ([key, rows[key]], [key, rows[key] + 1]))])
            rows[key] += 1
            key = random.choice(sorted(rows))
            steps.append([deleted(of(), [key, rows.pop(key)])])
        assert verdicts(run(*steps)) == {"d.t": f"exact at 0-1-{len(steps)}"}
        assert kept.rows() == sorted(rows.items())
    kept.expect_commits(["any"] * 12)


DAMAGED = {"no text": b"garbage \xff\n", "nothing": b"", "no metadata": b'{"format-version": 2}'}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_metadata_that_is_damaged_is_an_error_of_one_line(run, kept, content) -> None:
    run(*LOG[:2])
    (path,) = (kept.directory() / "metadata").glob("*.metadata.json")
    path.write_bytes(content)
    because = run(*LOG).tables["d.t"].because
    assert re.fullmatch(r"d\.t: the metadata\.json that the catalog names in .*/d\.t/metadata is damaged", because)


# Rows after changes ------------------------------------------------------------------------------

DAY = datetime.date(2026, 1, 1)
KINDS_OF_KEYS = {
    "numbers": lambda number: number,
    "texts": lambda number: f"{number}",
    "bytes": lambda number: bytes([number % 256, number // 256]),
    "decimals": lambda number: Decimal(100_000 + number) / 100,
    "days": lambda number: DAY + datetime.timedelta(number),
    "moments": lambda number: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=number),
}


@pytest.mark.parametrize("kind", KINDS_OF_KEYS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_row_is_found_by_all_columns_of_its_key(kind, count) -> None:
    key = lambda: tuple(KINDS_OF_KEYS[kind](random.randrange(1 + 300 // count**3)) for _ in range(count))  # noqa: E731
    names = [f"k{number}" for number in range(count)]
    wanted = sorted({key() for _ in range(100)}, key=repr)
    rows = [key() for _ in range(400)]
    table = lambda keys: pa.table(dict(zip(names, map(list, zip(*keys, strict=True)), strict=True)))  # noqa: E731
    chunked = pa.concat_tables([table(rows[:150]), table(rows[150:])])
    expected = [wanted.index(one) if one in wanted else NONE for one in rows]
    assert numbers_of(chunked, table(wanted), names).tolist() == expected
    assert NONE in expected
    assert max(expected) >= 0


def test_a_row_without_a_value_and_a_search_for_nothing_find_nothing() -> None:
    rows = pa.table({"id": pa.array([None, 1], pa.int32())})
    assert numbers_of(rows, pa.table({"id": pa.array([1], pa.int32())}), ["id"]).tolist() == [NONE, 0]
    assert numbers_of(rows, pa.table({"id": pa.array([], pa.int32())}), ["id"]).tolist() == [NONE, NONE]


def test_rows_are_gone_or_have_the_values_that_are_known() -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "a": ["a", "b", "c", "d"], "v": [[1.0], [2.0], None, [4.0]]})
    changes = LastChanges(
        outcomes=np.array([DELETED, PATCHED, WHOLE]),
        were_there=np.array([True, True, True]),
        rows=pa.table({"id": [3, 1, 4], "a": [None, "A", None], "v": [None, [9.0], [8.0]]}, rows.schema),
        known={"v": np.array([False, False, True])},
    )
    numbers = numbers_of(rows, changes.rows, ["id"])
    expected = [{"id": 1, "a": "A", "v": [1.0]}, {"id": 2, "a": "b", "v": [2.0]}, {"id": 4, "a": None, "v": [8.0]}]
    assert as_changed(rows, numbers, changes).to_pylist() == expected


def test_versions_end_where_they_are_named() -> None:
    rows = pa.table({"id": [1, 2], "_valid_to": [None, 5], "_gtid_to": [None, "0-1-5"], "_is_current": [True, False]})
    ended = pa.table({"id": [1], "_valid_to": [7], "_gtid_to": ["0-1-7"]})
    assert as_ended(rows, np.array([0, NONE]), ended).to_pylist() == [
        {"id": 1, "_valid_to": 7, "_gtid_to": "0-1-7", "_is_current": False},
        {"id": 2, "_valid_to": 5, "_gtid_to": "0-1-5", "_is_current": False},
    ]
