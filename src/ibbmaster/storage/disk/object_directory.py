"""A directory of an object store, to read from: it fetches only the ranges that callers ask for.

Fetched blocks stay in memory for a while. A read that continues such blocks fetches several times as much at once, so a
whole file takes few requests, and a search no more than its pages."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from .held_file import Stamp
from .object_store import ChangedError, StoredObject, client_of

BLOCK_SIZE = 16 << 10  # bytes of the smallest range: a page
AHEAD_BLOCKS_MAX = 512
AHEAD_FACTOR = 3  # times as many as are known before them
EXPECTED_MAX = 2048
REQUESTS_AT_ONCE = 16
CACHE_BYTES = 64 << 20  # at most, of all directories of this process
LIST_AGE_S = 2.0  # of a listing that is repeated
ENTRY_AGE_S = 6.0  # an older entry is fetched again
POLL_PERIOD_S = 0.1

_Key = tuple[str, str, str | None, int]  # directory, name, version, number of the block


class RangeCache:
    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._blocks: OrderedDict[_Key, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> bytes | None:
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def has(self, key: _Key) -> bool:
        return key in self._blocks

    def put(self, key: _Key, block: bytes) -> None:
        with self._lock:
            self._blocks[key] = block
            self._blocks.move_to_end(key)
            if len(self._blocks) > self._count_max:
                self._blocks.popitem(last=False)


BLOCKS = RangeCache(CACHE_BYTES // BLOCK_SIZE)


class ObjectDirectory:
    """The objects whose names begin with a URL and a slash, as a `SharedDisk`. Thread-safe. It lists them again in the
    background: so it follows a log that others extend, without readers waiting."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._names: Sequence[str] = ()
        self._below: frozenset[str] = frozenset()
        self._entries: dict[str, tuple[StoredObject | None, float]] = {}  # None: missing; and the time of the look
        self._listed_at = float("-inf")
        self._lister: threading.Thread | None = None
        self._problem: StoreError | None = None  # of a listing in the background

    def __str__(self) -> str:
        return self.url

    def list(self) -> Sequence[str]:
        age = time.monotonic() - self._listed_at
        if age == float("inf"):
            self._look()
        elif age >= LIST_AGE_S:
            self._look_later()
        problem, self._problem = self._problem, None
        if problem is not None:
            self._listed_at = float("-inf")
            raise problem
        if not self._names and not self._below:
            raise MissingFileError(f"{self.url}: no such file or directory")
        return self._names

    def directories(self) -> Sequence[str]:
        self.list()
        return sorted(self._below)

    def find(self, name: str) -> StoredObject | None:
        now = time.monotonic()
        found, seen_at = self._entries.get(name, (None, self._listed_at))
        if now - seen_at < ENTRY_AGE_S:
            return found
        found = client_of(self.url).head(name)
        self._entries[name] = found, now
        return found

    def size(self, name: str) -> int:
        return self._known(name).size

    def modified_at(self, name: str) -> float:
        return self._known(name).modified_at

    def stamp(self, name: str) -> Stamp:
        found = self._known(name)
        return Stamp(found.version or found.modified_at, found.size, (int(found.modified_at * 1e9),))

    def read(self, name: str, offset: int, size: int) -> bytes:
        return self._read(name, offset, size, is_greedy=True)

    def read_some(self, name: str, offset: int, size: int) -> bytes:
        """As `read`, but perhaps less, in one small request unless it continues a read; none at the end."""
        return self._read(name, offset, size, is_greedy=False)

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        if only_cached and not self._has(name, offset, len(target)):
            return None
        data = self.read(name, offset, len(target))
        target[: len(data)] = data
        return len(data)

    def expect_reads(self, name: str, offsets: Sequence[int]) -> None:
        found = self._known(name)
        numbers = {offset // BLOCK_SIZE for offset in offsets if offset < found.size}
        missing = sorted(number for number in numbers if not BLOCKS.has(self._key(found, number)))[-EXPECTED_MAX:]
        self._fetch_at_once([(found, number) for number in missing])

    def expect_heads(self, names: Sequence[str]) -> None:
        heads = [found for name in names if (found := self.find(name)) is not None and found.size]
        missing = [(found, 0) for found in heads if not BLOCKS.has(self._key(found, 0))]
        self._fetch_at_once(missing[-EXPECTED_MAX:])

    def next_data(self, name: str, offset: int) -> int:
        return min(offset, self.size(name))

    def open(self, name: str) -> int | None:
        return None

    def close(self) -> None: ...

    def is_locked(self) -> bool:
        """Writers lock no object store: objects come whole."""
        return False

    def make_durable(self, name: str) -> None: ...

    def watch(self) -> ObjectDirectory:
        return self

    def wait(self, timeout_s: float) -> bool:
        time.sleep(max(0.0, min(timeout_s, POLL_PERIOD_S)))
        return timeout_s >= POLL_PERIOD_S

    def _look(self) -> None:
        objects, below = client_of(self.url).list()
        now = time.monotonic()
        names = [one.name for one in objects]
        with self._lock:
            if names != self._names:
                self._names = names
            self._below = frozenset(below)
            self._entries = {one.name: (one, now) for one in objects}
            self._listed_at = now

    def _look_later(self) -> None:
        with self._lock:
            if self._lister is None or not self._lister.is_alive():
                self._lister = threading.Thread(target=self._look_in_background, name="object listing", daemon=True)
                self._lister.start()

    def _look_in_background(self) -> None:
        try:
            self._look()
        except StoreError as error:
            self._problem = error

    def _known(self, name: str) -> StoredObject:
        found = self.find(name)
        if found is None:
            raise MissingFileError(f"{self.url}/{name}: no such file or directory")
        return found

    def _read(self, name: str, offset: int, size: int, *, is_greedy: bool) -> bytes:
        found = self._entries.get(name, (None, 0.0))[0] or self._known(name)
        try:
            return self._read_of(found, offset, size, is_greedy=is_greedy)
        except (ChangedError, MissingFileError):
            self._entries.pop(name, None)
            now = client_of(self.url).head(name)
            if now is None:
                raise MissingFileError(f"{self.url}/{name}: the object was removed while it was read") from None
            if now.size < found.size or now.version == found.version:
                raise
            self._entries[name] = now, time.monotonic()  # it has grown: a file is uploaded again and again
            return self._read_of(now, offset, size, is_greedy=is_greedy)

    def _read_of(self, found: StoredObject, offset: int, size: int, *, is_greedy: bool) -> bytes:
        end = min(offset + size, found.size)
        if end <= offset:
            return b""
        pieces: list[Buffer] = []
        first, end_block = offset // BLOCK_SIZE, -(-end // BLOCK_SIZE)
        number = first
        while number < end_block:
            block = BLOCKS.get(self._key(found, number))
            if block is None:
                if pieces and not is_greedy:
                    break
                run = self._fetch(found, number, end_block if is_greedy else number + 1)
            else:
                run = memoryview(block)
            start = offset - number * BLOCK_SIZE if number == first else 0
            pieces.append(run[start : end - number * BLOCK_SIZE])
            number += -(-len(run) // BLOCK_SIZE)
        return b"".join(pieces)

    def _fetch(self, found: StoredObject, first: int, end_block: int, *, is_ahead: bool = True) -> memoryview:
        """Fetches more, too, where the reads seem to go in order."""
        known = 0
        while is_ahead and known < min(first, AHEAD_BLOCKS_MAX) and BLOCKS.has(self._key(found, first - 1 - known)):
            known += 1
        last = min(first + AHEAD_BLOCKS_MAX, max(end_block, first + AHEAD_FACTOR * known), -(-found.size // BLOCK_SIZE))
        number = first + 1
        while number < last and not BLOCKS.has(self._key(found, number)):
            number += 1
        start = first * BLOCK_SIZE
        data = memoryview(client_of(self.url).read(found, start, min(number * BLOCK_SIZE, found.size)))
        for at in range(0, len(data), BLOCK_SIZE):
            BLOCKS.put(self._key(found, first + at // BLOCK_SIZE), bytes(data[at : at + BLOCK_SIZE]))
        return data

    def _fetch_at_once(self, blocks: Sequence[tuple[StoredObject, int]]) -> None:
        """Put blocks of any files into the cache; a failed fetch becomes an error when someone reads the block."""
        if len(blocks) > 1:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE, "object reads") as pool, contextlib.suppress(StoreError):
                list(pool.map(lambda block: self._fetch(block[0], block[1], block[1] + 1, is_ahead=False), blocks))

    def _has(self, name: str, offset: int, size: int) -> bool:
        found = self._entries.get(name, (None, 0.0))[0]
        if found is None:
            return False
        end = min(offset + size, found.size)
        numbers = range(offset // BLOCK_SIZE, -(-end // BLOCK_SIZE))
        return all(BLOCKS.has(self._key(found, number)) for number in numbers)

    def _key(self, found: StoredObject, number: int) -> _Key:
        return self.url, found.name, found.version or f"{found.size} {found.modified_at}", number
