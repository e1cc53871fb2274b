"""A log served through a stage: `python -m benchmarks.staged DIR STAGE` prints its port, and serves until it is killed.

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
from ibbmaster.streaming.stage import Counter
from ibbmaster.testkit.clock import FixtureClock
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.witness import Witness

STAGES = {
    "counting": "a stage that counts",
    "faults": "the stage of faults, none planned",
    "witness": "a primary of tests, which notes every event",
}


def staged(options: PrimaryOptions, stage: str) -> PrimaryOptions:
    """The same primary with a stage of this name."""
    if stage == "counting":
        return dataclasses.replace(options, stage=lambda session: Counter())
    kit = Faults() if stage == "faults" else Witness(FixtureClock(), Faults())
    return dataclasses.replace(options, stage=kit.stage, observer=kit)


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
