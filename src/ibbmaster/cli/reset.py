"""`ibbmaster reset`: remove every file and begin again, as RESET MASTER does."""

from __future__ import annotations

import argparse

from ibbmaster.cli.arguments import open_to_change
from ibbmaster.errors import ConfigurationError


def run(args: argparse.Namespace) -> int:
    """Reset, and print what is left."""
    if not args.yes:
        raise ConfigurationError(f"every binlog file in {args.directory} would be removed: add --yes to do it")
    with open_to_change(args.directory) as log:
        log.reset(args.state)
        print(f"the log begins again with {log.status.active_file}, GTID state [{log.state}]")
    return 0
