"""`ibbmaster follow`: keep what a running primary logs."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from typing import Any

from ibbmaster.api.following import Followed, follow_with
from ibbmaster.errors import ConfigurationError
from . import service
from .credentials import source_options
from .log_lines import begin_log

log = logging.getLogger(__name__)

LOOK_S = 0.5  # at signals, and at how far it is


def run(args: argparse.Namespace) -> int:
    """Follow until SIGINT or SIGTERM, or up to the end."""
    begin_log(args.log_format)
    if args.check_config:
        return service.checked(args)
    options = service.writing_options(args)
    heard: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: heard.append(number))
    with (
        service.ending_within(args.stop_within) as beat,
        service.watching(args) as watched,
        follow_with(
            args.source, args.to, source_options(args), options, until_end=args.until_end, archive=args.archive
        ) as followed,
    ):
        if watched is not None:
            watched.source = followed
        _tell(args, followed, "following")
        service.notify(service.READY)
        while not followed.wait(LOOK_S):
            beat(False)
            signalled = heard.pop(0) if heard else None
            if signalled == signal.SIGHUP:
                _read_again(args, followed)
            elif signalled is not None:
                log.info("%s: following ends", signal.Signals(signalled).name)
                beat(True)
                followed.stop()
            elif sys.stderr.isatty():
                status = followed.status
                print(f"\r\x1b[K{status.state}: {status.groups} transactions", end="", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        _tell(args, followed, "ended")
    log.info("stopped")
    return 0


def _read_again(args: argparse.Namespace, followed: Followed) -> None:
    try:
        service.read_again(args, [followed])
    except ConfigurationError as error:
        log.warning("SIGHUP: options stay as they are: %s", error)
    else:
        log.info("SIGHUP: options were read again; the password of the primary holds for the next connection")


def _tell(args: argparse.Namespace, followed: Followed, what: str) -> None:
    status, state = followed.status, followed.state
    if args.json:
        said: dict[str, Any] = {"event": what, "path": str(args.to), "groups": status.groups}
        print(json.dumps({**said, "gtid_state": str(state)}), flush=True)
    elif what == "following":
        print(f"following {followed.hosts} into {args.to} after {state.position() or 'nothing'}", flush=True)
    else:
        print(f"{status.groups} transactions stored; {args.to} ends at {state.position() or 'nothing'}", flush=True)
