"""`ibbmaster diff`: which transactions two logs have otherwise."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import ibbmaster
from ibbmaster.commands.comparison.differences import ComparedGroup, Comparison, lines_of, logged_groups, sent_groups
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.stages.options import given_stages
from ibbmaster.replication.event.essence import OF_REPLICA, Essence, Ignored
from ibbmaster.storage.codec.printable import printable
from . import credentials
from .chosen import chosen_stages

EXIT_DIFFERENT = 1


def run(args: argparse.Namespace) -> int:
    ignored = _ignored(args.ignore)
    with ExitStack() as stack:
        first, second = (_groups(text, args, stack) for text in (args.first, args.second))
        found = Comparison(first, second, Essence(ignored), ignores_server_id=Ignored.SERVER_ID in ignored)
        if args.quiet:
            return EXIT_DIFFERENT if next(iter(found), None) is not None else 0
        if args.json:
            print(json.dumps(_as_json(found, args.limit)))
        else:
            _print(found, args)
    return EXIT_DIFFERENT if found.kinds else 0


def _ignored(text: str) -> frozenset[Ignored]:
    found: frozenset[Ignored] = frozenset()
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "replica":
            found |= OF_REPLICA
        elif name in tuple(Ignored):
            found |= {Ignored(name)}
        else:
            raise ConfigurationError(f"--ignore: {name!r} is none of {', '.join(Ignored)}, replica")
    return found


def _groups(text: str, args: argparse.Namespace, stack: ExitStack) -> Iterator[ComparedGroup]:
    given = given_stages(chosen_stages(args))
    primary = credentials.running_primary(text, args)
    if primary is None:
        log = stack.enter_context(ibbmaster.open(text))
        if not log.files:
            raise StoreError(f"{text}: no binlog files (binlog-000000.ibb and so on)")
        if given:
            log = part = log.through(**given)
            for note in part.staged.notes:
                print(f"ibbmaster: {note}", file=sys.stderr)
        return logged_groups(log)
    if set(given) - {"after"}:
        raise ConfigurationError(f"{text}: of a running primary only --after can be chosen")
    return sent_groups(primary, GtidPosition.parse(given.get("after", "")))


def _print(found: Comparison, args: argparse.Namespace) -> None:
    names = args.first, args.second
    count = 0
    for count, difference in enumerate(found, start=1):  # used below
        if not args.limit or count <= args.limit:
            print("\n".join(lines_of([difference], names, printable)))
    if args.limit and count > args.limit:
        print(f"... {count - args.limit} more")
    kinds = ", ".join(f"{number} {printable(kind)}" for kind, number in sorted(found.kinds.items()))
    equal = "1 transaction is" if found.equal == 1 else f"{found.equal} transactions are"
    unequal = f", {count} {'is' if count == 1 else 'are'} not: {kinds}" if count else ""
    print(f"{equal} equal{unequal}")


def _as_json(found: Comparison, limit: int) -> dict[str, Any]:
    shown = [
        dataclasses.asdict(one) | {"gtid": str(one.gtid)}
        for number, one in enumerate(found)
        if not limit or number < limit
    ]
    return {"equal": found.equal, "different": sum(found.kinds.values()), "kinds": dict(found.kinds), "shown": shown}
