"""Binlogs as DataFrames: `spark.read.format("ibb")` and `spark.readStream.format("ibb")`. Needs the extra `spark`.

What is read is decided by `options` and `ibbmaster.arrow`, which need no Spark; `source`, `stream`,
`writer` and `partition` are the classes Spark wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(session: SparkSession) -> None:
    """Make the formats `ibb` and `mariadb_binlog` known to a session.

    `ibb` registers itself where the package is installed; this is for places where Spark does
    not look for it, and for `mariadb_binlog`.
    """
    from ibbmaster.spark.source import IbbDataSource, MariadbBinlogDataSource

    session.dataSource.register(IbbDataSource)
    session.dataSource.register(MariadbBinlogDataSource)
