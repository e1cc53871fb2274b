"""`ibbmaster archive`: put a log into an object store, and see to what is there."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import ibbmaster
from ibbmaster.api.archiving import archiver_of
from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel.loading import load_for_work
from ibbmaster.logs.archive.upkeep import faults, prune, summary
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.sizes import time_text
from ibbmaster.storage.disk.place import place
from ibbmaster.storage.disk.whole_objects import WholeObjects, objects_at
from .arguments import expect_log, report

DAY_S = 86400


def run(args: argparse.Namespace) -> int:
    jobs = {"ls": _list, "verify": _verify, "prune": _prune}
    match args.words:
        case [job, url] if job in jobs and args.to is None:
            return jobs[job](args, objects_at(place(url)))
        case [directory] if args.to is not None:
            return _archive(args, place(directory))
    raise ConfigurationError("expected DIR --to URL, or ls, verify or prune, and a URL")


def _archive(args: argparse.Namespace, directory: Path) -> int:
    expect_log(directory)
    with ibbmaster.open(directory) as log:
        load_for_work(log.stored_bytes)
        archiver = archiver_of(log.engine, args.to, written=log.stored.server_version)
        archiver.run(until_end=True)
    facts = {"url": str(args.to), "groups": archiver.groups, "gtid_state": str(archiver.end)}
    text = f"{archiver.groups} transactions archived; {args.to} ends at {archiver.end.position() or 'nothing'}"
    report(args, facts, text)
    return 0


def _list(args: argparse.Namespace, objects: WholeObjects) -> int:
    found = summary(objects)
    times = {name: value for name, value in found._asdict().items() if name.endswith("_time")}
    shown = {name: None if value is None else time_text(value) for name, value in times.items()}
    report(
        args,
        {"url": objects.url, **found._asdict(), **shown},
        f"{objects.url}: {found.segments} segments with {found.groups} transactions, {found.bytes} bytes",
        f"from [{found.before}] to [{found.after}]",
        f"first transaction of {shown['first_time'] or 'never'}, last of {shown['last_time'] or 'never'}",
        f"last recoverable time {shown['last_recoverable_time'] or 'never'}",
    )
    return 0


def _verify(args: argparse.Namespace, objects: WholeObjects) -> int:
    found: list[str] = []
    notes: list[str] = []
    totals = Totals()
    load_for_work(summary(objects).bytes)
    for fault in faults(objects, totals):
        (found if fault.is_damage else notes).append(str(fault))
        if not args.json:
            print(fault, flush=True)
    verdict = f"{len(found)} fault{'s' * (len(found) != 1)}" if found else "no faults"
    facts = {"url": objects.url, "segments": totals.files, "groups": totals.groups}
    text = f"{totals.files} segments, {totals.groups} transactions: {verdict}"
    report(args, {**facts, "faults": found, "notes": notes}, text)
    return 1 if found else 0


def _prune(args: argparse.Namespace, objects: WholeObjects) -> int:
    if (args.keep_days is None) == (args.keep_bytes is None):
        raise ConfigurationError("what is to be kept? Give --keep-days or --keep-bytes")
    before = None if args.keep_days is None else time.time() - args.keep_days * DAY_S
    consumers = {}
    for text in args.consumers:
        name, equals, position = text.partition("=")
        if not equals:
            raise ConfigurationError(f"--for {text!r}: expected NAME=GTID, as reports=0-1-100")
        consumers[name] = GtidPosition.parse(position)
    request = PurgeRequest(before=before, total_bytes=args.keep_bytes)
    found = prune(objects, request, consumers, is_dry=args.dry_run)
    facts = {"url": objects.url, **found._asdict(), "dry_run": args.dry_run}
    did = "would be removed" if args.dry_run else "removed"
    strays = f", and {found.strays} that no manifest names" if found.strays else ""
    kept = [f"{found.kept_for} needs more than that: it was kept"] if found.kept_for else []
    report(args, facts, f"{found.segments} segments with {found.bytes} bytes {did}{strays}", *kept)
    return 0
