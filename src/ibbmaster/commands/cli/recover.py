"""`ibbmaster recover`: bring a directory to the state of its redo log, and say what is in it."""

import argparse
from pathlib import Path

from ibbmaster.logs.log.damaged_log import Loss
from ibbmaster.logs.store.salvage import salvage as salvage_log
from ibbmaster.storage.disk.local import RealDisk, made_at_once
from .arguments import open_to_change, report


def run(args: argparse.Namespace) -> int:
    if args.salvage is not None:
        return salvage(args)
    with open_to_change(args.directory) as store:
        status, state = store.status(), str(store.state())
        replayed, rolled_back = store.replayed_records, store.rolled_back
        prepared = [f"{xid.format_id},{xid.gtrid.hex()},{xid.bqual.hex()}" for xid in store.xa_recover()]
    file, offset = status.durable_file, status.durable_offset
    facts = {"replayed_records": replayed, "rolled_back": rolled_back, "file": file, "file_offset": offset}
    report(
        args,
        {**facts, "gtid_state": state, "prepared": prepared},
        f"{replayed} redo records applied, {rolled_back} transactions rolled back",
        f"the log ends at {file} offset {offset}, GTID state [{state}]",
        *(f"prepared, and waits for its end: XID {xid}" for xid in prepared),
    )
    return 0


def salvage(args: argparse.Namespace) -> int:
    new: Path = args.salvage
    with made_at_once(new) as staging:

        def conflicts() -> RealDisk:
            (staging / "conflicts").mkdir()
            return RealDisk(staging / "conflicts")

        made = salvage_log(RealDisk(args.directory), RealDisk(staging), conflicts)
    state, lost = str(made.gtid_state), made.losses
    counts = {
        "groups": (made.group_count, f"event groups written to {new}, GTID state [{state}]"),
        "prepared_count": (made.prepared_count, "prepared transactions wait there for their end"),
        "duplicates": (made.duplicates, "groups were there twice, and were written once"),
        "conflicts": (made.conflict_count, f"groups are in {new / 'conflicts'}: others have as new a GTID"),
    }
    report(
        args,
        {name: count for name, (count, _) in counts.items()} | {"gtid_state": state, "lost": [*map(_as_json, lost)]},
        *(f"{count} {text}" for name, (count, text) in counts.items() if count or name == "groups"),
        *([f"lost: {loss}" for loss in lost] or ["nothing is lost"]),
    )
    return 1 if lost else 0


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
