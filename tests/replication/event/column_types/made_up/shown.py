"""Prints what a package that has MONEY makes of a table with it: `python shown.py DIRECTORY`."""

import json
import sys
from pathlib import Path

import pymysql

import ibbmaster
from ibbmaster.replication.event.column_types.registry import value_reader
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.schema.names import column_of
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.schema_reading import schema_of_texts
from tests.written_log import inserted, updated, write_log

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, price MONEY NOT NULL)"

price = written_table("d.t", {"id": "int", "price": "money"}, table_id=1, primary_key=["id"])
log = write_log(
    Path(sys.argv[1]),
    CREATE,
    [inserted(price, [1, "12.34"], [2, "-0.05"])],
    "ALTER TABLE t ADD COLUMN fee MONEY DEFAULT 1.50",
    [updated(written_table("d.t", {"id": "int", "price": "money", "fee": "money"}, table_id=2, primary_key=["id"]),
             ([2, "-0.05", "1.50"], [2, "7", "2.5"]))],
)  # fmt: skip
name = TableName("d", "t")
column = schema_of_texts({name: CREATE}).tables[name].columns[1]
found = {"folded": column.type.word, "decoded": value_reader(column_of(column))((1234).to_bytes(8, "little"), 0)}
with ibbmaster.open(log) as opened:
    found["arrow"] = opened.to_arrow(table="d.t", columns=["id", "price", "fee"]).to_pylist()
    found["snapshot"] = opened.snapshot("d.t").to_pylist()
    with ibbmaster.serve(opened) as primary:
        account = {"host": primary.host, "port": primary.port, "user": primary.user, "password": primary.password}
        with pymysql.connect(**account) as client, client.cursor() as cursor:
            for what, statement in {
                "selected": "SELECT * FROM d.t",
                "computed": "SELECT CONCAT(id, '') FROM d.t WHERE id > 1",
                "described": "SELECT DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_NAME = 't'",
                "created": "SHOW CREATE TABLE d.t",
            }.items():
                cursor.execute(statement)
                found[what] = cursor.fetchall()
print(json.dumps(found))
