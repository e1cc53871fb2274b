"""Directories that are made whole, here or in an object store.

Invariants:
- An upload overwrites nothing, and of two uploads to one place one is refused: each begins by creating the same
  object (test_of_two_uploads_one_is_refused).
- An upload that fails removes its objects (test_an_upload_that_fails_leaves_nothing).
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from ibbmaster.errors import StoreError
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .local import made_at_once
from .object_store import ObjectClient, client_of
from .place import ObjectPath, directory_at
from .spool import scratch_directory

CLAIM = "_ibbmaster-upload.json"  # during an upload, or after it was killed
BLOCK_BYTES = 1 << 20


@contextlib.contextmanager
def made_place(target: Path, *, is_kept: Callable[[str], bool] = lambda name: True) -> Iterator[Path]:
    """As `made_at_once`. A target in an object store is made among the temporary files (TMPDIR), and those files that
    `is_kept` takes are uploaded, without pre-allocated space, once it is whole. Raises StoreError: something is at that
    place, or it cannot be made there."""
    if not isinstance(target, ObjectPath):
        with made_at_once(target) as staging:
            yield staging
        return
    expect_nothing_at(target)
    with scratch_directory() as staging:
        yield staging
        upload(staging, target, is_kept=is_kept)


def expect_nothing_at(target: ObjectPath) -> None:
    """Raises StoreError: an object is below a URL, the store cannot be reached, or refuses, or has no such bucket."""
    objects, below = client_of(str(target)).list()
    names = sorted([one.name for one in objects] + below)
    if CLAIM in names:
        raise StoreError(
            f"{target}: an upload is under way, or was killed ({CLAIM} is there): if none is running, remove all "
            "objects below this URL, and try again"
        )
    if names:
        raise StoreError(f"{target} is not empty, it holds {names[0]}: give another prefix")


def upload(directory: Path, target: ObjectPath, *, is_kept: Callable[[str], bool] = lambda name: True) -> None:
    """Put the files below a directory below a URL; completion marks come last. Raises StoreError: as
    `expect_nothing_at`; nothing of this upload stays there then."""
    paths = sorted((path for path in directory.rglob("*") if path.is_file() and is_kept(path.name)), key=_order)
    sizes = {path: size for path in paths if (size := _used_bytes(path)) or parse_file_name(path.name) is None}
    client = client_of(str(target))
    expect_nothing_at(target)
    claim = {str(path.relative_to(directory)): size for path, size in sizes.items()}
    client.create(CLAIM, json.dumps(claim, indent=1).encode())
    put: list[str] = []
    try:
        for path, size in sizes.items():
            name = str(path.relative_to(directory))
            client.upload(name, path, size)
            put.append(name)
    except BaseException:
        _remove(client, put)
        raise
    finally:
        _remove(client, [CLAIM])
        directory_at.cache_clear()  # what is known of the place is over


def _remove(client: ObjectClient, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(StoreError):
            client.remove(name)


def _order(path: Path) -> tuple[bool, Path]:
    return path.name.startswith("_"), path


def _used_bytes(path: Path) -> int:
    """An `.ibb` file ends after its last page with data, 0 if it has none."""
    size = path.stat().st_size
    if parse_file_name(path.name) is None:
        return size
    with path.open("rb") as file:
        while size:
            start = max(size - BLOCK_BYTES, 0)
            file.seek(start)
            used = len(file.read(size - start).rstrip(b"\0"))
            if used:
                return -(-(start + used) // PAGE_SIZE) * PAGE_SIZE
            size = start
    return 0


def is_of_log(name: str) -> bool:
    """The writer's other files are of no use elsewhere."""
    return parse_file_name(name) is not None
