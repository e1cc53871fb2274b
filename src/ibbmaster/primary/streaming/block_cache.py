"""Blocks framed lately, and ways that dumps have gone through the log, for later replicas."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from ibbmaster.gtid import Gtid
from .block import NO_PACKETS, Block, Groups, Key, last_of_pairs
from .buffers import Buffers

if TYPE_CHECKING:
    from .large_group import LargeGroup

GTIDS_MAX = 100_000  # in all ways: about 15 MB
WHOLE_MAX, WHOLE_GTIDS_MAX = 256, 64  # whole ways to one position, and groups of pairs in one
WAYS_MAX = 16_384  # of all files: some 2 MB
BYTES_MAX = 64 << 20
IDENTITIES_MAX = 1024  # of files, each with its header: under a megabyte
READERS_OF_SHARED = 8  # from here on longer blocks, which stay in memory, pay
READERS_OF_KEPT = 2  # one alone never comes back to a place

_Begin = tuple[Hashable, Hashable]  # of a way: its file, and where in it


class KnownSkips:
    """Ways to positions, from the begin of a walk through all its places: states are megabytes apart, and a traditional
    file has one at its head alone. Thread-safe; bounded: it forgets the way that was not gone for longest.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: OrderedDict[_Begin, list[Block]] = OrderedDict()  # from a begin to each place on the way, in order
        self._whole: OrderedDict[tuple[_Begin, tuple[Gtid, ...]], Block] = OrderedDict()  # up to what is not skipped
        self._gtids = 0

    def find(self, key: _Begin, limits: Iterable[Gtid]) -> Block | None:
        """The groups from a place on that precede the GTID of their domain, as far as known."""
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
            count = bisect_left(way, True, key=lambda block: not are_skipped(block.gtids, by_domain))
            return way[count - 1] if count else None

    def note(self, key: _Begin, blocks: Iterable[Block], limits: Iterable[Gtid] = ()) -> None:
        """Remember the places of blocks that follow each other and send nothing, and the `limits` that stopped the last
        one.
        """
        so_far: Block | None = None
        for block in blocks:
            if not block.groups.is_in_order or (so_far is not None and _steps_back(so_far, block)):
                return  # the last number of a pair does not say what comes before it
            so_far = block if so_far is None else _joined(so_far, block)
            # what stopped this walk may not stop those of dumps with other limits
            self._add(key, replace(so_far, is_stopped=False) if so_far.is_stopped else so_far)
            if so_far.is_stopped and (limits := tuple(limits)) and len(so_far.gtids) <= WHOLE_GTIDS_MAX:
                with self._lock:
                    self._whole[key, limits] = so_far
                    if len(self._whole) > WHOLE_MAX:
                        self._whole.popitem(last=False)

    def _add(self, key: _Begin, block: Block) -> None:
        with self._lock:
            way = self._ways.setdefault(key, [])
            self._ways.move_to_end(key)
            index = bisect_left(way, block.end, key=lambda one: one.end)
            if index < len(way) and way[index].end == block.end:
                return
            way.insert(index, block)
            self._gtids += 1 + len(block.gtids)
            while self._gtids > GTIDS_MAX:
                _, oldest = self._ways.popitem(last=False)
                self._gtids -= sum(1 + len(one.gtids) for one in oldest)


def are_skipped(gtids: Iterable[Gtid], limits: Mapping[int, Gtid]) -> bool:
    for gtid in gtids:
        limit = limits.get(gtid.domain_id)
        if limit is None or (gtid.server_id == limit.server_id and gtid.seq_no >= limit.seq_no):
            return False
    return True


def _steps_back(before: Block, after: Block) -> bool:
    last = {(gtid.domain_id, gtid.server_id): gtid.seq_no for gtid in before.gtids}
    return any(gtid.seq_no <= last.get((gtid.domain_id, gtid.server_id), -1) for gtid in after.gtids)


def _joined(before: Block, after: Block) -> Block:
    groups = Groups(last_of_pairs(before.gtids + after.gtids), last_of_pairs(before.stored_gtids + after.stored_gtids))
    return Block(NO_PACKETS, before.before, after.after, groups, before.head, is_stopped=after.is_stopped)


class KnownWay(NamedTuple):
    """File offsets: where out-of-band records begin, and of the first commit record after that."""

    begin: int
    commit: int


NO_WAY = KnownWay(0, 0)


class KnownWays:
    """Where the commit records of large groups lie, for later dumps: to find one takes a look at each page from the
    first part on, an eighth of the cost of sending the group. Each dump checks such a way, see `PassedRun`.
    Thread-safe; bounded: it forgets the file that was read longest ago.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_file: OrderedDict[Hashable, list[KnownWay]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def note(self, file: Hashable, way: KnownWay) -> None:
        with self._lock:
            ways = self._by_file.setdefault(file, [])
            if way == _next(ways, way.begin):
                return
            insort(ways, way)
            self._count += 1
            self._by_file.move_to_end(file)
            while self._count > WAYS_MAX:
                _, forgotten = self._by_file.popitem(last=False)
                self._count -= len(forgotten)

    def next_from(self, file: Hashable, offset: int, end: int) -> KnownWay:
        """The first from an offset on, if it ends before `end`; 0: anywhere."""
        with self._lock:
            way = _next(self._by_file.get(file, []), offset)
        return NO_WAY if end and way.commit >= end else way

    def forget(self, file: Hashable) -> None:
        with self._lock:
            self._count -= len(self._by_file.pop(file, []))


def _next(ways: list[KnownWay], offset: int) -> KnownWay:
    index = bisect_left(ways, (offset, 0))
    return ways[index] if index < len(ways) else NO_WAY


class BlockCache:
    """Thread-safe; bounded. A key says where a block begins and how it is framed, but not its packet numbers. One
    reader alone keeps nothing here: its buffer is hot, and written again at once.
    """

    def __init__(self) -> None:
        self.buffers = Buffers()
        self.skips = KnownSkips()  # kept without readers, too, for dumps to come
        self.ways = KnownWays()  # likewise
        self._identities: dict[Key, Hashable] = {}
        self._readers: set[object] = set()
        self._making = threading.Lock()  # held while one makes a block for many
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[Key, int], Block] = OrderedDict()
        self._bytes = 0
        self._numbers: dict[Key, int] = {}  # of the first packet of the last block
        self._large_groups: WeakValueDictionary[Key, LargeGroup] = WeakValueDictionary()  # that a dump is inside of

    def add_reader(self, reader: object) -> None:
        with self._lock:
            self._readers.add(reader)

    def remove_reader(self, reader: object) -> None:
        """The last reader takes along what was kept for others."""
        with self._lock:
            self._readers.discard(reader)
            is_alone = len(self._readers) < READERS_OF_KEPT
        if is_alone:
            self.clear()

    def clear(self) -> None:
        """A block that is being sent goes later."""
        with self._lock:
            dropped = self._blocks
            self._blocks, self._numbers, self._bytes = OrderedDict(), {}, 0
        del dropped  # now, without the lock

    @property
    def is_shared(self) -> bool:
        return len(self._readers) >= READERS_OF_SHARED

    def find(
        self,
        key: Key,
        sequence: int,
        make: Callable[[tuple[Block, int] | None], Block | None],
        *,
        only_cached: bool,
        is_shared: bool = False,
    ) -> Block | None:
        """The block whose first packet has this number, made if it is not there: `make` gets the same block with
        another number, and that number, if there is one. If the block `is_shared`, and another thread makes it, this
        waits, but not with `only_cached`.
        """
        block = self._get(key, sequence)
        if block is not None:
            return block
        if not is_shared:
            return self._make(key, sequence, make)
        if not self._making.acquire(blocking=not only_cached):
            return None
        try:
            block = self._get(key, sequence)
            return block if block is not None else self._make(key, sequence, make)
        finally:
            self._making.release()

    def keep(self, key: Key, sequence: int, block: Block) -> None:
        if len(self._readers) < READERS_OF_KEPT:
            return
        dropped: list[Block] = []  # they go when the lock is free again
        with self._lock:
            old = self._blocks.pop((key, sequence), None)
            self._bytes += block.held_bytes - (0 if old is None else old.held_bytes)
            self._blocks[key, sequence] = block
            self._numbers[key] = sequence
            while self._bytes > BYTES_MAX:
                (old_key, old_sequence), old = self._blocks.popitem(last=False)
                self._bytes -= old.held_bytes
                if self._numbers.get(old_key) == old_sequence:
                    del self._numbers[old_key]
                dropped.append(old)

    def identity(self, header: Key, judge: Callable[[], Hashable]) -> Hashable:
        """Of a file with a number and the first bytes of a header; judged once, unless None."""
        found = self._identities.get(header)
        if found is None and (found := judge()) is not None:
            if len(self._identities) >= IDENTITIES_MAX:
                self._identities.clear()
            self._identities[header] = found
        return found

    def large_group(self, key: Key, make: Callable[[], LargeGroup] | None = None) -> LargeGroup | None:
        """A group that another dump is inside of, else a new one."""
        with self._lock:
            group = self._large_groups.get(key)
            if group is None and make is not None:
                group = self._large_groups[key] = make()
            return group

    def _make(self, key: Key, sequence: int, make: Callable[[tuple[Block, int] | None], Block | None]) -> Block | None:
        with self._lock:
            number = self._numbers.get(key)
            like = None if number is None else self._blocks.get((key, number))
        block = make(None if like is None or number is None else (like, number))
        if block is not None:
            self.keep(key, sequence, block)
        return block

    def _get(self, key: Key, sequence: int) -> Block | None:
        with self._lock:
            block = self._blocks.get((key, sequence))
            if block is not None:
                self._blocks.move_to_end((key, sequence))
            return block

    def __len__(self) -> int:
        return len(self._blocks)
