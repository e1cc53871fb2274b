"""The seam to the file system: everything the store does to the outside goes through a `Disk`.

Below the command line only this room may import `os`; tests replace it. Names are plain file names of one directory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from ibbmaster.storage.codec.buffer import Buffer
from .held_file import Stamp


class ReadDisk(Protocol):
    """One directory to read from. Offsets and sizes are in bytes; every call may raise StoreError."""

    def list(self) -> Sequence[str]:
        """The regular files, in no order. May return the same object as before for the same names."""

    def size(self, name: str) -> int: ...

    def modified_at(self, name: str) -> float:
        """In seconds since 1970."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Fewer than `size` bytes only at the end of the file. Raises MissingFileError: there is no such file."""

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        """Fill `target` as `read` does; returns the bytes read. With `only_cached`, None if that would have to wait."""

    def next_data(self, name: str, offset: int) -> int:
        """An offset up to which the file holds only zeros; its end if no data follows."""

    def open(self, name: str) -> int | None:
        """A descriptor for the caller to read from, and close; None if it would read other bytes than `read`."""

    def close(self) -> None:
        """Release everything, including a lock; later calls open it again."""


class DiskLayer:
    """A `ReadDisk` on top of another, whose owner closes it; passes on all that a subclass does not answer."""

    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk

    def __str__(self) -> str:
        return str(self._disk)

    def _below(self) -> ReadDisk:
        return self._disk

    def list(self) -> Sequence[str]:
        return self._below().list()

    def size(self, name: str) -> int:
        return self._below().size(name)

    def modified_at(self, name: str) -> float:
        return self._below().modified_at(name)

    def read(self, name: str, offset: int, size: int) -> bytes:
        return self._below().read(name, offset, size)

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        return self._below().read_into(name, offset, target, only_cached=only_cached)

    def next_data(self, name: str, offset: int) -> int:
        return self._below().next_data(name, offset)

    def open(self, name: str) -> int | None:
        return self._below().open(name)

    def close(self) -> None:
        """Nothing is held open here."""


@runtime_checkable
class ExpectingDisk(Protocol):
    """A directory far away, which can fetch at once what will be read in turn."""

    def expect_reads(self, name: str, offsets: Sequence[int]) -> None:
        """Prepare for reading pages at these offsets soon."""


class Watch(Protocol):
    def wait(self, timeout_s: float) -> bool:
        """Wait until it is time to look; False if nothing has changed for so long."""


class SharedDisk(ReadDisk, Protocol):
    """A directory to read from, while others may write it."""

    def is_locked(self) -> bool: ...

    def stamp(self, name: str) -> Stamp: ...

    def make_durable(self, name: str) -> None:
        """The writes of another process to a file."""

    def watch(self) -> Watch:
        """Notice the writes of others from now on, until `close`."""


class Disk(ReadDisk, Protocol):
    """Writes and truncations are durable after `sync(name)`, new and removed files after `sync_dir()`. Calls that need
    room raise DiskFullError and may be repeated, but a failed `sync` is final."""

    def lock(self) -> None:
        """Take the directory for this process alone, until `close`. Raises BusyError: another process has it."""

    def create(self, name: str) -> None: ...

    def write(self, name: str, offset: int, data: Buffer) -> None: ...

    def publish(self, name: str, data: Buffer) -> None:
        """Write the whole of a small file for other processes; a crash may leave any older version of it."""

    def allocate(self, name: str, size: int) -> None:
        """Extend a file with zeros to `size`, with room on the disk where possible."""

    def truncate(self, name: str, size: int) -> None: ...

    def sync(self, name: str) -> None: ...

    def sync_dir(self) -> None: ...

    def unlink(self, name: str) -> None: ...


@contextmanager
def owning(disk: Disk) -> Iterator[None]:
    """Lock a directory to open the log in it, unless that fails. Raises BusyError: another process has it."""
    disk.lock()
    try:
        yield
    except BaseException:
        disk.close()
        raise
