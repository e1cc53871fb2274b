"""All kernels, compiled: what the rest of the program calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.changing import ChangeOf, change_packets
from ibbmaster.kernel.checking import check_table
from ibbmaster.kernel.classic_framing import ClassicField, frame_classic
from ibbmaster.kernel.classic_groups import collect_classic_groups
from ibbmaster.kernel.classic_pump import pump_classic
from ibbmaster.kernel.collecting import collect_table, index_events
from ibbmaster.kernel.columns import copy_strings, gtid_texts, header_columns
from ibbmaster.kernel.converting import convert_groups
from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.fields import (
    CALL_WORDS,
    KEY_MAX,
    NODE_HEADER_NUMBERS,
    PAIR_COLUMNS,
    AnswerField,
    AnswerPlan,
    ChangedTables,
    ChangeField,
    ChangeVariantColumn,
    Checking,
    ChunkColumn,
    Collecting,
    Conversion,
    Decoded,
    DecodedRows,
    EventColumn,
    Field,
    FileRange,
    Found,
    Framing,
    GroupColumn,
    ImageColumn,
    KeptChanges,
    KeyColumn,
    KnownTables,
    LayoutColumn,
    LineColumn,
    LineField,
    LinePlan,
    MapColumn,
    NodeColumn,
    NodeScan,
    OpenColumn,
    PlacedField,
    Progress,
    Roles,
    RowField,
    Sending,
    StepColumn,
    UnreadNodeColumn,
    ValueColumn,
    VariantColumn,
)
from ibbmaster.kernel.framing import frame_bytes, renumber
from ibbmaster.kernel.groups import frame_node, frame_table, skip_table
from ibbmaster.kernel.leaving_out import FilterField, TableRow, leave_out
from ibbmaster.kernel.lines import write_heads, write_lines
from ibbmaster.kernel.node_search import find_nodes
from ibbmaster.kernel.placing import place_groups
from ibbmaster.kernel.pump import pump, pump_nodes
from ibbmaster.kernel.row_changes import collect_changes
from ibbmaster.kernel.row_values import locate_values, write_rows
from ibbmaster.kernel.rows import decode_rows, find_open
from ibbmaster.kernel.scan import index_chunks
from ibbmaster.kernel.texts import write_texts

__all__ = [
    "STEPS",
    "change_packets",
    "check_table",
    "collect_changes",
    "collect_classic_groups",
    "collect_table",
    "convert_groups",
    "copy_strings",
    "decode_rows",
    "find_nodes",
    "find_open",
    "frame_bytes",
    "frame_classic",
    "frame_node",
    "frame_table",
    "gtid_texts",
    "header_columns",
    "index_chunks",
    "index_events",
    "leave_out",
    "locate_values",
    "place_groups",
    "pump",
    "pump_classic",
    "pump_nodes",
    "renumber",
    "skip_table",
    "warm_up",
    "write_heads",
    "write_lines",
    "write_rows",
    "write_texts",
]


def _state() -> Any:
    state = np.zeros(int(Field.SIZE), dtype=np.int64)
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
    state[Field.PREFIX_SIZE] = 1
    return state


def _bytes(size: int) -> Any:
    return np.zeros(size, dtype=np.uint8)


def _table() -> Any:
    return np.zeros((1, ChunkColumn.COLUMNS), dtype=np.int32)


def _pairs() -> Any:
    return np.zeros((4, PAIR_COLUMNS), dtype=np.int64)


def _skips() -> Any:
    return np.zeros((0, 3), dtype=np.int64)


def _framing() -> Framing:
    return Framing(_state(), _bytes(32), _bytes(64), _bytes(8), _pairs(), _table(), _bytes(256), _skips())


def _frame() -> None:
    framing = _framing()
    pages = _bytes(PAGE)
    frame_bytes(pages, 0, 0, framing)
    frame_node(pages, 0, framing)
    renumber(framing.out, 0, 0, 0)


def _frame_groups() -> None:
    index_chunks(_bytes(PAGE), 0, _state(), _table(), 0)
    frame_table(_bytes(PAGE), 1, _framing())
    skip_table(_bytes(PAGE), 1, _framing(), _skips())


def _sending() -> Sending:
    progress, vectors = np.zeros(int(Progress.SIZE), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    return Sending(progress, vectors, np.zeros(CALL_WORDS, dtype=np.int64), _bytes(256))


def _pump() -> None:
    pump(-1, -1, _bytes(PAGE), _framing(), _sending())


def _pump_nodes() -> None:
    pump_nodes(-1, -1, np.zeros((0, NodeColumn.COLUMNS), dtype=np.int64), _bytes(PAGE), _framing(), _sending())


def _find_nodes() -> None:
    search, path, nodes = (
        np.zeros(shape, dtype=np.int64)
        for shape in (NodeScan.SIZE, (1, UnreadNodeColumn.COLUMNS), (1, NodeColumn.COLUMNS))
    )
    find_nodes(-1, search, path, _bytes(PAGE), np.zeros(NODE_HEADER_NUMBERS, dtype=np.int64), nodes)


def _roles() -> Roles:
    return Roles(_bytes(256), _bytes(256))


def _classic_framing() -> Framing:
    return _framing()._replace(state=np.zeros(int(ClassicField.SIZE), dtype=np.int64))


def _frame_classic() -> None:
    frame_classic(_bytes(PAGE), 0, _classic_framing(), _roles(), _skips())


def _pump_classic() -> None:
    pump_classic(-1, -1, _bytes(PAGE), _classic_framing(), _roles(), _sending())


def _change() -> None:
    state = np.zeros(int(ChangeOf.SIZE), dtype=np.int64)
    change_packets(_bytes(64), 0, state, _skips(), _roles(), _bytes(64))
    state, tables = np.zeros(int(FilterField.SIZE), dtype=np.int64), np.zeros((1, TableRow.COLUMNS), dtype=np.int64)
    leave_out(_bytes(64), 0, state, _skips(), _bytes(64), tables, tables, _bytes(64))


def _convert() -> None:
    numbers = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)  # not writable, as what is read from files
    convert_groups(source, 0, numbers, _pairs(), _roles(), _bytes(256), _bytes(PAGE))


def _check() -> None:
    nodes = np.zeros((1, Found.COLUMNS), dtype=np.int64)
    check_table(_bytes(PAGE), 0, Checking(_state(), _table(), _pairs(), nodes, _bytes(256)))


def _collect() -> None:
    groups, data = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64), _bytes(64)
    collecting = Collecting(_state(), _table(), groups, data)
    collect_table(_bytes(PAGE), 0, collecting, FileRange(0, 0, 0))
    conversion = np.zeros(int(Conversion.SIZE), dtype=np.int64)
    source = np.frombuffer(bytes(PAGE), dtype=np.uint8)
    collect_classic_groups(source, 0, conversion, _roles(), 0, 0, 0, collecting)
    gtid_texts(groups, np.zeros(1, dtype=np.int64), 0, np.zeros(2, dtype=np.int32), data)


def _place() -> None:
    groups, data = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64), _bytes(64)
    collect_table(_bytes(PAGE), 0, Collecting(_state(), _table(), groups, data), FileRange(0, 0, 0))
    place_groups(data, groups, 0, 0, np.zeros(int(PlacedField.SIZE), dtype=np.int64), _roles(), _bytes(64))


def _decode() -> None:
    source = np.frombuffer(bytes(64), dtype=np.uint8)  # not writable, as collected events
    groups = np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64)
    events = np.zeros((1, EventColumn.COLUMNS), dtype=np.int64)
    numbers = np.zeros(1, dtype=np.int64)
    data = np.zeros(64, dtype=np.uint8)
    index_events(source, groups, 0, events)
    header_columns(source, events, 0, np.zeros(1, dtype=np.int32), numbers, numbers, np.zeros(1, dtype=np.int32))
    copy_strings(source, numbers, numbers, data, 0, 0, np.zeros(2, dtype=np.int32), data)
    write_texts(source, numbers, numbers, data, 0, 0, 0, np.zeros(2, dtype=np.int32), data)
    open_tables = np.zeros((1, OpenColumn.COLUMNS), dtype=np.int64)
    find_open(open_tables, 0, 1)
    maps, variants, steps = (
        np.zeros((1, columns), dtype=np.int64)
        for columns in (MapColumn.COLUMNS, VariantColumn.COLUMNS, StepColumn.COLUMNS)
    )
    known = KnownTables(open_tables, data, maps, 0, variants, 0, steps)
    slots = np.zeros((2, 1), dtype=np.int64)
    decoded = Decoded(slots, np.zeros((2, 1), dtype=np.uint8), numbers, numbers, numbers)
    decode_rows(source, events[:0], np.zeros(int(RowField.SIZE), dtype=np.int64), known, decoded)


def _lines() -> None:
    source = np.frombuffer(bytes(64), dtype=np.uint8)  # not writable, as collected events
    groups, steps = (
        np.zeros((1, GroupColumn.COLUMNS), dtype=np.int64),
        np.zeros((1, LineColumn.COLUMNS), dtype=np.int64),
    )
    numbers, pairs = np.zeros(2, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    write_heads(groups[:0], numbers, _bytes(64), 0, 0, steps, _bytes(64), 0, numbers, _bytes(64))
    plan = LinePlan(pairs, steps, _bytes(64), pairs, numbers, _bytes(64), pairs, _bytes(64))
    rows = DecodedRows(np.zeros((2, 1), dtype=np.int64), np.zeros((2, 1), dtype=np.uint8), numbers, numbers)
    write_lines(source, np.zeros(int(LineField.SIZE), dtype=np.int64), plan, rows, _bytes(256))


def _answer() -> None:
    source = np.frombuffer(bytes(64), dtype=np.uint8)  # not writable, as a mapped file
    numbers, pairs = np.zeros(2, dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    layouts, values = (
        np.zeros((1, columns), dtype=np.int64) for columns in (LayoutColumn.COLUMNS, ValueColumn.COLUMNS)
    )
    plan = AnswerPlan(layouts, pairs, values, numbers, _bytes(8), pairs, _bytes(8))
    state = np.zeros(int(AnswerField.SIZE), dtype=np.int64)
    write_rows(source, numbers, state, plan, pairs, _bytes(64))
    locate_values(source, numbers, state, plan, pairs, 0, numbers, numbers)


def _changes() -> None:
    data, numbers = _bytes(KEY_MAX), np.zeros(1, dtype=np.int64)
    source = np.frombuffer(bytes(64), dtype=np.uint8)  # not writable, as collected events
    open_tables, groups, events, maps, variants, columns, parts, spans = (
        np.zeros((1, columns), dtype=np.int64)
        for columns in (
            OpenColumn.COLUMNS,
            GroupColumn.COLUMNS,
            EventColumn.COLUMNS,
            MapColumn.COLUMNS,
            ChangeVariantColumn.COLUMNS,
            ImageColumn.COLUMNS,
            KeyColumn.COLUMNS,
            2,
        )
    )
    index_events(source, groups, 0, events)
    find_open(open_tables, 0, 1)
    known = ChangedTables(open_tables, data, maps, 0, variants, 0, columns, parts, _bytes(256), spans)
    changes = KeptChanges(numbers, numbers, numbers, numbers, data, data)
    collect_changes(source, events[:0], np.zeros(int(ChangeField.SIZE), dtype=np.int64), known, changes)


STEPS: dict[KernelSet, tuple[Callable[[], None], ...]] = {  # each calls some kernels once, for arguments as they come
    KernelSet.SERVE: (_frame_groups, _frame, _pump, _pump_nodes, _find_nodes, _frame_classic, _pump_classic, _change),
    KernelSet.IMPORT: (_convert,),
    KernelSet.EXPORT: (_place,),
    KernelSet.VERIFY: (_check,),
    KernelSet.READ: (_collect, _decode),
    KernelSet.PRINT: (_collect, _decode, _lines),
    KernelSet.SELECT: (_answer, _collect, _changes),
}


def warm_up(sets: Iterable[KernelSet]) -> None:
    """Call each kernel of some sets once, so that none is loaded while a caller waits."""
    for kernel_set in sets:
        for step in STEPS[kernel_set]:
            step()
