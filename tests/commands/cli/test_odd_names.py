"""A real server's log of nine databases and 76 tables with dots, commas, quotes and wildcards in their names.

Each row comes out under its own table, and each table can be named alone.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
import pytest

import ibbmaster
from ibbmaster.sqltext.table_name import TableName
from tests.kept_tables import KeptTables

ODD = Path(__file__).parents[3] / "fixtures" / "odd-names"
Rows = dict[TableName, list[tuple[int, str | None]]]


def rows_in_the_end() -> Rows:
    told = json.loads((ODD / "tables.json").read_text())
    return {TableName(database, name): [(key, text) for key, text in rows] for database, name, rows in told}


TABLES = rows_in_the_end()
NAMES = sorted(TABLES)
PATHS = ("traditional", "ibb")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from ibbmaster.commands.cli.main import main

    imported = tmp_path_factory.mktemp("odd") / "log"
    assert main(["convert", str(ODD / "binlog.000001"), str(imported), "--max-file-size", "64K"]) == 0
    return {"traditional": ODD / "binlog.000001", "ibb": imported}


@pytest.fixture
def imported(logs: dict[str, Path]) -> Path:
    return logs["ibb"]


@pytest.fixture(params=PATHS)
def path(logs: dict[str, Path], request: pytest.FixtureRequest) -> Path:
    return logs[request.param]


def folded(changes: Iterator[tuple[TableName, Mapping[str, Any] | None, Mapping[str, Any] | None]]) -> Rows:
    found: dict[TableName, dict[int, str | None]] = {}
    for name, before, after in changes:
        rows = found.setdefault(name, {})
        if before is not None:
            del rows[before["id"]]
        if after is not None:
            rows[after["id"]] = after.get("v")
    return {name: sorted(rows.items()) for name, rows in found.items()}


def of_lines(text: str) -> Rows:
    lines = [json.loads(line) for line in text.splitlines()]
    return folded(
        (TableName(one["database"], one["table"]), one["before"], one["after"]) for one in lines if "table" in one
    )


def of_log(log: ibbmaster.Log) -> Rows:
    changes = ((schema, change) for group in log for schema, change in group.rows())
    return folded((TableName(schema.database, schema.table), change.before, change.after) for schema, change in changes)


def of_arrow(table: Any) -> list[tuple[int, str]]:
    return sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True), key=str)


def test_each_line_has_its_own_table(path, run) -> None:
    assert of_lines(run("cat", path)[1]) == TABLES
    lines = map(json.loads, run("cat", path, "--format", "debezium")[1].splitlines())
    rows = [one.get("payload", one) for one in lines]
    sources = ((one["source"], one["before"], one["after"]) for one in rows if "op" in one)
    assert folded((TableName(source["db"], source["table"]), *images) for source, *images in sources) == TABLES
    sql = run("cat", path, "--format", "sql")[1]
    for name in NAMES:
        assert [sql.count(f"{words} {name.sql} ") for words in ("UPDATE", "ALTER TABLE", "CREATE TABLE")] == [1, 1, 1]


def test_each_table_is_counted_by_itself(path, run) -> None:
    told = json.loads(run("info", path, "--json")[1])["tables"]
    assert {one["table"]: one["insert"]["count"] for one in told[1:]} == {str(name): 2 for name in NAMES}


def test_each_table_can_be_named_alone(imported) -> None:
    with ibbmaster.open(imported) as log:
        for name in NAMES[1::3]:
            assert of_log(log.through(only=str(name))) == {name: TABLES[name]}
        assert of_log(log.through(only=list(map(str, NAMES[:9])))) == {name: TABLES[name] for name in NAMES[:9]}
        assert of_log(log.through(only=",".join(map(str, NAMES[9:])))) == {name: TABLES[name] for name in NAMES[9:]}
        assert of_log(log.through(except_=",".join(map(str, NAMES[9:])))) == {name: TABLES[name] for name in NAMES[:9]}
        of_shop = log.through(only=f"{TableName('shop.eu', 'x').sql.partition('.`x')[0]}.*")
        assert of_log(of_shop) == {name: rows for name, rows in TABLES.items() if name.database == "shop.eu"}


def test_each_table_can_have_another_name(imported) -> None:
    others = {name: TableName("new." + name.name, name.database) for name in NAMES if name.name != name.database}
    given = [f"{name}={other}" for name, other in others.items()]  # of `*`.`*` a statement may mean the database
    wanted = {others.get(name, name): rows for name, rows in TABLES.items()}
    with ibbmaster.open(imported) as log:
        assert of_log(log.through(rename=given)) == wanted
        assert of_log(log.through(rename=",".join(given))) == wanted
        assert of_log(log.through(rename="`shop.eu`=`a,b`", only="`shop.eu`.orders")) == {
            TableName("a,b", "orders"): TABLES[TableName("shop.eu", "orders")]
        }


def test_a_converted_log_has_the_tables_that_were_chosen(path, run, tmp_path) -> None:
    name = TableName("shop.eu", "orders")
    given = ("--only", name, "--rename", f"{name}={TableName('a=b', 'c,d')}")
    assert run("convert", path, tmp_path / "log", "--to", "ibb", *given)[0] == 0
    assert of_lines(run("cat", tmp_path / "log")[1]) == {TableName("a=b", "c,d"): TABLES[name]}
    assert run("convert", path, tmp_path / "whole", "--to", "ibb", "--only", name)[0] == 0
    assert run("diff", path, tmp_path / "whole", "--only", name)[0] == 0
    assert run("diff", path, tmp_path / "whole", "--only", "shop.`eu.orders`")[0] == 2  # the other one is not there


def test_a_table_that_is_missing_is_told_beside_names_that_can_be_pasted(imported, run) -> None:
    code, _, errors = run("cat", imported, "--only", "shop.nothing")
    assert code == 2
    shown = errors.partition("it has ")[2].partition(" and ")[0]
    assert of_lines(run("cat", imported, "--only", shown)[1]).keys() == set(sorted(TABLES, key=str)[:8])


def test_csv_has_one_table(imported, run) -> None:
    for name in NAMES[::19]:
        code, text, _ = run("cat", imported, "--format", "csv", "--table", name)
        assert code == 0
        assert text.count("\n") == 5
        assert "row of " in text
        assert "added" in text


def test_a_session_selects_from_each(path) -> None:
    with (
        ibbmaster.open(path) as log,
        ibbmaster.serve(log, tls="off") as primary,
        contextlib.closing(pymysql.connect(host=primary.host, port=primary.port, user=primary.user)) as session,
        session.cursor() as cursor,
    ):
        for name, rows in TABLES.items():
            cursor.execute(f"SELECT * FROM {name.sql}")
            assert sorted(cursor.fetchall()) == sorted(rows)
        cursor.execute("SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'")
        assert set(cursor.fetchall()) >= set(TABLES)
        cursor.execute("SELECT MAX(b.v), COUNT(*) FROM shop.`eu.orders` b WHERE b.id + 0 > 0")
        assert cursor.fetchall() == (("row of 2", 1),)


def test_arrow_reads_each(imported) -> None:
    with ibbmaster.open(imported) as log:
        assert Counter(log.to_arrow()["_table"].to_pylist()) == {str(name): 4 for name in NAMES}
        for name in NAMES[::3]:
            assert set(log.to_arrow(table=str(name))["id"].to_pylist()) == {key for key, _ in TABLES[name]}
            assert of_arrow(log.snapshot(str(name))) == TABLES[name]


def test_delta_tables_are_each_in_a_directory_of_their_own(logs, run, tmp_path) -> None:
    for kind, is_row in (("current", None), ("history", "_valid_to"), ("changes", "_change_type")):
        lake = tmp_path / kind
        for _ in range(2):  # the second run finds what the first one has made
            code, text, errors = run("lake", "maintain", logs["ibb"], "--to", f"delta://{lake}", "--as", kind, "--json")
            assert (code, errors) == (0, "")
            assert set(json.loads(text)["tables"]) == set(map(str, NAMES))
        for name, rows in TABLES.items():
            found = of_arrow(KeptTables("delta", lake).read(str(name)))
            assert found == rows if is_row is None else set(found) >= set(rows)
    only = run(
        "lake", "maintain", logs["ibb"], "--to", f"delta://{tmp_path / 'one'}", "--only", "`shop.eu`.`eu.orders`"
    )
    assert only[0] == 0
    assert [path.name for path in (tmp_path / "one").glob("[!_.]*")] == ["shop~2Eeu.eu~2Eorders"]


def test_iceberg_tables_have_the_names_of_the_server(logs, run, tmp_path) -> None:
    code, _, errors = run("lake", "maintain", logs["ibb"], "--to", f"iceberg://{tmp_path / 'lake'}")
    assert (code, errors) == (0, "")
    for name, rows in TABLES.items():
        assert of_arrow(KeptTables("iceberg", tmp_path / "lake").read(str(name))) == rows


def test_a_test_writes_to_each(ibb_primary) -> None:
    for number, name in enumerate(NAMES):
        ibb_primary.table(str(name), id="int primary key", v="varchar(20)").insert(id=number, v="x")
    for number, name in enumerate(NAMES):
        ibb_primary.table(str(name)).update(id=number, v="y")
    assert of_log(ibb_primary.log) == {name: [(number, "y")] for number, name in enumerate(NAMES)}


def test_spark_reads_each(logs, spark) -> None:
    log = str(logs["ibb"])
    reader = spark.read.format("ibb")
    counts = {row["_table"]: row["count"] for row in reader.load(log).groupBy("_table").count().collect()}
    assert counts == {str(name): 4 for name in NAMES}
    for name in NAMES[::25]:
        rows = reader.option("table", str(name)).load(log).where("_change_type = 'insert'").collect()
        assert {row["id"] for row in rows} == {key for key, _ in TABLES[name]}
        assert reader.option("tables", f"{name},nothing.here").load(log).count() == 4
