"""Whether compiled kernels are available, and when they are ready.

Compiling takes seconds of a CPU and is done by another process, once on a machine; the code is kept in a cache and
loaded from there, part by part, without Numba. Until then callers take the reference path.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ibbmaster.kernel.cache import ENVIRONMENT, KernelCache, cache_key, find_directory
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.compiling import (
    CompilationBusyError,
    CompilationError,
    CompilerMissingError,
    EndingError,
    compile_elsewhere,
    end_all,
)
from ibbmaster.kernel.parts import KERNELS, KernelPart, KernelSet, parts_of
from ibbmaster.kernel.ready_made import read_ready_made
from ibbmaster.position import LogPosition

if TYPE_CHECKING:
    from ibbmaster.kernel.entries import Entries

log = logging.getLogger(__name__)

SWITCH = "IBBMASTER_KERNELS"  # environment variable: "off" always takes the reference path
READY = "fast kernels are ready"
WORK_TO_LOAD = 8 << 20  # bytes: what the reference path does while kernels are loaded
WORK_TO_COMPILE = 64 << 20  # bytes: what it does while they are compiled
WAIT_S = 10.0  # for another process that compiles them, perhaps at low priority: longer than it takes to do so here

_OTHERS_COMPILE = "another process compiles the fast kernels"

Heard = Callable[[int, int], object]  # steps of compiling that are done, of how many

_lock = threading.Lock()
_entries: Entries | None = None
_loaded: set[KernelPart] = set()
_has_failed = False
_starting = threading.Lock()
_loaders: dict[frozenset[KernelPart], threading.Thread] = {}  # that have not ended, by what they load


def kernels(*wanted: KernelSet | KernelPart) -> Kernels | None:
    """The kernels, if these are ready, or all; None until `load` or `load_in_background` has made them so."""
    return cast(Kernels, _entries) if _loaded.issuperset(parts_of(wanted or KernelSet)) else None


def load(
    *wanted: KernelSet | KernelPart, progress: Heard = lambda done, total: None, is_nice: bool = False
) -> Kernels | None:
    """Load some kernels now, or all; another process compiles them first if need be. None if they are unavailable."""
    global _has_failed
    parts = parts_of(wanted or KernelSet)
    missing = [part for part in parts if part not in _loaded]
    if missing and not _has_failed:
        begun = time.monotonic()
        _has_failed = not _load(missing, progress, is_nice)  # without the lock: another thread may compile at leisure
        if not _has_failed:
            log.info("%s after %.1f s", READY, time.monotonic() - begun)
    return kernels(*parts)


def load_for_work(kernel_set: KernelSet, size_bytes: int, *, progress: Heard = lambda done, total: None) -> None:
    """Load kernels if they pay."""
    if do_pay(kernel_set, size_bytes):
        load(kernel_set, progress=progress)


def do_pay(kernel_set: KernelSet, size_bytes: int) -> bool:
    """Whether work of that size is done sooner with kernels, the time to load or compile them included."""
    return size_bytes >= WORK_TO_COMPILE or (size_bytes >= WORK_TO_LOAD and is_cached(kernel_set))


def kernels_at_hand(kernel_set: KernelSet, start: LogPosition, end: LogPosition) -> Kernels | None:
    """Kernels to read a log from one position to another.

    They are loaded if that pays, but not compiled while somebody waits.
    """
    if is_long(start, end) and is_cached(kernel_set):
        load(kernel_set)
    return kernels(kernel_set)


def is_long(start: LogPosition, end: LogPosition) -> bool:
    """Whether it pays to load kernels to read a log from one position to another."""
    return end.file_no > start.file_no or end.offset - start.offset >= WORK_TO_LOAD


def load_in_background(*sets: KernelSet) -> None:
    """Begin to load some kernels, or all, and return at once; compiling lets others go first.

    Each part is ready as soon as it can be.
    """
    parts = parts_of(sets or KernelSet)
    wanted = frozenset(parts)

    def work() -> None:
        try:
            load(*parts, is_nice=True)
        finally:
            _loaders.pop(wanted, None)

    if _has_failed or wanted <= _loaded:
        return
    with _starting:  # only a thread that has started can be joined
        if wanted in _loaders:
            return  # many primaries of one process may begin while it compiles
        atexit.unregister(_end)
        atexit.register(_end)
        _loaders[wanted] = threading.Thread(target=work, name="ibbmaster-kernels", daemon=True)
        _loaders[wanted].start()


def wait_for_kernels(*wanted: KernelSet | KernelPart) -> Kernels | None:
    """The kernels, once all that were begun to be loaded in the background are. Takes long: for a worker thread."""
    _join_loaders()
    return kernels(*wanted)


def _end() -> None:
    """Let no thread be inside LLVM when the interpreter goes: that ends in SIGSEGV."""
    end_all()
    _join_loaders()


def _join_loaders() -> None:
    with _starting:
        loaders = list(_loaders.values())
    for loader in loaders:
        loader.join()


def is_switched_off() -> bool:
    """Whether the user wants no kernels."""
    return os.environ.get(SWITCH, "").lower() in ("off", "0", "no")


def is_cached(*sets: KernelSet) -> bool:
    """Whether kernels need not be compiled."""
    if is_switched_off():
        return False
    try:
        cache = _user_cache()
        if cache is not None and cache.has(sets):
            return True
        return all(read_ready_made(part) is not None for part in parts_of(sets))
    except Exception:  # there is no Numba, or it is broken: loading says so
        return False


def _user_cache() -> KernelCache | None:
    """That of this user; None if there is none."""
    directory = find_directory()
    return None if directory is None or not directory.is_dir() else KernelCache(directory / cache_key())


def fill_cache(
    sets: Collection[KernelSet],
    *,
    progress: Heard = lambda done, total: None,
    on_cost: Callable[[str, float], object] = lambda name, seconds: None,
) -> tuple[Path, bool]:
    """Have kernels in the user's cache; returns its directory, and whether they were there.

    `on_cost` hears how many seconds of a CPU each took to compile.

    Raises CompilationError: they cannot be compiled, or not kept.
    """
    directory = find_directory()
    if directory is None:
        raise CompilationError(f"a user without a home has no cache directory: let {ENVIRONMENT} name one")
    try:
        cache = KernelCache(directory / cache_key())
    except ImportError as error:
        raise CompilerMissingError from error
    if (doubt := cache.distrust()) is not None:
        raise CompilationError(_untrusted(doubt))
    if cache.has(sets):
        return directory, True
    if not cache.make():
        raise CompilationError(f"{directory} cannot be written: let {ENVIRONMENT} name a directory that can be")
    compile_elsewhere(
        cache,
        sets,
        progress=progress,
        on_cost=on_cost,
        on_wait=lambda: log.warning(f"{_OTHERS_COMPILE}: waiting for it"),
    )
    return directory, False


def _load(parts: Collection[KernelPart], progress: Heard, is_nice: bool) -> bool:
    """Load parts, each as soon as it is there; whether that went."""
    if is_switched_off():
        return False
    try:
        parts = [part for part in parts if not _take(_user_cache(), part)]
        if not parts:
            return True
        with _cache_for(parts) as cache:
            try:
                _load_from(cache, parts, progress, is_nice)
                return True
            except CompilationBusyError:
                log.warning("%s still: compiling them here, too, for this process alone", _OTHERS_COMPILE)
        with _scratch_cache() as cache:
            _load_from(cache, parts, progress, is_nice)
            return True
    except EndingError:
        pass
    except (ImportError, CompilerMissingError):
        log.info("Numba is not installed: pip install 'ibbmaster[fast]' streams several times as fast")
    except CompilationError as error:
        log.warning("the fast kernels cannot be compiled here; going on without them: %s", error)
    except Exception:
        log.exception("the fast kernels cannot be used here; going on without them")
    return False


def _load_from(cache: KernelCache, parts: Collection[KernelPart], progress: Heard, is_nice: bool) -> None:
    """Who has work to do does not wait without end for a process that lets others go first."""

    def say() -> None:
        log.warning("%s: waiting for it, %g s at most", _OTHERS_COMPILE, WAIT_S)

    if is_nice:
        compile_elsewhere(cache, parts, is_nice=True, progress=progress, on_part=lambda part: _take(cache, part))
    else:
        compile_elsewhere(cache, parts, progress=progress, wait_s=WAIT_S, on_wait=say)
    for part in parts:
        if not _take(cache, part):
            raise CompilationError(cache.distrust() or f"what was compiled is not in {cache.path}")


def _take(cache: KernelCache | None, part: KernelPart) -> bool:
    """Have the kernels of a part; False if they are not in the cache, and have not come with the package."""
    global _entries
    with _lock:
        if part in _loaded:
            return True
        code = (cache and cache.read(part)) or read_ready_made(part)
        if code is None:
            return False
        if _entries is None:
            _entries = importlib.import_module("ibbmaster.kernel.entries").Entries()
        _entries.add(code, KERNELS[part])
        _loaded.add(part)
        return True


@contextlib.contextmanager
def _cache_for(parts: Collection[KernelPart]) -> Iterator[KernelCache]:
    """The user's cache if no other user can write it and it has these kernels or can be written, else one for now."""
    directory, doubt = find_directory(), None
    if directory is not None:
        cache = KernelCache(directory / cache_key())
        doubt = cache.distrust()
        if doubt is None and (cache.has(parts) or cache.make()):
            yield cache
            return
    if doubt is not None:
        log.warning("%s; kernels are compiled at each start", _untrusted(doubt))
    else:
        log.warning(
            "%s cannot be written: kernels are compiled at each start; let %s name a directory that can be, "
            "or one that `ibbmaster warm-up` has filled",
            directory or "the cache directory of a user without a home",
            ENVIRONMENT,
        )
    with _scratch_cache() as cache:
        yield cache


def _untrusted(doubt: str) -> str:
    return (
        f"compiled kernels are not taken from where others may have written them: {doubt}; "
        f"make it yours alone, or let {ENVIRONMENT} name another directory"
    )


@contextlib.contextmanager
def _scratch_cache() -> Iterator[KernelCache]:
    """A cache for this process and for now."""
    import tempfile

    with contextlib.ExitStack() as stack:
        try:
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ibbmaster-kernels-"))
        except OSError as error:
            raise CompilationError(f"nor is there a temporary directory: {error}") from error
        cache = KernelCache(Path(scratch) / cache_key())
        cache.make()
        yield cache
