"""Real servers of odd names: one makes the log anew, and replicas take it whole, chosen, renamed and as SQL.

Databases and tables have letters in their names that mean something where names are read.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes.replica import Replica
from lanes.sql import run, run_script

import ibbmaster
from ibbmaster.commands.cli.main import main
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import TableName

DATABASES = ("shop", "shop.eu", "shop,eu", "sh`op", "*", "s?op", " lead", "100%", '日本 "x"')
IN_EACH = ("orders", "eu.orders", "*", "t", "T")
OTHERS = (
    *("a,b", "x y", "`", "``", "`a`", "`a`.`b`", "'q'", '"dq"', "%", "%2E", "?", "o*s", "[ab]", "[!a]*", "a=b", "="),
    *("a;b", "a\\b", "a/b", ".", "..", ".a", "a.", " a", "#sql", "@a", "-- x", "/* x */", "~2E", "a\nb", "\uffff"),
)
VERSION = "10.11"
ODD = Path(__file__).parents[2] / "fixtures" / "odd-names"
NAMES = [TableName(database, name) for database in DATABASES for name in IN_EACH]
NAMES += [TableName(DATABASES[place % len(DATABASES)], name) for place, name in enumerate(OTHERS)]  # they go round
ROWS = {name: [(-number, "added"), (number, f"row of {number}")] for number, name in enumerate(NAMES, 1)}


def statements() -> Iterator[str]:
    """What makes them: a row each, then a column more, then all rows changed and one more."""
    tables = [(name.sql, number) for number, name in enumerate(NAMES, 1)]
    yield from (f"CREATE DATABASE {quoted_name(database)}" for database in DATABASES)
    yield from (f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name, _ in tables)
    yield from (f"INSERT INTO {name} VALUES ({number})" for name, number in tables)
    yield from (f"ALTER TABLE {name} ADD v VARCHAR(20)" for name, _ in tables)
    yield from (f"UPDATE {name} SET v = 'row of {number}'" for name, number in tables)
    yield from (f"INSERT INTO {name} VALUES (-{number}, 'added')" for name, number in tables)


def rows_of(server: Replica) -> dict[TableName, list[tuple[int, str]]]:
    found = server.sql(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN %s",
        ((*DATABASES, "new"),),
    )
    return {TableName(*name): sorted(server.sql(f"SELECT * FROM {TableName(*name).sql}")) for name in found}


def test_a_server_makes_the_captured_log_again(new_server, tmp_path, request):
    server = new_server(VERSION, "--binlog-format=ROW")
    run(server, *statements())
    found = [[*name, [list(row) for row in server.sql(f"SELECT * FROM {name.sql}")]] for name in NAMES]
    text = "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in found) + "\n]\n"
    server.sql("FLUSH BINARY LOGS")
    if request.config.getoption("--rewrite"):
        (ODD / "tables.json").write_text(text)
        shutil.copy(server.data / "binlog.000001", ODD)
    shutil.copy(server.data / "binlog.000001", tmp_path)
    assert text == (ODD / "tables.json").read_text()
    with ibbmaster.open(tmp_path / "binlog.000001") as made, ibbmaster.open(ODD / "binlog.000001") as kept:
        changes = [[(schema.name, one.after) for group in log for schema, one in group.rows()] for log in (made, kept)]
    assert changes[0] == changes[1]


CHOSEN = {
    "whole": ({}, ROWS),
    "only": (
        {"only": "`shop.eu`.*,shop.`eu.orders`,` lead`.`*`"},
        {
            name: rows
            for name, rows in ROWS.items()
            if name.database == "shop.eu" or name in (("shop", "eu.orders"), (" lead", "*"))
        },
    ),
    "rename": (
        {"only": "`shop,eu`.orders", "rename": "`shop,eu`.orders=new.`a=b,c.d`"},
        {TableName("new", "a=b,c.d"): ROWS[TableName("shop,eu", "orders")]},
    ),
}


@pytest.mark.parametrize(("stages", "wanted"), CHOSEN.values(), ids=CHOSEN)
def test_a_replica_has_the_tables_that_were_chosen(stages, wanted, new_replica):
    replica = new_replica(VERSION)
    replica.sql("CREATE DATABASE new")
    with ibbmaster.serve(ODD / "binlog.000001", password="secret", tls="off", **stages) as primary:
        replica.follow(primary)
        with ibbmaster.open(ODD / "binlog.000001") as log:
            replica.wait_for_gtid(str(log.position))
        assert rows_of(replica) == wanted


@pytest.mark.parametrize("format", ["sql", "mariadb-binlog"])
def test_a_server_that_runs_the_script_has_each_table(format, new_replica, tmp_path):
    replica = new_replica(VERSION)
    script = tmp_path / "script.sql"
    assert main(["cat", str(ODD / "binlog.000001"), "--format", format, "--output", str(script)]) == 0
    assert run_script(replica, script.read_bytes()) == ""
    assert rows_of(replica) == ROWS
