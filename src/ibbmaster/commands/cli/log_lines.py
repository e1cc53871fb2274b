"""The lines of the log on standard error, as text or JSON: UTC time, level, and what happened to whom."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from ibbmaster.storage.codec.printable import printable


class TextRecords(logging.Formatter):
    """`2026-11-20T14:03:05.123Z WARNING connection 3 of repl@[::1]:3399 is too slow: dropped`."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return f"{self.formatTime(record)} {record.levelname} {printable(record.message)}"


class JsonRecords(TextRecords):
    """One object a line; what a message is about adds its own fields, see `log_fields` of a client."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        for argument in record.args if isinstance(record.args, tuple) else ():
            line |= getattr(argument, "log_fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


#: By their names in --log-format.
FORMS = {form.__name__.removesuffix("Records").lower(): form for form in (TextRecords, JsonRecords)}
DEFAULT = next(iter(FORMS))


def begin_log(form: str = DEFAULT, *, is_verbose: bool = False) -> None:
    """Log to standard error; only our own lines are verbose. Records lack thread, process and place in the code, which
    would take half their time."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # leaves out the place, as logging/__init__.py says
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
            handler.setFormatter(FORMS[form]())
    logging.getLogger("ibbmaster").setLevel(logging.DEBUG if is_verbose else logging.NOTSET)
