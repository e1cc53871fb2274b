"""What a client of Spark Connect does with the format, as a program, without a Java of its own: prints it as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ibbmaster.spark.tables import LoggedTables, each_batch, tables
from tests.spark_session import open_session

PATTERN = "shop.pa*"


def main(url: str, log: str, place: Path) -> None:
    session = open_session(url, name="connected")
    session.sql(f"CREATE TABLE made USING ibb OPTIONS (path '{log}', table 'shop.parent')")
    changes = session.read.format("ibb").option("table", "shop.parent").load(log)
    changes.write.format("ibb").mode("append").options(table="shop.parent", primaryKey="id").save(
        str(place / "written")
    )
    query = (
        session.readStream.format("ibb")
        .option("table", "shop.parent")
        .load(log)
        .writeStream.format("parquet")
        .options(path=str(place / "rows"), checkpointLocation=str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(500)
    with tables(session, log, tables=PATTERN) as frames:
        table_rows = {name: frame.count() for name, frame in frames.items()}

    def write(frames: LoggedTables, number: int) -> None:
        for name, frame in frames.items():
            frame.write.mode("overwrite").parquet(f"{place}/batches/{name}/{number}")

    batches = each_batch(session, write, log, tables=PATTERN, maxGroupsPerTrigger="50")
    batches = batches.option("checkpointLocation", str(place / "batched")).trigger(availableNow=True)
    batches.start().awaitTermination(500)
    found = {
        "is_connected": not isinstance(session, SparkSession),
        "changes": changes.count(),
        "table": session.sql("SELECT count(*) FROM made WHERE id = 3").first()[0],
        "written": len(list((place / "written").glob("*.ibb"))),
        "tables": table_rows,
        "batches": {
            path.name: [session.read.parquet(str(one)).count() for one in sorted(path.iterdir())]
            for path in sorted((place / "batches").iterdir())
        },
        "stream": session.read.parquet(str(place / "rows")).count(),
    }
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
