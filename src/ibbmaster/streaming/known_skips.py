"""Ways through the log that dumps have gone to their positions, for those that go there after them.

States are megabytes apart, and a traditional file has none but at its head: what lies between
them and a replica's position has to be walked. Each walk leaves where it came through.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ibbmaster.gtid import Gtid
from ibbmaster.streaming.block import Block, last_of_pairs

GTIDS_MAX = 100_000  # in all ways: about 15 MB
WHOLE_MAX, WHOLE_GTIDS_MAX = 256, 64  # whole ways to one position, and groups of pairs in one

Key = tuple[Hashable, Hashable]  # the file, and where in it the way begins


@dataclass(slots=True)
class _Way:
    """Blocks without packets, each from the begin of the way to one of its places, in their order."""

    blocks: list[Block] = field(default_factory=list)

    def farthest(self, limits: Mapping[int, Gtid]) -> Block | None:
        """To the last place that has nothing before it but groups that are skipped up to `limits`."""
        count = bisect_left(self.blocks, True, key=lambda block: not are_skipped(block.gtids, limits))
        return self.blocks[count - 1] if count else None

    def index(self, block: Block) -> int:
        """Where a block belongs."""
        return bisect_left(self.blocks, block.end, key=lambda one: one.end)


class KnownSkips:
    """Thread-safe; bounded: the way that was not gone for longest is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: OrderedDict[Key, _Way] = OrderedDict()
        self._whole: OrderedDict[tuple[Key, tuple[Gtid, ...]], Block] = OrderedDict()  # up to what is not skipped
        self._gtids = 0

    def find(self, key: Key, limits: Iterable[Gtid]) -> Block | None:
        """The groups from a place on that all come before the GTID of their domain, as far as it is known."""
        limits = tuple(limits)
        by_domain = {gtid.domain_id: gtid for gtid in limits}
        with self._lock:
            if (whole := self._whole.get((key, limits))) is not None:
                self._whole.move_to_end((key, limits))
                return whole
            way = self._ways.get(key)
            if way is None:
                return None
            self._ways.move_to_end(key)
            return way.farthest(by_domain)

    def note(self, key: Key, blocks: Iterable[Block], limits: Iterable[Gtid] = ()) -> None:
        """Remember where blocks that follow each other from a place on, and send nothing, have come through.

        `limits` are those of all of them: who has the same need not look again what stopped the last one.
        """
        so_far: Block | None = None
        for block in blocks:
            if not block.is_in_order or (so_far is not None and _steps_back(so_far, block)):
                return  # the last number of a pair does not say what comes before it
            so_far = block if so_far is None else _joined(so_far, block)
            self._add(key, _without_stop(so_far) if so_far.is_stopped else so_far)
            if so_far.is_stopped and (limits := tuple(limits)) and len(so_far.gtids) <= WHOLE_GTIDS_MAX:
                self._add_whole((key, limits), so_far)

    def _add_whole(self, key: tuple[Key, tuple[Gtid, ...]], block: Block) -> None:
        with self._lock:
            self._whole[key] = block
            if len(self._whole) > WHOLE_MAX:
                self._whole.popitem(last=False)

    def _add(self, key: Key, block: Block) -> None:
        with self._lock:
            way = self._ways.setdefault(key, _Way())
            self._ways.move_to_end(key)
            index = way.index(block)
            if index < len(way.blocks) and way.blocks[index].end == block.end:
                return
            way.blocks.insert(index, block)
            self._gtids += 1 + len(block.gtids)
            while self._gtids > GTIDS_MAX:
                _, oldest = self._ways.popitem(last=False)
                self._gtids -= sum(1 + len(one.gtids) for one in oldest.blocks)


def are_skipped(gtids: Iterable[Gtid], limits: Mapping[int, Gtid]) -> bool:
    """Whether groups, the last of each pair, all come before where the skipping of their domain ends."""
    for gtid in gtids:
        limit = limits.get(gtid.domain_id)
        if limit is None or (gtid.server_id == limit.server_id and gtid.seq_no >= limit.seq_no):
            return False
    return True


def _steps_back(before: Block, after: Block) -> bool:
    """Whether a pair has a number in a block that is not above its last one in the block before."""
    last = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in before.gtids}
    return any(gtid.seq_no <= last.get((gtid.domain_id, gtid.server_id), -1) for gtid in after.gtids)


def _joined(before: Block, after: Block) -> Block:
    """Two blocks without packets as one; its GTIDs leave the same state as those of both, see `noted_gtids`."""
    gtids = last_of_pairs(before.gtids + after.gtids)
    stored_gtids = last_of_pairs(before.stored_gtids + after.stored_gtids)
    return _skipped(before, after, gtids, stored_gtids, is_stopped=after.is_stopped)


def _without_stop(block: Block) -> Block:
    """The same block for dumps with other limits: what stopped the walk after it may not stop them."""
    return _skipped(block, block, block.gtids, block.stored_gtids, is_stopped=False)


def _skipped(
    first: Block, last: Block, gtids: tuple[Gtid, ...], stored_gtids: tuple[Gtid, ...], *, is_stopped: bool
) -> Block:
    return Block(
        b"",
        None,
        0,
        is_stopped=is_stopped,
        before=first.before,
        after=last.after,
        gtids=gtids,
        stored_gtids=stored_gtids,
        head=first.head,
    )
