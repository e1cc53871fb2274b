"""The kernels as their callers see them: what each takes and gives, for mypy, which sees no kernel's body.

`ibbmaster.kernel.entries` is what is called; `ibbmaster.kernel.shapes` reads here how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ibbmaster.kernel.fields import (
        AnswerPlan,
        Bytes,
        ChangedTables,
        Checking,
        Collecting,
        Decoded,
        DecodedRows,
        FileRange,
        Framing,
        KeptChanges,
        KnownTables,
        LinePlan,
        NumberRows,
        Numbers,
        Roles,
        Sending,
        ShortRows,
        Shorts,
    )


class Kernels(Protocol):
    """All kernels; each says in its own docstring what it takes and does. A status is one of `Status`."""

    # pages
    index_chunks: Callable[[Bytes, int, Numbers, ShortRows, int], tuple[int, int]]
    frame_table: Callable[[Bytes, int, Framing], int]
    skip_table: Callable[[Bytes, int, Framing, NumberRows], int]
    frame_node: Callable[[Bytes, int, Framing], int]
    find_nodes: Callable[[int, Numbers, NumberRows, Bytes, Numbers, NumberRows], tuple[int, int]]
    read_pages: Callable[[int, int, Bytes], tuple[int, int]]
    check_table: Callable[[Bytes, int, Checking], tuple[int, int]]
    split_node: Callable[[Bytes, int, int, Numbers, Bytes], int]
    collect_table: Callable[[Bytes, int, Collecting, FileRange], int]

    # sending
    pump: Callable[[int, int, Bytes, Framing, Sending], int]
    pump_nodes: Callable[[int, int, NumberRows, Bytes, Framing, Sending], int]
    pump_way: Callable[[int, int, NumberRows, Bytes, Framing, Sending], int]
    frame_bytes: Callable[[Bytes, int, int, Framing], tuple[int, int]]
    change_packets: Callable[[Bytes, int, Numbers, NumberRows, Roles, Bytes], tuple[int, int]]
    leave_out: Callable[[Bytes, int, Numbers, NumberRows, Bytes, NumberRows, NumberRows, Bytes], int]
    renumber: Callable[[Bytes, int, int, int], None]

    # traditional files
    frame_classic: Callable[[Bytes, int, Framing, Roles, NumberRows], int]
    pump_classic: Callable[[int, int, Bytes, Framing, Roles, Sending], int]
    convert_groups: Callable[[Bytes, int, Numbers, NumberRows, Roles, Bytes, Bytes], None]
    seal_pages: Callable[[Bytes, int], None]
    check_classic_groups: Callable[[Bytes, int, Numbers, Roles, NumberRows, Numbers], int]
    check_long_group: Callable[[Bytes, int, Numbers, Roles, Numbers, Bytes, NumberRows, Numbers], int]
    place_groups: Callable[[Bytes, NumberRows, int, int, Numbers, Roles, Bytes], int]
    collect_classic_groups: Callable[[Bytes, int, Numbers, Roles, int, int, int, Collecting], None]

    # events to columns
    index_events: Callable[[Bytes, NumberRows, int, NumberRows], int]
    header_columns: Callable[[Bytes, NumberRows, int, Shorts, Numbers, Numbers, Shorts], None]
    gtid_texts: Callable[[NumberRows, Numbers, int, Shorts, Bytes], None]
    copy_strings: Callable[[Bytes, Numbers, Numbers, Bytes, int, int, Shorts, Bytes], int]
    write_texts: Callable[[Bytes, Numbers, Numbers, Bytes, int, int, int, Shorts, Bytes], int]
    decode_rows: Callable[[Bytes, NumberRows, Numbers, KnownTables, Decoded], int]
    find_open: Callable[[NumberRows, int, int], int]
    collect_changes: Callable[[Bytes, NumberRows, Numbers, ChangedTables, KeptChanges], int]

    # columns to lines
    write_heads: Callable[[NumberRows, Numbers, Bytes, int, int, NumberRows, Bytes, int, Numbers, Bytes], int]
    write_lines: Callable[[Bytes, Numbers, LinePlan, DecodedRows, Bytes], int]

    # answers
    write_rows: Callable[[Bytes, Numbers, Numbers, AnswerPlan, NumberRows, Bytes], int]
    locate_values: Callable[[Bytes, Numbers, Numbers, AnswerPlan, NumberRows, int, Numbers, Numbers], int]
