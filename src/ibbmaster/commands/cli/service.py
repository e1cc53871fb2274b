"""What commands that run as a service share: options, of which SIGHUP reads some again, and what systemd hears of them.

Source: systemd, sd_notify(3).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ibbmaster.api.following import primaries_of
from ibbmaster.api.stores import WritingOptions, store_options
from ibbmaster.errors import ConfigurationError
from ibbmaster.extras import needed_for
from . import credentials
from .log_lines import begin_log

if TYPE_CHECKING:
    from ibbmaster.api.following import Followed
    from ibbmaster.primary.server.http import Watched

log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:3307"  # one beside a MariaDB server's own port

#: Options that SIGHUP changes, besides those of the account.
READ_AGAIN = {"accounts", "auth", "grant", "tls_cert", "tls_key"}
READ_AGAIN |= {"max_connections", "max_statement_time", "log_format", "verbose"}

OTHER_FILES = 512  # binlog files, blocks in the cache, and what a process needs
READY, ALIVE, STOPPING = "READY=1", "WATCHDOG=1", "STOPPING=1"


def checked(args: argparse.Namespace) -> int:
    """Say that options can be used, also those of `follow`. Raises ConfigurationError: they cannot."""
    writing_options(args)
    if not 0 < args.stop_within < threading.TIMEOUT_MAX:
        raise ConfigurationError(f"--stop-within {args.stop_within:g}: expected a number of seconds above 0")
    if args.http is not None:
        parse_listen(args.http, "--http")
    if args.source is not None:
        primaries_of(args.source, credentials.source_options(args), server_id=1)
    print("OK")
    return 0


def writing_options(args: argparse.Namespace) -> WritingOptions:
    """Raises ConfigurationError: one cannot be used as given."""
    options = WritingOptions(
        expire_s=args.expire,
        max_total_bytes=args.max_total,
        replicas_needed_for_purge=getattr(args, "replicas_needed", 0),
    )
    store_options(options)
    return options


def watching(args: argparse.Namespace) -> AbstractContextManager[Watched | None]:
    """Answer at the address of --http, if there is one, while the block runs. Raises ConfigurationError: it cannot be
    listened on, or needs an extra."""
    if args.http is None:
        return contextlib.nullcontext()
    with needed_for("--http"):
        from ibbmaster.primary.server import http
    return http.watching(*parse_listen(args.http, "--http"))


def allow_open_files(connections: int) -> None:
    """Allow that many connections, as far as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
        if limit < wanted:
            log.warning(
                "this process may open %d files: too few for %d connections (see ulimit -Hn)", limit, connections
            )


def read_again(args: argparse.Namespace, following: Iterable[Followed] = ()) -> argparse.Namespace:
    """Options as file, environment and files of accounts say them now; those that need a restart are logged. What
    follows takes the password of its primary for its next connection. Raises ConfigurationError: there is a mistake."""
    from .main import parse_arguments

    try:
        again = parse_arguments(args.given)
    except SystemExit:
        raise ConfigurationError("the command lacks what its configuration file had at the start") from None
    for followed in following:
        followed.read_again(primaries_of(args.source, credentials.source_options(again), server_id=1))
    begin_log(again.log_format, is_verbose=getattr(again, "verbose", False))
    allow_open_files(getattr(again, "max_connections", 0))
    fixed = [
        (*option.option_strings, option.dest)[0]
        for option in args.command._actions
        if option.dest not in READ_AGAIN and getattr(args, option.dest, None) != getattr(again, option.dest, None)
    ]
    if fixed:
        log.warning("SIGHUP: %s: unchanged until the next start", ", ".join(fixed))
    return again


def parse_listen(text: str, option: str = "--listen") -> tuple[str, int]:
    """`HOST:PORT`, `[IPv6]:PORT` or `:PORT`. Raises ConfigurationError: the port is missing, or out of range."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"{option} {text!r}: expected HOST:PORT, as in {DEFAULT_LISTEN}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


@contextlib.contextmanager
def ending_within(seconds: float) -> Iterator[Callable[[bool], None]]:
    """Gives what a command calls while it is alive, and once it is ending, which systemd hears. So long after the
    first call with True the process ends, whatever is under way: nothing that is durable is lost."""

    def end() -> None:
        log.error("not ended %g s after the signal: it ends now; what was durable is safe", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True

    def beat(is_ending: bool) -> None:
        notify(STOPPING if is_ending else ALIVE)
        if is_ending and timer.ident is None:
            timer.start()

    try:
        yield beat
    finally:
        timer.cancel()


def notify(text: str) -> None:
    """Nothing happens outside of a unit of Type=notify."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    abstract = place.startswith("@")
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(text.encode(), "\0" + place[1:] if abstract else place)
