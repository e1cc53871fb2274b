"""`ibbmaster flush`: end the active file, as FLUSH BINARY LOGS does."""

import argparse

from .arguments import open_to_change


def run(args: argparse.Namespace) -> int:
    with open_to_change(args.directory) as store:
        known = store.state().domain_ids
        store.flush(delete_domain_ids=args.delete_domain)
        for domain_id in set(args.delete_domain) - set(known):
            print(f"domain {domain_id} is not in the GTID state")
        print(f"the active file is {store.status().active_file}, GTID state [{store.state()}]")
    return 0
