"""Why a job on Spark has failed, in one line.

Spark wraps an error once for each layer it passes, and what a Python worker has raised comes
to the driver as nothing but the text of its traceback.
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ibbmaster.errors import SparkJobError

LAYERS_MAX = 50  # of exceptions around exceptions
TRACEBACK = "Traceback (most recent call last):"
OURS = re.compile(r"^ibbmaster\.errors\.\w+: (.*)$", re.MULTILINE)
ERRNO = re.compile(r"^\w+: \[Errno \d+\] (?P<reason>.*?)(?:: '(?P<path>.*)')?$")
PACKAGES = re.compile(  # what a worker imports before it can say anything of its own
    r"^ModuleNotFoundError: No module named '(ibbmaster|pyarrow|pandas|numpy|google_crc32c|crcmod)\b", re.MULTILINE
)
TASK = re.compile(r"^Job aborted due to stage failure: .* \(TID \d+\) \([^)]*\): ")
JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*(?:: |$)")
CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]*\] ")
STATE = re.compile(r"\.? SQLSTATE: \w{5}\b.*$")
OF_FILES = ("java.io.", "java.nio.", "org.apache.hadoop.")
KILLED_WORKER = "Python worker exited unexpectedly"
SLOW_WORKER = "Python worker failed to connect back"
FULL = ("No space left on device", "Disk quota exceeded")
REASONS = {  # of exceptions that have only the path as their text
    "java.nio.file.AccessDeniedException": "Permission denied",
    "java.nio.file.NoSuchFileException": "No such file or directory",
}
WORKER_GONE = "a Python worker of Spark has ended: it was killed, perhaps for want of memory"
TOO_SLOW = (
    f"{SLOW_WORKER}: Spark gives ten seconds to the one that plans a query, which is too little on a machine that is "
    "as busy as this one: run it again"
)
JAVA_GONE = "Java, in which Spark runs, has ended: it was killed, perhaps for want of memory"
NO_JAVA = "Spark does not start: the lines above tell why; it needs Java 17 or later"
NO_LOCALHOST = (
    "Spark needs the name localhost, which this machine does not know: /etc/hosts tells it in `127.0.0.1 localhost`"
)
NO_PACKAGE = (
    "a worker of Spark has no {package}: install 'ibbmaster[spark]' in its Python, or name a Python of the workers "
    "that has it in the variable PYSPARK_PYTHON; to a cluster `ibbmaster lake` takes it along with --archives WHEEL"
)
NO_PROGRAM = re.compile(r'Cannot run program "([^"\n]*)"')
NO_PYTHON = (
    "Spark finds no {python} where it wants to run Python: name one that driver and workers have in the variable "
    "PYSPARK_PYTHON"
)
HEAP = "Java has not enough memory: --conf spark.driver.memory=4g gives it more"
SCRATCH = "where Spark keeps its temporary files: --conf spark.local.dir=DIR puts them elsewhere"


class Layer(NamedTuple):
    """One of the exceptions around exceptions; the class is empty if only the text is known."""

    class_name: str
    text: str


@contextlib.contextmanager
def plain_errors(target: Path | None = None) -> Iterator[None]:
    """What Spark raises becomes one line.

    Raises:
        SparkJobError: the job has failed; says why and, if files could not be written, `target`.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except BrokenPipeError:  # of our own output
        raise
    except socket.gaierror as error:
        raise SparkJobError(NO_LOCALHOST) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        layers = layers_of(error)
        raise SparkJobError(cause_in(layers, target) if layers else JAVA_GONE) from None


def layers_of(error: BaseException) -> list[Layer]:
    """The exceptions inside an error of PySpark or Py4J, the outermost first; none if Java has gone."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    layers: list[Layer] = []
    try:
        while java is not None and len(layers) < LAYERS_MAX:
            layers.append(Layer(java.getClass().getName(), java.getMessage() or ""))
            java = java.getCause()
    except (Py4JError, OSError):  # gone since
        pass
    if layers:
        return layers
    if isinstance(error, Py4JJavaError | PySparkException):
        return [Layer("", str(error))]
    return []


def cause_in(layers: Sequence[Layer], target: Path | None = None) -> str:
    """The innermost error that says something; one of ours or of Python before those of Java."""
    text = "\n".join(layer.text for layer in layers)
    ours = OURS.findall(text)
    if ours:
        return str(ours[-1])
    missing = PACKAGES.findall(text)
    if missing:
        return NO_PACKAGE.format(package=missing[-1])
    if TRACEBACK in text:
        return _python_error(text)
    if KILLED_WORKER in text:
        return WORKER_GONE
    if SLOW_WORKER in text:
        return TOO_SLOW
    if "[JAVA_GATEWAY_EXITED]" in text:
        return NO_JAVA
    absent = NO_PROGRAM.search(text)
    if absent is not None:
        return NO_PYTHON.format(python=absent[1])
    names = text + " ".join(layer.class_name for layer in layers)
    if "java.lang.OutOfMemoryError" in names:
        return HEAP
    reasons = [(reason, layer.class_name) for layer in layers for reason in _reasons(layer)]
    if not reasons:
        return f"Spark gave no reason but {layers[-1].class_name or 'that it failed'}"
    reason, class_name = reasons[-1]
    if reason in FULL and "FSError" not in names:
        return f"{reason}, {SCRATCH}"  # what goes to the target goes through Hadoop, whose FSError that is
    is_nameless = class_name.startswith(OF_FILES) and str(target) not in reason
    return f"{target}: {reason}" if target is not None and is_nameless else reason


def _python_error(text: str) -> str:
    """What the last traceback ends with."""
    lines = text.rpartition(TRACEBACK)[2].splitlines()
    line = next((line for line in lines if line.strip() and not line.startswith(" ")), "a Python worker has failed")
    found = ERRNO.match(line)
    if found is not None:
        return f"{found['path']}: {found['reason']}" if found["path"] else found["reason"]
    return STATE.sub("", line)


def _reasons(layer: Layer) -> list[str]:
    """What an exception says and, if its text holds a stack trace, what those inside it say."""
    lines = [line.strip() for line in layer.text.splitlines() if line.strip()]
    inner = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    found = [_plain(line) for line in [*lines[:1], *inner]]
    if found and layer.class_name in REASONS:
        found[0] += f": {REASONS[layer.class_name]}"
    return [reason for reason in found if reason]


def _plain(line: str) -> str:
    """A message without what Spark and Java put around it."""
    line = TASK.sub("", line)
    while (found := JAVA_CLASS.match(line)) is not None:
        line = line[found.end() :]
    line = STATE.sub("", CONDITION.sub("", line))
    return re.sub(r"\bfile:(?=/)", "", re.sub(r" \(exists=\w+, cwd=.*\)$", "", line))
