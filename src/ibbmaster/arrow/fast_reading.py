"""A range of a log as record batches, made by kernels: no Python object for an event or a row.

The reference, which takes what this does not: `ibbmaster.arrow.reading`.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ibbmaster.arrow.arrays import event_array, group_array, read_headers
from ibbmaster.arrow.collecting import event_batches
from ibbmaster.arrow.event_batch import EventBatch, wanted_groups
from ibbmaster.arrow.group_columns import GroupColumns
from ibbmaster.arrow.image_columns import IMAGES, ImageColumns
from ibbmaster.arrow.plan import ReadTask, find_fields, open_task, row_reader
from ibbmaster.arrow.read_options import Granularity, Undecodable
from ibbmaster.arrow.row_columns import RowColumns
from ibbmaster.arrow.shape import GROUP_FIELDS, arrow_schema, arrow_type
from ibbmaster.errors import IbbMasterError
from ibbmaster.event.types import type_name
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn
from ibbmaster.log.group_content import TableFilter
from ibbmaster.position import LOG_START, LogPosition

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS_MAX = 1 << 16  # in one record batch
GROUP_NAMES = {field.name for field in GROUP_FIELDS}
FAIL = Undecodable.FAIL
MADE = (Granularity.EVENTS, Granularity.GROUPS, Granularity.ROWS)
_is_frozen = False


def is_fast(task: ReadTask) -> bool:
    """Whether kernels make what a task wants."""
    options = task.options
    return options.undecodable is FAIL and options.granularity in MADE


def is_sound(task: ReadTask, kernels: Kernels) -> bool:
    """Whether kernels read every value of every row of a range without an error."""
    if task.options.host is not None:
        return False  # it would be sent twice
    options = dataclasses.replace(task.options, granularity=Granularity.ROWS, columns=())
    task = dataclasses.replace(task, options=options, fields=find_fields(options))
    try:
        for _ in fast_batches(task, kernels):
            pass
    except IbbMasterError:
        return False
    return True


def fast_batches(task: ReadTask, kernels: Kernels) -> Iterator[pa.RecordBatch]:
    """The record batches of one range; an empty one if there is nothing. Raises FormatError, ClassicFormatError: a file
    is damaged; EventError: an event is damaged, or a value cannot be read; it names the group."""
    freeze()
    maker = maker_of(task, kernels)
    has_yielded = False
    with closing(open_task(task)) as source:
        for batch in event_batches(source, task.log_range, kernels, is_strict=task.options.is_strict):
            wanted = batch.of_groups(wanted_groups(batch.groups, task.selection))
            for found in maker.record_batches(wanted):
                has_yielded = True
                yield found
    for found in maker.finish():
        has_yielded = True
        yield found
    if not has_yielded:
        yield no_rows(task)


def sound_batches(task: ReadTask, kernels: Kernels) -> Generator[pa.RecordBatch, None, LogPosition | None]:
    """The record batches of one range up to a damaged group; an empty one if there is nothing.

    Returns where the reference has to continue, None at the end of the range. A group is held
    until all of it was read: of one that turns out to be damaged nothing may have been given away.
    """
    freeze()
    maker = maker_of(task, kernels)
    held: list[pa.RecordBatch] = []
    begin, last_group = LOG_START, None
    has_yielded = False
    try:
        with closing(open_task(task)) as source:
            for batch in event_batches(source, task.log_range, kernels, is_strict=task.options.is_strict):
                if not len(batch.groups):
                    continue
                if batch.identity(0) != last_group:
                    held += maker.finish()
                    has_yielded |= bool(held)
                    yield from held
                    held, begin = [], batch.start(0)
                last_group = batch.identity(-1)
                held += maker.record_batches(batch.of_groups(wanted_groups(batch.groups, task.selection)))
        held += maker.finish()
    except IbbMasterError:
        return begin
    yield from held
    if not held and not has_yielded:
        yield no_rows(task)
    return None


def no_rows(task: ReadTask) -> pa.RecordBatch:
    """The record batch of a range without any."""
    import pyarrow as pa

    schema = arrow_schema(task.fields)
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class Maker(Protocol):
    """Makes record batches of batches of events."""

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]: ...

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What waited for more: the last group has ended."""


def maker_of(task: ReadTask, kernels: Kernels) -> Maker:
    """What makes the record batches of a task."""
    options = task.options
    tables = TableFilter(options.tables)
    match options.granularity:
        case Granularity.ROWS:
            return columns_of(task, kernels)
        case Granularity.GROUPS:
            return GroupColumns(task.fields, tables, kernels)
        case _:
            return EventColumns(task, kernels)


def columns_of(task: ReadTask, kernels: Kernels) -> RowColumns:
    """What makes the rows of a task."""
    options = task.options
    has_images = options.table is None and any(field.name in IMAGES for field in task.fields)
    columns = ImageColumns if has_images else RowColumns
    boundaries = task.versions.boundaries()
    reader, completes = row_reader(task), options.completes_keys
    return columns(task.fields, reader, options.zero_dates, kernels, boundaries, completes_keys=completes)


class EventColumns:
    """A row for each event."""

    def __init__(self, task: ReadTask, kernels: Kernels) -> None:
        self._task = task
        self._kernels = kernels

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(batch.events), EVENTS_MAX):
            part = dataclasses.replace(batch, events=batch.events[start : start + EVENTS_MAX])
            yield _event_batch(self._task, part, self._kernels)

    def finish(self) -> Iterator[pa.RecordBatch]:
        return iter(())


def _event_batch(task: ReadTask, batch: EventBatch, kernels: Kernels) -> pa.RecordBatch:
    import pyarrow as pa

    groups = np.ascontiguousarray(batch.events[:, EventColumn.GROUP])
    headers = read_headers(batch, kernels)
    arrays = []
    for field in task.fields:
        if field.name in GROUP_NAMES:
            arrays.append(group_array(field.name, batch, groups, kernels))
        elif field.name == "data":
            arrays.append(_data_array(batch, kernels))
        elif field.name == "type_name":
            arrays.append(_name_array(headers["types"]))
        else:
            arrays.append(event_array(field.name, batch, headers))
    schema = pa.schema([pa.field(field.name, arrow_type(field.type)) for field in task.fields])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _data_array(batch: EventBatch, kernels: Kernels) -> pa.Array:
    import pyarrow as pa

    from ibbmaster.arrow.arrays import string_array

    starts = np.ascontiguousarray(batch.events[:, EventColumn.START])
    sizes = np.ascontiguousarray(batch.events[:, EventColumn.SIZE])
    valid = np.ones(len(starts), dtype=np.uint8)
    return string_array(pa.binary(), batch.data, starts, sizes, valid, kernels)


def _name_array(types: Any) -> pa.Array:
    import pyarrow as pa

    known, places = np.unique(types, return_inverse=True)
    names = pa.array([type_name(int(event_type)) for event_type in known], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), names).cast(pa.string())


def freeze() -> None:
    """Let no collection look at what the compiler left: Spark's workers collect after every task."""
    global _is_frozen
    if not _is_frozen:
        _is_frozen = True
        gc.collect()
        gc.freeze()
