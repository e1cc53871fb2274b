"""Where compiled kernels are kept between starts, and whether all that a command needs is there.

A cache directory, made by `ibbmaster warm-up` or by the first start that needs it:

    KEY/              one for all that machine code depends on: sources, Python, Numba, LLVM, CPU
      *.nbi, *.nbc    Numba's index and code, for each function
      ready.json      the sets that are complete, and the SHA-256 of each file; written last
      lock            held by the process that compiles

Numba by itself would notice no change in a module that is imported by that of a kernel, would
take files copied into an image for stale ones (their times are rounded), and does not read a
directory that cannot be written. Here the key says what the code was made from, the hashes
that it is whole, and nothing has to be written where all is there. What others could have
written is not read: Numba's index is a pickle, which runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from ibbmaster import user_cache

ENVIRONMENT = "IBBMASTER_KERNEL_CACHE"  # the cache directory
SOURCES = (  # all that kernels import; their values are compiled in
    "kernel/*.py",
    "codec/buffer.py",
    "codec/crc32c.py",
    "codec/lenenc.py",
    "errors.py",
    "event/gtid_event.py",
    "event/header.py",
    "event/rows/kinds/net.py",
    "event/rows/number.py",
    "event/table_map.py",
    "event/types.py",
    "gtid.py",
    "ibb/chunk.py",
    "ibb/page.py",
    "position.py",
    "user_cache.py",
)
WITHOUT_KERNELS = ("calls.py", "compiling.py", "loading.py")
READY_FILE = "ready.json"
LOCK_FILE = "lock"
LOOK_AGAIN_S = 0.1  # at a lock that another process holds


class KernelSet(StrEnum):
    """Kernels that are needed together."""

    SERVE = "serve"  # blocks of pages become packets
    IMPORT = "import"  # traditional files become pages
    EXPORT = "export"  # pages become traditional files
    VERIFY = "verify"  # pages are checked
    READ = "read"  # events and rows become columns, for Spark
    PRINT = "print"  # rows become lines of text
    SELECT = "select"  # rows become answers


def find_directory() -> Path | None:
    """The cache directory of this user, which need not be there; None if there is no place for one."""
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).absolute()
    caches = user_cache.cache_directory()
    return None if caches is None else caches / "kernels"


@functools.cache  # what this process runs stays what it was when it began, whatever becomes of the files
def cache_key() -> str:
    """A name for all that compiled code depends on. Imports Numba."""
    numba = importlib.import_module("numba")
    llvm = importlib.import_module("llvmlite.binding")
    config = numba.config
    features = llvm.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    version = [
        sys.version,
        numba.__version__,
        llvm.llvm_version_info,
        llvm.get_process_triple(),
        config.CPU_NAME or llvm.get_host_cpu_name(),
        features,
        config.OPT,
        config.DISABLE_JIT,
        config.ENABLE_AVX,
        config.BOUNDSCHECK,
    ]
    made_from = hashlib.sha256(repr([str(value) for value in version]).encode())
    package = Path(__file__).parents[1]
    for path in source_files():
        made_from.update(f"\0{path.relative_to(package)}\0".encode())
        made_from.update(path.read_bytes())
    return made_from.hexdigest()[:16]


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

    def has(self, sets: Iterable[KernelSet]) -> bool:
        """Whether all kernels of these sets are there, and whole, and no other user can have put them there."""
        try:
            if self.distrust() is not None:
                return False
            ready = json.loads((self.path / READY_FILE).read_bytes())
            return set(sets) <= set(ready["sets"]) and ready["files"] == self._hashes(ready["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def distrust(self) -> str | None:
        """Why others may have written something here; None if they cannot."""
        try:
            return user_cache.distrust_all(self.path)
        except OSError as error:
            return str(error)

    def make(self) -> bool:
        """Make the directory if need be; whether this user can write it."""
        try:
            user_cache.make_directory(self.path)
            with tempfile.TemporaryFile(dir=self.path):
                return True
        except OSError:
            return False

    @contextlib.contextmanager
    def locked(self, *, wait_s: float | None = None, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Wait until no other process compiles here, and keep others from it; `on_wait` hears that one does.

        Raises:
            TimeoutError: it does so for longer than `wait_s`.
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
        """Remove everything, also what a process left that was killed; under the lock."""
        for path in [self.path / READY_FILE, *self.path.iterdir()]:  # first what says that all is well
            if path.name != LOCK_FILE:
                path.unlink(missing_ok=True)

    def sets(self) -> set[KernelSet]:
        """The sets that are complete."""
        return {kernel_set for kernel_set in KernelSet if self.has([kernel_set])}

    def mark_ready(self, sets: Iterable[KernelSet]) -> None:
        """Say that these sets, and no others, are complete; under the lock."""
        names = [path.name for path in self.path.iterdir() if path.suffix in (".nbi", ".nbc")]
        ready = {"sets": sorted(sets), "files": self._hashes(names)}
        new = self.path / f"{READY_FILE}.new"
        new.write_text(json.dumps(ready))
        new.replace(self.path / READY_FILE)

    def _hashes(self, names: Iterable[str]) -> dict[str, str]:
        return {name: hashlib.sha256((self.path / name).read_bytes()).hexdigest() for name in names}


def _is_taken(file: TextIO) -> bool:
    """Take the lock, unless another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
