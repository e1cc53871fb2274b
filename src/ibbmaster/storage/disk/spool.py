"""Temporary files: bytes that are too many for the memory in a file without a name, and whole directories.

Invariants:
- What a killed process left is removed by the next one, and nothing that is in use
  (test_a_directory_of_a_killed_process_is_removed_by_the_next_one)."""

import contextlib
import itertools
import mmap
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.errors import BusyError, MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.user_cache import distrust
from .local import RealDisk

SCRATCH = "ibbmaster-scratch-"
FILES = "files"  # in it: what uses this may lock it
LEFT_MAX = 1000  # that are looked at: anyone may make directories there


class Spool:
    """Takes bytes in order, and returns them as one buffer, whose end frees the disk space. Raises StoreError: the
    directory for temporary files (TMPDIR) is missing, or cannot be written."""

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(prefix="ibbmaster-", buffering=0)  # noqa: SIM115  # lives as long as this
        except OSError as error:
            raise StoreError(f"a temporary file is needed: {error.strerror} (TMPDIR names the directory)") from None
        weakref.finalize(self, self._file.close)
        self._size = 0

    def write(self, data: Buffer) -> None:
        """Raises StoreError: the disk has no room for the bytes."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            problem = f"{error.strerror} behind {self._size} bytes of a temporary file"
            raise StoreError(f"{tempfile.gettempdir()}: {problem} (TMPDIR names another directory)") from None
        self._size += len(data)

    @property
    def descriptor(self) -> int:
        """Of the file, which lives as long as this, or a duplicate of the descriptor."""
        return self._file.fileno()

    def whole(self) -> Buffer:
        """From the page cache, so it takes no memory from others."""
        with self._file:
            return mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_COPY)  # type: ignore[return-value]


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory among the temporary files (TMPDIR), while the block runs. Those that killed processes of this
    user left there are removed. Raises StoreError: it cannot be made."""
    while True:
        with _made() as made, contextlib.closing(RealDisk(made)) as disk:
            try:
                disk.lock()
                (disk.directory / FILES).mkdir()
            except (BusyError, MissingFileError, FileNotFoundError):  # another process took it for one that was left
                continue
            except OSError as error:
                raise _needed(error) from None
            _remove_left(disk.directory.parent)
            yield disk.directory / FILES
            return


def _made() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True)
    except OSError as error:
        raise _needed(error) from None


def _needed(error: OSError) -> StoreError:
    return StoreError(f"a temporary directory is needed: {error.strerror} (TMPDIR names where)")


def _remove_left(place: Path) -> None:
    for path in itertools.islice(place.glob(f"{SCRATCH}*"), LEFT_MAX):
        with contextlib.suppress(OSError, StoreError), contextlib.closing(RealDisk(path)) as disk:
            if not path.is_symlink() and distrust(path) is None and not disk.is_locked():
                disk.lock()
                shutil.rmtree(path, ignore_errors=True)
