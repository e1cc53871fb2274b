"""A stream that reads many tables batch by batch: each change once, over an error and a restart."""

from collections import Counter

import pytest
from pyspark.errors import PySparkException

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.tables import each_batch


class Gathered:
    """What a stream brought; it stops at the end of some batch, once."""

    def __init__(self, *, stops_in: int) -> None:
        self.changes: dict[int, Counter[str]] = {}  # how many each group has
        self.ends: list[str] = []
        self._stops_in = stops_in

    def take(self, frames, number):
        found = (frame.select("_gtid").collect() for frame in frames.values())
        self.changes[number] = Counter(row["_gtid"] for rows in found for row in rows)
        self.ends.append(frames.end)
        if number == self._stops_in:
            self._stops_in = -1
            raise ValueError("a disk is full")


def test_each_change_of_each_table_comes_once(spark, fixtures, tmp_path):
    log, gathered = fixtures / "ibb/xa-and-ddl", Gathered(stops_in=1)

    def run():
        stream = each_batch(spark, gathered.take, str(log), tables="shop.*", maxGroupsPerTrigger="40")
        stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException, match="a disk is full"):
        run()
    stopped = dict(gathered.changes)
    run()
    with ibbmaster.open(log) as opened:
        table = opened.to_arrow()
    wanted = zip(table["_gtid"].to_pylist(), table["_table"].to_pylist(), strict=True)
    assert sum(gathered.changes.values(), Counter()) == Counter(gtid for gtid, of in wanted if of.startswith("shop."))
    assert gathered.changes[1] == stopped[1]
    assert gathered.ends == ["0-1-40", "0-1-80", "0-1-80", "0-1-93"]


@pytest.mark.parametrize("name", ["startingGtid", "endingTimestamp", "host"])
def test_what_a_stream_of_tables_does_not_take_is_refused(spark, name):
    with pytest.raises(ConfigurationError, match=f"option {name} is not for streams of many tables"):
        each_batch(spark, print, "/srv/ibb", **{name: "0-1-1"})


def test_spans_are_for_streams(spark, fixtures, tmp_path):
    each_batch(spark, print, str(fixtures / "ibb/domains"))
    with pytest.raises(PySparkException, match="format ibb_spans is for readStream"):
        spark.read.format("ibb_spans").load(str(fixtures / "ibb/domains")).count()
