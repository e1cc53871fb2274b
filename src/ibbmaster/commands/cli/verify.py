"""`ibbmaster verify`: every fault of a directory, with file, page and offset."""

import argparse

from ibbmaster.api.log_files import LogVerification, opened_files
from ibbmaster.kernel.loading import load_for_work
from .arguments import report
from .progress import interruptible, progress

BLOCK_SIZE = 512  # bytes, in which the system counts


def run(args: argparse.Namespace) -> int:
    faults: list[str] = []
    notes: list[str] = []
    with opened_files(args.directory) as files:
        sizes = [path.stat() for path in files.paths()]
        load_for_work(sum(size.st_blocks * BLOCK_SIZE for size in sizes))
        with progress(total=sum(size.st_size for size in sizes)) as bar, interruptible(bar.add) as advance:
            check = LogVerification(args.directory, files, jobs=args.jobs, on_bytes=advance)
            for fault in check:
                (faults if fault.is_damage or args.strict else notes).append(str(fault))
                if not args.json:
                    print(fault, flush=True)
    totals, redo = check.totals, check.redo
    verdict = f"{len(faults)} fault{'s' * (len(faults) != 1)}" if faults else "no faults"
    verdict += f", {len(notes)} note{'s' * (len(notes) != 1)}" if notes else ""
    counts = {name: getattr(totals, name) for name in ("files", "pages", "groups", "oob_records")}
    facts = {"path": str(args.directory), "redo_log": None if redo is None else redo.as_json(), **counts}
    of_redo = [redo.line()] if redo is not None and redo.problem is None else []
    report(args, {**facts, "faults": faults, "notes": notes}, *of_redo, f"{totals}: {verdict}")
    return 1 if faults else 0
