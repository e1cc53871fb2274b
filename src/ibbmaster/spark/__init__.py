"""Binlogs as DataFrames: `spark.read.format("ibb")` and `spark.readStream.format("ibb")`. Needs the extra `spark`.

What is read is decided by `options` and `ibbmaster.tables.arrow`, which need no Spark; `source`, `stream`,
`writer` and `partition` are the classes Spark wants.

May import: logs, replication, rows, schema, sqltext, storage, tables.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

WORKER_PYTHON = "spark.sql.execution.pyspark.python"  # of those that plan and read a data source
KNOWN_ALREADY = "[DATA_SOURCE_ALREADY_EXISTS]"
PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def register(session: SparkSession) -> None:
    """Make the formats `ibb` and `mariadb_binlog` known to a session. An installed package registers `ibb` itself; this
    is for other places, and for `mariadb_binlog`. On this machine alone Python workers become those of this Python,
    unless PYSPARK_PYTHON or spark.pyspark.python names another: Spark takes the first `python3` of PATH."""
    _use_this_python(session)
    from .source import IbbDataSource, MariadbBinlogDataSource

    for source in (IbbDataSource, MariadbBinlogDataSource):
        _register(session, source)


def _register(session: SparkSession, source: type[DataSource]) -> None:
    from pyspark.errors import PySparkException

    try:
        session.dataSource.register(source)
    except PySparkException as error:
        if KNOWN_ALREADY not in str(error):
            raise


def _use_this_python(session: SparkSession) -> None:
    context = getattr(session, "_sc", None)  # none of a session of Spark Connect
    if context is None or not context.master.startswith("local"):
        return
    is_named = any(os.environ.get(name) for name in PYTHONS) or context.getConf().contains("spark.pyspark.python")
    if not is_named and session.conf.get(WORKER_PYTHON, None) is None:
        context.pythonExec = sys.executable
        session.conf.set(WORKER_PYTHON, sys.executable)
