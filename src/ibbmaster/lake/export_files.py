"""The Parquet files of an export, written where the log is read: each worker writes those of the ranges that it has.

Invariants:
- No two attempts of a task write files of the same names, and a file counts only where the driver has the result of
  its attempt: what a retried or speculative one has left does not
  (test_what_an_attempt_has_left_that_does_not_count_is_removed).
- What is held of all tables of a worker is bounded, and so is the number of open files
  (test_rows_are_divided_by_the_day_of_their_commit).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ibbmaster.arrow.many_tables import TablesTask, read_tables
from ibbmaster.disk.local import FULL
from ibbmaster.disk.object_store import client_of
from ibbmaster.disk.place import ObjectPath
from ibbmaster.disk.place import place as named_place
from ibbmaster.disk.uploading import temporary_directory
from ibbmaster.errors import DiskFullError, StoreError
from ibbmaster.lake.placing import sync

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

RUN_MARK = "ibb-run-"
DAY = "_date"
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
HELD_BYTES = 64 << 20  # of rows that wait for their file, of all tables together
OPEN_MAX = 64  # files of a worker


class WrittenFile(NamedTuple):
    """A file that is whole; `name` is relative to the export, `size` in bytes."""

    directory: str
    name: str
    rows: int
    size: int


class TaskFiles(NamedTuple):
    """What one attempt has made of its task."""

    attempt: str
    files: list[WrittenFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTarget:
    """Where a run writes. Sent to workers.

    Attributes:
        place: of the export.
        staging: where files of a directory wait until the run counts; those of an object store do not wait.
        run: its number.
        directories: by table those of their files.
        has_days: whether files are divided by the day of the commit.
    """

    place: str
    staging: str
    run: str
    directories: Mapping[str, str]
    has_days: bool = True


def run_and_attempt(name: str) -> tuple[str, str]:
    """Which run has written a file, and which attempt of a task; empty if none did, or it is of an older version."""
    parts = Path(name).stem.partition(RUN_MARK)[2].split("-")
    return parts[0], parts[1] if len(parts) > 2 else ""


def write_bundle(target: ExportTarget, tasks: Sequence[TablesTask]) -> TaskFiles:
    """Write the rows of some ranges; runs in a worker.

    Raises:
        StoreError: they cannot be written.
        FormatError, ClassicFormatError, EventError: as `read_tables`.
    """
    with DayFiles(target) as files:
        for task in tasks:
            for name, batch in read_tables(task):
                files.add(name, batch)
        return files.finish()


class DayFiles:
    """Files of many tables, one for each table and day, or more where these are very many."""

    def __init__(self, target: ExportTarget) -> None:
        self._target = target
        self._attempt = uuid.uuid4().hex[:12]
        self._place = named_place(target.place)
        self._resources = ExitStack()
        self._open: dict[tuple[str, str], tuple[ParquetWriter, str]] = {}
        self._held: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        self._held_bytes: dict[tuple[str, str], int] = {}
        self._files: list[WrittenFile] = []
        self._count = 0
        if isinstance(self._place, ObjectPath):
            self._directory = self._resources.enter_context(temporary_directory())
        else:
            self._directory = self._place / target.staging

    def __enter__(self) -> DayFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for writer, _name in self._open.values():  # of what has failed
            with suppress(OSError):
                _close(writer)
        self._resources.close()

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Have these rows, too.

        Raises:
            StoreError: files cannot be written.
        """
        directory = self._target.directories[table]
        for day, rows in _by_day(batch) if self._target.has_days else [("", batch)]:
            if len(rows):
                key = directory, day
                self._held.setdefault(key, []).append(rows)
                self._held_bytes[key] = self._held_bytes.get(key, 0) + rows.nbytes
        while sum(self._held_bytes.values()) > HELD_BYTES:
            self._write(max(self._held_bytes, key=self._held_bytes.__getitem__))

    def finish(self) -> TaskFiles:
        """Write what is held; what there is then.

        Raises:
            StoreError: files cannot be written.
        """
        for key in list(self._held):
            self._write(key)
        for key in list(self._open):
            self._close(key)
        return TaskFiles(self._attempt, self._files)

    def _write(self, key: tuple[str, str]) -> None:
        """Have the held rows of a file in it."""
        import pyarrow as pa

        rows = pa.Table.from_batches(self._held.pop(key))
        del self._held_bytes[key]
        with self._plain_errors():
            if key not in self._open:
                if len(self._open) == OPEN_MAX:
                    self._close(next(iter(self._open)))
                self._open[key] = self._create(key, rows.schema)
            self._open[key][0].write_table(rows)

    def _create(self, key: tuple[str, str], schema: pa.Schema) -> tuple[ParquetWriter, str]:
        from pyarrow.parquet import ParquetWriter

        directory, day = key
        name = f"{RUN_MARK}{self._target.run}-{self._attempt}-{self._count:05}.parquet"
        self._count += 1
        path = Path(directory, *([f"{DAY}={day}"] if day else []), name)
        (self._directory / path).parent.mkdir(parents=True, exist_ok=True)
        return ParquetWriter(self._directory / path, schema, store_schema=False), str(path)

    def _close(self, key: tuple[str, str]) -> None:
        """A file has all that it will have, which lasts from now on."""
        from pyarrow import parquet

        writer, name = self._open.pop(key)
        path = self._directory / name
        with self._plain_errors():
            _close(writer)
            size, rows = path.stat().st_size, parquet.read_metadata(path).num_rows
            if isinstance(self._place, ObjectPath):
                client_of(str(self._place)).upload(name, path, size)
                path.unlink()
            else:
                sync(path)
        self._files.append(WrittenFile(key[0], name, rows, size))

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = DiskFullError if error.errno in FULL else StoreError
            raise kind(f"{self._place}: {os.strerror(error.errno) if error.errno else error}") from None


def _close(writer: ParquetWriter) -> None:
    """End a file."""
    try:
        writer.close()
    finally:
        writer.is_open = False  # or it tries again when it is collected, and prints what happens then


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows by the day of their commit, in UTC, as a directory names it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.cast(batch["_commit_ts"], pa.date32())
    found = days.unique()
    for day in found:
        name = NO_DAY if not day.is_valid else day.as_py().isoformat()
        if len(found) == 1:
            yield name, batch
        else:
            yield name, batch.filter(pc.is_null(days) if not day.is_valid else pc.equal(days, day))
