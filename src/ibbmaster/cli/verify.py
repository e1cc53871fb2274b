"""`ibbmaster verify`: every fault of a directory, with file, page and offset."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

JOBS_MAX = 1024
BLOCK_SIZE = 512  # bytes, in which the system counts what a file has of the disk


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `verify` to the command line."""
    parser = subparsers.add_parser(
        "verify",
        help="check every checksum, chunk, record, reference and GTID state of a directory",
        description="Read every page of every file in DIR and list each fault with file, page and offset. What a "
        "healthy MariaDB server leaves, too, is a note: GTID states that lack what was logged before a restart, an "
        "extra page behind a full file, sequence numbers that go back without gtid_strict_mode. Ends with 0 if there "
        "is no fault, 1 if there are some, 2 if the directory cannot be read.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument(
        "--jobs",
        type=job_count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="threads, each with files of its own (default: one for each core, %(default)s here)",
    )
    parser.add_argument("--strict", action="store_true", help="take notes for faults: for logs no MariaDB server wrote")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def job_count(text: str) -> int:
    """The number of threads that somebody asks for."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= JOBS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {JOBS_MAX}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Verify, and list what was found."""
    from ibbmaster.cli.progress import interruptible, load_kernels, progress
    from ibbmaster.disk.local import RealDisk
    from ibbmaster.ibb.file_name import parse_file_name
    from ibbmaster.ibb.page import PAGE_SIZE
    from ibbmaster.kernel.cache import KernelSet
    from ibbmaster.log.fault import Totals
    from ibbmaster.log.verify import verify
    from ibbmaster.store.redo_check import check_redo

    disk = RealDisk(args.directory)
    names = [name for name in disk.list() if parse_file_name(name) is not None]
    size = sum(disk.size(name) for name in names)
    load_kernels(KernelSet.VERIFY, sum((args.directory / name).stat().st_blocks * BLOCK_SIZE for name in names))
    redo = check_redo(disk, is_in_use=disk.is_locked)
    totals = Totals()
    faults: list[str] = []
    notes: list[str] = []
    with progress(size) as bar, interruptible(bar) as advance:
        for fault in verify(
            disk,
            totals,
            others=[RealDisk(args.directory) for _ in range(args.jobs - 1)],
            on_pages=lambda count: advance(count * PAGE_SIZE),
        ):
            (faults if fault.is_damage or args.strict else notes).append(str(fault))
            if not args.json:
                print(fault, flush=True)
    if redo is not None:
        faults += [redo.line()] * (redo.problem is not None)
        if not args.json:
            print(redo.line())
    if args.json:
        print(
            json.dumps(
                {
                    "directory": str(args.directory),
                    "redo_log": None if redo is None else redo.as_json(),
                    "files": totals.files,
                    "pages": totals.pages,
                    "groups": totals.groups,
                    "oob_records": totals.oob_records,
                    "faults": faults,
                    "notes": notes,
                }
            )
        )
    else:
        verdict = f"{len(faults)} fault{'s' * (len(faults) != 1)}" if faults else "no faults"
        verdict += f", {len(notes)} note{'s' * (len(notes) != 1)}" if notes else ""
        print(
            f"{totals.files} files, {totals.pages} pages, {totals.groups} event groups, "
            f"{totals.oob_records} out-of-band records: {verdict}"
        )
    return 1 if faults else 0
