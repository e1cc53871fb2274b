"""All kernels, compiled: what the rest of the program calls."""

from __future__ import annotations

import numpy as np

from ibbmaster.kernel.checking import check_groups
from ibbmaster.kernel.classic_groups import collect_classic_groups
from ibbmaster.kernel.collecting import collect_groups, index_events
from ibbmaster.kernel.columns import copy_strings, gtid_texts, header_columns
from ibbmaster.kernel.converting import convert_groups
from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.fields import (
    PAIR_COLUMNS,
    Conversion,
    EventColumn,
    Field,
    Found,
    GroupColumn,
    MapColumn,
    Progress,
    RowField,
    StepColumn,
    VariantColumn,
)
from ibbmaster.kernel.framing import frame_bytes, renumber
from ibbmaster.kernel.groups import frame_groups, frame_record
from ibbmaster.kernel.pump import pump, pump_nodes
from ibbmaster.kernel.rows import decode_rows

__all__ = [
    "check_groups",
    "collect_classic_groups",
    "collect_groups",
    "convert_groups",
    "copy_strings",
    "decode_rows",
    "frame_bytes",
    "frame_groups",
    "frame_record",
    "gtid_texts",
    "header_columns",
    "index_events",
    "pump",
    "pump_nodes",
    "renumber",
    "warm_up",
    "warm_up_columns",
]


def warm_up() -> None:
    """Call each kernel of a server once, so that none is compiled while somebody waits."""
    block = np.zeros(PAGE, dtype=np.uint8)
    state = np.zeros(int(Field.SIZE), dtype=np.int64)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    state[Field.PREFIX_SIZE] = 1
    head, prefix = np.zeros(32, dtype=np.uint8), np.zeros(8, dtype=np.uint8)
    pairs = np.zeros((4, PAIR_COLUMNS), dtype=np.int64)
    out = np.zeros(256, dtype=np.uint8)
    segments = np.zeros((0, 3), dtype=np.int64)
    check_groups(block, 0, state, pairs, np.zeros((1, Found.COLUMNS), dtype=np.int64), out)
    frame_groups(block, 1, state, head, prefix, pairs, out.copy(), out, segments, segments)
    frame_bytes(block, 0, 0, state, head, prefix, out, segments)
    frame_record(block, 0, state, head, prefix, out, segments)
    renumber(out, 0, 0, 0)
    progress = np.zeros(int(Progress.SIZE), dtype=np.int64)
    wanted = np.zeros(2, dtype=np.int64)
    pump(-1, -1, progress, block, state, head, prefix, pairs, out.copy(), out, segments, wanted, out.copy())
    pump_nodes(
        -1,
        -1,
        progress,
        np.zeros((0, 2), dtype=np.int64),
        block,
        state,
        head,
        prefix,
        out,
        segments,
        wanted,
        out.copy(),
    )
    numbers = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)  # not writable, as what is read from files
    convert_groups(source, 0, numbers, pairs, block.copy(), block.copy(), out, out.copy())


def warm_up_columns() -> None:
    """Call each kernel that makes columns once."""
    block = np.zeros(PAGE, dtype=np.uint8)
    data = np.zeros(64, dtype=np.uint8)
    groups = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64)
    events = np.zeros((1, EventColumn.COLUMNS), dtype=np.int64)
    numbers = np.zeros(1, dtype=np.int64)
    state = np.zeros(int(Field.SIZE), dtype=np.int64)
    collect_groups(block, 0, state, 0, 0, 0, groups, data)
    conversion = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)
    collect_classic_groups(source, 0, conversion, block, block, 0, 0, 0, state, groups, data)
    for source in (data, np.frombuffer(bytes(64), dtype=np.uint8)):  # a long event is not in a buffer of ours
        index_events(source, groups, 0, events)
        header_columns(source, events, 0, np.zeros(1, dtype=np.int32), numbers, numbers, np.zeros(1, dtype=np.int32))
        copy_strings(source, numbers, numbers, data, 0, 0, np.zeros(2, dtype=np.int32), data)
        decode_rows(
            source,
            events,
            0,
            np.zeros(int(RowField.SIZE), dtype=np.int64),
            np.zeros((1, 2), dtype=np.int64),
            data,
            np.zeros((1, MapColumn.COLUMNS), dtype=np.int64),
            0,
            np.zeros((1, VariantColumn.COLUMNS), dtype=np.int64),
            0,
            np.zeros((1, StepColumn.COLUMNS), dtype=np.int64),
            np.zeros((2, 1), dtype=np.int64),
            np.zeros((2, 1), dtype=np.uint8),
            numbers,
            numbers,
        )
    gtid_texts(groups, numbers, 0, np.zeros(2, dtype=np.int32), data)
