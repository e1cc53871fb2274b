"""Following a log that grows, in a real Spark session."""

from __future__ import annotations

import pickle

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ibbmaster.arrow.plan import find_fields
from ibbmaster.errors import SourceError
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.stream import IbbStreamReader
from ibbmaster.testkit.primary import FixturePrimary
from tests.table_versions import inserts, write_log


class Batches:
    """What each batch of a stream brought, by batch number."""

    def __init__(self) -> None:
        self.gtids: dict[int, list[str]] = {}

    def take(self, frame, number: int) -> None:
        self.gtids[number] = [row._gtid for row in frame.select("_gtid").collect()]

    def all(self) -> list[str]:
        return [gtid for number in sorted(self.gtids) for gtid in self.gtids[number]]


def run(spark, directory, checkpoint, batches, **options):
    query = (
        spark.readStream.format("ibb")
        .options(**({"granularity": "groups"} | options))
        .load(str(directory))
        .writeStream.foreachBatch(batches.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def gtids_of(spark, directory, granularity="groups"):
    frame = spark.read.format("ibb").option("granularity", granularity).load(str(directory))
    return [row._gtid for row in frame.select("_gtid").collect()]


def test_a_stream_brings_every_group_once_over_restarts_and_growth(spark, grow, tmp_path):
    batches = Batches()
    for count in (2, 2, 5, 9):
        directory = grow(count)
        run(spark, directory, tmp_path / "checkpoint", batches, maxGroupsPerTrigger="20")

    assert batches.all() == gtids_of(spark, directory)
    assert len(batches.all()) == 155
    assert max(map(len, batches.gtids.values())) == 20


def test_a_transaction_is_never_split_over_two_batches(spark, grow, tmp_path):
    batches = Batches()
    directory = grow(9)
    run(spark, directory, tmp_path / "checkpoint", batches, granularity="events", maxBytesPerTrigger="4k")

    sets = [set(gtids) for gtids in batches.gtids.values()]
    assert len(sets) > 10
    assert sum(map(len, sets)) == len(set.union(*sets)) == 155
    assert batches.all() == gtids_of(spark, directory, "events")


def test_a_stream_begins_at_a_position(spark, grow, tmp_path):
    directory = grow(9)
    everything = gtids_of(spark, directory)
    # the position after the first 100 groups
    latest = {gtid.split("-")[0]: gtid for gtid in everything[:100]}
    batches = Batches()
    run(spark, directory, tmp_path / "checkpoint", batches, startingOffsets=",".join(latest.values()))

    assert batches.all() == everything[100:]


def test_a_stream_from_latest_brings_what_comes_later(spark, grow, tmp_path):
    directory = grow(3)
    before = gtids_of(spark, directory)
    batches = Batches()
    run(spark, directory, tmp_path / "checkpoint", batches, startingOffsets="latest")
    assert batches.all() == []

    grow(5)
    run(spark, directory, tmp_path / "checkpoint", batches)

    assert batches.all() == gtids_of(spark, directory)[len(before) :]


def test_a_position_that_is_not_in_the_log_stops_the_stream(spark, grow, tmp_path):
    with pytest.raises(PySparkException, match="does not hold 0-2-999999"):
        run(spark, grow(2), tmp_path / "checkpoint", Batches(), startingOffsets="0-2-999999")


def test_a_stream_follows_what_the_log_alters(tmp_path):
    old, new = {"id": "int", "a": "varchar(20)"}, {"c": "varchar(20)", "id": "int", "n": "int"}
    path = write_log(tmp_path, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))", inserts(old, [(1, "x")]))
    options = parse_options({"path": str(path), "table": "db.t"})
    reader = IbbStreamReader(options, find_fields(options))
    start, found, sizes = reader.initialOffset(), [], []
    for first, items in (
        (3, [inserts(old, [(2, "y")])]),
        (4, ["ALTER TABLE t CHANGE a b VARCHAR(20) FIRST, ADD n INT", "ALTER TABLE t RENAME COLUMN b TO c"]),
        (6, [inserts(new, [("z", 3, 7)])]),
    ):
        write_log(path, *items, first=first)
        end = reader.latestOffset(start, ReadAllAvailable())
        for partition in reader.partitions(start, end):
            sizes.append(len(pickle.dumps(partition)))
            found += [row for batch in reader.read(pickle.loads(pickle.dumps(partition))) for row in batch.to_pylist()]
        start = end
    reader.stop()

    assert [(row["id"], row["a"]) for row in found] == [(1, "x"), (2, "y"), (3, "z")]
    assert max(sizes) < 20_000


@pytest.mark.parametrize(
    ("position", "logged"), [("0-3-99999", "0-3-7"), ("0-3-7,9-9-9", "nothing of domain 9")], ids=["ahead", "elsewhere"]
)
def test_a_primary_that_has_less_than_the_stream_is_an_error_and_not_followed(position, logged):
    with FixturePrimary(server_id=3) as primary:
        primary.ddl("CREATE DATABASE shop", gtid="0-3-7")
        login = {"host": primary.host, "port": str(primary.port), "user": primary.user, "password": primary.password}
        reader = IbbStreamReader(parse_options({**login, "startingOffsets": position}), ())

        with pytest.raises(SourceError, match=f"the primary has logged {logged}: it lost its end, lags, or is another"):
            reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
