"""The Spark session of a job."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(master: str | None, *, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the formats of this package; on this machine alone unless `master` names a cluster.

    The caller stops it. Times are UTC, as in a binlog.

    Raises:
        ConfigurationError: there is no Java.
    """
    check_java(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark takes the first python3 otherwise
    from pyspark.sql import SparkSession

    from ibbmaster.spark import register

    master = master or "local[*]"
    builder = SparkSession.builder.appName(name).master(master)
    if master.startswith("local"):  # no other machine needs to find this one, whose name may lead nowhere
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
    session.sparkContext.setLogLevel((settings or {}).get("spark.log.level", "OFF"))
    accumulators: Any = session.sparkContext._accumulatorServer
    accumulators.handle_error = _say_nothing  # it prints a traceback when Java has gone, which the job reports, too
    register(session)
    return session


def check_java(environment: Mapping[str, str]) -> None:
    """Refuse to start Spark where it would print pages about the Java it cannot find.

    Raises:
        ConfigurationError: there is no Java.
    """
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    if shutil.which(java, path=environment.get("PATH")) is None:
        found = f"JAVA_HOME is {home}, and there is no {java}" if home else "there is no java on the PATH"
        raise ConfigurationError(
            f"Spark needs Java 17 or later: {found}; install openjdk-17-jre-headless, or set JAVA_HOME"
        )


def _say_nothing(*request: object) -> None:
    """An error of a connection between Java and Python."""


@contextlib.contextmanager
def quiet_logging() -> Iterator[None]:
    """Keep Py4J, which calls the root logger, from making it write tracebacks to standard error."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def close_session(session: SparkSession) -> None:
    """End a session, also one whose Java has gone."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError, ConnectionError):
        session.stop()
