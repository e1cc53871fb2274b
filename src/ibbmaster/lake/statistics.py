"""How much an archive holds: groups, bytes and rows by domain, hour, table; its biggest groups; pictures of it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.lake.placing import make_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIGGEST = 10
Table = list[dict[str, object]]


def statistics(session: SparkSession, path: str) -> dict[str, Table]:
    """Tables by name: domains, hours, biggest, and tables.

    Raises:
        FormatError, EventError: the archive is damaged.
    """
    from pyspark.sql import functions as f

    groups = session.read.format("ibb").option("granularity", "groups").load(path)
    groups = groups.select("_gtid", "_domain", "_commit_ts", "events", "bytes", "tables").cache()
    sums = (f.count("*").alias("groups"), f.sum("bytes").alias("bytes"), f.sum("events").alias("events"))
    hours = groups.groupBy(f.date_trunc("hour", "_commit_ts").alias("hour")).agg(*sums).orderBy("hour")
    biggest = groups.orderBy(f.desc("bytes"), "_gtid").limit(BIGGEST)
    in_tables = (
        groups.select(f.explode("tables").alias("table"), "_gtid")
        .groupBy("table")
        .agg(f.countDistinct("_gtid").alias("groups"))
    )
    changes = (
        session.read.format("ibb")
        .option("columns", "_table,_change_type")
        .load(path)
        .where("_change_type != 'update_preimage'")
        .groupBy(f.col("_table").alias("table"))
        .agg(
            f.count("*").alias("rows"),
            f.count_if(f.col("_change_type") == "insert").alias("inserts"),
            f.count_if(f.col("_change_type") == "update_postimage").alias("updates"),
            f.count_if(f.col("_change_type") == "delete").alias("deletes"),
        )
    )
    found = {
        "domains": _table(groups.groupBy(f.col("_domain").alias("domain")).agg(*sums).orderBy("domain").collect()),
        "hours": _table(hours.collect()),
        "biggest": _table(biggest.selectExpr("_gtid AS gtid", "bytes", "events", "tables").collect()),
        "tables": _table(in_tables.join(changes, "table", "left").orderBy("table").collect()),
    }
    groups.unpersist()
    return found


def _table(rows: Sequence[object]) -> Table:
    return [row.asDict() for row in rows]  # type: ignore[attr-defined]


def draw(found: dict[str, Table], directory: Path) -> list[Path]:
    """PNG pictures and a page with them and the tables; returns what was written.

    Raises:
        StoreError: the directory cannot be made.
    """
    import matplotlib as mpl

    mpl.use("agg")
    make_directory(directory)
    pictures = [
        _bars(found["hours"], "hour", "bytes", "Bytes by hour", directory / "hours.png"),
        _bars(found["tables"], "table", "rows", "Rows by table", directory / "tables.png"),
        _bars(found["domains"], "domain", "groups", "Groups by domain", directory / "domains.png"),
    ]
    page = directory / "index.html"
    page.write_text(_page(found, pictures), encoding="utf-8")
    return [*pictures, page]


def _bars(table: Table, name: str, value: str, title: str, path: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    labels = [str(row[name]) for row in table]
    axes.bar(range(len(table)), [float(row[value] or 0) for row in table])  # type: ignore[arg-type]
    step = max(1, len(labels) // 24)
    axes.set_xticks(range(0, len(labels), step), labels[::step], rotation=45, ha="right")
    axes.set_title(title)
    axes.set_ylabel(value)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def _page(found: dict[str, Table], pictures: Sequence[Path]) -> str:
    parts = [
        "<!doctype html><meta charset=utf-8><title>binlog archive</title><style>",
        "body{font-family:sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:right}</style>",
    ]
    parts += [f'<p><img src="{picture.name}" alt="{picture.stem}">' for picture in pictures]
    for name, table in found.items():
        parts.append(f"<h2>{html.escape(name)}</h2><table>")
        if table:
            parts.append("<tr>" + "".join(f"<th>{html.escape(str(key))}" for key in table[0]))
        for row in table:
            parts.append("<tr>" + "".join(f"<td>{html.escape(str(value))}" for value in row.values()))
        parts.append("</table>")
    return "\n".join(parts) + "\n"
