"""Out-of-band records: the pieces of a large group as a forest of binary trees. Layout: protocol/ibb/oob.md.

A writer only appends: a node names the two trees it joins, or the tree before it. A reader starts at the last node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.errors import RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.codec.buffer import Buffer
from .commit import NO_RECORD, OobStream, decode_ref, encode_ref

HEADER_SIZE_MAX = 5 * compressed_int.SIZE_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class OobNode:
    """A leaf has no `left`; its `right` is the root of the tree before it, if any."""

    node_index: int
    left: LogPosition | None
    right: LogPosition | None


def decode_oob_node(data: Buffer, location: LogPosition) -> tuple[OobNode, int]:
    """The header of an out-of-band record, and its size; the data of the node follows. `data` as in
    `decode_commit_header`. Raises RecordError: the header runs over the end of the record, or an inner node lacks a
    child. Source: MariaDB 12.3, innodb_binlog.cc, innodb_binlog_oob_reader::parse_oob_record()."""
    try:
        node_index, offset = compressed_int.decode(data, 0)
        left, offset = decode_ref(data, offset)
        right, offset = decode_ref(data, offset)
    except ValueError as error:
        raise RecordError(location, f"out-of-band header: {error}") from None
    if left != NO_RECORD and right == NO_RECORD:
        raise RecordError(location, "out-of-band header: an inner node without a right child")
    if (left == right == NO_RECORD) != (node_index == 0):
        raise RecordError(location, f"out-of-band header: node {node_index} refers to {left} and {right}")
    node = OobNode(
        node_index=node_index, left=None if left == NO_RECORD else left, right=None if right == NO_RECORD else right
    )
    return node, offset


def encode_oob_node(node: OobNode) -> bytes:
    return (
        compressed_int.encode(node.node_index)
        + encode_ref(node.left or NO_RECORD)
        + encode_ref(node.right or NO_RECORD)
    )


class _Tree(NamedTuple):
    height: int
    root_index: int
    root: LogPosition


class OobForest:
    """The writer's side: the next node, and the stream for the commit record. Copies are cheap: keep one at a savepoint
    and return to it; the nodes written since stay in the file as garbage."""

    __slots__ = ("_first", "_trees")

    def __init__(self) -> None:
        self._trees: tuple[_Tree, ...] = ()
        self._first: LogPosition | None = None

    def next_node(self) -> OobNode:
        """Write it, then call `add` with its position."""
        if not self._trees:
            return OobNode(node_index=0, left=None, right=None)
        left = self._trees[-2].root if self._joins() else None
        return OobNode(node_index=self._trees[-1].root_index + 1, left=left, right=self._trees[-1].root)

    def add(self, ref: LogPosition) -> None:
        """`next_node` was written at `ref`."""
        node_index = self._trees[-1].root_index + 1 if self._trees else 0
        if self._joins():
            self._trees = (*self._trees[:-2], _Tree(self._trees[-1].height + 1, node_index, ref))
        else:
            self._trees = (*self._trees, _Tree(1, node_index, ref))
            self._first = self._first or ref

    def stream(self) -> OobStream | None:
        if not self._trees or self._first is None:
            return None
        youngest = self._trees[-1]
        return OobStream(node_count=youngest.root_index + 1, first=self._first, last=youngest.root)

    def copy(self) -> OobForest:
        copy = OobForest()
        copy._trees, copy._first = self._trees, self._first
        return copy

    def _joins(self) -> bool:
        return len(self._trees) >= 2 and self._trees[-1].height == self._trees[-2].height


class _Visit(NamedTuple):
    ref: LogPosition
    node_index: int | None  # what it must be, where that follows from its parent
    is_leftmost: bool  # by left steps alone: its link leads to the tree before
    is_ready: bool = False  # what precedes its data was pushed above it


def walk_oob(stream: OobStream, read_node: Callable[[LogPosition], OobNode]) -> Iterator[LogPosition]:
    """The records of a stream in the order of their data, node 0 first. `read_node` reads the header of one record,
    once a node. The walk holds some `log2(node_count)**2` references, so a hostile forest costs no more than the nodes
    its commit record claims. Raises RecordError: the nodes are not 0 … `node_count - 1` in order, or the first is not
    at its place. Source: MariaDB 12.3, innodb_binlog.cc, innodb_binlog_oob_reader."""
    bits = stream.node_count.bit_length()
    held_max = (bits + 1) * (bits + 2)  # a path through every tree of the forest
    next_index = 0
    pending = [_Visit(stream.last, stream.node_count - 1, True)]
    while pending:
        visit = pending.pop()
        ref = visit.ref
        if not visit.is_ready:
            node = read_node(ref)
            if visit.node_index is not None and node.node_index != visit.node_index:
                raise RecordError(ref, f"out-of-band node {node.node_index}, expected node {visit.node_index}")
            before = _before(node, visit.is_leftmost)
            if len(pending) + 1 + len(before) > held_max:
                raise RecordError(ref, f"out-of-band forest of {stream.node_count} nodes is too deep")
            pending.append(_Visit(ref, node.node_index, visit.is_leftmost, True))
            pending.extend(reversed(before))
            continue
        if visit.node_index != next_index:
            raise RecordError(ref, f"out-of-band node {visit.node_index} comes where node {next_index} belongs")
        if next_index == 0 and ref != stream.first:
            raise RecordError(ref, f"out-of-band node 0, expected at {stream.first}")
        next_index += 1
        yield ref
    if next_index != stream.node_count:
        raise RecordError(stream.last, f"out-of-band stream of {next_index} nodes, expected {stream.node_count}")


def _before(node: OobNode, is_leftmost: bool) -> list[_Visit]:
    if node.left is not None and node.right is not None:
        return [_Visit(node.left, None, is_leftmost), _Visit(node.right, node.node_index - 1, False)]
    if is_leftmost and node.right is not None:
        return [_Visit(node.right, node.node_index - 1, True)]
    return []
