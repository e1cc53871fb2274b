"""`ibbmaster reset`: remove every file and begin again, as RESET MASTER does."""

from __future__ import annotations

import argparse

from ibbmaster.cli.arguments import add_directory, open_to_change
from ibbmaster.errors import ConfigurationError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `reset` to the command line."""
    parser = subparsers.add_parser(
        "reset",
        help="remove every file of a directory, and begin again with file 0",
        description="Remove every binlog file and begin again with binlog-000000.ibb. Refused while a prepared "
        "transaction is in the log.",
    )
    add_directory(parser)
    parser.add_argument("--state", default="", metavar="GTIDS", help="GTID state to begin with (default: empty)")
    parser.add_argument("--yes", action="store_true", help="really remove them")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reset, and print what is left."""
    if not args.yes:
        raise ConfigurationError(f"every binlog file in {args.directory} would be removed: add --yes to do it")
    with open_to_change(args.directory) as log:
        log.reset(args.state)
        print(f"the log begins again with {log.status.active_file}, GTID state [{log.state}]")
    return 0
