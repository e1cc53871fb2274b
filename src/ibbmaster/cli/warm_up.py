"""`ibbmaster warm-up`: compile the kernels before they are needed, as for an image of a container."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

from ibbmaster.errors import StoreError

if TYPE_CHECKING:
    from ibbmaster.kernel.parts import KernelSet


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `warm-up` to the command line."""
    from ibbmaster.kernel.parts import KernelSet

    parser = subparsers.add_parser(
        "warm-up",
        help="compile the fast kernels before they are needed, as into the image of a container",
        description="Compile kernels into the cache directory, which IBBMASTER_KERNEL_CACHE names "
        "(default: ~/.cache/ibbmaster/kernels). It may be read-only afterwards. Does nothing where they are there.",
    )
    parser.add_argument(
        "sets", nargs="*", metavar="WHAT", type=kernel_set, help=f"what for: {', '.join(KernelSet)} (default: all)"
    )
    parser.add_argument("--timings", action="store_true", help="print how many seconds of a CPU each kernel took")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def kernel_set(text: str) -> KernelSet:
    """Kernels by the name of their set."""
    from ibbmaster.kernel.parts import KernelSet

    try:
        return KernelSet(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(KernelSet)}") from None


def run(args: argparse.Namespace) -> int:
    """Compile what is missing, and say where it is."""
    from ibbmaster.cli.progress import progress
    from ibbmaster.kernel import loading
    from ibbmaster.kernel.compiling import CompilationError
    from ibbmaster.kernel.parts import KernelSet

    begun = time.monotonic()
    costs: dict[str, float] = {}
    sets: list[KernelSet] = args.sets or list(KernelSet)
    try:
        with progress("step", label="compiling", is_wanted=not args.json) as bar:
            directory, was_there = loading.fill_cache(sets, progress=bar.reach, on_cost=costs.__setitem__)
    except CompilationError as error:
        raise StoreError(str(error)) from error
    seconds = time.monotonic() - begun
    if args.json:
        answer = {"directory": str(directory), "sets": sets, "compiled": not was_there, "seconds": seconds}
        print(json.dumps(answer | ({"cpu_seconds": costs} if args.timings else {})))
    else:
        if args.timings:
            print("".join(f"{cost:7.2f} s  {name}\n" for name, cost in costs.items()), end="")
        done = "were there already" if was_there else f"compiled in {seconds:.1f} s"
        print(f"kernels for {', '.join(sets)} in {directory}: {done}")
    return 0
