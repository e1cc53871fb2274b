"""Out-of-band nodes that were checked as they passed, so that their commit record needs none of them read again.

The reference: `ibbmaster.log.out_of_band`, which reads each from its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ibbmaster.errors import RecordError
from ibbmaster.ibb.commit import OobStream
from ibbmaster.ibb.oob import OobNode, walk_oob
from ibbmaster.log.page_checks import SplitState
from ibbmaster.position import LogPosition

NODES_MAX = 1 << 16  # that are held; more are for the reference

Split = Callable[[SplitState], SplitState | None]
"""Divides the data of a node into events, from where those of the node before have ended; None: for the reference."""


class _Passed(NamedTuple):
    node: OobNode
    end: SplitState  # of what was divided from node 0 to here


class PassedNodes:
    """Those of groups that are not committed yet."""

    def __init__(self) -> None:
        self._nodes: dict[LogPosition, _Passed] = {}

    def take(self, ref: LogPosition, node: OobNode, split: Split) -> None:
        """A node has passed in which all is right, but for what its data is worth."""
        begin = SplitState()
        if node.right is not None:  # in a forest as its writer makes it, that is the node before
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
        """Whether all nodes of some streams have passed, and each stream is whole events; forgets these nodes."""
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
