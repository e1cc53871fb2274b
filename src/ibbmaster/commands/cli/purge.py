"""`ibbmaster purge`: remove the oldest files, as PURGE BINARY LOGS does."""

import argparse

from ibbmaster.api.stores import purge_request
from ibbmaster.logs.log.time_search import parse_time
from .arguments import open_to_change, report


def run(args: argparse.Namespace) -> int:
    before = None if args.before is None else parse_time("--before", args.before).seconds
    request = purge_request(args.to, before, args.max_total)
    with open_to_change(args.directory) as store:
        result = store.purge(request)
        oldest = next(file.name for file in store.files() if file.size)
    gone = list(result.names)
    line = f"{len(gone)} file{'s' * (len(gone) != 1)} removed, the oldest is {oldest}"
    kept = [] if result.kept is None else [result.kept]
    report(args, {"removed": gone, "oldest": oldest, "kept": result.kept}, line, *kept)
    return 1 if result.kept is not None else 0
