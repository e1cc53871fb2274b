"""The streaming reader as Spark wants it since PySpark 4.2."""

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from .stream_reader import GroupStreamReader
from .tracking import Limits


class IbbStreamReader(GroupStreamReader, SupportsTriggerAvailableNow):
    """Spark gives the beginning of a batch, and its limit."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # the names are Spark's
        """All there is if Spark says so, else as options limit it."""
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._limits()
        return self._next(start, limits)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark returns it for each batch; one of several is enough for all."""
        options = self._options
        if options.bytes_per_trigger_max is not None:
            return ReadMaxBytes(options.bytes_per_trigger_max)
        if options.groups_per_trigger_max is not None:
            return ReadMaxRows(options.groups_per_trigger_max)
        if options.files_per_trigger_max is not None:
            return ReadMaxFiles(options.files_per_trigger_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._offsets().freeze()
