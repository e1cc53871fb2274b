"""What several commands ask of their arguments first."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import FormatError, StoreError
from ibbmaster.storage.disk.place import ObjectPath

if TYPE_CHECKING:
    from ibbmaster.logs.store.binlog_store import BinlogStore


def expect_log(directory: Path | str) -> None:
    """Raises IbbMasterError before long work: no log is readable."""
    import ibbmaster

    with ibbmaster.open(directory) as log, contextlib.suppress(FormatError):  # the job names damage, or skips it
        if not log.files:
            raise StoreError(f"{directory}: no binlog files (binlog-000000.ibb and so on)")


def expect_readable(files: Iterable[Path]) -> None:
    """Raises StoreError before long work: a file cannot be read."""
    for path in files:
        if not isinstance(path, ObjectPath) and not os.access(path, os.R_OK):
            raise StoreError(f"{path} cannot be read")


def expect_writable(directory: Path) -> None:
    """Raises StoreError before long work: a directory cannot be written, nor made."""
    if isinstance(directory, ObjectPath):
        from ibbmaster.storage.disk.uploading import expect_nothing_at

        expect_nothing_at(directory)
        return
    above = next(path for path in (directory.absolute(), *directory.absolute().parents) if os.path.lexists(path))
    if not above.is_dir():
        is_itself = above == directory.absolute()
        problem = "this is not a directory" if is_itself else f"cannot be made: {above} is not a directory"
        raise StoreError(f"{directory}: {problem}")
    if not os.access(above, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(above).f_flag & os.ST_RDONLY
        raise StoreError(
            f"{directory}: cannot be written: {os.strerror(errno.EROFS if is_read_only else errno.EACCES)}"
        )


def open_to_change(directory: Path) -> BinlogStore:
    from ibbmaster.api.stores import existing_store

    return existing_store(directory, {"full_disk_retry_s": 0})


def report(args: argparse.Namespace, facts: Mapping[str, object], *lines: str) -> None:
    print(json.dumps(facts) if args.json else "\n".join(lines))
