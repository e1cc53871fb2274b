"""`ibbmaster backup`: copy a directory that is written meanwhile."""

import argparse

import ibbmaster
from ibbmaster.kernel.loading import load_for_work
from .arguments import report
from .progress import progress


def run(args: argparse.Namespace) -> int:
    with ibbmaster.open(args.directory) as log:
        load_for_work(log.stored_bytes)
        with progress(total=sum(file.size for file in log.files)) as bar:
            made = log.back_up(args.to, on_bytes=bar.add)
    state, files = str(made.gtid_state), made.files
    facts = {"files": files, "copied_bytes": made.copied_bytes, "lsn": made.lsn, "gtid_state": state}
    report(args, facts, f"{len(files)} files in {args.to}, up to LSN {made.lsn}, GTID state [{state}]")
    return 0
