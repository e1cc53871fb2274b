"""DataFrames written as logs: sound, in order, readable as they were given, whole or not at all."""

import datetime
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.spark.write_options import parse_write_options
from ibbmaster.storage.disk.local import RealDisk
from tests.case_table import data_beside

CASES = data_beside(__file__)


def state_of(directory):
    assert [str(fault) for fault in verify(RealDisk(directory), Totals())] == []
    return str(BinlogDirectory(RealDisk(directory)).state())


def events_of(spark, directory, columns="_gtid,event_no,data"):
    return spark.read.format("ibb").option("granularity", "events").option("columns", columns).load(str(directory))


@pytest.mark.parametrize("name", ["types", "domains", "large-groups", "xa-and-ddl"])
def test_events_come_out_as_they_went_in(spark, fixtures, tmp_path, name):
    source = events_of(spark, fixtures / "ibb" / name, "_gtid,_file_no,_offset,event_no,data")
    shuffled = source.repartition(5, f.col("event_no"), f.col("_gtid"))
    shuffled.write.format("ibb").mode("append").save(str(tmp_path / "log"))
    assert events_of(spark, tmp_path / "log").collect() == source.select("_gtid", "event_no", "data").collect()
    assert state_of(tmp_path / "log") == state_of(fixtures / "ibb" / name)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_what_the_log_has_already_is_passed_over(spark, fixtures, tmp_path):
    source = events_of(spark, fixtures / "ibb/types", "_gtid,_seq,event_no,data")
    writer = source.where("_seq <= 60").select("_gtid", "event_no", "data").write.format("ibb").mode("append")
    writer.option("maxFileBytes", "256k").option("stateIntervalBytes", "32k").save(str(tmp_path / "log"))
    for _ in range(2):
        source.select("_gtid", "event_no", "data").write.format("ibb").mode("append").save(str(tmp_path / "log"))
        assert events_of(spark, tmp_path / "log").collect() == events_of(spark, fixtures / "ibb/types").collect()
    state_of(tmp_path / "log")


ROWS = [
    (1, "one", Decimal("1.50"), datetime.datetime(2024, 2, 29, 1, 2, 3, 456789), True, b"\0\xff", 0.5),
    (2, None, None, None, None, None, None),
    (3, "dreißig 漢", Decimal("-99999999.99"), datetime.datetime(1999, 12, 31, 23, 59, 59), False, b"", -1e100),
]
SCHEMA = "id bigint, word string, price decimal(10,2), moment timestamp_ntz, flag boolean, raw binary, d double"


def test_rows_of_one_table_become_groups_with_the_table_before_them(spark, tmp_path):
    frame = spark.createDataFrame(ROWS, SCHEMA)
    options = {"table": "shop.orders", "primaryKey": "id", "groupRows": "2", "domain": "3", "serverId": "9"}
    frame.coalesce(1).write.format("ibb").mode("append").options(**options).save(str(tmp_path / "log"))
    assert state_of(tmp_path / "log") == "3-9-4"  # database, table, and two groups
    read = spark.read.format("ibb").option("table", "shop.orders").load(str(tmp_path / "log"))
    rows = read.select("id", "word", "price", "moment", f.col("flag").cast("boolean"), "raw", "d").collect()
    assert [tuple(row) for row in rows] == ROWS
    assert {row._change_type for row in read.collect()} == {"insert"}


def test_updates_and_deletes_are_written_from_both_shapes(spark, tmp_path):
    changes = [
        ("0-1-1", "insert", 0, 1, "a"),
        ("0-1-1", "insert", 1, 2, "b"),
        ("0-1-2", "update_preimage", 0, 1, "a"),
        ("0-1-2", "update_postimage", 1, 1, "c"),
        ("0-1-2", "delete", 2, 2, "b"),
    ]
    typed = spark.createDataFrame(changes, "_gtid string, _change_type string, _change_no bigint, id int, word string")
    typed.repartition(3).write.format("ibb").mode("append").option("table", "db.t").save(str(tmp_path / "typed"))
    names = ["_gtid", "_table", "_change_type", "_change_no", "before", "after"]
    found = spark.read.format("ibb").load(str(tmp_path / "typed")).select(names)
    assert [(row._gtid, row._change_type, row._change_no) for row in found.collect()] == [
        change[:3] for change in changes
    ]
    schema = "CREATE TABLE db.t (id int, word longtext)"
    found.repartition(3).write.format("ibb").mode("append").option("schema", schema).save(str(tmp_path / "maps"))
    state_of(tmp_path / "maps")
    assert spark.read.format("ibb").load(str(tmp_path / "maps")).select(names).collect() == found.collect()


def test_overwriting_replaces_the_log_and_nothing_else(spark, tmp_path):
    frame = spark.range(10)
    for first in (0, 100):
        writer = frame.select((f.col("id") + first).alias("id")).write.format("ibb").mode("overwrite")
        writer.option("table", "a.b").save(str(tmp_path / "log"))
    read = spark.read.format("ibb").option("table", "a.b").load(str(tmp_path / "log"))
    assert sorted(row.id for row in read.collect()) == list(range(100, 110))
    (tmp_path / "log/letter.txt").write_text("mine")
    with pytest.raises(PySparkException, match=r"letter\.txt, which is no binlog file: nothing was replaced"):
        frame.write.format("ibb").mode("overwrite").option("table", "a.b").save(str(tmp_path / "log"))
    assert (tmp_path / "log/letter.txt").read_text() == "mine"
    assert read.count() == 10


def test_a_row_that_cannot_be_written_leaves_nothing_behind(spark, tmp_path):
    frame = spark.createDataFrame([(1, "x" * 30)], "id int, word string")
    writer = frame.write.format("ibb").mode("append").option("table", "a.b")
    with pytest.raises(PySparkException, match=r"column word .*30 bytes, at most 20"):
        writer.option("schema", "CREATE TABLE a.b (id int, word varchar(5))").save(str(tmp_path / "log"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("0-1-1", 0, b"")], "group 0-1-1: event header of 0 bytes"),
        ([("0-1-1", 1, b"x" * 30)], "group 0-1-1: event 0 is missing"),
        ([("0-1-1", 0, bytes(9) + b"\x1e" + bytes(20))] * 2, "group 0-1-1: .*"),
        ([("0-1", 0, b"x" * 30)], "0-1"),
        ([("0-1-1", -1, b"x" * 30)], "column event_no is -1"),
    ],
)
def test_events_that_make_no_group_are_refused(spark, tmp_path, rows, problem):
    frame = spark.createDataFrame(rows, "_gtid string, event_no int, data binary")
    with pytest.raises(PySparkException, match=problem):
        frame.write.format("ibb").mode("append").save(str(tmp_path / "log"))
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(("options", "fields", "problem"), CASES)
def test_options_that_make_no_sense_are_refused(options, fields, problem):
    with pytest.raises(ConfigurationError, match=problem):
        parse_write_options(options, fields)
