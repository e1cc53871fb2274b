"""Checks pages in batches; the reference checker reports the first anomaly."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ibbmaster.errors import RecordError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Checking, Kernels
from ibbmaster.kernel.fields import CHUNKS_PER_PAGE_MAX, NODE_HEAD_MIN, ChunkColumn, Field, Found, PairColumn, Status
from ibbmaster.kernel.plain_memory import RowTable, numbers, scratch, short_rows
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, RecordType
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.oob import OobNode, walk_oob
from ibbmaster.storage.ibb.page import PAGE_SIZE

PAIRS_MAX = 256
FOUND_MAX = 4096
SCRATCH_BYTES = 256
NODES_MAX = 1 << 16
NO_STATE = numbers(Field.SIZE)


class FoundRecord(NamedTuple):
    page: int  # counted in the block
    offset: int
    size: int  # bytes of its data
    first_size: int  # those of its first chunk
    record_type: int

    def head(self, block: Buffer) -> bytes:
        """The data of its first chunk; if short, also of the second one, which begins the next page."""
        view = memoryview(block)
        start = self.page * PAGE_SIZE + self.offset + CHUNK_HEADER_SIZE
        head = bytes(view[start : start + self.first_size])
        if self.first_size >= min(NODE_HEAD_MIN, self.size):
            return head
        start = (self.page + 1) * PAGE_SIZE + CHUNK_HEADER_SIZE
        return head + bytes(view[start : start + int.from_bytes(view[start - 2 : start], "little")])


class Checked(NamedTuple):
    """What the kernel passed: everything before byte `offset` of page `page`, counted in the block."""

    page: int
    offset: int
    groups: int
    gtids: list[Gtid]  # the last of each (domain, server) pair, in order
    ends_of_pairs: list[tuple[Gtid, int, int]]  # first and last of each, with page and offset in the block
    found: list[FoundRecord]  # out-of-band and state records, not looked into
    is_cut: bool  # what comes there continues after the block

    @property
    def is_after_state(self) -> bool:
        return any(record.record_type == RecordType.GTID_STATE for record in self.found)


class SplitState(NamedTuple):
    """Where bytes that are divided into events ended."""

    left: int = 0  # bytes of the current event
    head: bytes = b""  # the beginning of the header of the next


class PageChecks:
    """Checks pages with a kernel, and holds the memory it needs; not thread-safe."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._state = numbers(Field.SIZE)
        self._head = scratch(EVENT_HEADER_SIZE)
        self._pairs = RowTable(PAIRS_MAX, PairColumn.COLUMNS)
        self._found = RowTable(FOUND_MAX, Found.COLUMNS)
        table = short_rows(CHUNKS_PER_PAGE_MAX, ChunkColumn.COLUMNS)
        self._checking = Checking(self._state, table, self._pairs.memory, self._found.memory, scratch(SCRATCH_BYTES))

    def check(
        self, block: Any, page_count: int, page: int, offset: int, *, verified: int = 0, due: int = -1
    ) -> Checked:
        """Check whole groups and out-of-band records from a place between records on, up to the state record due on
        page `due`. The checksums of the first `verified` pages are known to be right."""
        state = self._state
        state[:] = NO_STATE
        state[Field.VERIFIED], state[Field.DUE] = verified, due
        state[Field.PAGE], state[Field.OFFSET] = page, offset
        state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
        count, reason = self._kernels.check_table(block, page_count, self._checking)
        rows = sorted(self._pairs.rows(state[Field.PAIRS]), key=lambda row: row[PairColumn.TURN])
        return Checked(
            page=state[Field.PAGE],
            offset=state[Field.OFFSET],
            groups=state[Field.GROUPS],
            gtids=[_gtid(row, PairColumn.LAST) for row in rows],
            ends_of_pairs=[end for row in rows for end in _ends(row)],
            found=[FoundRecord._make(row) for row in self._found.rows(count)],
            is_cut=reason == Status.NEED_MORE,
        )

    def split(self, block: Any, found: FoundRecord, header_size: int, before: SplitState) -> SplitState | None:
        """Divide the data of an out-of-band record into events. None: the reference must do it."""
        state, head = self._state, self._head
        state[Field.EVENT_LEFT], state[Field.HEAD_HELD] = before.left, len(before.head)
        head[: len(before.head)] = before.head
        if not self._kernels.split_node(block, found.page * PAGE_SIZE + found.offset, header_size, state, head):
            return None
        return SplitState(state[Field.EVENT_LEFT], bytes(head[: state[Field.HEAD_HELD]]))


def _gtid(row: Sequence[int], column: PairColumn) -> Gtid:
    return Gtid(domain_id=row[PairColumn.DOMAIN], server_id=row[PairColumn.SERVER], seq_no=row[column] % 2**64)


def _ends(row: Sequence[int]) -> Iterator[tuple[Gtid, int, int]]:
    first, last = row[PairColumn.FIRST_PLACE], row[PairColumn.LAST_PLACE]
    yield (_gtid(row, PairColumn.FIRST), *divmod(first, PAGE_SIZE))
    if last != first:
        yield (_gtid(row, PairColumn.LAST), *divmod(last, PAGE_SIZE))


Split = Callable[[SplitState], SplitState | None]
"""Divides the data of a node into events, from where those of the node before have ended; None: for the reference."""


class _Passed(NamedTuple):
    node: OobNode
    end: SplitState  # of what was divided from node 0 to here


class PassedNodes:
    """The reference: `OutOfBandReader`."""

    def __init__(self) -> None:
        self._nodes: dict[LogPosition, _Passed] = {}

    def take(self, ref: LogPosition, node: OobNode, split: Split) -> None:
        begin = SplitState()
        if node.right is not None:  # as writers make forests, the node before
            before = self._nodes.get(node.right)
            if before is None or before.node.node_index != node.node_index - 1:
                return
            begin = before.end
        end = split(begin)
        if end is not None:
            if len(self._nodes) >= NODES_MAX:
                self._nodes.clear()
            self._nodes[ref] = _Passed(node, end)

    def are_whole_events(self, streams: Iterable[OobStream]) -> bool:
        """Whether all nodes of some streams passed, and each stream is whole events; forgets them."""
        return all(self._is_whole_events(stream) for stream in streams)

    def _is_whole_events(self, stream: OobStream) -> bool:
        before: LogPosition | None = None
        try:
            refs = list(walk_oob(stream, lambda ref: self._nodes[ref].node))
        except (KeyError, RecordError):
            return False
        passed = [self._nodes.pop(ref) for ref in refs]
        for ref, (node, _) in zip(refs, passed, strict=True):
            if node.right != before:
                return False
            before = ref
        return passed[-1].end == SplitState()
