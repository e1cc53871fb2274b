"""How far a command is: a bar on a terminal, nothing elsewhere."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


class ProgressBar:
    def __init__(self, draws: bool, total: int | None, options: dict[str, object]) -> None:
        self._draws = draws
        self._options = options
        self._bar: Any = None
        if total is not None:
            self.reach(0, total)

    def add(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def reach(self, done: int, total: int) -> None:
        if self._bar is None and self._draws:
            from tqdm import tqdm

            self._bar = tqdm(total=total, leave=False, **self._options)
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def progress(
    unit: str = "B", *, label: str | None = None, total: int | None = None, is_wanted: bool = True
) -> Iterator[ProgressBar]:
    """A bar on a terminal; bytes have prefixes."""
    options: dict[str, object] = {"desc": label, "unit": unit, "unit_scale": unit == "B", "unit_divisor": 1024}
    draws = is_wanted and sys.stderr.isatty()
    with contextlib.closing(ProgressBar(draws, total, options)) as found:
        yield found


@contextlib.contextmanager
def interruptible(advance: Callable[[int], object]) -> Iterator[Callable[[int], object]]:
    """`advance` for worker threads: after ^C each ends at its next call, as the main thread does."""
    has_ended = threading.Event()

    def advance_or_end(count: int) -> None:
        if has_ended.is_set():
            raise KeyboardInterrupt
        advance(count)

    def end(number: int, frame: object) -> None:
        has_ended.set()
        raise KeyboardInterrupt

    with signalled(end, signal.SIGINT) as is_told:
        yield advance_or_end if is_told else advance


@contextlib.contextmanager
def signalled(handler: Callable[[int, Any], object], *numbers: signal.Signals) -> Iterator[bool]:
    """Let a handler have signals; yields False outside of the main thread, which alone can."""
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield True
    finally:
        for number, old in before.items():
            signal.signal(number, old)
