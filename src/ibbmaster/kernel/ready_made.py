"""Kernels that come with the package, compiled for the levels of x86-64.

`python -m ibbmaster.kernel.ready_made` puts them where a wheel takes them from. They are used
as long as they were made from the sources that are there, and this user has not compiled any for
the very CPU.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ibbmaster.kernel.cache import SETTINGS, KernelCache, made_from
from ibbmaster.kernel.cpu import CPU_FEATURES, CPU_NAME, FEATURES_OF_LEVELS
from ibbmaster.kernel.parts import KernelPart

_PROGRAM = "ibbmaster.kernel.ready_made"
DIRECTORY = Path(__file__).with_name("objects")
LEVELS = {  # the best first, and what its code uses beside all that each of its CPUs has
    "x86-64-v4": ("pclmul", "vpclmulqdq"),
    "x86-64-v3": ("pclmul",),
    "x86-64-v2": ("pclmul",),
}


@functools.cache
def find_ready_made() -> KernelCache | None:
    """Those for this CPU; None if there are none, or the environment asks for others.

    Raises:
        ImportError: LLVM is not installed.
    """
    if any(name in os.environ for name in (CPU_NAME, CPU_FEATURES, *SETTINGS)) or not DIRECTORY.is_dir():
        return None
    import llvmlite.binding as llvm

    if not llvm.get_process_triple().startswith("x86_64-") or "linux" not in llvm.get_process_triple():
        return None
    present = llvm.get_host_cpu_features()
    for level, further in LEVELS.items():
        found = KernelCache(DIRECTORY / f"{made_from()}-{level}")
        if found.path.is_dir() and all(present.get(name) for name in (*FEATURES_OF_LEVELS[level], *further)):
            return found
    return None


def read_ready_made(part: KernelPart) -> bytes | None:
    """The object file of a part for this CPU, as `KernelCache.read`: who can write it can write the package."""
    found = find_ready_made()
    return None if found is None else found.read_own(part)


def make(directory: Path, levels: Iterable[str] = LEVELS, parts: Iterable[KernelPart] = KernelPart) -> None:
    """Compile for some levels, each in a process of its own.

    Raises:
        subprocess.CalledProcessError: that does not go.
    """
    import subprocess

    for level in levels:
        features = ",".join(f"+{name}" for name in LEVELS[level])
        subprocess.run(
            [sys.executable, "-m", _PROGRAM, str(directory / f"{made_from()}-{level}"), "--parts", *parts],
            env={**os.environ, CPU_NAME: level, CPU_FEATURES: features},
            check=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile kernels for all levels, as for a wheel."""
    parser = argparse.ArgumentParser(prog=f"python -m {_PROGRAM}", description=main.__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=DIRECTORY)
    parser.add_argument("--parts", nargs="+", type=KernelPart, help="these, for the CPU that the environment names")
    args = parser.parse_args(arguments)
    if not args.parts:
        make(args.directory)
        return 0
    from ibbmaster.kernel.emitting import KernelEmitter

    args.directory.mkdir(parents=True, exist_ok=True)
    cache, emitter = KernelCache(args.directory), KernelEmitter()
    for part in args.parts:
        cache.keep(part, emitter.emit(part))
    return 0


if __name__ == "__main__":
    sys.exit(main())
