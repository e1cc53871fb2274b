"""The Spark session of a job."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT = "sc://"  # a server of Spark Connect
CONNECT_PORT = 15002  # where none is named
CONNECT_SECONDS = 30.0
OF_TABLES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # every reader knows these
}


def open_session(master: str | None, *, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the formats of this package; on this machine alone unless `master` names a cluster or a server.

    The caller stops it. Times are UTC, as in a binlog.

    Raises:
        ConfigurationError: there is no Java.
    """
    from pyspark.sql import SparkSession

    from ibbmaster.spark import register

    master = master or "local[*]"
    settings = settings or {}
    if master.startswith(CONNECT):
        session = _of_server(master, {**OF_TABLES, **settings})
        register(session)
        return session
    check_java(os.environ)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark takes the first python3 otherwise
    builder = SparkSession.builder.appName(name).master(master)
    if master.startswith("local"):  # no other machine needs to find this one, whose name may lead nowhere
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
    builder = builder.config("spark.ui.enabled", "false").config(
        "spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower()
    )
    for key, value in {**OF_TABLES, **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    accumulators: Any = session.sparkContext._accumulatorServer
    accumulators.handle_error = _say_nothing  # it prints a traceback when Java has gone, which the job reports, too
    register(session)
    return session


def _of_server(url: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a server of Spark Connect, which needs no Java here.

    Raises:
        ConfigurationError: nothing listens there, or a package is missing for it.
    """
    from pyspark.errors import PySparkImportError
    from pyspark.sql import SparkSession

    _expect_server(url)
    try:
        builder = SparkSession.builder.remote(url)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except PySparkImportError as error:
        raise ConfigurationError(f"{url} is a server of Spark Connect: pip install 'pyspark[connect]'") from error


def _expect_server(url: str) -> None:
    """Spark itself would look for it for ten minutes.

    Raises:
        ConfigurationError: nothing listens there.
    """
    try:
        place = urlsplit(url)
        address = (place.hostname or "", place.port or CONNECT_PORT)
        socket.create_connection(address, timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else error
        raise ConfigurationError(f"--master {url}: {reason}; expected {CONNECT}HOST:PORT") from error


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
