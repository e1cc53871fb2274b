"""Places that jobs write to: one job in one place at a time.

A table written as a whole takes its place in one step, or not at all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.errors import BusyError, DiskFullError, MissingFileError, StoreError
from ibbmaster.storage.disk.local import FULL, RealDisk
from ibbmaster.storage.disk.object_store import BusyNameError, client_of
from ibbmaster.storage.disk.place import ObjectPath, directory_at
from ibbmaster.storage.disk.uploading import made_place

if TYPE_CHECKING:
    import pyarrow as pa

DONE = "_SUCCESS"
WRITER = "_ibbmaster-writer.json"  # in an object store, while a job writes there
NEW = ".new"  # after a file's name, until it has its place
TABLE = "table"  # beside the place, until it is whole


@contextlib.contextmanager
def only_writer(directory: Path, place: Path | None = None) -> Iterator[None]:
    """Reserve a directory for one job of this machine, until it or its process ends; a missing one is made, and removed
    if it stays empty. No file shows the lock. Errors name `place` if it is another. Raises BusyError: another job has
    it; StoreError: it cannot be made, or the job fails with its files."""
    place = place or directory
    if isinstance(directory, ObjectPath):
        with _only_writer_of_objects(directory):
            yield
        return
    with _named_errors(place), contextlib.closing(RealDisk(directory)) as disk:
        made = _take(disk, place)
        try:
            yield
        finally:
            for path in made:
                with contextlib.suppress(OSError):  # it is in use
                    path.rmdir()


@contextlib.contextmanager
def _only_writer_of_objects(place: ObjectPath) -> Iterator[None]:
    """The job that creates an object there has the place until it removes it."""
    client = client_of(str(place))
    try:
        client.create(WRITER, b"{}")
    except BusyNameError:
        problem = f"another job writes here, or was killed: if so, remove {place / WRITER}"
        raise BusyError(f"{place}: {problem}") from None
    directory_at.cache_clear()  # another job may have changed what was known
    try:
        yield
    finally:
        with contextlib.suppress(StoreError):  # the job names the store's problem; the object stays
            client.remove(WRITER)
        directory_at.cache_clear()


def _take(disk: RealDisk, place: Path) -> list[Path]:
    made: list[Path] = []
    while True:
        made += make_directory(disk.directory, place)
        try:
            before = disk.directory.stat()
            disk.lock()
            if os.path.samestat(before, disk.directory.stat()):
                return made
        except BusyError:
            problem = "another job writes here: wait until it has ended, or give another directory"
            raise BusyError(f"{place}: {problem}") from None
        except (FileNotFoundError, MissingFileError):
            pass
        disk.close()  # its job has just removed it: what we locked is gone


def make_directory(directory: Path, place: Path | None = None) -> list[Path]:
    """Also those above it; returns the missing ones, the lowest first. Raises StoreError: it cannot be made, and
    why."""
    place = place or directory
    try:
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        blocking = next(path for path in (directory, *directory.parents) if path.exists() or path.is_symlink())
        problem = "this is not a directory" if blocking == place else f"cannot be made: {blocking} is not a directory"
        raise StoreError(f"{place}: {problem}") from None
    except OSError as error:
        kind = DiskFullError if error.errno in FULL else StoreError
        raise kind(f"{place}: cannot be written: {error.strerror}") from error
    return missing


@contextlib.contextmanager
def _named_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = DiskFullError if error.errno in FULL else StoreError
        raise kind(f"{error.filename or place}: {os.strerror(error.errno) if error.errno else error}") from error


def check_free(place: Path) -> None:
    """Check, before the log is read, that no job writes to a place. Raises BusyError: one does."""
    for directory in () if isinstance(place, ObjectPath) else (place, _beside(place, "new")):
        if directory.is_dir():
            with only_writer(directory, place):
                pass


def write_whole(rows: pa.Table, place: Path) -> int:
    """Write a table as Parquet in place of the old one; returns the number of rows. In an object store none may be
    there. The old table stays until then, and after a killed run. Raises BusyError: another job writes there;
    StoreError: the directory holds something else, or cannot be made."""
    if isinstance(place, ObjectPath):
        with made_place(place) as made:
            _write(rows, made)
        return len(rows)
    fresh, old = _beside(place, "new"), _beside(place, "old")
    with contextlib.ExitStack() as held:
        held.enter_context(only_writer(fresh, place))  # later the place is another directory
        held.callback(shutil.rmtree, fresh, ignore_errors=True)
        if not place.exists() and old.exists():
            os.rename(old, place)
        _check_replaceable(place)
        if place.exists():
            held.enter_context(only_writer(place))
        for left in (fresh / TABLE, old):
            shutil.rmtree(left, ignore_errors=True)
        (fresh / TABLE).mkdir()
        _write(rows, fresh / TABLE)
        _check_replaceable(place)
        if place.exists():
            os.rename(place, old)
        os.rename(fresh / TABLE, place)
        shutil.rmtree(old, ignore_errors=True)
    return len(rows)


def _write(rows: pa.Table, directory: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(rows, directory / "part-00000.parquet")
    (directory / DONE).touch()


def foreign_in(place: Path, *ours: str) -> str | None:
    names = (one.name for one in place.iterdir()) if place.is_dir() else ()
    return min((name for name in names if name.removesuffix(NEW) not in (WRITER, *ours)), default=None)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, durably; a missing directory is made."""
    if isinstance(path, ObjectPath):
        client_of(str(path.parent)).replace(path.name, content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + NEW)
    fresh.write_bytes(content)
    sync(fresh)
    os.rename(fresh, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file, or a directory's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(place: Path, what: str) -> Path:
    return place.with_name(f".{place.name}.{what}")


def _check_replaceable(place: Path) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise StoreError(f"{place}: this is not a directory")
    names = sorted(path.name for path in place.iterdir())
    others = [name for name in names if name != DONE and not name.removesuffix(".crc").endswith(".parquet")]
    others = [name for name in others if name != f".{DONE}.crc"]
    if others or (names and DONE not in names):
        raise StoreError(f"{place}: holds {(others or names)[0]}, and no table written before: give another directory")
