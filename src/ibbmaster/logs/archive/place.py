"""The archive at a place. Each log that is opened is asked for one, so what reads archives is loaded when there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.storage.disk.place import ObjectPath
from .manifest import HEAD_NAME

if TYPE_CHECKING:
    from .archived import ArchivedBinlog


def archive_at(path: Path) -> ArchivedBinlog | None:
    """None: there is none. Raises StoreError: it has nothing, or cannot be read."""
    if not isinstance(path, ObjectPath) and not (path / HEAD_NAME).is_file():
        return None
    from .archived import opened_archive

    return opened_archive(path)
