"""`ibbmaster recover`: bring a directory to the state of its redo log, and say what is in it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.cli.arguments import add_directory, open_to_change, written_directory

if TYPE_CHECKING:
    from ibbmaster.log.damaged_log import Loss


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `recover` to the command line."""
    parser = subparsers.add_parser(
        "recover",
        help="apply the redo log of a directory to its files, and finish what was in doubt",
        description="What `serve` does when it opens a directory, without serving it. Running it again changes "
        "nothing. Afterwards the files hold everything, and the redo log is not needed to read them.",
    )
    add_directory(parser)
    parser.add_argument(
        "--salvage",
        type=written_directory,
        metavar="NEWDIR",
        help="change nothing in DIR, write what can be read of it to NEWDIR, and list what is lost",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Recover, and print the end of the log; or salvage, and print what is lost."""
    if args.salvage is not None:
        return salvage(args.directory, args.salvage, as_json=args.json)
    with open_to_change(args.directory) as log:
        log.clean()
        status, state = log.status, str(log.state)
        replayed, rolled_back = log.recovered
        prepared = [f"{xid.format_id},{xid.gtrid.hex()},{xid.bqual.hex()}" for xid in log.prepared]
    if args.json:
        answer: dict[str, Any] = {
            "replayed_records": replayed,
            "rolled_back": rolled_back,
            "file": status.durable_file,
            "file_offset": status.durable_offset,
            "gtid_state": state,
            "prepared": prepared,
        }
        print(json.dumps(answer))
    else:
        print(f"{replayed} redo records applied, {rolled_back} transactions rolled back")
        print(f"the log ends at {status.durable_file} offset {status.durable_offset}, GTID state [{state}]")
        for xid in prepared:
            print(f"prepared, and waits for its end: XID {xid}")
    return 0


def salvage(directory: Path, new: Path, *, as_json: bool) -> int:
    """Write what can be read to a new directory; 1 if that is not everything."""
    from ibbmaster.disk.local import RealDisk, made_at_once
    from ibbmaster.store.salvage import salvage as salvage_log

    with made_at_once(new) as staging:

        def conflicts() -> RealDisk:
            (staging / "conflicts").mkdir()
            return RealDisk(staging / "conflicts")

        report = salvage_log(RealDisk(directory), RealDisk(staging), conflicts)
    state = str(report.gtid_state)
    if as_json:
        answer = {
            "event_groups": report.group_count,
            "duplicates": report.duplicates,
            "conflicts": report.conflict_count,
            "prepared": report.prepared_count,
            "gtid_state": state,
            "lost": [_as_json(loss) for loss in report.losses],
        }
        print(json.dumps(answer))
    else:
        print(f"{report.group_count} event groups written to {new}, GTID state [{state}]")
        if report.prepared_count:
            print(f"{report.prepared_count} prepared transactions wait there for their end")
        if report.duplicates:
            print(f"{report.duplicates} groups were there twice, and were written once")
        if report.conflict_count:
            print(f"{report.conflict_count} groups are in {new / 'conflicts'}: others have as new a GTID")
        for loss in report.losses:
            print(f"lost: {loss}")
        if not report.losses:
            print("nothing is lost")
    return 1 if report.losses else 0


def _as_json(loss: Loss) -> dict[str, object]:
    pages = None if loss.file_name is None else [loss.first_page, loss.last_page]
    return {
        "file": loss.file_name,
        "pages": pages,
        "gtid": loss.gtid,
        "after": loss.after,
        "before": loss.before,
        "reason": loss.reason,
    }
