"""A directory of the machine this runs on."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import BusyError, DiskFullError, MissingFileError, StoreError
from ibbmaster.storage.codec.buffer import Buffer
from .held_file import COARSE_TICK_S, SECOND_NS, TICK_S, Stamp
from .watch import DirectoryWatch

OPEN_FILES_MAX = 16
WRITABLE_FILES_MAX = 4
REQUEST_BYTES = 1 << 19  # a larger request to read ahead is cut to what a device takes
FULL = (errno.ENOSPC, errno.EDQUOT)
LOCK_TRIES, LOCK_PAUSE_S = 10, 0.02  # for a lock that another process may only be testing


class _Listing(NamedTuple):
    """Seen first at `seen_at` on the monotonic clock. While `is_unchanging` the names hold for `stamp`."""

    stamp: tuple[int, int, int]
    seen_at: float
    is_unchanging: bool
    names: Sequence[str]


class RealDisk:
    """A directory of the file system. Thread-safe."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._prefix = os.path.join(self.directory, "")
        self._open_files: OrderedDict[str, int] = OrderedDict()
        self._writable_files: OrderedDict[str, int] = OrderedDict()
        self._published_files: dict[str, int] = {}
        self._directory_lock: int | None = None
        self._listing: _Listing | None = None
        self._watch: DirectoryWatch | None = None
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return str(self.directory)

    def lock(self) -> None:
        with self._errors(""):
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for tries_left in reversed(range(LOCK_TRIES)):
                if _try_lock(descriptor, fcntl.LOCK_EX):
                    break
                if not tries_left:
                    os.close(descriptor)
                    raise BusyError(f"{self.directory}: another process is writing here; end it first")
                time.sleep(LOCK_PAUSE_S)
            self._directory_lock = descriptor

    def is_locked(self) -> bool:
        """Shorter than the patience of `lock`."""
        with self._errors(""):
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return not _try_lock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)

    def watch(self) -> DirectoryWatch:
        with self._lock:
            if self._watch is None:
                self._watch = DirectoryWatch(self.directory)
            return self._watch

    def make_durable(self, name: str) -> None:
        with self._errors(name), self._lock:
            descriptor = self._descriptor(name)
            with contextlib.suppress(OSError):  # a read-only file system has nothing to make durable
                os.fdatasync(descriptor)

    def list(self) -> Sequence[str]:
        known = self._listing
        try:  # as with `_errors`: each dump asks
            found = os.stat(self._prefix)
        except OSError as error:
            raise self._error("", error) from error
        stamp = (found.st_dev, found.st_ino, found.st_mtime_ns)
        if known is not None and known.is_unchanging and known.stamp == stamp:
            return known.names
        with self._errors(""):
            now = time.monotonic()
            seen_at = known.seen_at if known is not None and known.stamp == stamp else now
            self._drop_replaced()
            with os.scandir(self.directory) as entries:
                names: Sequence[str] = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
            if known is not None and known.names == names:
                names = known.names
            tick_s = TICK_S if found.st_mtime_ns % SECOND_NS else COARSE_TICK_S
            self._listing = _Listing(stamp, seen_at, now >= seen_at + tick_s, names)
            return names

    def size(self, name: str) -> int:
        return self._stat(name).st_size

    def modified_at(self, name: str) -> float:
        return self._stat(name).st_mtime

    def stamp(self, name: str) -> Stamp:
        return Stamp.of(self._stat(name))

    def _stat(self, name: str) -> os.stat_result:
        try:
            return os.stat(self._path(name), follow_symlinks=False)
        except OSError as error:
            raise self._error(name, error) from error

    def read(self, name: str, offset: int, size: int) -> bytes:
        try:
            with self._lock:
                descriptor = self._descriptor(name)
                data = os.pread(descriptor, size, offset)
                while 0 < len(data) < size and (more := os.pread(descriptor, size - len(data), offset + len(data))):
                    data += more
                return data
        except OSError as error:
            raise self._error(name, error) from error

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        if not self._lock.acquire(blocking=not only_cached):
            return None
        try:
            return fill(self._descriptor(name), offset, target, only_cached=only_cached)
        except OSError as error:
            raise self._error(name, error) from error
        finally:
            self._lock.release()

    def next_data(self, name: str, offset: int) -> int:
        with self._errors(name), self._lock:
            descriptor = self._descriptor(name)
            try:
                return os.lseek(descriptor, offset, os.SEEK_DATA)  # the place of a descriptor is not used
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return os.fstat(descriptor).st_size
                raise

    def open(self, name: str) -> int | None:
        with self._errors(name), self._lock:
            return os.dup(self._descriptor(name))

    def create(self, name: str) -> None:
        with self._errors(name):
            self._forget(name)
            os.close(os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640))

    def write(self, name: str, offset: int, data: Buffer) -> None:
        try:  # not `_change`, which takes a fifth longer
            descriptor = self._take(name)
            try:
                written = os.pwrite(descriptor, data, offset)
                while written < len(data):
                    written += os.pwrite(descriptor, memoryview(data)[written:], offset + written)
            finally:
                self._keep(name, descriptor)
        except OSError as error:
            raise self._error(name, error) from error

    def publish(self, name: str, data: Buffer) -> None:
        try:
            descriptor = self._published_files.get(name)
            if descriptor is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = self._published_files[name] = os.open(self._path(name), flags, 0o640)
            os.pwrite(descriptor, data, 0)
        except OSError as error:
            raise self._error(name, error) from error

    def allocate(self, name: str, size: int) -> None:
        self._change(name, _allocate, size)

    def truncate(self, name: str, size: int) -> None:
        self._change(name, os.truncate, size)

    def sync(self, name: str) -> None:
        self._change(name, os.fdatasync)  # the size of a file belongs to its data

    def sync_dir(self) -> None:
        with self._errors(""):
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def unlink(self, name: str) -> None:
        with self._errors(name):
            self._forget(name)
            os.unlink(self._path(name))

    def close(self) -> None:
        with self._lock:
            for files in (self._open_files, self._writable_files, self._published_files):
                while files:
                    os.close(files.popitem()[1])
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            if self._directory_lock is not None:
                os.close(self._directory_lock)
                self._directory_lock = None

    def __del__(self) -> None:
        self.close()

    def _path(self, name: str) -> str:
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            raise StoreError(f"{name!r} is no name of a file in {self.directory}")
        return f"{self._prefix}{name}"  # a `Path` takes as long as opening the file

    def _descriptor(self, name: str) -> int:
        """For reading; the caller holds the lock."""
        descriptor = self._open_files.get(name)
        if descriptor is not None and not os.fstat(descriptor).st_nlink:  # removed, and perhaps made anew
            os.close(self._open_files.pop(name))
            descriptor = None
        if descriptor is None:
            descriptor = _open_regular(self._path(name), os.O_RDONLY)
            self._open_files[name] = descriptor
            if len(self._open_files) > OPEN_FILES_MAX:
                os.close(self._open_files.popitem(last=False)[1])
        else:
            self._open_files.move_to_end(name)
        return descriptor

    def _drop_replaced(self) -> None:
        with self._lock:
            for name, descriptor in list(self._open_files.items()):
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.stat(self._path(name), follow_symlinks=False), os.fstat(descriptor)):
                        continue
                os.close(self._open_files.pop(name))

    def _forget(self, name: str) -> None:
        self._listing = None
        with self._lock:
            for files in (self._open_files, self._writable_files):
                descriptor = files.pop(name, None)
                if descriptor is not None:
                    os.close(descriptor)

    def _change(self, name: str, call: Callable[..., object], *arguments: object) -> None:
        try:  # not `_errors`, whose context takes as long as a small write
            descriptor = self._take(name)
            try:
                call(descriptor, *arguments)
            finally:
                self._keep(name, descriptor)
        except OSError as error:
            raise self._error(name, error) from error

    def _take(self, name: str) -> int:
        """For writing, which no other thread has or closes; `_keep` it afterwards."""
        with self._lock:
            descriptor = self._writable_files.pop(name, None)
        return _open_regular(self._path(name), os.O_WRONLY) if descriptor is None else descriptor

    def _keep(self, name: str, descriptor: int) -> None:
        """For the next write, so that an error noted by the kernel is not lost."""
        with self._lock:
            if name in self._writable_files:  # another thread opened it, too
                os.close(descriptor)
            else:
                self._writable_files[name] = descriptor
                if len(self._writable_files) > WRITABLE_FILES_MAX:
                    os.close(self._writable_files.popitem(last=False)[1])

    @contextlib.contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(name, error) from error

    def _error(self, name: str, error: OSError) -> StoreError:
        if isinstance(error, FileNotFoundError):
            return MissingFileError(f"{self.directory / name}: no such file or directory")
        kind = DiskFullError if error.errno in FULL else StoreError
        return kind(f"{self.directory / name}: {error.strerror}")


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _allocate(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        if os.fstat(descriptor).st_size < size:
            os.truncate(descriptor, size)  # a sparse file has the same content


def _open_regular(path: str, mode: int) -> int:
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def fill(descriptor: int, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
    """Read until `target` is full or the file ends; with `only_cached` None if that would wait for the disk."""
    size, flags = 0, os.RWF_NOWAIT if only_cached else 0
    while size < len(target):
        try:
            more = os.preadv(descriptor, [target[size:]], offset + size, flags)
        except OSError as error:
            if flags and error.errno in (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL):
                return None
            raise
        if not more:
            break
        size += more
    return size


def expect(descriptor: int, offset: int, size: int) -> None:
    """Let the system begin to read a part of a file, unless its first byte is in memory: then so is the rest."""
    with contextlib.suppress(OSError):
        if fill(descriptor, offset, memoryview(bytearray(1)), only_cached=True) is None:
            for at in range(offset, offset + size, REQUEST_BYTES):
                os.posix_fadvise(descriptor, at, REQUEST_BYTES, os.POSIX_FADV_WILLNEED)


def left_unfinished(directory: Path) -> list[Path]:
    """Directories half made, by killed processes or now."""
    try:
        names = os.listdir(directory.parent)
    except OSError:
        return []
    return [directory.parent / name for name in sorted(names) if name.startswith(_staging_stem(directory))]


def _staging_stem(directory: Path) -> str:
    return f".{directory.name}.incomplete-"


@contextlib.contextmanager
def made_at_once(directory: Path) -> Iterator[Path]:
    """A new directory to fill, which takes its name once it is whole: a killed process leaves nothing under it. A mount
    point is filled as it is. Raises StoreError: something has that name, or no directory can be made there."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise StoreError(f"{directory} is not empty: give a new directory")
    if directory.is_mount():
        yield directory
        return
    staging = directory.parent / f"{_staging_stem(directory)}{os.getpid()}"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir()
    except OSError as error:
        raise StoreError(f"{directory} cannot be made: {error.strerror}") from None
    try:
        yield staging
        staging.rename(directory)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    parent = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
