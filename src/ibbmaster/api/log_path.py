"""Paths that users give for logs."""

import os
from pathlib import Path

from ibbmaster.disk.place import ObjectPath, place
from ibbmaster.errors import StoreError

PathLike = str | os.PathLike[str]


def log_path(path: PathLike) -> Path:
    """A path that the system takes, or a URL; something need not be there. Raises ConfigurationError: no log can be at
    such a URL; StoreError: no file can be called so."""
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
