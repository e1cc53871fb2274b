"""Exported tables as Delta tables.

Each run of an export is one transaction of a table's Delta log, which carries the run's
number: however often a run is written, it counts once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.disk.object_store import storage_options
from ibbmaster.disk.place import ObjectPath
from ibbmaster.errors import StoreError
from ibbmaster.lake.export_files import DAY, NO_DAY

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

APPLICATION = "ibbmaster-export"
ZONELESS = "timestampNtz"  # the feature of a protocol for moments without a time zone
LAYER = re.compile(r"(?:\x1b\[\d*m|\u21b3)+")
STACK = re.compile(r"\n\s+0: ")  # where RUST_BACKTRACE asks for it


def publish(directory: Path, runs: Sequence[Sequence[Path]]) -> None:
    """Bring the Delta log of a table up to date.

    `runs` has the Parquet files of each run in the order of the runs, none if a run has nothing of
    this table.

    Raises:
        StoreError: a column has changed its type, which Delta tables do not take, or the table cannot be
            read or written.
    """
    with plain_errors(directory):
        _publish(directory, runs)


@contextmanager
def plain_errors(directory: Path) -> Iterator[None]:
    """Errors of delta-rs in one line, with the place of a table."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it is not from delta-rs, and names the place
        raise StoreError(f"{directory}: {innermost(str(error))}") from error


def innermost(text: str) -> str:
    """The cause in an error of delta-rs, which shows errors inside errors as a tree with colours, and a stack trace."""
    lines = [" ".join(line.split()) for line in LAYER.split(STACK.split(text)[0])]
    return next((line for line in reversed(lines) if line), "delta-rs gave no reason")


def _publish(directory: Path, runs: Sequence[Sequence[Path]]) -> None:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable, Transaction

    place, options = str(directory), storage_options() if isinstance(directory, ObjectPath) else None
    table = DeltaTable(place, storage_options=options) if DeltaTable.is_deltatable(place, options) else None
    published = (table.transaction_version(APPLICATION) or 0) if table is not None else 0
    for number, files in enumerate(runs, start=1):
        if number <= published or not files:
            continue
        schema = _schema_of(files[0])
        if table is None:
            table = DeltaTable.create(place, schema, partition_by=[DAY], storage_options=options)
        else:
            _widen(table, schema, directory)
        table.create_write_transaction(
            [_action(path, directory) for path in files],
            mode="append",
            schema=pa.schema(table.schema().to_arrow()),
            partition_by=[DAY],
            commit_properties=CommitProperties(app_transactions=[Transaction(APPLICATION, number)]),
        )
        table.update_incremental()


def _schema_of(path: Path) -> pa.Schema:
    """The columns of a Parquet file, and the one that its directory names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return pq.read_schema(file).remove_metadata().append(pa.field(DAY, pa.date32()))


def _widen(table: DeltaTable, schema: pa.Schema, directory: Path) -> None:
    """Add the columns that a table has got since its last run."""
    from deltalake import Schema

    known = {field.name: field.type for field in table.schema().fields}
    fresh = []
    for field in Schema.from_arrow(schema).fields:
        if field.name not in known:
            fresh.append(field)
        elif field.type != known[field.name]:
            raise StoreError(
                f"{directory}: column {field.name} has another type now: export this table into a new directory"
            )
    if fresh:
        have_features(table, schema)
        table.alter.add_columns(fresh)
        table.update_incremental()


def have_features(table: DeltaTable, schema: pa.Schema) -> None:
    """Give a table the feature that columns of these types need: a MERGE that adds such columns does not."""
    import pyarrow as pa
    from deltalake import TableFeatures

    is_needed = any(pa.types.is_timestamp(one) and one.tz is None for one in schema.types)
    if is_needed and ZONELESS not in (table.protocol().reader_features or ()):
        table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


def feature_commit(before: DeltaTable) -> bytes:
    """What `have_features` commits, for a table that cannot be opened for want of it; `before` is what it was then."""
    protocol = before.protocol()
    known = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    raised: dict[str, Any] = {name: sorted({*(found or ()), ZONELESS}) for name, found in known.items()}
    raised |= {"minReaderVersion": 3, "minWriterVersion": 7}
    return b'{"commitInfo":{"operation":"ADD FEATURE"}}\n' + json.dumps({"protocol": raised}).encode()


def _action(path: Path, directory: Path) -> AddAction:
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction

    status = path.stat()
    with path.open("rb") as file:
        count = pq.read_metadata(file).num_rows
    day = path.parent.name.partition("=")[2]
    return AddAction(
        path=str(path.relative_to(directory)),
        size=status.st_size,
        partition_values={DAY: None if day == NO_DAY else day},
        modification_time=int(status.st_mtime * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": count}),
    )
