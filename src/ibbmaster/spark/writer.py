"""The writer as Spark wants it; `write_options` and `log_writing` decide."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from .log_writing import Recorder, RunWriter, staging_path, write_log
from .write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Runs(WriterCommitMessage):
    paths: tuple[str, ...]


class IbbWriter(DataSourceArrowWriter):
    """Tasks and driver must see the same directory."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._staging = str(staging_path(options.path))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.taskAttemptId()
        runs = RunWriter(Path(self._staging) / f"task-{task}-{attempt}")
        recorder = Recorder(self._options, task)
        for batch in iterator:
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                for record in recorder.records(row):
                    runs.add(record)
        return Runs(tuple(runs.finish()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        paths = [path for message in messages if isinstance(message, Runs) for path in message.paths]
        try:
            write_log(paths, self._options, Path(self._staging))
        finally:
            self._clean()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._clean()

    def _clean(self) -> None:
        shutil.rmtree(self._staging, ignore_errors=True)
