"""`ibbmaster seek`: where a GTID position starts in a directory, and why."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ibbmaster
from ibbmaster.api.log_files import LogFiles, file_no_of, opened_files
from ibbmaster.api.seeking import Start, start_at
from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.time_search import TimeStart, is_date, is_time, parse_time, time_start


def run(args: argparse.Namespace) -> int:
    if (args.position is None) == (args.time is None):
        raise ConfigurationError("expected a GTID position, or --time TIME, and not both")
    with _opened(args.directory) as (engine, files):
        if args.time is not None:
            start = time_start(engine, parse_time("time", args.time))
            print(json.dumps(_time_as_json(start)) if args.json else start.explain())
            return 0
        try:
            found = start_at(args.directory, engine, files, args.position)
        except GtidError as error:
            if not is_time(args.position):
                raise
            raise ConfigurationError(f"{error}: to look for a time, give it as --time {args.position!r}") from None
    print(json.dumps(seek_facts(found)) if args.json else found.explain())
    if is_date(args.position):
        print(f"to look for a day, give it as --time '{args.position} 00:00'", file=sys.stderr)
    return 0 if found.refusal is None else 1


@contextmanager
def _opened(path: Path) -> Iterator[tuple[LogEngine, LogFiles]]:
    if file_no_of(path) is None:
        with opened_files(path) as files:
            yield files.engine, files
    else:
        with ibbmaster.open(path) as log:
            yield log.engine, log.stored


def _time_as_json(start: TimeStart) -> dict[str, Any]:
    return {
        "time": str(start.given),
        "gtid": None if start.group is None else str(start.group),
        "gtid_time": start.group_time,
        "file": start.file_name,
        "file_offset": start.found.position.offset,
        "gtid_position": str(start.position),
        "places_read": len(start.found.steps),
        "notes": list(start.notes),
    }


def seek_facts(found: Start) -> dict[str, Any]:
    answer: dict[str, Any] = {"gtid_position": str(found.position)}
    if found.place is None:
        return answer | {"refused": found.refusal, "explanation": found.reason}
    answer |= {"file": found.file_name, "gtid_state": str(found.state)}
    if found.plan is None:
        return answer | {"file_offset": found.place.offset}
    steps = [str(step) for step in found.plan.steps]
    return answer | {"page": found.place.page_no, "page_reads": found.plan.page_reads, "steps": steps}
