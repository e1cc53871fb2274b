"""What each kernel takes and gives: for mypy, and for `entries`, where `shapes` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # items lie one behind the other: see `ibbmaster.kernel.entries`
    Bytes = npt.NDArray[np.uint8]
    ByteRows = npt.NDArray[np.uint8]
    State = npt.NDArray[np.int64]  # a number for each place of an enumeration
    Numbers = npt.NDArray[np.int64]
    Rows = npt.NDArray[np.int64]  # a row for each thing
    Shorts = npt.NDArray[np.int32]
    ShortRows = npt.NDArray[np.int32]


class Framing(NamedTuple):  # besides the pages
    state: State  # see Field
    head: Bytes  # the beginning of an event whose header is cut
    begin: Bytes  # that of a commit record, likewise
    prefix: Bytes  # of each event
    pairs: Rows  # see `noted_gtids`
    table: ShortRows  # see ChunkColumn
    out: Bytes  # packets
    segments: Rows  # where in `out` a piece of the pages belongs, where it begins, its bytes


class Sending(NamedTuple):
    progress: State  # see Progress
    vectors: Rows  # addresses and sizes of its pieces
    rest: Bytes  # what the socket does not take


class Roles(NamedTuple):  # the role of each event type in groups of traditional files
    transaction: Bytes
    standalone: Bytes  # behind a GTID event with the flag STANDALONE


class Checking(NamedTuple):
    state: State  # see Field
    table: ShortRows  # see ChunkColumn; for one page
    pairs: Rows  # see PairColumn
    found: Rows  # see Found
    scratch: Bytes  # how a commit record in several chunks begins, and a cut event header


class Collecting(NamedTuple):
    state: State  # see Field
    table: ShortRows  # see ChunkColumn; for one page
    groups: Rows  # see GroupColumn
    data: Bytes  # of their events


class KnownTables(NamedTuple):  # what row events are read with
    open_tables: Rows  # see OpenColumn
    store: Bytes  # see MapColumn and VariantColumn
    maps: Rows  # see MapColumn
    map_count: int
    map_at: int  # where in a TABLE_MAP event the bytes begin by which its table is known
    variants: Rows  # see VariantColumn
    variant_count: int
    is_other: Bytes  # by type of event, whether it is an OTHER_EVENT; may be empty


class LinePlan(NamedTuple):
    programs: Rows  # the first step and how many, for each kind of row event
    steps: Rows  # see LineColumn
    store: Bytes  # of texts
    choices: Rows  # where a text begins in the store, and its bytes; -1: there is none
    head_offsets: Numbers  # of each head, group after group
    heads: Bytes
    side_offsets: Rows  # a row for each column of texts that were made before
    sides: Bytes


class AnswerPlan(NamedTuple):  # of making stored rows rows of an answer
    layouts: Rows  # see LayoutColumn
    stored: Rows  # see ImageColumn
    values: Rows  # see ValueColumn
    offsets: Numbers  # of each text in ...
    texts: Bytes
    side_offsets: Rows  # by side and row, in ...
    sides: Bytes
    spans: Rows  # room: a row for each stored column


class Decoded(NamedTuple):  # what rows become
    values: Rows  # a row for each slot of `StepColumn.SLOT`
    valid: ByteRows  # whether a value is there
    row_groups: Numbers  # in which group a row is
    row_kinds: Numbers  # of which kind of row event, and which image
    event_sizes: Numbers  # by kind of row event: bytes of those read to their end, counted on


class FileRange(NamedTuple):  # that is collected
    file_no: int
    start_offset: int  # where in the file the block begins, or the groups that are wanted
    end_offset: int  # of the groups that are wanted


class ChangedTables(NamedTuple):  # how changes of rows are collected
    columns: Rows  # see ImageColumn
    parts: Rows  # see KeyColumn
    spans: Rows  # room: a row for each column of an image


class KeptChanges(NamedTuple):  # changes in the order of the log, each with its row of the maps
    maps: Numbers
    ops: Numbers  # see ChangeOp
    places: Numbers  # of the new image among the images
    key_sizes: Numbers
    keys: Bytes  # KEY_MAX for each, filled up with zeros
    images: Bytes  # each behind its head


class Kernels(Protocol):
    """All kernels; each says in C what it does. A status is one of `Status`."""

    # pages
    def index_chunks(self, pages: Bytes, count: int, state: State, table: ShortRows, row: int) -> tuple[int, int]: ...
    def frame_table(self, pages: Bytes, count: int, framing: Framing) -> int: ...
    def skip_table(self, pages: Bytes, count: int, framing: Framing, skips: Rows) -> int: ...
    def frame_node(self, pages: Bytes, count: int, framing: Framing) -> int: ...
    def find_nodes(
        self, file: int, search: State, path: Rows, page: Bytes, header: Numbers, nodes: Rows
    ) -> tuple[int, int]: ...
    def read_pages(self, file: int, offset: int, pages: Bytes) -> tuple[int, int]: ...
    def check_table(self, pages: Bytes, count: int, checking: Checking) -> tuple[int, int]: ...
    def split_node(self, pages: Bytes, place: int, header_size: int, state: State, head: Bytes) -> int: ...
    def collect_table(self, pages: Bytes, count: int, collecting: Collecting, file_range: FileRange) -> int: ...

    # sending
    def pump(self, pages: Bytes, framing: Framing, sending: Sending) -> int: ...
    def pump_nodes(self, nodes: Rows, pages: Bytes, framing: Framing, sending: Sending) -> int: ...
    def pump_way(self, nodes: Rows, pages: Bytes, framing: Framing, sending: Sending) -> int: ...
    def frame_bytes(self, source: Bytes, start: int, end: int, framing: Framing) -> tuple[int, int]: ...
    def change_packets(
        self, source: Bytes, size: int, state: State, numbers: Rows, roles: Roles, out: Bytes
    ) -> tuple[int, int]: ...
    def leave_out(
        self, source: Bytes, state: State, numbers: Rows, names: Bytes, tables: Rows, opened: Rows, out: Bytes
    ) -> int: ...
    def renumber(self, out: Bytes, size: int, first: int, delta: int) -> None: ...

    # traditional files
    def frame_classic(self, source: Bytes, end: int, framing: Framing, roles: Roles, skips: Rows) -> int: ...
    def pump_classic(self, source: Bytes, framing: Framing, roles: Roles, sending: Sending) -> int: ...
    def convert_groups(
        self, source: Bytes, numbers: State, pairs: Rows, roles: Roles, scratch: Bytes, pages: Bytes
    ) -> int: ...
    def seal_pages(self, pages: Bytes, count: int) -> None: ...
    def check_groups(self, source: Bytes, framing: Framing, roles: Roles) -> int: ...
    def place_groups(
        self, data: Bytes, groups: Rows, first: int, count: int, numbers: State, roles: Roles, out: Bytes
    ) -> int: ...
    def collect_classic_groups(
        self, source: Bytes, numbers: State, roles: Roles, collecting: Collecting, file_range: FileRange
    ) -> None: ...

    # events to columns
    def index_events(self, data: Bytes, groups: Rows, count: int, events: Rows) -> int: ...
    def header_columns(
        self, data: Bytes, events: Rows, types: Shorts, timestamps: Numbers, server_ids: Numbers, flags: Shorts
    ) -> None: ...
    def gtid_texts(self, groups: Rows, wanted: Numbers, offsets: Shorts, out: Bytes) -> None: ...
    def copy_strings(
        self, data: Bytes, starts: Numbers, sizes: Numbers, valid: Bytes, padded: int, offsets: Shorts, out: Bytes
    ) -> int: ...
    def write_texts(
        self, data: Bytes, starts: Numbers, sizes: Numbers, valid: Bytes, op: int, how: int, offsets: Shorts, out: Bytes
    ) -> int: ...
    def decode_rows(
        self, data: Bytes, events: Rows, state: State, known: KnownTables, steps: Rows, decoded: Decoded
    ) -> int: ...
    def find_open(self, open_tables: Rows, table_id: int, turn: int) -> int: ...
    def collect_changes(
        self, data: Bytes, events: Rows, state: State, known: KnownTables, how: ChangedTables, out: KeptChanges
    ) -> int: ...

    # columns to lines
    def write_heads(
        self, groups: Rows, note_offsets: Numbers, notes: Bytes, steps: Rows, store: Bytes, offsets: Numbers, out: Bytes
    ) -> int: ...
    def write_lines(self, data: Bytes, state: State, plan: LinePlan, rows: Decoded, out: Bytes) -> int: ...

    # answers
    def write_rows(self, data: Bytes, places: Numbers, state: State, plan: AnswerPlan, out: Bytes) -> int: ...
    def locate_values(
        self, data: Bytes, places: Numbers, state: State, plan: AnswerPlan, step: int, starts: Numbers, sizes: Numbers
    ) -> int: ...
