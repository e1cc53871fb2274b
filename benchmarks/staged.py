"""A log served through stages: `python -m benchmarks.staged DIR STAGE` prints its port, and serves until it is killed.

STAGE is one of `STAGES`.
"""

from __future__ import annotations

import argparse
import dataclasses
import threading
from pathlib import Path

import ibbmaster
from benchmarks.replica import Account
from ibbmaster.api.serving import check_options, serve_checked
from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.loading import load
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.server.registry import Session
from ibbmaster.streaming.stage import Counter
from ibbmaster.testkit.clock import FixtureClock
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.witness import Witness

STAGES = {
    "counting": "a stage that counts",
    "faults": "the stage of faults, none planned",
    "all": "stages that count, before and behind the faults",
    "witness": "a primary of tests, which notes every event",
}


def staged(options: PrimaryOptions, stage: str) -> PrimaryOptions:
    """The same primary with the stages of this name."""
    if stage == "counting":
        return dataclasses.replace(options, stages=(_counter,))
    if stage == "witness":
        witness = Witness(FixtureClock(), Faults())
        return dataclasses.replace(options, stages=witness.stages, observer=witness)
    faults = Faults()
    makers = (faults.stage,) if stage == "faults" else (_counter, faults.stage, _counter)
    return dataclasses.replace(options, stages=makers, observer=faults)


def _counter(session: Session) -> Counter:
    return Counter()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.staged", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("stage", choices=STAGES)
    args = parser.parse_args()
    load(KernelSet.SERVE)
    account = Account(port=0)
    checked = check_options(tls="off", user=account.user, password=account.password)
    checked = dataclasses.replace(checked, primary=staged(checked.primary, args.stage))
    with ibbmaster.open(args.directory) as log, serve_checked(log, checked) as primary:
        print(primary.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
