"""Places that users name: a path of this machine, or a URL of an object store.

Both are a `Path`, and `open_disk` opens the directory at either; callers distinguish them only to write."""

from __future__ import annotations

import functools
import io
import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any

from ibbmaster.errors import ConfigurationError, MissingFileError
from ibbmaster.storage.codec.buffer import Buffer
from .held_file import Stamp

if TYPE_CHECKING:
    from .interface import SharedDisk
    from .object_directory import ObjectDirectory
    from .object_store import StoredObject

SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
OTHER_NAMES = {"s3a": "s3", "s3n": "s3", "adl": "az", "azure": "az"}
DIRECTORIES_MAX = 64  # of object stores, whose listings are kept
DISK_BLOCK = 512

_URL = re.compile(r"([a-z][a-z0-9+.-]*):/{1,2}(?=[^/])(.*)", re.ASCII | re.DOTALL | re.IGNORECASE)
_FILE_URL = re.compile(r"file:(?://(?=/))?", re.ASCII | re.IGNORECASE)


def place(named: str | os.PathLike[str]) -> Path:
    """The path that a user names, or a URL. Raises ConfigurationError: a URL of no object store, or no place in one."""
    if isinstance(named, ObjectPath):
        return named
    text = os.fspath(named)
    if found := _FILE_URL.match(text):
        return Path(text[found.end() :])
    match = _URL.fullmatch(text)
    if match is None or ("://" not in text and match[1].lower() not in (*SCHEMES, *OTHER_NAMES)):
        return Path(text)
    scheme = OTHER_NAMES.get(match[1].lower(), match[1].lower())
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        raise ConfigurationError(f"{text}: expected a path, file:// or a URL of an object store ({known})")
    if re.search(r"[\0-\x1f\x7f]", match[2]):
        raise ConfigurationError(f"{text!r}: no object can be called so")
    return ObjectPath(f"{scheme}:", *match[2].split("/"))


def is_object_place(path: str | os.PathLike[str]) -> bool:
    return isinstance(place(path), ObjectPath)


def open_disk(path: str | os.PathLike[str]) -> SharedDisk:
    found = place(path)
    if isinstance(found, ObjectPath):
        return directory_at(str(found))
    from .local import RealDisk

    return RealDisk(found)


def whole_place(path: str | os.PathLike[str]) -> str:
    found = place(path)
    return str(found) if isinstance(found, ObjectPath) else os.path.abspath(found)


def local_place(path: str | os.PathLike[str], what: str) -> Path:
    """A place for files that change, as objects never do. Raises ConfigurationError: it is in an object store."""
    found = place(path)
    if isinstance(found, ObjectPath):
        raise ConfigurationError(
            f"{found}: {what} appends to files, which object stores cannot: give a directory "
            "(`ibbmaster backup DIR --to URL` uploads a log)"
        )
    return found


@functools.lru_cache(maxsize=DIRECTORIES_MAX)
def directory_at(url: str) -> ObjectDirectory:
    from .object_directory import ObjectDirectory

    return ObjectDirectory(url)


def modified_at(directory: Path, names: Iterable[str]) -> list[int]:
    """In nanoseconds; 0 where that is unknown."""
    is_object = isinstance(directory, ObjectPath)  # else no `Path` for each of ten thousand
    return [_modified_at(directory / name if is_object else f"{directory}/{name}") for name in names]


def _modified_at(path: Path | str) -> int:
    try:
        return (path.stat() if isinstance(path, Path) else os.stat(path)).st_mtime_ns
    except OSError:
        return 0


class ObjectPath(PosixPath):
    """The URL of an object, or of a directory of objects. Calls raise StoreError where the store fails or refuses."""

    __slots__ = ()

    def __str__(self) -> str:
        scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"

    def __fspath__(self) -> str:
        return str(self)

    def absolute(self) -> ObjectPath:
        return self

    def resolve(self, strict: bool = False) -> ObjectPath:
        return self

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return self.is_dir() or self.is_file()

    def is_dir(self, **_: object) -> bool:
        directory = directory_at(str(self))
        try:
            directory.list()
        except MissingFileError:
            return False
        return True

    def is_file(self, **_: object) -> bool:
        return self._found() is not None

    def is_symlink(self) -> bool:
        return False

    def is_mount(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = self._found()
        if found is None:
            raise FileNotFoundError(2, "no such file or directory", str(self))
        return _status(found)

    def lstat(self) -> os.stat_result:
        return self.stat()

    def iterdir(self) -> Generator[ObjectPath, None, None]:
        directory = directory_at(str(self))
        yield from (self / name for name in (*directory.list(), *directory.directories()))

    def expect_heads(self, names: Sequence[str]) -> None:
        directory_at(str(self)).expect_heads(names)

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        if set(mode) - set("rbt"):
            raise ConfigurationError(f"{self}: objects are put whole, and never changed")
        raw = ObjectFile(self)
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedReader(raw)  # type: ignore[return-value]
        return io.TextIOWrapper(io.BufferedReader(raw), encoding, errors, newline)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None: ...

    def _found(self) -> StoredObject | None:
        return directory_at(str(self.parent)).find(self.name) if len(self.parts) > 2 else None


def stamp_of(path: Path) -> Stamp:
    """Raises OSError, StoreError: there is no regular file."""
    if not isinstance(path, ObjectPath):
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(2, "not a regular file", str(path))
        return Stamp.of(found)
    try:
        return directory_at(str(path.parent)).stamp(path.name)
    except MissingFileError:
        raise FileNotFoundError(2, "no such file or directory", str(path)) from None


def open_file(path: Path) -> LocalFile | ObjectFile:
    """Raises OSError, StoreError: the file cannot be opened."""
    return ObjectFile(path) if isinstance(path, ObjectPath) else LocalFile(path)


class LocalFile(io.FileIO):
    @property
    def descriptor(self) -> int:
        return self.fileno()

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def stamp(self) -> Stamp:
        return Stamp.of(os.fstat(self.fileno()))

    def read_at(self, offset: int, size: int) -> bytes:
        """Between 1 and `size` bytes from an offset on; none at the end."""
        return os.pread(self.fileno(), size, offset)

    def fill(self, offset: int, target: memoryview) -> int:
        """Fill `target` from an offset on, up to the end of the file; returns the bytes read."""
        return os.preadv(self.fileno(), [target], offset)


class SegmentFile(LocalFile):
    """A file without a name, opened once more by its descriptor, which stands for something far away."""

    def __init__(self, descriptor: int, stamp: Stamp) -> None:
        super().__init__(os.dup(descriptor))
        self._stamp = stamp

    def stamp(self) -> Stamp:
        return self._stamp


class ObjectFile(io.RawIOBase):
    """Raises FileNotFoundError: there is no such object."""

    descriptor = None  # kernels and sockets cannot read it

    def __init__(self, path: ObjectPath) -> None:
        super().__init__()
        self._path = path
        self._at = 0
        self._directory = directory_at(str(path.parent))
        path.stat()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._directory.size(self._path.name)

    def stamp(self) -> Stamp:
        return stamp_of(self._path)

    def read_at(self, offset: int, size: int) -> bytes:
        return self._directory.read_some(self._path.name, offset, size)

    def fill(self, offset: int, target: memoryview) -> int:
        return self._directory.read_into(self._path.name, offset, target) or 0

    def readinto(self, target: Buffer) -> int:  # type: ignore[override]
        view = memoryview(target).cast("B")
        data = self.read_at(self._at, len(view))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self.size() if whence == os.SEEK_END else 0)[whence]
        return self._at


def _status(found: StoredObject) -> os.stat_result:
    seconds = int(found.modified_at)
    times = (seconds, seconds, seconds)
    more = {"st_mtime_ns": int(found.modified_at * 1e9), "st_blocks": -(-found.size // DISK_BLOCK)}
    return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, found.size, *times), more)
