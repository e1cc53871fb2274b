"""Where compiled kernels are kept between starts, and whether all that a command needs is there.

A cache directory, made by `ibbmaster warm-up` or by the first start that needs it:

    KEY/              one for all that machine code depends on: sources, Numba, LLVM, CPU
      PART.o          the object file of each part that is there, and its SHA-256
      lock            held by the process that compiles

The key says what the code was made from, the hash that it is whole, and nothing has to be
written where all is there. What others could have written is not read, as it runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from ibbmaster import user_cache
from ibbmaster.kernel.parts import KernelPart, KernelSet, parts_of

ENVIRONMENT = "IBBMASTER_KERNEL_CACHE"  # the cache directory
SOURCES = (  # all that kernels import; their values are compiled in
    "kernel/*.py",
    "codec/buffer.py",
    "codec/crc32c.py",
    "codec/lenenc.py",
    "errors.py",
    "event/gtid_event.py",
    "event/header.py",
    "event/column_types/net.py",
    "event/rows/number.py",
    "event/table_map.py",
    "event/types.py",
    "gtid.py",
    "ibb/chunk.py",
    "ibb/page.py",
    "position.py",
    "user_cache.py",
)
WITHOUT_KERNELS = ("cache.py", "compiling.py", "loading.py", "ready_made.py")
SETTINGS = ("NUMBA_OPT", "NUMBA_BOUNDSCHECK")  # environment variables that Numba heeds
LOCK_FILE = "lock"
HASH_BYTES = hashlib.sha256().digest_size
LOOK_AGAIN_S = 0.1  # at a lock that another process holds


def find_directory() -> Path | None:
    """The cache directory of this user, which need not be there; None if there is no place for one."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).absolute()
    caches = user_cache.cache_directory()
    return None if caches is None else caches / "kernels"


@functools.cache  # what this process runs stays what it was when it began, whatever becomes of the files
def cache_key() -> str:
    """A name for all that compiled code depends on.

    Raises ImportError: LLVM, which comes with Numba, is not installed.
    """
    import llvmlite.binding as llvm

    from ibbmaster.kernel.cpu import target

    settings = map(os.environ.get, SETTINGS)
    made_with = [numba_version(), llvm.llvm_version_info, *target(), *settings]
    return hashlib.sha256(repr([made_from(), *map(str, made_with)]).encode()).hexdigest()[:16]


def numba_version() -> str:
    """That which is installed, or none."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        return ""
    beside = os.listdir(Path(found.origin).parents[1])
    versions = [name for name in beside if name.startswith("numba-") and name.endswith(".dist-info")]
    if len(versions) == 1:
        return versions[0].removeprefix("numba-").removesuffix(".dist-info")
    from importlib import metadata  # takes as long to load as half of what `verify` needs

    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return ""


@functools.cache
def made_from() -> str:
    """A name for the sources of all kernels."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in source_files():
        found.update(f"\0{path.relative_to(package)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def source_files() -> list[Path]:
    """Every file whose values are compiled into kernels, or may be."""
    package = Path(__file__).parents[1]
    found = {path for pattern in SOURCES for path in package.glob(pattern)}
    return sorted(found - {package / "kernel" / name for name in WITHOUT_KERNELS})


class KernelCache:
    """Compiled kernels of one key.

    Attributes:
        path: the directory, which need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, sets: Iterable[KernelSet | KernelPart]) -> bool:
        """Whether all kernels of these sets are there, and whole, and no other user can have put them there."""
        return self.distrust() is None and all(self.read_own(part) is not None for part in parts_of(sets))

    def read(self, part: KernelPart) -> bytes | None:
        """The object file of a part; None if it is not there, or not whole, or another user can have put it there."""
        return self.read_own(part) if self.distrust() is None else None

    def read_own(self, part: KernelPart) -> bytes | None:
        """As `read`, of a directory that no other user can write."""
        try:
            kept = (self.path / file_of(part)).read_bytes()
        except OSError:
            return None
        code, digest = kept[:-HASH_BYTES], kept[-HASH_BYTES:]
        return code if hashlib.sha256(code).digest() == digest else None

    def distrust(self) -> str | None:
        """Why others may have written something here; None if they cannot."""
        try:
            return user_cache.distrust_all(self.path)
        except OSError as error:
            return str(error)

    def make(self) -> bool:
        """Make the directory if need be; whether this user can write it."""
        import tempfile  # which takes longer to load than a kernel

        try:
            user_cache.make_directory(self.path)
            with tempfile.TemporaryFile(dir=self.path):
                return True
        except OSError:
            return False

    @contextlib.contextmanager
    def locked(self, *, wait_s: float | None = None, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Wait until no other process compiles here, and keep others from it; `on_wait` hears that one does.

        Raises TimeoutError: it does so for longer than `wait_s`.
        """
        with (self.path / LOCK_FILE).open("a") as file:
            if not _is_taken(file):
                on_wait()
                deadline = None if wait_s is None else time.monotonic() + wait_s
                while not _is_taken(file):
                    if deadline is not None and time.monotonic() >= deadline:
                        raise TimeoutError(f"another process has compiled in {self.path} for more than {wait_s:g} s")
                    time.sleep(LOOK_AGAIN_S)
            yield

    def clean(self) -> None:
        """Remove all but parts that are whole, also what a process left that was killed; under the lock."""
        kept = {LOCK_FILE, *map(file_of, self.parts())}
        for path in self.path.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def parts(self) -> set[KernelPart]:
        """The parts that are there, and whole."""
        return {part for part in KernelPart if self.has([part])}

    def begin(self, part: KernelPart) -> bool:
        """Whether a part is not there, and no other process has begun it that compiles under the same lock."""
        try:
            self._new(part).open("xb").close()
        except FileExistsError:
            return False
        if self.read_own(part) is None:
            return True
        self._new(part).unlink()  # the other process has just kept it
        return False

    def keep(self, part: KernelPart, code: bytes) -> None:
        """Add a part; under the lock."""
        self._new(part).write_bytes(code + hashlib.sha256(code).digest())
        self._new(part).replace(self.path / file_of(part))

    def _new(self, part: KernelPart) -> Path:
        return self.path / f"{file_of(part)}.new"


def file_of(part: KernelPart) -> str:
    """The name of the object file of a part."""
    return f"{part}.o"


def _is_taken(file: TextIO) -> bool:
    """Take the lock, unless another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
