"""Many seeds in several processes, with progress, until enough was checked or one was wrong."""

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

from ibbmaster.commands.cli.main import EXIT_INTERRUPTED
from ibbmaster.commands.cli.progress import progress

WAITING_PER_PROCESS = 3  # seeds handed out ahead


def run_campaign(check: Callable[[int], int], seeds: Iterable[int], *, total: int, unit: str, processes: int) -> int:
    """Check seed after seed until `total` units were seen or the seeds end; how many were seen.

    `check` returns how many `unit` it has seen, and raises what is wrong. ^C ends the program without a traceback."""
    rest = iter(seeds)
    seen = 0
    pool = ProcessPoolExecutor(processes, initializer=end_at_once)
    with progress(unit) as bar:
        try:
            waiting = {pool.submit(check, seed) for seed in itertools.islice(rest, WAITING_PER_PROCESS * processes)}
            while waiting and seen < total:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    seen += future.result()
                    bar.reach(seen, max(seen, total))
                waiting |= {pool.submit(check, seed) for seed in itertools.islice(rest, len(done))}
        except KeyboardInterrupt:
            print(f"interrupted after {seen:,} {unit}, none of them wrong", file=sys.stderr)
            sys.exit(EXIT_INTERRUPTED)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()
    return seen


def end_at_once() -> None:
    """In a worker: ^C, which goes to all processes of a terminal, ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def add_campaign_options(parser: argparse.ArgumentParser, verb: str) -> None:
    parser.add_argument("--first-seed", type=int, default=1, help="where to begin (default: %(default)s)")
    parser.add_argument("--seed", type=int, help=f"{verb} this seed alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once (default: %(default)s)")


def run_from_command_line(
    check: Callable[[int], int], arguments: argparse.Namespace, *, unit: str, error: type[Exception]
) -> None:
    total: int = getattr(arguments, unit)
    seeds = itertools.count(arguments.first_seed) if arguments.seed is None else [arguments.seed]
    try:
        seen = run_campaign(check, seeds, total=total, unit=unit, processes=arguments.processes)
    except error as wrong:
        sys.exit(str(wrong))
    print(f"{seen:,} {unit}, none of them wrong")
