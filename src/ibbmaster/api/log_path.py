"""Paths that users give for logs."""

import os
from pathlib import Path

from ibbmaster.errors import StoreError
from ibbmaster.storage.disk.place import ObjectPath, place

PathLike = str | os.PathLike[str]


def log_path(path: PathLike) -> Path:
    """A path or URL that can name a log, whether it exists or not. Raises ConfigurationError: no log can be at such
    a URL; StoreError: no file can have this name."""
    where = place(path)
    if isinstance(where, ObjectPath):
        return where
    try:
        os.lstat(where)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        shown = str(path)[:80].replace("\0", "\\0")
        raise StoreError(f"{shown!r} cannot be the path of a log: {problem}") from None
    return where
