"""A disk that remembers what was done to it, and what a crash may leave of that.

The model: what was synced stays. Of what was not, any part may be there: whole writes, or
one of them torn at the borders of sectors; a longer file without the data that made it
longer; a new name, or not. Only operations on the same file or name keep their order. What a
sync has failed for is covered by no later one, as the pages of a system that has tried are clean.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from tests.machinery.disk import MemoryFiles, check_size

_T = TypeVar("_T")

SECTOR_SIZES = (4096, 512)
EXHAUSTIVE_MAX = 6  # pending operations of which every subset is tried
RANDOM_SUBSETS = 12
TORN_VARIANTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resize:
    size: int
    may_shrink: bool


class _Inode:
    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.current = bytearray(durable)
        self.pending: list[_Write | _Resize] = []
        self.under_way: set[int] = set()  # the ids of writes that are not done yet
        self.given_up: set[int] = set()  # and of those that no sync will cover


@dataclass(frozen=True, slots=True, kw_only=True)
class _NameChange:
    name: str
    inode: _Inode | None  # None: the name is removed

    def apply(self, names: dict[str, _Inode]) -> None:
        if self.inode is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.inode


class SimulatedDisk(MemoryFiles):
    """A `Disk`; `after` is called with the name of each operation that changed something, once it is done.

    `fail` may raise for an operation before it is done: (verb, name) -> None. `pause` is called with the verb before
    each and in the middle of those that take time, so that other threads use the disk there: a sync then covers what
    was written before it began, and of a write the first half is there."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self._names: dict[str, _Inode] = {name: _Inode(data) for name, data in (files or {}).items()}
        self._durable_names = dict(self._names)
        self._pending_names: list[_NameChange] = []
        self.after: Callable[[str], None] = lambda verb: None
        self.fail: Callable[[str, str], None] = lambda verb, name: None
        self.pause: Callable[[str], None] | None = None
        self.writes = 0  # operations that change something, syncs included
        self.pages_read = 0
        self.published: dict[str, bytes] = {}  # no part of what a crash leaves
        self.clock = 0.0
        self._modified: dict[str, float] = {}

    def __str__(self) -> str:
        return "(simulated)"

    def lock(self) -> None:
        pass

    def close(self) -> None:
        pass

    def list(self) -> list[str]:
        return list(self._names)

    def size(self, name: str) -> int:
        return len(self._inode(name).current)

    def modified_at(self, name: str) -> float:
        self._inode(name)
        return self._modified.get(name, 0.0)

    def publish(self, name: str, data: Buffer) -> None:
        if self.pause is not None:
            self.pause("publish")
        self.published[name] = bytes(data)

    def read(self, name: str, offset: int, size: int) -> bytes:
        self.fail("read", name)
        if name in self.published:
            return self.published[name][offset : offset + size]
        if self.pause is not None:
            self.pause("read")
        self.pages_read += -(-size // 16384)
        return bytes(memoryview(self._inode(name).current)[offset : offset + size])

    def create(self, name: str) -> None:
        self._begin("create", name)
        if name in self._names:
            raise StoreError(f"{name}: file exists")
        inode = _Inode()
        self._names[name] = inode
        self._pending_names.append(_NameChange(name=name, inode=inode))
        self._done("create")

    def write(self, name: str, offset: int, data: Buffer) -> None:
        self._begin("write", name)
        inode = self._inode(name)
        write = _Write(offset=offset, data=bytes(data))
        inode.pending.append(write)
        self._modified[name] = self.clock
        if self.pause is not None and (half := len(write.data) // 2):
            inode.under_way.add(id(write))
            _apply(inode.current, _Write(offset=offset, data=write.data[:half]))
            self.pause("write, half done")
            inode.under_way.discard(id(write))
        _apply(inode.current, write)
        self._done("write")

    def allocate(self, name: str, size: int) -> None:
        self._resize("allocate", name, size, may_shrink=False)

    def truncate(self, name: str, size: int) -> None:
        self._resize("truncate", name, size, may_shrink=True)

    def sync(self, name: str) -> None:
        try:
            self._begin("sync", name)
        except StoreError:
            if name in self._names:
                inode = self._names[name]
                inode.given_up.update(map(id, inode.pending))
            raise
        inode = self._inode(name)
        uncovered = inode.under_way | inode.given_up
        covered = [operation for operation in inode.pending if id(operation) not in uncovered]
        if self.pause is not None:
            self.pause("sync, half done")
        kept = _without(inode.pending, covered)
        if kept:
            durable = bytearray(inode.durable)
            for operation in _without(inode.pending, kept):
                _apply(durable, operation)
            inode.durable = bytes(durable)
        else:
            inode.durable = bytes(inode.current)
        inode.pending = kept
        self._done("sync")

    def sync_dir(self) -> None:
        self._begin("sync_dir", "")
        covered = list(self._pending_names)
        if self.pause is not None:
            self.pause("sync_dir, half done")
        kept = _without(self._pending_names, covered)
        for change in _without(self._pending_names, kept):
            change.apply(self._durable_names)
        self._pending_names = kept
        self._done("sync_dir")

    def unlink(self, name: str) -> None:
        self._begin("unlink", name)
        self._inode(name)
        del self._names[name]
        self._pending_names.append(_NameChange(name=name, inode=None))
        self._done("unlink")

    def files(self) -> dict[str, bytes]:
        """What a killed process leaves: everything that was written."""
        return {name: bytes(inode.current) for name, inode in self._names.items()}

    def durable_files(self) -> dict[str, bytes]:
        """What a loss of power leaves at least: what was synced, and nothing else."""
        return {name: inode.durable for name, inode in self._durable_names.items()}

    def forget(self) -> None:
        """Hold no file any more: its store is a cycle, and none is collected while threads are simulated."""
        for held in (self._names, self._durable_names, self._pending_names):
            held.clear()

    def crash_state(self, rng: random.Random) -> dict[str, bytes]:
        share = rng.choice((0.1, 0.5, 0.9))
        names = [change for change in self._pending_names if rng.random() < share]
        data, owners = self._pending_data()
        kept = [operation for operation in data if rng.random() < share]
        writes = [operation for operation in kept if isinstance(operation, _Write)]
        if writes and rng.random() < 0.5:
            torn = rng.choice(writes)
            for pieces in _tear(torn, rng, 1):
                return self._image(names, kept, owners, torn=torn, pieces=pieces)
        return self._image(names, kept, owners)

    def crash_states(self, rng: random.Random, *, torn_max: int = TORN_VARIANTS) -> Iterator[dict[str, bytes]]:
        """What a loss of power may leave, or a sample where that is too much; a state may come more than once."""
        pending = [*self._pending_names]
        data, owners = self._pending_data()
        for chosen in _subsets(len(pending) + len(data), rng):
            names = [pending[index] for index in chosen if index < len(pending)]
            kept = [data[index - len(pending)] for index in chosen if index >= len(pending)]
            yield self._image(names, kept, owners)
            writes = [operation for operation in kept if isinstance(operation, _Write)]
            if writes:
                torn = rng.choice(writes)
                for pieces in _tear(torn, rng, torn_max):
                    yield self._image(names, kept, owners, torn=torn, pieces=pieces)

    def _pending_data(self) -> tuple[Sequence[_Write | _Resize], dict[int, _Inode]]:
        inodes = {id(inode): inode for inode in (*self._names.values(), *self._durable_names.values())}.values()
        pending = [(operation, inode) for inode in inodes for operation in inode.pending]
        return [operation for operation, _ in pending], {id(operation): inode for operation, inode in pending}

    def _image(
        self,
        names: Sequence[_NameChange],
        kept: Sequence[_Write | _Resize],
        owners: dict[int, _Inode],
        *,
        torn: _Write | None = None,
        pieces: Sequence[_Write] | None = None,
    ) -> dict[str, bytes]:
        visible = dict(self._durable_names)
        for change in names:
            change.apply(visible)
        contents: dict[int, bytearray] = {}
        for operation in kept:
            inode = owners[id(operation)]
            content = contents.setdefault(id(inode), bytearray(inode.durable))
            if operation is torn:
                assert pieces is not None
                assert torn is not None
                if len(content) < torn.offset + len(torn.data):  # the size may be there without the data
                    content.extend(bytes(torn.offset + len(torn.data) - len(content)))
                for piece in pieces:
                    _apply(content, piece)
            else:
                _apply(content, operation)
        return {
            name: bytes(contents[id(inode)]) if id(inode) in contents else inode.durable
            for name, inode in visible.items()
        }

    def _resize(self, verb: str, name: str, size: int, *, may_shrink: bool) -> None:
        check_size(name, size)
        self._begin(verb, name)
        inode = self._inode(name)
        resize = _Resize(size=size, may_shrink=may_shrink)
        inode.pending.append(resize)
        _apply(inode.current, resize)
        self._done(verb)

    def _begin(self, verb: str, name: str) -> None:
        self.fail(verb, name)
        if self.pause is not None:
            self.pause(verb)

    def _done(self, verb: str) -> None:
        self.writes += 1
        self.after(verb)

    def _inode(self, name: str) -> _Inode:
        try:
            return self._names[name]
        except KeyError:
            raise MissingFileError(f"{name}: no such file or directory") from None


def _apply(content: bytearray, operation: _Write | _Resize) -> None:
    if isinstance(operation, _Write):
        if len(content) < operation.offset:
            content.extend(bytes(operation.offset - len(content)))
        content[operation.offset : operation.offset + len(operation.data)] = operation.data
    else:
        if operation.may_shrink:
            del content[operation.size :]
        content.extend(bytes(max(operation.size - len(content), 0)))


def _without(operations: list[_T], others: list[_T]) -> list[_T]:
    found = {id(operation) for operation in others}
    return [operation for operation in operations if id(operation) not in found]


def _subsets(count: int, rng: random.Random) -> Iterator[tuple[int, ...]]:
    """Which of `count` pending operations are there: all ways if they are few, else a sample with the extremes."""
    everything = range(count)
    if count <= EXHAUSTIVE_MAX:
        for size in range(count + 1):
            yield from itertools.combinations(everything, size)
        return
    for end in range(count + 1):
        yield tuple(range(end))
    for index in everything:
        yield (index,)
        yield tuple(other for other in everything if other != index)
    for _ in range(RANDOM_SUBSETS):
        yield tuple(index for index in everything if rng.random() < 0.5)


def _tear(write: _Write, rng: random.Random, variants_max: int) -> Iterator[list[_Write]]:
    """Parts of one write that may be there alone: prefixes, suffixes, single sectors, random ones."""
    sector = rng.choice(SECTOR_SIZES)
    first = write.offset // sector
    last = (write.offset + len(write.data) - 1) // sector
    if first == last:
        return
    borders = [max(number * sector, write.offset) for number in range(first, last + 1)]
    borders.append(write.offset + len(write.data))
    sectors = [
        _Write(offset=start, data=write.data[start - write.offset : end - write.offset])
        for start, end in itertools.pairwise(borders)
    ]
    count = len(sectors)
    for _ in range(min(variants_max, 2**count - 2)):
        match rng.randrange(4):
            case 0:
                yield sectors[: rng.randrange(1, count)]
            case 1:
                yield sectors[rng.randrange(1, count) :]
            case 2:
                yield [rng.choice(sectors)]
            case _:
                yield [part for part in sectors if rng.random() < 0.5]
