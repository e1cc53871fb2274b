"""`ibbmaster seek`: where a GTID position starts in a directory, and why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

EXAMPLES = """examples:
  ibbmaster seek archive 0-1-1000
  ibbmaster seek archive 0-1-1000,1-2-50 --json
  ibbmaster seek archive ''          the very beginning
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `seek` to the command line."""
    parser = subparsers.add_parser(
        "seek",
        help="find where a GTID position starts, and say how, or why it cannot be served",
        description="Find the page where a replica at POSITION begins to read. Says which states were looked at. "
        "Ends with 1 if the position cannot be served.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument("position", metavar="POSITION", help="GTIDs separated by commas, one a domain; may be empty")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Seek, and print the plan or the refusal."""
    from ibbmaster.disk.local import RealDisk
    from ibbmaster.dump.error import DumpError
    from ibbmaster.dump.request import DumpRequest
    from ibbmaster.dump.start import check_start
    from ibbmaster.errors import PositionPurgedError
    from ibbmaster.gtid import GtidPosition
    from ibbmaster.log.directory import BinlogDirectory

    directory = BinlogDirectory(RealDisk(args.directory))
    position = GtidPosition.parse(args.position)
    try:
        check_start(DumpRequest(replica_server_id=0, position=position), directory.binlog_state())
        plan = directory.seek(position)
    except DumpError as error:
        return refuse(args, str(position), error.text, error.explanation)
    except PositionPurgedError as error:
        return refuse(args, str(position), "the position is too old", str(error))
    if args.json:
        answer: dict[str, Any] = {
            "position": str(position),
            "file": directory.file_name(plan.position.file_no),
            "page": plan.position.page_no,
            "state": str(plan.state),
            "page_reads": plan.page_reads,
            "steps": [str(step) for step in plan.steps],
        }
        print(json.dumps(answer))
    else:
        print(plan)
    return 0


def refuse(args: argparse.Namespace, position: str, problem: str, explanation: str) -> int:
    """Print why a position cannot be served."""
    if args.json:
        print(json.dumps({"position": position, "refused": problem, "explanation": explanation}))
    else:
        print(f"position [{position}]\n  refused: {problem}\n  because: {explanation}")
    return 1
