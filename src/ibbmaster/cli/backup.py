"""`ibbmaster backup`: copy a directory that is written meanwhile."""

from __future__ import annotations

import argparse
import json

from ibbmaster.cli.arguments import add_directory
from ibbmaster.disk.place import place


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `backup` to the command line."""
    parser = subparsers.add_parser(
        "backup",
        help="copy a directory, even while another process writes it",
        description="Copy DIR to a new directory and recover the copy, so that it holds the log as it was at one "
        "moment. The process that writes DIR is not held up. The copy is read to its last page: nothing is left of one "
        "that is damaged.",
    )
    add_directory(parser)
    parser.add_argument(
        "--to", type=place, required=True, metavar="DIR2", help="directory to make, or URL of an object store"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, and print where the copy ends."""
    import ibbmaster
    from ibbmaster.cli.progress import load_kernels, progress
    from ibbmaster.kernel.parts import KernelSet

    with ibbmaster.open(args.directory) as log:
        load_kernels(KernelSet.VERIFY, log.stored_bytes)
        with progress(total=sum(file.size for file in log.files)) as bar:
            report = log.back_up(args.to, on_bytes=bar.add)
    if args.json:
        print(
            json.dumps(
                {
                    "files": report.files,
                    "copied_bytes": report.copied_bytes,
                    "lsn": report.lsn,
                    "gtid_state": str(report.gtid_state),
                }
            )
        )
    else:
        print(f"{len(report.files)} files in {args.to}, up to LSN {report.lsn}, GTID state [{report.gtid_state}]")
    return 0
