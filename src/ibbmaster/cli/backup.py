"""`ibbmaster backup`: copy a directory that is written meanwhile."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `backup` to the command line."""
    parser = subparsers.add_parser(
        "backup",
        help="copy a directory, even while another process writes it",
        description="Copy DIR to a new directory and recover the copy, so that it holds the log as it was at one "
        "moment. The process that writes DIR is not held up.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR2", help="directory to make")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, and print where the copy ends."""
    from ibbmaster.cli.progress import progress
    from ibbmaster.cli.writing import made_at_once
    from ibbmaster.disk.local import RealDisk
    from ibbmaster.store.backup import back_up

    source = RealDisk(args.directory)
    size = sum(source.size(name) for name in source.list())
    with made_at_once(args.to) as staging, progress(size) as advance:
        report = back_up(source, RealDisk(staging), progress=advance)
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
