"""`ibbmaster recover`: bring a directory to the state of its redo log, and say what is in it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `recover` to the command line."""
    parser = subparsers.add_parser(
        "recover",
        help="apply the redo log of a directory to its files, and finish what was in doubt",
        description="What `serve` does when it opens a directory, without serving it. Running it again changes "
        "nothing. Afterwards the files hold everything, and the redo log is not needed to read them.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Recover, and print the end of the log."""
    from ibbmaster.cli.writing import open_store

    with open_store(args.directory) as store:
        while store.clean_step():
            pass
        name, offset = store.end()
        answer: dict[str, Any] = {
            "replayed_records": store.replayed_records,
            "rolled_back": store.rolled_back,
            "file": name,
            "file_offset": offset,
            "gtid_state": str(store.binlog_state()),
            "prepared": [f"{xid.format_id},{xid.gtrid.hex()},{xid.bqual.hex()}" for xid in store.xa_recover()],
        }
    if args.json:
        print(json.dumps(answer))
    else:
        print(f"{store.replayed_records} redo records applied, {store.rolled_back} transactions rolled back")
        print(f"the log ends at {name} offset {offset}, GTID state [{answer['gtid_state']}]")
        for xid in answer["prepared"]:
            print(f"prepared, and waits for its end: XID {xid}")
    return 0
