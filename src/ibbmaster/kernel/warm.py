"""All kernels, compiled: what the rest of the program calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.checking import check_groups
from ibbmaster.kernel.classic_groups import collect_classic_groups
from ibbmaster.kernel.collecting import collect_groups, index_events
from ibbmaster.kernel.columns import copy_strings, gtid_texts, header_columns
from ibbmaster.kernel.converting import convert_groups
from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.fields import (
    CALL_WORDS,
    PAIR_COLUMNS,
    Conversion,
    EventColumn,
    Field,
    Found,
    GroupColumn,
    MapColumn,
    OpenColumn,
    Progress,
    RowField,
    StepColumn,
    VariantColumn,
)
from ibbmaster.kernel.framing import frame_bytes, renumber
from ibbmaster.kernel.groups import frame_groups, frame_record
from ibbmaster.kernel.pump import pump, pump_nodes
from ibbmaster.kernel.rows import decode_rows, find_open

__all__ = [
    "STEPS",
    "check_groups",
    "collect_classic_groups",
    "collect_groups",
    "convert_groups",
    "copy_strings",
    "decode_rows",
    "find_open",
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
]


def _workspace() -> tuple[np.ndarray, ...]:
    """What framing needs: pages, state, head, prefix, room for packets, segments."""
    state = np.zeros(int(Field.SIZE), dtype=np.int64)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    state[Field.PREFIX_SIZE] = 1
    head, prefix = np.zeros(32, dtype=np.uint8), np.zeros(8, dtype=np.uint8)
    out, segments = np.zeros(256, dtype=np.uint8), np.zeros((0, 3), dtype=np.int64)
    return np.zeros(PAGE, dtype=np.uint8), state, head, prefix, out, segments


def _pairs() -> np.ndarray:
    return np.zeros((4, PAIR_COLUMNS), dtype=np.int64)


def _frame() -> None:
    pages, state, head, prefix, out, segments = _workspace()
    frame_bytes(pages, 0, 0, state, head, prefix, out, segments)
    frame_record(pages, 0, state, head, prefix, out, segments)
    renumber(out, 0, 0, 0)


def _frame_groups() -> None:
    pages, state, head, prefix, out, segments = _workspace()
    frame_groups(pages, 1, state, head, prefix, _pairs(), out.copy(), out, segments, segments)


def _pump() -> None:
    pages, state, head, prefix, out, segments = _workspace()
    progress = np.zeros(int(Progress.SIZE), dtype=np.int64)
    vectors, wanted = np.zeros((0, 2), dtype=np.int64), np.zeros(CALL_WORDS, dtype=np.int64)
    pump(-1, -1, progress, pages, state, head, prefix, _pairs(), out.copy(), out, segments, vectors, wanted, out.copy())


def _pump_nodes() -> None:
    pages, state, head, prefix, out, segments = _workspace()
    progress = np.zeros(int(Progress.SIZE), dtype=np.int64)
    nodes, vectors = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    wanted = np.zeros(CALL_WORDS, dtype=np.int64)
    pump_nodes(-1, -1, progress, nodes, pages, state, head, prefix, out, segments, vectors, wanted, out.copy())


def _convert() -> None:
    numbers = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)  # not writable, as what is read from files
    pages = np.zeros(PAGE, dtype=np.uint8)
    out = np.zeros(256, dtype=np.uint8)
    convert_groups(source, 0, numbers, _pairs(), pages.copy(), pages, out, out.copy())


def _check() -> None:
    pages, state, _, _, out, _ = _workspace()
    check_groups(pages, 0, state, _pairs(), np.zeros((1, Found.COLUMNS), dtype=np.int64), out)


def _collect() -> None:
    pages, state, _, _, _, _ = _workspace()
    state[:] = 0
    groups = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64)
    data = np.zeros(64, dtype=np.uint8)
    collect_groups(pages, 0, state, 0, 0, 0, groups, data)
    conversion = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)
    collect_classic_groups(source, 0, conversion, pages, pages, 0, 0, 0, state, groups, data)
    gtid_texts(groups, np.zeros(1, dtype=np.int64), 0, np.zeros(2, dtype=np.int32), data)


def _decode(source: np.ndarray) -> None:
    groups = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64)
    events = np.zeros((1, EventColumn.COLUMNS), dtype=np.int64)
    numbers = np.zeros(1, dtype=np.int64)
    data = np.zeros(64, dtype=np.uint8)
    index_events(source, groups, 0, events)
    header_columns(source, events, 0, np.zeros(1, dtype=np.int32), numbers, numbers, np.zeros(1, dtype=np.int32))
    copy_strings(source, numbers, numbers, data, 0, 0, np.zeros(2, dtype=np.int32), data)
    open_tables = np.zeros((1, OpenColumn.COLUMNS), dtype=np.int64)
    find_open(open_tables, 0, 1)
    decode_rows(
        source,
        events,
        0,
        np.zeros(int(RowField.SIZE), dtype=np.int64),
        open_tables,
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


def _decode_own() -> None:
    _decode(np.zeros(64, dtype=np.uint8))


def _decode_long() -> None:
    _decode(np.frombuffer(bytes(64), dtype=np.uint8))  # a long event is not in a buffer of ours


STEPS: dict[KernelSet, tuple[Callable[[], None], ...]] = {  # each calls some kernels once, for arguments as they come
    KernelSet.SERVE: (_frame_groups, _frame, _pump, _pump_nodes),
    KernelSet.IMPORT: (_convert,),
    KernelSet.VERIFY: (_check,),
    KernelSet.READ: (_collect, _decode_own, _decode_long),
}


def warm_up(sets: Iterable[KernelSet]) -> None:
    """Call each kernel of some sets once, so that none is loaded while somebody waits."""
    for kernel_set in sets:
        for step in STEPS[kernel_set]:
            step()
