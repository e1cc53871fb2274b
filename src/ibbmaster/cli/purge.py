"""`ibbmaster purge`: remove the oldest files, as PURGE BINARY LOGS does."""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibbmaster.log.purge import PurgeRequest

EXAMPLES = """examples:
  ibbmaster purge archive --to binlog-000012.ibb
  ibbmaster purge archive --before '2026-01-31 12:00:00'
  ibbmaster purge archive --max-total 10G
"""
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `purge` to the command line."""
    parser = subparsers.add_parser(
        "purge",
        help="remove the oldest files of a directory",
        description="Remove files from the oldest one on, up to what was asked for; a file that another one, a "
        "prepared transaction or the writer still needs stays, and everything after it. Ends with 1 if a file that "
        "was to go is in use.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="FILE", help="remove the files before this one")
    what.add_argument("--before", metavar="TIME", help="remove the files last written before this time (ISO, local)")
    what.add_argument("--max-total", metavar="SIZE", help="remove files until all of them have this size (as 500M)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Purge, and print what went."""
    from ibbmaster.cli.writing import open_store
    from ibbmaster.ibb.file_name import format_file_name

    request = read_request(args)
    with open_store(args.directory) as store:
        result = store.purge(request)
        oldest = store.files()[0].name
    gone = [format_file_name(file_no) for file_no in result.file_nos]
    if args.json:
        print(json.dumps({"removed": gone, "oldest": oldest, "kept": result.kept}))
    else:
        print(f"{len(gone)} file{'s' * (len(gone) != 1)} removed, the oldest is {oldest}")
        if result.kept is not None:
            print(result.kept)
    return 1 if result.kept is not None else 0


def read_request(args: argparse.Namespace) -> PurgeRequest:
    """What the options ask for.

    Raises:
        ConfigurationError: an option cannot be used as given.
    """
    from ibbmaster.errors import ConfigurationError
    from ibbmaster.ibb.file_name import parse_file_name
    from ibbmaster.log.purge import PurgeRequest

    if args.to is not None:
        file_no = parse_file_name(args.to)
        if file_no is None:
            raise ConfigurationError(f"--to {args.to!r}: expected the name of a file, as binlog-000012.ibb")
        return PurgeRequest(to_file_no=file_no)
    if args.before is not None:
        try:
            return PurgeRequest(before=datetime.datetime.fromisoformat(args.before).timestamp())
        except (ValueError, OverflowError, OSError):
            raise ConfigurationError(f"--before {args.before!r}: expected a time, as '2026-01-31 12:00:00'") from None
    return PurgeRequest(total_bytes=parse_size(args.max_total))


def parse_size(text: str) -> int:
    """Read a number of bytes, with K, M, G or T behind it or not.

    Raises:
        ConfigurationError: it is none.
    """
    from ibbmaster.errors import ConfigurationError

    digits = text[:-1] if text[-1:].upper() in UNITS else text
    if not digits.isascii() or not digits.isdigit():
        raise ConfigurationError(f"size {text!r}: expected a number of bytes, as 500M")
    return int(digits) * UNITS.get(text[-1:].upper(), 1)
