"""`ibbmaster flush`: end the active file, as FLUSH BINARY LOGS does."""

from __future__ import annotations

import argparse

from ibbmaster.cli.arguments import open_to_change


def run(args: argparse.Namespace) -> int:
    """Flush, and print the new active file."""
    with open_to_change(args.directory) as log:
        known = log.state.domain_ids
        log.flush(forget_domains=args.delete_domain)
        for domain_id in set(args.delete_domain) - set(known):
            print(f"domain {domain_id} is not in the GTID state")
        print(f"the active file is {log.status.active_file}, GTID state [{log.state}]")
    return 0
