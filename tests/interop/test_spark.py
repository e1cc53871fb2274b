"""Spark and real servers: a replica follows what was written, and a running primary is read."""

from pathlib import Path
from typing import Any

import pytest
from lanes.primary import login_of as login
from lanes.replica import Replica
from lanes.sql import position_of, run
from pyspark.errors import PySparkException

from ibbmaster.testkit.mariadb_server import RealPrimary

DDL = (
    "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, word VARCHAR(40), price DECIMAL(10,2), moment DATETIME(6), "
    "day DATE, raw VARBINARY(20), d DOUBLE, flag TINYINT)"
)


def test_a_replica_follows_what_spark_has_written(spark, tmp_path, new_ibb_primary, new_replica, version):
    frame = spark.range(20_000).selectExpr(
        "id",
        "IF(id % 7 = 0, NULL, concat('word ', id, ' é漢'))  AS word",
        "CAST(id * 1.25 AS DECIMAL(10,2)) AS price",
        "timestamp_ntz '2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) AS moment",
        "date_add(date '2000-01-01', CAST(id AS INT)) AS day",
        "unhex(hex(id)) AS raw",
        "id / 3.0D AS d",
        "CAST(id % 2 AS TINYINT) AS flag",
    )
    log = tmp_path / "log"
    options = {"table": "shop.orders", "schema": DDL, "maxFileBytes": "1m", "stateIntervalBytes": "128k"}
    frame.repartition(4).write.format("ibb").mode("append").options(**options).save(str(log))

    primary = new_ibb_primary(log)
    replica: Replica = new_replica(version)
    replica.follow(primary)
    groups = spark.read.format("ibb").option("granularity", "groups").load(str(log))
    replica.wait_for_gtid(groups.selectExpr("max_by(_gtid, _seq)").first()[0])

    columns = ["id", "word", "price", "moment", "day", "raw", "d", "flag"]
    rows = list(map(list, replica.sql(f"SELECT {', '.join(columns)} FROM shop.orders ORDER BY id")))
    written = [[row[name] for name in columns] for row in frame.orderBy("id").collect()]
    assert rows == [[bytes(cell) if isinstance(cell, bytearray) else cell for cell in row] for row in written]


def login_of(primary) -> dict[str, str]:
    return {name: str(value) for name, value in login(primary).items()}


def live(spark, primary, **options):
    return spark.read.format("ibb").options(**login_of(primary), **options)


def test_a_running_primary_reads_as_its_files_do(spark, new_ibb_primary, captures, ibb_directory):
    capture = captures["11.8/domains"]
    primary = new_ibb_primary(capture)
    names = ["_gtid", "_commit_ts", "event_no", "type_name", "bytes"]
    files = spark.read.format("ibb").option("granularity", "events").load(str(ibb_directory(capture)))

    found = live(spark, primary, granularity="events").load().select(names).collect()

    assert found == files.select(names).collect()
    rows = spark.read.format("ibb").load(str(ibb_directory(capture))).select("_gtid", "_table", "after").collect()
    assert live(spark, primary).load().select("_gtid", "_table", "after").collect() == rows
    reader = spark.read.format("ibb").option("granularity", "groups")
    places = ["_file_no", "_offset", "end_file_no", "end_offset"]
    found, expected = live(spark, primary, granularity="groups").load(), reader.load(str(ibb_directory(capture)))
    assert found.drop(*places).collect() == expected.drop(*places).collect()
    assert set(found.select(places).collect()) == {(None, None, None, None)}


def test_a_real_primary_reads_as_its_binlog_does_also_by_column_while_columns_move(
    spark, tmp_path, new_real_primary, captures, ibb_directory
):
    capture = captures["10.11/domains"]
    primary = new_real_primary(capture)
    names = ["_gtid", "_table", "_change_type", "before", "after"]
    files = spark.read.format("ibb").load(str(ibb_directory(capture))).select(names).collect()
    found = live(spark, primary).load().select(names).collect()

    assert found == files
    typed_rows_of_a_real_primary(spark, primary, tmp_path / "checkpoint")


def typed_rows_of_a_real_primary(spark, primary: RealPrimary, checkpoint: Path) -> None:
    """Rows by column while columns move and one is added, of which only the statements say so.

    A stream goes on while columns move; where one is added, it says that another stream is to be begun.
    """
    begin = position_of(primary)
    primary.sql("SET GLOBAL binlog_row_metadata = NO_LOG, GLOBAL binlog_format = ROW")
    table = "CREATE TABLE moved.t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20))"
    run(primary, "CREATE DATABASE moved", table)
    reader = {**login_of(primary), "table": "moved.t"}

    def written(start: str, checkpoint: Path, *statements: str) -> list[tuple[object, ...]]:
        """What a server has after statements, a batch and a stream that goes on read of it."""
        run(primary, *statements)
        columns = [row[0] for row in primary.sql("SHOW COLUMNS FROM moved.t")]
        kept = [tuple(row) for row in primary.sql("SELECT * FROM moved.t ORDER BY id")]
        frame = spark.read.format("ibb").options(**reader, startingGtid=begin).load()
        assert [name for name in frame.columns if not name.startswith("_")] == columns
        assert [tuple(row) for row in frame.orderBy("id").select(columns).collect()] == kept
        rows = streamed(spark, checkpoint, **reader, startingOffsets=start)
        found = [tuple(row[name] for name in columns) for row in rows]
        assert found == kept[len(kept) - len(found) :]
        return found

    moved = written(
        begin,
        checkpoint,
        "INSERT INTO moved.t VALUES (1, 'a1', 'b1')",
        "ALTER TABLE moved.t MODIFY a VARCHAR(20) AFTER b",
        "INSERT INTO moved.t VALUES (2, 'b2', 'a2')",
    )
    assert moved == [(1, "b1", "a1"), (2, "b2", "a2")]
    later = position_of(primary)
    added = written(
        later,
        checkpoint.with_name("another"),
        "INSERT INTO moved.t VALUES (3, 'b3', 'a3')",
        "ALTER TABLE moved.t ADD COLUMN c INT DEFAULT 7 AFTER id",
        "INSERT INTO moved.t VALUES (4, 40, 'b4', 'a4')",
    )
    assert added == [(3, 7, "b3", "a3"), (4, 40, "b4", "a4")]
    with pytest.raises(Exception, match=r"this stream had other columns \(no c\): begin a new stream"):
        streamed(spark, checkpoint, **reader, startingOffsets=begin)


def streamed(spark, checkpoint: Path, **options: str) -> list[Any]:
    rows: list[Any] = []
    reader = spark.readStream.format("ibb").options(**options).load()
    writer = reader.writeStream.foreachBatch(lambda frame, _: rows.extend(frame.collect()))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return rows


def test_a_primary_that_refuses_is_an_error_that_names_it(spark, new_ibb_primary, captures):
    primary = new_ibb_primary(captures["11.8/vectors"])
    reader = spark.read.format("ibb").options(host="127.0.0.1", port=str(primary.port), user="nobody", password="x")

    with pytest.raises(PySparkException, match=rf"127\.0\.0\.1:{primary.port}: Access denied"):
        reader.load().collect()
