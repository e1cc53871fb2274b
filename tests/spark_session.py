"""A session of Spark as tests have it: on this machine alone, or of a cluster or a server; it says nothing itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ibbmaster.spark import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = {"spark.sql.session.timeZone": "UTC", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


def open_session(master: str, *, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The caller stops it. Times are UTC, as in a binlog."""
    from pyspark.sql import SparkSession

    settings = {**TIMES, **(settings or {})}
    builder: Any = SparkSession.builder.appName(name)
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark takes the first python3 otherwise
        builder = builder.master(master)
        settings |= {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):  # the name of this machine may lead nowhere
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    register(session)
    return session
