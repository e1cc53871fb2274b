"""`ibbmaster flush`: end the active file, as FLUSH BINARY LOGS does."""

from __future__ import annotations

import argparse

from ibbmaster.cli.arguments import add_directory, open_to_change


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `flush` to the command line."""
    parser = subparsers.add_parser(
        "flush",
        help="end the active file of a directory, and begin the next",
        description="Cut the active file behind its last page, and begin the next one with the full GTID state.",
    )
    add_directory(parser)
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
    with open_to_change(args.directory) as log:
        known = log.state.domain_ids
        log.flush(forget_domains=args.delete_domain)
        for domain_id in set(args.delete_domain) - set(known):
            print(f"domain {domain_id} is not in the GTID state")
        print(f"the active file is {log.status.active_file}, GTID state [{log.state}]")
    return 0
