"""How far a command is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ibbmaster.kernel.cache import KernelSet


@contextlib.contextmanager
def progress(size: int, *, is_wanted: bool = True) -> Iterator[Callable[[int], object]]:
    """A bar of so many bytes; gives what to call with the number of bytes that are done now."""
    bar = _bar(total=size, unit="B", unit_scale=True, unit_divisor=1024) if is_wanted else None
    if bar is None:
        yield lambda count: None
    else:
        with bar:
            yield bar.update


@contextlib.contextmanager
def progress_to(unit: str, label: str | None = None, *, is_wanted: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar whose size is not known yet; gives what to call with how much is done, of how much in all."""
    bar = None

    def advance(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and is_wanted:
            bar = _bar(total=total, desc=label, unit=unit, unit_scale=unit == "B")
        if bar is not None:
            bar.total = total
            bar.update(done - bar.n)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()


@contextlib.contextmanager
def interruptible(advance: Callable[[int], object]) -> Iterator[Callable[[int], object]]:
    """`advance` for worker threads: after ^C each of them ends at its next call, as the main thread does."""
    has_ended = threading.Event()

    def advance_or_end(count: int) -> None:
        if has_ended.is_set():
            raise KeyboardInterrupt
        advance(count)

    def end(number: int, frame: object) -> None:
        has_ended.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield advance
        return
    before = signal.signal(signal.SIGINT, end)
    try:
        yield advance_or_end
    finally:
        signal.signal(signal.SIGINT, before)


def load_kernels(kernel_set: KernelSet, size: int) -> None:
    """Load kernels for so many bytes of work, if they pay; the first time on a machine they must be compiled."""
    from ibbmaster.kernel.loading import load_for_work

    with progress_to("step", "compiling kernels, once on this machine") as advance:
        load_for_work(kernel_set, size, progress=advance)


def _bar(**options: object) -> Any:
    if sys.stderr.isatty():
        with contextlib.suppress(ImportError):
            return importlib.import_module("tqdm").tqdm(leave=False, **options)
    return None
