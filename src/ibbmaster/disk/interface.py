"""The seam to the file system: everything the store does to the outside goes through a `Disk`.

Nothing else below the command line may import `os`; a simulated disk takes this one's place in tests.
Names are plain file names of one directory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from ibbmaster.codec.buffer import Buffer
from ibbmaster.disk.held_file import Stamp


class ReadDisk(Protocol):
    """One directory to read from. Offsets and sizes are in bytes; every call may raise StoreError."""

    def list(self) -> Sequence[str]:
        """Names of the regular files, in no order; links and other things are left out.
        It may be the same object as before, which then has the same names."""

    def size(self, name: str) -> int: ...

    def modified_at(self, name: str) -> float:
        """When the file was last written, in seconds since 1970."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file.
        Raises MissingFileError: there is no such file; StoreError: it cannot be read."""

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        """Fill `target` as `read` does; returns the bytes read. With `only_cached`, None if that would have to wait."""

    def next_data(self, name: str, offset: int) -> int:
        """Where from an offset on there may be something else than zeros; the end of the file if nowhere."""

    def open(self, name: str) -> int | None:
        """A descriptor to read a file with, for the caller to close; None if what it gives is not what `read` gives.
        What is read there may end earlier than with `read`, with zeros or at the end of the file."""

    def close(self) -> None:
        """Release what is held open; what is asked for later opens it again. A lock ends with it."""


class DiskLayer:
    """A `ReadDisk` on top of another, which answers what the layer does not, and is closed by who has opened it."""

    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk

    def __str__(self) -> str:
        return str(self._disk)

    def _below(self) -> ReadDisk:
        """The disk to ask now."""
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
    """A directory far away: it can fetch at the same time what will be read one after the other."""

    def expect_reads(self, name: str, offsets: Sequence[int]) -> None:
        """Pages at these offsets of a file will be read soon."""


class Watch(Protocol):
    """Notices that a directory has changed."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is time to look; False if nothing has changed for so long."""


class SharedDisk(ReadDisk, Protocol):
    """One directory to read from, which others may write meanwhile."""

    def is_locked(self) -> bool:
        """Whether another process writes here."""

    def stamp(self, name: str) -> Stamp:
        """What the file of a name is known by, for those who look again and again."""

    def make_durable(self, name: str) -> None:
        """Make durable what another process has written to a file."""

    def watch(self) -> Watch:
        """Notices from now on what others write here, until `close`."""


class Disk(ReadDisk, Protocol):
    """One directory. What was written or truncated is durable after `sync(name)`, what was created or removed after
    `sync_dir()`. Calls that need room raise DiskFullError and may be made again, but a `sync` that fails is final."""

    def lock(self) -> None:
        """Have the directory for this process alone, until `close` or the end of the process.
        Raises BusyError: another process has it."""

    def create(self, name: str) -> None:
        """Make an empty file, which must not be there yet."""

    def write(self, name: str, offset: int, data: Buffer) -> None: ...

    def publish(self, name: str, data: Buffer) -> None:
        """Write the whole of a small file for other processes to read; a crash may leave anything older of it."""

    def allocate(self, name: str, size: int) -> None:
        """Extend a file with zeros to `size`, with room on the disk where that is possible."""

    def truncate(self, name: str, size: int) -> None: ...

    def sync(self, name: str) -> None: ...

    def sync_dir(self) -> None: ...

    def unlink(self, name: str) -> None: ...


@contextmanager
def owning(disk: Disk) -> Iterator[None]:
    """Lock a directory to open the log in it; the lock is released at once if that fails.
    Raises BusyError: another process has it."""
    disk.lock()
    try:
        yield
    except BaseException:
        disk.close()
        raise
