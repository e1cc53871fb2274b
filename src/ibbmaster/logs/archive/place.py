"""The archive at a place. Each log that is opened is asked for one, so what reads archives is loaded when there is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.storage.disk.place import ObjectPath
from .manifest import HEAD_NAME

if TYPE_CHECKING:
    from .archived import ArchivedBinlog


def archive_at(path: Path) -> ArchivedBinlog | None:
    """None: there is none, or it may not be looked for. Raises StoreError: it cannot be read."""
    if not isinstance(path, ObjectPath) and not os.path.isfile(path / HEAD_NAME):  # of `Path` it raises
        return None
    from ibbmaster.storage.disk.whole_objects import objects_at
    from .archived import ArchivedBinlog, SegmentStore
    from .keeping import read_head

    objects = objects_at(path)
    found = read_head(objects)
    return None if found is None else ArchivedBinlog(SegmentStore(objects, found[0]))
