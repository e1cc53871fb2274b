"""A log served through stages: `python -m benchmarks.staged DIR STAGE` prints its port, and serves until it is killed.

STAGE is one of `STAGES` or `GROUP_STAGES`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import threading
from pathlib import Path
from typing import Any

import ibbmaster
from benchmarks.replica import Account
from ibbmaster.api.log import Log
from ibbmaster.api.serving import check_options, serve_checked
from ibbmaster.kernel.loading import load
from ibbmaster.primary.server.options import PrimaryOptions
from ibbmaster.primary.server.registry import Session
from ibbmaster.testkit.clock import FixtureClock
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.witness import Witness
from tests.machinery.sent_counter import SentCounter

STAGES = {
    "counting": "a stage that counts",
    "faults": "the stage of faults, none planned",
    "all": "stages that count, before and behind the faults",
    "witness": "a primary of tests, which notes every event",
}
GROUP_STAGES = {  # each is about every group
    "range": "a range with an end",
    "tables": "a filter that leaves every table",
    "rename": "other names for tables that do not come",
    "numbers": "another server id",
    "domains": "a filter that leaves every domain but one",
    "emptied": "a filter that leaves no rows",
    "played": "a recording at the pace max",
}


def part(log: Log, stage: str) -> Log:
    """The log with the stage of groups of this name."""
    if stage == "range":
        return log.through(until=str(log.position))
    if stage == "played":
        return log.played("max")
    options: dict[str, dict[str, Any]] = {
        "tables": {"only": "*.*"},
        "rename": {"rename": "no=such"},
        "numbers": {"map_server_id": "1=7"},
        "domains": {"domain": "0"},
        "emptied": {"kinds": "ddl"},
    }
    return log.through(**options[stage])


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


def _counter(session: Session) -> SentCounter:
    return SentCounter()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.staged", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("stage", choices=[*STAGES, *GROUP_STAGES])
    args = parser.parse_args()
    load()
    account = Account(port=0)
    checked = check_options(tls="off", user=account.user, password=account.password)
    if args.stage in STAGES:
        checked = dataclasses.replace(checked, primary=staged(checked.primary, args.stage))
    with ibbmaster.open(args.directory) as opened, contextlib.ExitStack() as stack:
        log = opened if args.stage in STAGES else part(opened, args.stage)
        primary = stack.enter_context(serve_checked(log, checked))
        print(primary.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
