"""Bulk writes that no caller waits for, until they must be durable."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from ibbmaster.errors import StoreError
from ibbmaster.storage.codec.buffer import Buffer
from .interface import Disk, DiskLayer
from .page_memory import page_memory

WRITES_MAX = 4  # under way: what they hold is in memory twice
HELD_BYTES = 1 << 20  # of a write, as most are
SYNC_BYTES = 32 << 20  # after which the disk begins to work, so the last sync is short


class WriteBehindDisk(DiskLayer):
    """A `Disk` whose own thread writes in order; every other call waits for it. An error of a write is raised by the
    next call and each later one: later writes did not take place. Not thread-safe; `close` ends the thread."""

    _disk: Disk

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="ibbmaster-write")
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="ibbmaster-sync")
        self._sync: Future[None] | None = None  # under way, while more is written
        self._writes: deque[Future[None]] = deque()
        self._free: list[memoryview] = []
        self._failure: StoreError | None = None
        self._unsynced_bytes = 0

    def write(self, name: str, offset: int, data: Buffer) -> None:
        if len(self._writes) >= WRITES_MAX:
            self._writes.popleft().result()
        self._check()
        held = self._held(data)
        self._writes.append(self._executor.submit(self._write, name, offset, held))

    def sync(self, name: str) -> None:
        self._below().sync(name)

    def lock(self) -> None:
        self._below().lock()

    def create(self, name: str) -> None:
        self._below().create(name)

    def publish(self, name: str, data: Buffer) -> None:
        self._below().publish(name, data)

    def allocate(self, name: str, size: int) -> None:
        self._below().allocate(name, size)

    def truncate(self, name: str, size: int) -> None:
        self._below().truncate(name, size)

    def sync_dir(self) -> None:
        self._below().sync_dir()

    def unlink(self, name: str) -> None:
        self._below().unlink(name)

    def close(self) -> None:
        self._executor.shutdown()
        self._syncing.shutdown()
        self._disk.close()

    def _held(self, data: Buffer) -> memoryview:
        """A copy, in used memory where possible, which the system need not find and clear."""
        size = len(data)
        buffer = self._free.pop() if self._free else page_memory(max(size, HELD_BYTES))
        if len(buffer) < size:
            buffer = page_memory(size)
        buffer[:size] = data
        return buffer[:size]

    def _write(self, name: str, offset: int, data: memoryview) -> None:
        if self._failure is not None:
            return
        try:
            self._disk.write(name, offset, data)
            self._free.append(memoryview(data.obj))
            self._unsynced_bytes += len(data)
            if self._unsynced_bytes >= SYNC_BYTES:
                self._unsynced_bytes = 0
                self._end_sync()
                self._sync = self._syncing.submit(self._disk.sync, name)
        except StoreError as error:
            self._failure = error

    def _end_sync(self) -> None:
        sync, self._sync = self._sync, None
        if sync is not None:
            sync.result()

    def _below(self) -> Disk:
        """After all writes."""
        while self._writes:
            self._writes.popleft().result()
        try:
            self._end_sync()
        except StoreError as error:
            self._failure = self._failure or error
        self._check()
        return self._disk

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
