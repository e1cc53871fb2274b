"""Kernels compiled by a process of its own, so that no other one is ever inside the compiler.

`compile_elsewhere` starts `python -m ibbmaster.kernel.compiling DIRECTORY SET…` and waits for
it. If that process is killed, nothing is marked as ready, and the next one begins again.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ibbmaster.kernel.cache import KernelCache, cache_key
from ibbmaster.kernel.parts import KERNELS, KernelPart, KernelSet, parts_of
from ibbmaster.user_cache import WRITABLE_BY_OTHERS

if TYPE_CHECKING:
    import subprocess

    from ibbmaster.kernel.emitting import KernelEmitter

NICENESS = 10  # a tenth of what others get of a busy core: it has to end some time
HELPER_NICENESS = 5  # a third of what the process has that compiles what is needed first
STEPS = "steps "  # begins the line with the number of steps to do
WAITING = "waits"  # the line that says that another process compiles the same
READY = "ready "  # begins a line that names a part that is kept
TOOK = "took "  # begins the line of a step that is done: seconds of a CPU, and what they were for
IS_BUSY = 3  # the exit code of who has waited long enough for another process
IS_WITHOUT_NUMBA = 4  # that of who cannot compile at all

_running: set[subprocess.Popen[str]] = set()
_lock = threading.Lock()
_is_ending = False


class CompilationError(Exception):
    """The compiling process has failed, or could not be started; the message says how."""


class CompilationBusyError(CompilationError):
    """Another process compiles the same, and has not ended in the time to wait."""


class CompilerMissingError(CompilationError):
    """Numba is not installed."""

    def __init__(self) -> None:
        super().__init__("Numba is not installed: pip install 'ibbmaster[fast]'")


class EndingError(CompilationError):
    """This process ends, and waits for nothing."""


def compile_elsewhere(
    cache: KernelCache,
    sets: Iterable[KernelSet | KernelPart],
    *,
    is_nice: bool = False,
    wait_s: float | None = None,
    on_wait: Callable[[], object] = lambda: None,
    progress: Callable[[int, int], object] = lambda done, total: None,
    on_part: Callable[[KernelPart], object] = lambda part: None,
    on_cost: Callable[[str, float], object] = lambda name, seconds: None,
) -> None:
    """Have kernels compiled into a cache by another process, and wait for it.

    `progress` hears how many kernels are done, of how many, `on_part` which part can be loaded already, `on_cost`
    how many seconds of a CPU each kernel took. With `is_nice` others go first. Where another process compiles
    there, `on_wait` is called.

    Raises:
        CompilationError: it did not get there.
        CompilationBusyError: another process compiles there for longer than `wait_s`.
    """
    command = [sys.executable, "-P", "-m", __name__, str(cache.path), *sets, *["--nice"] * is_nice]
    command += [] if wait_s is None else [f"--wait={wait_s}"]
    said, done, steps = "", 0, 0
    try:
        with _started(command) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(STEPS):
                    steps = int(line.removeprefix(STEPS))
                    progress(done, steps)
                elif line.startswith(READY):
                    on_part(KernelPart(line.removeprefix(READY).rstrip()))
                elif line.startswith(TOOK):
                    seconds, _, name = line.removeprefix(TOOK).rstrip().partition(" ")
                    on_cost(name, float(seconds))
                    done = min(done + 1, steps)  # of a helper that was killed some are taken again
                    progress(done, steps)
                elif line.rstrip() == WAITING:
                    on_wait()
                else:
                    said = line.strip() or said
    except OSError as error:
        raise CompilationError(f"cannot run {command[0]}: {error}") from error
    if process.returncode:
        if _is_ending:
            raise EndingError("this process ends")
        if process.returncode == IS_BUSY:
            raise CompilationBusyError(said)
        if process.returncode == IS_WITHOUT_NUMBA:
            raise CompilerMissingError
        raise CompilationError(f"the compiling process ended with {process.returncode}: {said or 'it said nothing'}")


def end_all() -> None:
    """End what was started here, and start nothing more: this process ends."""
    global _is_ending
    with _lock:
        _is_ending = True
        for process in _running:
            _send(process, signal.SIGTERM)


def _send(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to a compiling process and its helper."""
    if process.poll() is None:
        os.killpg(process.pid, number)


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    import subprocess

    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path = os.pathsep.join([str(Path(__file__).parents[2]), *map(os.path.abspath, given)])
    with _lock:
        if _is_ending:
            raise EndingError("this process ends")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,  # it may have a helper
            cwd="/",  # this process's own may be removed meanwhile, and no module is imported without one
            env={**os.environ, "PYTHONPATH": path},
        )
        _running.add(process)
    try:
        with process:
            yield process
    except BaseException:
        _send(process, signal.SIGKILL)
        raise
    finally:
        process.wait()
        with _lock:
            _running.discard(process)


def compile_here(
    cache: KernelCache,
    sets: Iterable[KernelSet | KernelPart],
    say: Callable[[str], object],
    *,
    wait_s: float | None = None,
) -> None:
    """Compile what the cache does not have, unless another process has done so in the meantime; `say` hears lines."""
    if cache_key() != cache.path.name:
        raise CompilationError("the package or Numba has changed since the process began that asks: restart it")
    doubt = cache.distrust()
    if doubt is not None:  # what is there already would be read
        raise CompilationError(doubt)
    with cache.locked(wait_s=wait_s, on_wait=lambda: say(WAITING)):
        present = cache.parts()
        missing = [part for part in parts_of(sets) if part not in present]
        if not missing:
            return
        cache.clean()
        try:
            importlib.import_module("numba")
        except ImportError as error:
            raise CompilerMissingError from error
        say(f"{STEPS}{sum(len(KERNELS[part]) + 1 for part in missing)}")
        _compile_all(cache, missing, say)


def _compile_all(cache: KernelCache, parts: Sequence[KernelPart], say: Callable[[str], object]) -> None:
    """Compile parts, in the order in which they are needed; a helper begins with the last where a core idles.

    Two at most: each has all that it compiles in memory.
    """
    asked_by = os.getpid()
    helper = os.fork() if len(parts) > 1 and len(os.sched_getaffinity(0)) > 1 else None
    if helper == 0:
        _help(cache, parts, say, asked_by)
    _compile_unbegun(cache, parts, say)
    if helper is not None:
        os.waitpid(helper, 0)
        cache.clean()  # what it had begun, if it was killed
        _compile_unbegun(cache, parts, say)


def _help(cache: KernelCache, parts: Sequence[KernelPart], say: Callable[[str], object], asked_by: int) -> NoReturn:
    """What a forked process does; it never returns to where it was forked."""
    try:
        os.nice(HELPER_NICENESS)
        wanted = itertools.takewhile(lambda _: os.getppid() == asked_by, reversed(parts))
        _compile_unbegun(cache, wanted, say)
    finally:
        os._exit(0)  # also after an error: who asked meets the same, and says it


def _compile_unbegun(cache: KernelCache, parts: Iterable[KernelPart], say: Callable[[str], object]) -> None:
    """Compile what no other process has begun."""
    for part in parts:
        if cache.begin(part):
            cache.keep(part, _emitter().emit(part, functools.partial(_say_cost, say, part)))
            say(f"{READY}{part}")


@functools.cache
def _emitter() -> KernelEmitter:
    """That of this process, made where there is something to compile: its imports take a second."""
    from ibbmaster.kernel.emitting import KernelEmitter

    return KernelEmitter()


def _say_cost(say: Callable[[str], object], part: KernelPart, name: str, seconds: float) -> None:
    say(f"{TOOK}{seconds:.3f} {part}, {name}")


def _wanted(text: str) -> KernelSet | KernelPart:
    return KernelPart(text) if text in list(KernelPart) else KernelSet(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, and say how far it is."""
    parser = argparse.ArgumentParser(prog=f"python -m {__name__}", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("wanted", nargs="+", type=_wanted)
    parser.add_argument("--nice", action="store_true")
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="for another process that compiles the same")
    args = parser.parse_args(arguments)
    if args.nice:
        os.nice(NICENESS)

    os.umask(os.umask(0o777) | WRITABLE_BY_OTHERS)  # who reads what is compiled runs it

    def say(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # who waited has gone; the next one will find what is done here
            sys.stdout.write(f"{line}\n")  # in one piece, as another process writes there, too
            sys.stdout.flush()

    try:
        compile_here(KernelCache(args.directory), args.wanted, say, wait_s=args.wait)
    except CompilerMissingError:
        return IS_WITHOUT_NUMBA
    except TimeoutError as error:
        print(error)
        return IS_BUSY
    except (CompilationError, OSError) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
