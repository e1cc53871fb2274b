"""A Spark structured stream that reads a running primary; a query that fails is started again from its checkpoint."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ibbmaster.spark import register
from ibbmaster_scorecard.adapters.adapting import run, tell

FAILURES_MAX = 3  # in a row, without a batch between them
PAUSE_S = 1.0  # before a query is started again
TRIGGER = "1 second"
SETTINGS = {  # batches are small: plans are interpreted sooner than compiled
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class Batches:
    """Tells the rows of batches. One that comes again after a restart is known by its number."""

    def __init__(self, last: int, delay_ms: int, columns_of: Callable[[str], list[str]] | None) -> None:
        self.last = last
        self._columns_of = columns_of
        self._told: set[str] = set()
        self._delay_s = delay_ms / 1000

    def take(self, frame: DataFrame, number: int) -> None:
        if number <= self.last:
            return
        gtid, before = None, None
        for row in frame.collect():
            time.sleep(self._delay_s)
            if row._gtid != gtid:
                self._commit(gtid)
                gtid = row._gtid
                tell("begin", gtid=gtid)
            if row._change_type == "update_preimage":
                before = row.before
                continue
            if self._columns_of is not None and row._table not in self._told:
                self._told.add(row._table)
                tell("table", table=row._table, columns=self._columns_of(row._table))
            kind = "update" if row._change_type == "update_postimage" else row._change_type
            tell("change", table=row._table, kind=kind, before=row.before or before, after=row.after)
            before = None
        self._commit(gtid)
        self.last = number
        tell("position", position=number)

    @staticmethod
    def _commit(gtid: str | None) -> None:
        if gtid is not None:
            tell("commit", gtid=gtid)


def main() -> int:
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_input, daemon=True).start()
    tell("version", text=f"ibbmaster {version('ibbmaster')}, PySpark {version('pyspark')}")
    last = -1 if request["resume"] is None else request["resume"]
    failures = 0
    os.environ.update(
        SPARK_LOCAL_HOSTNAME="localhost", SPARK_LOCAL_IP="127.0.0.1"
    )  # this machine's name may lead nowhere
    spark = SparkSession.builder.master("local[1]").appName("scorecard").config(map=SETTINGS).getOrCreate()
    register(spark)

    def columns_of(table: str) -> list[str]:
        names = spark.read.format("ibb").options(**login_of(request), table=table).load().columns
        return [name for name in names if not name.startswith("_")]

    batches = Batches(last, request["delay_ms"], columns_of if request.get("tables") else None)
    while True:
        last = batches.last
        try:
            start(spark, request, batches).awaitTermination()
        except PySparkException as error:
            failures = 1 if batches.last > last else failures + 1
            is_fatal = failures >= FAILURES_MAX
            tell("error", text=problem_of(error), is_fatal=is_fatal, is_retried=not is_fatal)
            if is_fatal:
                return 1
        time.sleep(PAUSE_S)


def start(spark: SparkSession, request: dict[str, Any], batches: Batches) -> StreamingQuery:
    reader = spark.readStream.format("ibb").options(
        **login_of(request), serverId=str(request["server_id"]), startingOffsets=request["start"] or "earliest"
    )
    writer = reader.load().writeStream.foreachBatch(batches.take).trigger(processingTime=TRIGGER)
    return writer.option("checkpointLocation", f"{request['directory']}/checkpoint").start()


def login_of(request: dict[str, Any]) -> dict[str, str]:
    login = {name: str(request[name]) for name in ("host", "port", "user", "password")}
    return {**login, "tls": str(bool(request["tls"])).lower()}


def problem_of(error: PySparkException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("ibbmaster.") and ": " in line]
    return (ours[-1:] or lines or ["the query has failed"])[0][:2000]


def end_with_input() -> None:
    """Java ends with the process that has started it."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    run(main)
