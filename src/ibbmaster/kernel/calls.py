"""The kernels as their callers see them: what each takes and gives, for mypy, which sees no kernel's body.

`ibbmaster.kernel.entries` is what is called; `ibbmaster.kernel.shapes` reads here how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .fields import (
        AnswerPlan,
        Bytes,
        ChangedTables,
        Checking,
        Collecting,
        Decoded,
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
        State,
    )


class Kernels(Protocol):
    """All kernels; each says in its own docstring what it does. A status is one of `Status`."""

    # pages
    def index_chunks(self, pages: Bytes, count: int, state: State, table: ShortRows, row: int) -> tuple[int, int]: ...
    def frame_table(self, pages: Bytes, count: int, framing: Framing) -> int: ...
    def skip_table(self, pages: Bytes, count: int, framing: Framing, skips: NumberRows) -> int: ...
    def frame_node(self, pages: Bytes, count: int, framing: Framing) -> int: ...
    def find_nodes(
        self, file: int, search: State, path: NumberRows, page: Bytes, header: Numbers, nodes: NumberRows
    ) -> tuple[int, int]: ...
    def read_pages(self, file: int, offset: int, pages: Bytes) -> tuple[int, int]: ...
    def check_table(self, pages: Bytes, count: int, checking: Checking) -> tuple[int, int]: ...
    def split_node(self, pages: Bytes, place: int, header_size: int, state: State, head: Bytes) -> int: ...
    def collect_table(self, pages: Bytes, count: int, collecting: Collecting, file_range: FileRange) -> int: ...

    # sending
    def pump(self, file: int, socket: int, pages: Bytes, framing: Framing, sending: Sending) -> int: ...
    def pump_nodes(
        self, file: int, socket: int, nodes: NumberRows, pages: Bytes, framing: Framing, sending: Sending
    ) -> int: ...
    def pump_way(
        self, file: int, socket: int, nodes: NumberRows, pages: Bytes, framing: Framing, sending: Sending
    ) -> int: ...
    def frame_bytes(self, source: Bytes, start: int, end: int, framing: Framing) -> tuple[int, int]: ...
    def change_packets(
        self, source: Bytes, size: int, state: State, numbers: NumberRows, roles: Roles, out: Bytes
    ) -> tuple[int, int]: ...
    def leave_out(
        self,
        source: Bytes,
        state: State,
        numbers: NumberRows,
        names: Bytes,
        tables: NumberRows,
        opened: NumberRows,
        out: Bytes,
    ) -> int: ...
    def renumber(self, out: Bytes, size: int, first: int, delta: int) -> None: ...

    # traditional files
    def frame_classic(self, source: Bytes, end: int, framing: Framing, roles: Roles, skips: NumberRows) -> int: ...
    def pump_classic(
        self, file: int, socket: int, source: Bytes, framing: Framing, roles: Roles, sending: Sending
    ) -> int: ...
    def convert_groups(
        self, source: Bytes, numbers: State, pairs: NumberRows, roles: Roles, scratch: Bytes, pages: Bytes
    ) -> None: ...
    def seal_pages(self, pages: Bytes, count: int) -> None: ...
    def check_groups(self, source: Bytes, framing: Framing, roles: Roles) -> int: ...
    def place_groups(
        self, data: Bytes, groups: NumberRows, first: int, count: int, numbers: State, roles: Roles, out: Bytes
    ) -> int: ...
    def collect_classic_groups(
        self, source: Bytes, numbers: State, roles: Roles, collecting: Collecting, file_range: FileRange
    ) -> None: ...

    # events to columns
    def index_events(self, data: Bytes, groups: NumberRows, count: int, events: NumberRows) -> int: ...
    def header_columns(
        self, data: Bytes, events: NumberRows, types: Shorts, timestamps: Numbers, server_ids: Numbers, flags: Shorts
    ) -> None: ...
    def gtid_texts(self, groups: NumberRows, wanted: Numbers, offsets: Shorts, out: Bytes) -> None: ...
    def copy_strings(
        self, data: Bytes, starts: Numbers, sizes: Numbers, valid: Bytes, padded: int, offsets: Shorts, out: Bytes
    ) -> int: ...
    def write_texts(
        self,
        data: Bytes,
        starts: Numbers,
        sizes: Numbers,
        valid: Bytes,
        op: int,
        argument: int,
        offsets: Shorts,
        out: Bytes,
    ) -> int: ...
    def decode_rows(
        self, data: Bytes, events: NumberRows, state: State, known: KnownTables, steps: NumberRows, decoded: Decoded
    ) -> int: ...
    def find_open(self, open_tables: NumberRows, table_id: int, turn: int) -> int: ...
    def collect_changes(
        self, data: Bytes, events: NumberRows, state: State, known: KnownTables, how: ChangedTables, out: KeptChanges
    ) -> int: ...

    # columns to lines
    def write_heads(
        self,
        groups: NumberRows,
        note_offsets: Numbers,
        notes: Bytes,
        steps: NumberRows,
        store: Bytes,
        offsets: Numbers,
        out: Bytes,
    ) -> int: ...
    def write_lines(self, data: Bytes, state: State, plan: LinePlan, rows: Decoded, out: Bytes) -> int: ...

    # answers
    def write_rows(self, data: Bytes, places: Numbers, state: State, plan: AnswerPlan, out: Bytes) -> int: ...
    def locate_values(
        self, data: Bytes, places: Numbers, state: State, plan: AnswerPlan, step: int, starts: Numbers, sizes: Numbers
    ) -> int: ...
