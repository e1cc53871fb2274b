"""The Spark session of a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(master: str | None, *, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the formats of this package; on this machine alone unless `master` names a cluster.

    The caller stops it. Times are UTC, as in a binlog.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark takes the first python3 otherwise
    from pyspark.sql import SparkSession

    from ibbmaster.spark import register

    master = master or "local[*]"
    builder = SparkSession.builder.appName(name).master(master)
    if master.startswith("local"):  # nobody else needs to find this machine, whose name may lead nowhere
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # every reader knows these
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session
