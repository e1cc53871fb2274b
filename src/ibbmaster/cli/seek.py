"""`ibbmaster seek`: where a GTID position starts in a directory, and why."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ibbmaster.cli.arguments import add_log

if TYPE_CHECKING:
    from ibbmaster.api.log import Start

EXAMPLES = """examples:
  ibbmaster seek archive 0-1-1000
  ibbmaster seek archive 0-1-1000,1-2-50 --json
  ibbmaster seek archive ''          the very beginning
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `seek` to the command line."""
    parser = subparsers.add_parser(
        "seek",
        help="show where a dump from a GTID position starts, and the search that found it",
        description="Show where a replica at POSITION begins to read, and which GTID states were compared to find it. "
        "Ends with 1 if the position cannot be served.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_log(parser)
    parser.add_argument("position", metavar="POSITION", help="GTIDs separated by commas, one a domain; may be empty")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Seek, and print the plan or the refusal."""
    import ibbmaster

    with ibbmaster.open(args.directory) as log:
        found = log.seek(args.position)
    print(json.dumps(_as_json(found)) if args.json else found.explain())
    return 0 if found.refusal is None else 1


def _as_json(found: Start) -> dict[str, Any]:
    answer: dict[str, Any] = {"position": str(found.position)}
    if found.place is None:
        return answer | {"refused": found.refusal, "explanation": found.reason}
    answer |= {"file": found.file_name, "state": str(found.state)}
    if found.plan is None:
        return answer | {"offset": found.place.offset}
    steps = [str(step) for step in found.plan.steps]
    return answer | {"page": found.place.page_no, "page_reads": found.plan.page_reads, "steps": steps}
