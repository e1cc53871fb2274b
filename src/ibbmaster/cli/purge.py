"""`ibbmaster purge`: remove the oldest files, as PURGE BINARY LOGS does."""

from __future__ import annotations

import argparse
import json

from ibbmaster.cli.arguments import add_directory, open_to_change
from ibbmaster.log.given_time import parse_time


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `purge` to the command line."""
    parser = subparsers.add_parser(
        "purge",
        help="remove the oldest files of a directory",
        description="Remove files from the oldest one on, up to what was asked for; a file that another one, a "
        "prepared transaction or the writer still needs stays, and everything after it. Ends with 1 if a file that "
        "was to go is in use.",
    )
    add_directory(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="FILE", help="remove the files before this one")
    what.add_argument("--before", metavar="TIME", help="remove the files last written before this time (ISO, local)")
    what.add_argument("--max-total", metavar="SIZE", help="remove files until all of them have this size (as 500M)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Purge, and print what went."""
    before = None if args.before is None else parse_time("--before", args.before).seconds
    with open_to_change(args.directory) as log:
        result = log.purge(to=args.to, before=before, max_total=args.max_total)
        oldest = log.files[0].name
    gone = list(result.names)
    if args.json:
        print(json.dumps({"removed": gone, "oldest": oldest, "kept": result.kept}))
    else:
        print(f"{len(gone)} file{'s' * (len(gone) != 1)} removed, the oldest is {oldest}")
        if result.kept is not None:
            print(result.kept)
    return 1 if result.kept is not None else 0
