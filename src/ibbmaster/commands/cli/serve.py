"""`ibbmaster serve`: point a replica at a directory of binlog files."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any

import ibbmaster
from ibbmaster.api.stores import WritingOptions
from ibbmaster.errors import ConfigurationError
from ibbmaster.storage.codec.printable import address
from . import credentials, service
from .log_lines import begin_log

if TYPE_CHECKING:  # `follow`, which shares options with `serve`, starts in a third of the time without a server
    from ibbmaster.api.following import Followed
    from ibbmaster.api.log import Log
    from ibbmaster.api.serving import CheckedOptions, RunningPrimary
    from ibbmaster.api.serving_options import ServingOptions

log = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> int:
    """Until SIGINT or SIGTERM; SIGHUP reads files of accounts and of the certificate again."""
    if (args.directory is None) == (args.scenario is None):
        raise ConfigurationError("expected a directory of binlogs, or --scenario FILE, and not both")
    if args.at_once and args.scenario is None:
        raise ConfigurationError("--at-once is about the times of a --scenario")
    is_played = args.word == "replay" or args.pace is not None or args.loop != 1 or args.start_when_connected
    if args.scenario is not None and is_played:
        raise ConfigurationError("--pace, --loop and --start-when-connected play a directory, and no --scenario")
    if args.check_config:
        read_options(args)
        return service.checked(args)
    begin_log(args.log_format, is_verbose=args.verbose)
    service.allow_open_files(args.max_connections)
    if args.scenario is not None:
        return _run_scenario(args)
    import trio

    from ibbmaster.api.serving import StatusCall, run_primary

    options = read_options(args)
    following: list[Followed] = []
    with (
        service.ending_within(args.stop_within) as beat,
        service.watching(args) as watched,
        open_log(args, is_played=is_played, following=following) as opened,
    ):
        again = lambda: read_options(service.read_again(args, following))  # noqa: E731 - as a callback

        def begun(primary: RunningPrimary) -> None:
            if watched is not None:
                watched.source = primary.figures
            announce(primary, as_json=args.json)
            primary.figures.on_beat = beat
            service.notify(service.READY)

        if is_played:
            from .replay import play

            trio.run(play, opened, options, args, begun, again)
        else:
            serve = functools.partial(run_primary, opened, options, handle_signals=True, task_status=StatusCall(begun))
            trio.run(functools.partial(serve, read_again=again))
    log.info("stopped")
    return 0


def _run_scenario(args: argparse.Namespace) -> int:
    """Until a signal or the control socket ends it."""
    from ibbmaster.api.serving_options import default_options
    from ibbmaster.testkit.control import ControlSocket
    from ibbmaster.testkit.scenario import read_scenario

    scenario = read_scenario(args.scenario)
    if args.at_once:
        scenario = scenario.at_once()
    default = default_options()
    given: Any = {name: value for name, value in serving_options(args).items() if value != default.get(name)}
    signal.signal(signal.SIGHUP, lambda *_: log.info("SIGHUP: a scenario has nothing that is read again"))
    over = threading.Event()

    def end(number: int, _: object) -> None:
        log.info("%s: serving ends", signal.Signals(number).name)
        over.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with (
        service.ending_within(args.stop_within) as beat,
        scenario.serving(**given) as primary,
        closing(ControlSocket(primary, over.set)) as control,
    ):
        said = {"host": primary.host, "port": primary.port, "server_id": primary.server_id, "user": primary.user}
        if args.json:
            print(json.dumps({**said, "control": control.address, "control_token": control.token}), flush=True)
        else:
            socket = f"control socket {control.address} with token {control.token}"
            print(f"serving {args.scenario} on {address(primary.host, primary.port)}, {socket}", flush=True)
        over.wait()
        beat(True)
    return 0


def open_log(
    args: argparse.Namespace, *, is_played: bool = False, following: list[Followed] | None = None
) -> AbstractContextManager[Log]:
    """Only read unless the directory is to be owned, which excludes playing it. What follows a primary is added to
    `following`. Raises BusyError: it is to be owned, and another process writes there; ConfigurationError: options
    exclude each other, or cannot be used as given."""
    options = service.writing_options(args)
    if args.source is not None and not is_played and not args.read_only:
        return _followed_log(args, options, [] if following is None else following)
    if not args.own and args.source is None and args.expire is None and args.max_total is None:
        opened = ibbmaster.open(args.directory)
        if args.archive is not None:
            from ibbmaster.api.archiving import join_archive

            join_archive(opened, args.archive)
        return opened
    if is_played:
        raise ConfigurationError("a log that is played is only read: leave out --own, --from, --expire and --max-total")
    if args.read_only:
        raise ConfigurationError(
            "--read-only excludes --own, --from, --expire and --max-total: who only reads removes nothing"
        )
    return _own_log(args, options)


@contextlib.contextmanager
def _own_log(args: argparse.Namespace, options: WritingOptions) -> Iterator[Log]:
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(ibbmaster.create(args.directory, exist_ok=True, **options))
        if args.archive is not None:
            from ibbmaster.api.archiving import archive_figures, archived, join_archive

            archiver = stack.enter_context(archived(opened.store, args.archive))
            opened.more_figures.append(functools.partial(archive_figures, archiver))
            join_archive(opened, args.archive)
            opened.bound = f"the archive at {args.archive} goes on with this one; begin another with another directory"
        yield opened


@contextlib.contextmanager
def _followed_log(args: argparse.Namespace, options: WritingOptions, following: list[Followed]) -> Iterator[Log]:
    from ibbmaster.api.following import follow_with

    with follow_with(
        args.source,
        args.directory,
        credentials.source_options(args),
        options,
        retries_refusals=True,
        archive=args.archive,
    ) as followed:
        following.append(followed)
        yield followed.log


def read_options(args: argparse.Namespace) -> CheckedOptions:
    """Checked before a file is touched. Raises ConfigurationError: one cannot be used."""
    from ibbmaster.api.serving import check_options

    return check_options(**serving_options(args))


def serving_options(args: argparse.Namespace) -> ServingOptions:
    """For `ibbmaster.serve`. Raises ConfigurationError: the address or an account's file cannot be used."""
    from ibbmaster.api.serving_options import serving_options as options_of_serving

    host, port = service.parse_listen(args.listen)
    user, password = credentials.find_account(args)
    said: Any = {"host": host, "port": port, "user": user, "password": password}
    said |= {name: getattr(args, name) for name, option, _, _ in options_of_serving() if option.help}
    return said  # type: ignore[no-any-return]


def announce(primary: RunningPrimary, *, as_json: bool) -> None:
    """Print the primary's address, and what to type on a replica."""
    host, port, options = primary.host, primary.port, primary.options
    where = address(host, port)
    log.info("ibbmaster %s serves %s on %s", ibbmaster.__version__, primary.log.path, where)
    if as_json:
        print(json.dumps({"host": host, "port": port, "server_id": options.server_id}), flush=True)
        return
    tls = "off" if options.certificate is None else "self-signed" if options.certificate.is_automatic else "on"
    how = f"(profile {options.profile.name}, TLS {tls})"
    print(f"serving {primary.log.path} on {where} {how}", flush=True)
    if sys.stdout.isatty():
        print(
            f"on the replica: CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, "
            f"MASTER_USER='{primary.user}', MASTER_PASSWORD='…', MASTER_USE_GTID=slave_pos; START SLAVE;"
        )
