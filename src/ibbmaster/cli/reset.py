"""`ibbmaster reset`: remove every file and begin again, as RESET MASTER does."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `reset` to the command line."""
    parser = subparsers.add_parser(
        "reset",
        help="remove every file of a directory, and begin again with file 0",
        description="Remove every binlog file and begin again with binlog-000000.ibb. Refused while a prepared "
        "transaction is in the log.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument("--state", default="", metavar="GTIDS", help="GTID state to begin with (default: empty)")
    parser.add_argument("--yes", action="store_true", help="really remove them")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Reset, and print what is left."""
    from ibbmaster.cli.writing import open_store
    from ibbmaster.errors import ConfigurationError
    from ibbmaster.gtid import GtidState

    state = GtidState.parse(args.state)
    if not args.yes:
        raise ConfigurationError(f"every binlog file in {args.directory} would be removed: add --yes to do it")
    with open_store(args.directory) as store:
        store.reset(state)
        print(f"the log begins again with {store.file_name(store.end().file_no)}, GTID state [{store.binlog_state()}]")
    return 0
