"""`jit`: Numba's, with its compiled code in the cache directory that `use_directory` names.

A thread inside `only_cached` never compiles: it gets `NotCachedError` instead.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache

_directory: Path | None = None
_is_kept = False
_thread = threading.local()


class NotCachedError(Exception):
    """Compiled code is wanted that is not in the cache."""


def use_directory(directory: Path, *, is_kept: bool = False) -> None:
    """Read compiled code from a directory from now on; `is_kept`: what is compiled is written there.

    The directory's name says what the code was made from.
    """
    global _directory, _is_kept
    _directory, _is_kept = directory, is_kept


@contextlib.contextmanager
def only_cached() -> Iterator[None]:
    """Let this thread compile nothing.

    Raises:
        NotCachedError: a kernel is called that is not in the cache for such arguments.
    """
    _thread.is_bound = True
    try:
        yield
    finally:
        _thread.is_bound = False


class _Place:
    """All files are in one directory, which is read even where it cannot be written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ensure_cache_path(self) -> None:
        pass

    def get_cache_path(self) -> str:
        return str(self._directory)

    def get_source_stamp(self) -> str:
        return ""  # the directory's name is one


class _Impl(CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any]) -> None:
        assert _directory is not None
        code = function.__code__
        self._lineno = code.co_firstlineno
        self._locator = _Place(_directory)
        self._filename_base = f"{Path(code.co_filename).stem}.{function.__qualname__}-{self._lineno}"


class _FileCache(FunctionCache):
    _impl_class = _Impl


class _LateCache(NullCache):
    """The files of a function, in whatever directory is the one to use when they are wanted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._files: _FileCache | None = None
        self._is_in: Path | None = None

    def _find(self) -> _FileCache | None:
        if _directory != self._is_in:
            self._files, self._is_in = _FileCache(self._function), _directory
        return self._files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        files = self._find()
        found = files.load_overload(sig, target_context) if files is not None else None
        if found is None and getattr(_thread, "is_bound", False):
            raise NotCachedError(f"{self._function.__name__}{sig} is not in {_directory}")
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        files = self._find()
        if files is not None and _is_kept:
            files.save_overload(sig, data)


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile without the interpreter's lock; what is compiled may be kept."""
    dispatcher = njit(nogil=True, _nrt=False, **options)(function)
    dispatcher._cache = _LateCache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into the caller: a call counts references to its arrays."""
    return jit(function, inline="always")
