"""What each PySpark has to do, as a program: reads a log in every way, and prints what it has found as JSON."""

import json
import sys
from pathlib import Path

import pyspark

from ibbmaster.spark import register
from tests.spark_session import open_session


def stream_of(session, log: str, place: Path) -> int:
    frame = session.readStream.format("ibb").option("table", "shop.parent").load(log)
    given = {"path": str(place / "rows"), "checkpointLocation": str(place / "checkpoint")}
    frame.writeStream.format("parquet").options(**given).trigger(availableNow=True).start().awaitTermination(300)
    return session.read.parquet(given["path"]).count()


def limited_stream_of(session, log: str, place: Path) -> dict[str, int]:
    frame = session.readStream.format("ibb").option("table", "shop.parent").option("maxGroupsPerTrigger", "5").load(log)
    given = {"path": str(place / "limited"), "checkpointLocation": str(place / "limited-checkpoint")}
    for _ in range(2):
        query = frame.writeStream.format("parquet").options(**given).trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        query.stop()
    rows = session.read.parquet(given["path"])
    groups = (
        rows.selectExpr("input_file_name() AS file", "_gtid").distinct().groupBy("file").count().agg({"count": "max"})
    )
    return {"stream without availableNow": rows.count(), "most groups in a batch": groups.first()[0]}


def main(log: str, classic: str, place: Path) -> None:
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": str(place / "tables")}
    session = open_session("local[2]", name="version", settings=settings)
    register(session)  # again
    session.sql(f"CREATE TABLE made USING ibb OPTIONS (path '{log}', table 'shop.parent')")
    changes = session.read.format("ibb").option("table", "shop.parent").load(log)
    changes.write.format("ibb").mode("append").options(table="shop.parent", primaryKey="id").save(
        str(place / "written")
    )
    found = {
        "version": pyspark.__version__,
        "changes": changes.count(),
        "classic": session.read.format("ibb").load(classic).count(),
        "table": session.sql("SELECT count(*) FROM made WHERE id = 3").first()[0],
        "written": len(list((place / "written").glob("*.ibb"))),
        "stream": stream_of(session, log, place),
        **limited_stream_of(session, log, place),
    }
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
