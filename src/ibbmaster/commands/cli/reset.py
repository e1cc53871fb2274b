"""`ibbmaster reset`: remove every file and begin again, as RESET MASTER does."""

import argparse

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidState
from .arguments import open_to_change


def run(args: argparse.Namespace) -> int:
    if not args.yes:
        raise ConfigurationError(f"every binlog file in {args.directory} would be removed: add --yes to do it")
    with open_to_change(args.directory) as store:
        store.reset(GtidState.parse(args.state))
        print(f"the log begins again with {store.status().active_file}, GTID state [{store.state()}]")
    return 0
