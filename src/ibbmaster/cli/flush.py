"""`ibbmaster flush`: end the active file, as FLUSH BINARY LOGS does."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `flush` to the command line."""
    parser = subparsers.add_parser(
        "flush",
        help="end the active file of a directory, and begin the next",
        description="Cut the active file behind its last page, and begin the next one with the full GTID state.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument(
        "--delete-domain",
        type=int,
        action="append",
        default=[],
        metavar="ID",
        help="forget a GTID domain that no file holds any more; may be given several times",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Flush, and print the new active file."""
    from ibbmaster.cli.writing import open_store

    with open_store(args.directory) as store:
        known = store.binlog_state().domain_ids
        store.flush(delete_domain_ids=args.delete_domain)
        for domain_id in set(args.delete_domain) - set(known):
            print(f"domain {domain_id} is not in the GTID state")
        print(f"the active file is {store.file_name(store.end().file_no)}, GTID state [{store.binlog_state()}]")
    return 0
