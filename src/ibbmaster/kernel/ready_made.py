"""Kernels that come with the package, compiled for the levels of x86-64 and for AArch64, as ARM's servers are.

`python -m ibbmaster.kernel.ready_made` puts them where a wheel takes them from. They are used as long as they were made
from the sources that are there, and this user has not compiled any for the very CPU.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ibbmaster.kernel.cache import SETTINGS, KernelCache, made_from
from ibbmaster.kernel.cpu import CPU_FEATURES, CPU_NAME, FEATURES_OF_LEVELS, Target, choose
from ibbmaster.kernel.parts import KernelPart

_PROGRAM = "ibbmaster.kernel.ready_made"
DIRECTORY = Path(__file__).with_name("objects")


class CpuKind(NamedTuple):
    """CPUs that run the same code: the system, their name in LLVM, and what each of them has beside that name's."""

    triple: str
    cpu: str
    further: tuple[str, ...]

    @property
    def target(self) -> Target:
        """What to compile for."""
        return Target(self.triple, self.cpu, ",".join(f"+{feature}" for feature in self.further))

    def runs_here(self) -> bool:
        """Whether this system and its CPU have all of it."""
        import llvmlite.binding as llvm

        kind, *system = llvm.get_process_triple().split("-")
        if kind != self.triple.split("-")[0] or "linux" not in system:
            return False
        features = FEATURES_OF_LEVELS.get(self.cpu, frozenset()).union(self.further)
        return all(map(llvm.get_host_cpu_features().get, features))


X86_64, AARCH64 = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
CPU_KINDS = {  # the best first
    "x86-64-v4": CpuKind(X86_64, "x86-64-v4", ("pclmul", "vpclmulqdq")),
    "x86-64-v3": CpuKind(X86_64, "x86-64-v3", ("pclmul",)),
    "x86-64-v2": CpuKind(X86_64, "x86-64-v2", ("pclmul",)),
    "aarch64": CpuKind(AARCH64, "generic", ("crc",)),
}


@functools.cache
def find_ready_made() -> KernelCache | None:
    """Those for this CPU; None if there are none, or the environment asks for others.

    Raises ImportError: LLVM is not installed.
    """
    if any(name in os.environ for name in (CPU_NAME, CPU_FEATURES, *SETTINGS)) or not DIRECTORY.is_dir():
        return None
    for name, kind in CPU_KINDS.items():
        found = KernelCache(DIRECTORY / f"{made_from()}-{name}")
        if found.path.is_dir() and kind.runs_here():
            return found
    return None


def read_ready_made(part: KernelPart) -> bytes | None:
    """The object file of a part for this CPU, as `KernelCache.read`: who can write it can write the package."""
    found = find_ready_made()
    return None if found is None else found.read_own(part)


def make(directory: Path, kinds: Iterable[str] = CPU_KINDS, parts: Iterable[KernelPart] = KernelPart) -> None:
    """Compile for some kinds of CPUs, each in a process of its own.

    Raises subprocess.CalledProcessError: that does not go.
    """
    import subprocess

    for name in kinds:
        into = str(directory / f"{made_from()}-{name}")
        subprocess.run([sys.executable, "-m", _PROGRAM, into, "--kind", name, "--parts", *parts], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile kernels for all kinds of CPUs, as for a wheel."""
    parser = argparse.ArgumentParser(prog=f"python -m {_PROGRAM}", description=main.__doc__)
    parser.add_argument("directory", type=Path, nargs="?", default=DIRECTORY)
    parser.add_argument("--kind", choices=CPU_KINDS, help="for this kind of CPUs alone, into the directory itself")
    parser.add_argument(
        "--parts", nargs="+", type=KernelPart, default=list(KernelPart), help="these alone, with --kind"
    )
    args = parser.parse_args(arguments)
    if args.kind is None:
        make(args.directory)
        return 0
    choose(CPU_KINDS[args.kind].target)
    from ibbmaster.kernel.emitting import KernelEmitter

    args.directory.mkdir(parents=True, exist_ok=True)
    cache, emitter = KernelCache(args.directory), KernelEmitter()
    for part in args.parts:
        cache.keep(part, emitter.emit(part))
    return 0


if __name__ == "__main__":
    sys.exit(main())
