"""Bytes that are too many for the memory, kept in a file without a name while they are needed."""

import mmap
import tempfile
import weakref

from ibbmaster.errors import StoreError
from ibbmaster.storage.codec.buffer import Buffer


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
