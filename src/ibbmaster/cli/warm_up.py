"""`ibbmaster warm-up`: compile the kernels before they are needed, as for an image of a container."""

from __future__ import annotations

import argparse
import time

from ibbmaster.cli.arguments import report
from ibbmaster.cli.progress import progress
from ibbmaster.errors import StoreError
from ibbmaster.kernel import loading
from ibbmaster.kernel.compiling import CompilationError
from ibbmaster.kernel.parts import KernelSet


def run(args: argparse.Namespace) -> int:
    """Compile what is missing, and say where it is."""
    begun = time.monotonic()
    costs: dict[str, float] = {}
    sets: list[KernelSet] = args.sets or list(KernelSet)
    try:
        with progress("step", label="compiling", is_wanted=not args.json) as bar:
            directory, was_there = loading.fill_cache(sets, progress=bar.reach, on_cost=costs.__setitem__)
    except CompilationError as error:
        raise StoreError(str(error)) from error
    seconds = time.monotonic() - begun
    facts = {"directory": str(directory), "sets": sets, "compiled": not was_there, "seconds": seconds}
    told = [f"{cost:7.2f} s  {name}" for name, cost in costs.items()] if args.timings else []
    done = "were there already" if was_there else f"compiled in {seconds:.1f} s"
    text = f"kernels for {', '.join(sets)} in {directory}: {done}"
    report(args, facts | ({"cpu_seconds": costs} if args.timings else {}), *told, text)
    return 0
