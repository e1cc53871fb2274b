"""`ibbmaster restore`: bring a database back to an exact transaction or second."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ibbmaster
from ibbmaster.api.restore_plan import RestorePlan
from ibbmaster.commands.info.log_info import summarize
from ibbmaster.commands.info.text import size_text
from ibbmaster.errors import ConfigurationError, RestoreError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.group_content import QUERIES, group_events, query_texts, table_name
from ibbmaster.logs.log.locating import found_group
from ibbmaster.replication.event.group import is_ending_query
from ibbmaster.replication.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.sizes import time_text
from ibbmaster.storage.codec.printable import printable
from .arguments import report
from .credentials import target_password
from .progress import progress, signalled
from .service import parse_listen

INSTALL, SERVER = "mariadb-install-db", "mariadbd"
START_S, STOP_S = 120.0, 600.0
LOOK_S = 0.1
STRICT = "--gtid-strict-mode=ON"
OPTIONS = ("--skip-networking", "--skip-log-bin", "--skip-slave-start", STRICT, "--log-error=restore.err")
LOG_LINES = 3  # of a program that failed
SOCKET = "restore.sock"


@contextlib.contextmanager
def new_server(datadir: Path) -> Iterator[str]:
    """The URL of the server. Raises RestoreError: a program is missing, the directory is not empty, or the server does
    not start."""
    for program in (INSTALL, SERVER):
        if shutil.which(program) is None:
            raise RestoreError(f"--into new needs {program}: apt install mariadb-server-core, or name a server")
    if datadir.exists() and (not datadir.is_dir() or any(datadir.iterdir())):
        raise RestoreError(f"{datadir}: expected an empty directory, or none")
    user, where = pwd.getpwuid(os.geteuid()).pw_name, datadir.absolute()
    given = ["--no-defaults", f"--datadir={where}", f"--user={user}"]
    made = subprocess.run([INSTALL, *given, "--skip-test-db"], capture_output=True, text=True, check=False)
    if made.returncode:
        raise RestoreError(f"{INSTALL}: {_last_lines(made.stdout + made.stderr)}")
    where.chmod(0o700)  # and its socket
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen([SERVER, *given, *OPTIONS, f"--socket={SOCKET}"], **quiet)
    try:
        end = time.monotonic() + START_S
        while not (where / SOCKET).exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RestoreError(f"{SERVER}: {_last_lines((where / 'restore.err').read_text(errors='replace'))}")
            time.sleep(LOOK_S)
        yield f"mysql://{user}@{quote(str(where / SOCKET), safe='')}"
    finally:
        process.terminate()
        process.wait(STOP_S)


def _last_lines(text: str) -> str:
    return " / ".join(line.strip() for line in text.strip().splitlines()[-LOG_LINES:])


GROUPS_A_SECOND, BYTES_A_SECOND = 2_000, 10 << 20  # of small transactions, and of large ones, on one slow core
SHOWN = 60  # characters of a statement
LOOKED_AT = 100  # events of a transaction


def run(args: argparse.Namespace) -> int:
    """The server is detached at SIGINT and SIGTERM, too."""
    if (args.into == "new") != (args.datadir is not None):
        raise ConfigurationError("--into new and --datadir DIR belong together")
    with signalled(signal.default_int_handler, signal.SIGTERM), ibbmaster.open(args.log) as log:
        restore = functools.partial(
            ibbmaster.restore,
            log,
            until=args.until,
            before=args.before,
            position=args.position,
            backup=args.backup,
            skip=[gtid for text in args.skip for gtid in text.split(",")],
            listen=parse_listen(args.listen),
            password=target_password(args.password_file),
            tls=args.tls,
            ca=None if args.ca is None else str(args.ca),
        )
        if args.dry_run or args.datadir is not None:
            plan = restore(None if args.datadir is not None else args.into, dry_run=True)
        began = time.monotonic()
        if not args.dry_run:
            with (
                contextlib.nullcontext(args.into) if args.datadir is None else new_server(args.datadir) as into,
                progress(" transactions", label="restore") as bar,
            ):
                plan = restore(into, on_progress=bar.reach)
        _report(args, log, plan, time.monotonic() - began)
    return 0


def _report(args: argparse.Namespace, log: ibbmaster.Log, plan: RestorePlan, seconds: float) -> None:
    for note in plan.notes:
        print(f"ibbmaster: {note}", file=sys.stderr)
    target = plan.target if args.datadir is None else str(args.datadir)
    facts: dict[str, Any] = {"target": target, "from": str(plan.start), "from_by": plan.source, "to": str(plan.end)}
    facts |= {"skipped": [*map(str, plan.skipped)], "groups": plan.done(plan.end), "seconds": round(seconds, 3)}
    lines = [f"{target} was at [{plan.start}] ({plan.source}), and is at [{plan.end}] after {seconds:.1f} s"]
    if args.dry_run:
        facts |= _preview(log, plan)
        lines = [
            f"{target} is at [{plan.start}] ({plan.source}), and would be at [{plan.end}]",
            f"{facts['groups']} transactions, {size_text(facts['bytes'])}: some {facts['seconds']} s",
            *(f"{name}: {_shown(facts[name])}" for name in ("last", "next")),
        ]
    if plan.skipped:
        lines.append(f"left out: {','.join(facts['skipped'])}")
    if args.datadir is not None and not args.dry_run:
        facts["start_with"] = f"{SERVER} --no-defaults --datadir={args.datadir.absolute()} {STRICT}"
        lines.append(f"it is stopped; start it with {facts['start_with']}")
    report(args, facts, *lines)


def _preview(log: ibbmaster.Log, plan: RestorePlan) -> dict[str, Any]:
    following = next(log.groups(after=plan.end), None)
    found: dict[str, Any] = {"groups": 0, "bytes": 0, "seconds": 0, "last": None}
    found["next"] = None if following is None else _group(log, following.gtid)
    if plan.start != plan.end:
        part = log.through(after=str(plan.start) or None, until=str(plan.end))
        sums = summarize(part.engine, part.stored_bytes)
        assert sums.last is not None
        seconds = round(max(sums.groups / GROUPS_A_SECOND, sums.size / BYTES_A_SECOND))
        found |= {
            "groups": sums.groups,
            "bytes": sums.size,
            "seconds": seconds,
            "last": _group(log, sums.last[0]),
        }
    return found


def _group(log: ibbmaster.Log, gtid: Gtid) -> dict[str, Any]:
    with found_group(log.engine, gtid) as (_, group):
        changes = dict.fromkeys(filter(None, map(_change, itertools.islice(group_events(group), LOOKED_AT))))
        time = decode_event_header(group.gtid_event).timestamp
    return {"gtid": str(gtid), "time": time_text(time), "changes": [*changes]}


def _change(event: bytes) -> str:
    """The table of row events, or a statement."""
    if event[TYPE_OFFSET] == EventType.TABLE_MAP:
        return str(table_name(event))
    if event[TYPE_OFFSET] not in QUERIES or is_ending_query(event):
        return ""
    text = printable(" ".join(query_texts(event)[0].split()))[:SHOWN]
    return "" if text == "BEGIN" else text


def _shown(group: dict[str, Any] | None) -> str:
    return "nothing" if group is None else f"{group['gtid']} of {group['time']}: {', '.join(group['changes'])}"
