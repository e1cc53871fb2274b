"""Keeps the schema history of a log: its writer beside it, a reader in the cache of its user.

A reader leaves the log's directory as it is: it may be that of a running server."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ibbmaster.storage.disk.cache_file import CacheFile
from ibbmaster.storage.disk.place import ObjectPath
from ibbmaster.user_cache import cache_directory

CACHE_FILE = "schema-history.cache"  # beside the files of the log
SIZE_MAX = 1 << 28
COUNT_MAX = 64  # histories of logs that one user reads


class HistoryCache:
    """The kept history of the log at a path; none where stages change that log each time (not `keeps`)."""

    def __init__(self, log_path: Path, *, is_written: bool, keeps: bool = True) -> None:
        self.directory = log_path if log_path.is_dir() else log_path.parent
        self.is_written = is_written  # whether this process writes the log
        beside = CacheFile(log_path / CACHE_FILE, size_max=SIZE_MAX)
        own = None if is_written else _own_file(log_path)
        self._kept_in = beside if is_written else own
        self._files = [file for file in (own, beside) if file is not None]
        if isinstance(log_path, ObjectPath):  # what lies there may be anyone's
            self._files.remove(beside)
        if not keeps:
            self._kept_in, self._files = None, []

    def read(self) -> Iterator[bytes]:
        """The kept data, the best first; it need not be of this log."""
        for file in self._files:
            data = file.read()
            if data is not None:
                yield data

    def write(self, data: bytes) -> None:
        if self._kept_in is not None:
            self._kept_in.write(data)


def _own_file(log_path: Path) -> CacheFile | None:
    directory = cache_directory()
    if directory is None:
        return None
    name = hashlib.sha256(str(log_path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return CacheFile(directory / "schemas" / f"{name}.cache", size_max=SIZE_MAX, count_max=COUNT_MAX)
