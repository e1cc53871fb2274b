"""What each PySpark has to do, as a program: reads a log in every way, and prints what it has found as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark

from ibbmaster.lake.session import open_session
from ibbmaster.lake.snapshots import snapshot
from ibbmaster.lake.verifying import verify_archive
from ibbmaster.spark import register


def stream_of(session, log: str, place: Path) -> int | str:
    """How many changes a stream gives, or the line in which it says that there is none."""
    frame = session.readStream.format("ibb").option("table", "shop.parent").load(log)
    given = {"path": str(place / "rows"), "checkpointLocation": str(place / "checkpoint")}
    query = frame.writeStream.format("parquet").options(**given).trigger(availableNow=True).start()
    try:
        query.awaitTermination(300)
    except Exception as error:
        return next(line for line in str(error).splitlines() if "ibbmaster.errors" in line)
    return session.read.parquet(given["path"]).count()


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
        "snapshot": snapshot(session, log, "shop.parent").count(),
        "groups": verify_archive(session, log).totals.groups,
        "written": len(list((place / "written").glob("*.ibb"))),
        "stream": stream_of(session, log, place),
    }
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
