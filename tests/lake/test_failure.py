"""What becomes of the errors of Spark: one line with the cause."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibbmaster.errors import ChecksumError, Location, SparkJobError, UndecodableError
from ibbmaster.lake.failure import (
    HEAP,
    JAVA_GONE,
    NO_JAVA,
    NO_PYTHON,
    SCRATCH,
    TOO_SLOW,
    WORKER_GONE,
    Layer,
    cause_in,
    plain_errors,
)

ABORTED = (  # how Spark's scheduler begins
    "Job aborted due to stage failure: Task 1 in stage 44.0 failed 1 times, most recent failure: "
    "Lost task 1.0 in stage 44.0 (TID 38) (localhost executor driver): "
)


def in_worker(work: Callable[[object], object]) -> Callable[[Any], object]:
    return lambda spark: spark.sparkContext.parallelize([1], 1).map(work).collect()


def checksum_error(_: object) -> None:
    raise ChecksumError(Location(file_no=1, page_no=2, page_offset=3), "found 1\nand more")


def wrapped_error(_: object) -> None:
    try:
        os.stat("/nonexistent/file")
    except OSError as error:
        raise UndecodableError("db.t", "c", "INT", "bad") from error


def full_disk(_: object) -> None:
    with open("/dev/full", "w") as file:
        file.write("x")


REAL = {  # what fails, and what is told
    "ours, in a worker": (
        in_worker(lambda number: checksum_error(number)),
        "binlog-000001.ibb page 2 offset 3: found 1",
    ),
    "ours, from another": (in_worker(lambda number: wrapped_error(number)), "db.t column c of type INT: bad"),
    "ours, while planning": (
        lambda spark: spark.read.format("ibb").option("startingGtid", "x").load("/nonexistent"),
        "option startingGtid: 'x' is not a valid GTID: expected domain-server-seqno, as in 0-1-100",
    ),
    "of Python": (in_worker(lambda number: number / 0), "ZeroDivisionError: division by zero"),
    "of the system, with a path": (
        in_worker(lambda _: os.stat("/nonexistent/file")),
        "/nonexistent/file: No such file or directory",
    ),
    "of the system, without": (in_worker(lambda number: full_disk(number)), "No space left on device"),
    "a killed worker": (in_worker(lambda _: os.kill(os.getpid(), signal.SIGKILL)), WORKER_GONE),
    "raised in SQL": (lambda spark: spark.sql("SELECT raise_error('0-1-3: not whole')").collect(), "0-1-3: not whole"),
    "a path that is not there": (lambda spark: spark.read.parquet("/none"), "Path does not exist: /none"),
    "a column that is not there": (
        lambda spark: spark.range(1).select("nope"),
        "A column, variable, or function parameter with name `nope` cannot be resolved. "
        "Did you mean one of the following? [`id`]",
    ),
    "below a file": (
        lambda spark: spark.range(1).write.parquet("/dev/null/x"),
        "/target: Parent path is not a directory: /dev/null",
    ),
    "where nothing can be made": (
        lambda spark: spark.range(1, numPartitions=1).write.mode("append").parquet("/proc"),
        "/target: Mkdirs failed to create /proc/_temporary/",
    ),
}


@pytest.mark.parametrize(("fail", "cause"), REAL.values(), ids=REAL)
def test_the_cause_of_a_real_error_is_told(spark, fail: Callable[[Any], object], cause: str) -> None:
    with pytest.raises(SparkJobError) as failed, plain_errors(Path("/target")):
        fail(spark)

    told = str(failed.value)
    assert told == cause or (cause.endswith("/") and told.startswith(cause))
    assert "\n" not in told
    assert failed.value.__suppress_context__


RECORDED = {  # layers as Spark 4.3 gave them, and what is told
    "a full disk, in a task": (
        [
            (
                "org.apache.spark.SparkException",
                "[TASK_WRITE_FAILED] Task failed while writing rows to file:/x. SQLSTATE: 58030",
            ),
            ("org.apache.parquet.util.AutoCloseables$ParquetCloseResourceException", "Unable to close resource"),
            ("org.apache.hadoop.fs.FSError", "java.io.IOException: No space left on device"),
            ("java.io.IOException", "No space left on device"),
        ],
        "/target: No space left on device",
    ),
    "a full disk, when all tasks are done": (
        [
            ("org.apache.hadoop.fs.FSError", "java.io.IOException: No space left on device"),
            ("java.io.IOException", "No space left on device"),
        ],
        "/target: No space left on device",
    ),
    "a full disk, where Spark sorts": (
        [
            ("org.apache.spark.SparkException", ABORTED + "java.io.IOException: No space left on device\n\tat java"),
            ("java.io.IOException", "No space left on device"),
        ],
        f"No space left on device, {SCRATCH}",
    ),
    "nothing but the text, from a cluster": (
        [
            (
                "org.apache.spark.SparkException",
                ABORTED + "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030\n"
                "\tat org.apache.spark\n"
                "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: /x (Permission denied)\n"
                "\t... 22 more\n",
            )
        ],
        "/x (Permission denied)",
    ),
    "a reason that is in the class alone": (
        [("java.nio.file.AccessDeniedException", "/target/x")],
        "/target/x: Permission denied",
    ),
    "no text inside": (
        [("org.apache.spark.SparkException", "it stopped"), ("java.io.EOFException", "")],
        "it stopped",
    ),
    "no text at all": ([("java.lang.Error", "")], "Spark gave no reason but java.lang.Error"),
    "too little memory": ([("java.lang.OutOfMemoryError", "Java heap space")], HEAP),
    "too little memory in a task": (
        [("org.apache.spark.SparkException", ABORTED + "java.lang.OutOfMemoryError: Java heap space\n\tat java")],
        HEAP,
    ),
    "no Python where the workers are": (
        [("java.io.IOException", 'Cannot run program "/none/python": error=2, No such file or directory')],
        NO_PYTHON.format(python="/none/python"),
    ),
    "a Python that was too slow": (
        [
            ("org.apache.spark.SparkException", "Python worker failed to connect back. SQLSTATE: XXKST"),
            ("java.net.SocketTimeoutException", "Timed out while waiting for the Python worker to connect back"),
        ],
        TOO_SLOW,
    ),
    "no Java": ([("", "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")], NO_JAVA),
}


@pytest.mark.parametrize(("layers", "cause"), RECORDED.values(), ids=RECORDED)
def test_the_cause_of_a_recorded_error_is_told(layers: list[tuple[str, str]], cause: str) -> None:
    assert cause_in([Layer(*layer) for layer in layers], Path("/target")) == cause


def test_java_that_has_gone_is_told() -> None:
    from py4j.protocol import Py4JError, Py4JNetworkError

    for error in (
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o29.sc"),
        ConnectionRefusedError(111, "Connection refused"),
    ):
        with pytest.raises(SparkJobError) as failed, plain_errors():
            raise error
        assert str(failed.value) == JAVA_GONE


def test_a_reader_of_our_output_that_has_gone_is_no_error_of_spark() -> None:
    with pytest.raises(BrokenPipeError), plain_errors():
        raise BrokenPipeError


def test_a_machine_without_the_name_localhost_is_told() -> None:
    with pytest.raises(SparkJobError, match=r"^Spark needs the name localhost.*/etc/hosts"), plain_errors():
        socket.getaddrinfo("no-such-name.invalid", 1)


@pytest.mark.parametrize("package", ["ibbmaster", "pyarrow"])
def test_a_worker_without_the_package_is_one_line_with_the_remedy(package):
    """As Spark tells it: the text of a worker's traceback inside an exception of its scheduler."""
    traceback = (
        'org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File "worker.py", line 1, '
        f"in main\n    func = pickle.loads(obj)\nModuleNotFoundError: No module named '{package}'\n"
    )
    cause = cause_in([Layer("org.apache.spark.SparkException", ABORTED + traceback)])
    assert cause.startswith(f"a worker of Spark has no {package}: install 'ibbmaster[spark]' in its Python")
    assert "PYSPARK_PYTHON" in cause
    other = traceback.replace(package, "mine")
    assert cause_in([Layer("", other)]) == "ModuleNotFoundError: No module named 'mine'"
