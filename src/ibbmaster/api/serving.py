"""Serving a log to replicas: in a thread of its own, or as a task of trio."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, Unpack, get_args
from urllib.parse import quote

import trio

from ibbmaster.errors import ConfigurationError
from ibbmaster.logs.log.large_rows import parse_row_event_max
from ibbmaster.logs.stages.options import StageOptions, check_stages, expect_tables, given_stages
from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.server.certificate import Certificate, load_certificate, make_certificate
from ibbmaster.primary.server.figures import Figures
from ibbmaster.primary.server.options import PrimaryOptions
from ibbmaster.primary.server.primary import Primary
from ibbmaster.primary.server.registry import Registry
from ibbmaster.replication.dump.profile import PROFILES, OpeningTimestamp, Profile, profile_of_server
from ibbmaster.replication.wire.auth import make_account
from ibbmaster.schema.name_case import parse_name_case
from ibbmaster.storage.codec.printable import address
from . import opening
from .accounts import read_accounts
from .log import Log
from .log_files import PathLike
from .serving_options import ServingOptions, TlsChoice, default_options
from .writing import WritableLog

logger = logging.getLogger(__name__)

DEFAULT_PROFILE = "engine"
TLS_CHOICES = get_args(TlsChoice)
DUMP_HEAD_SIZE = 4096  # characters of a dump that show what it is
Announced = TypeVar("Announced")
Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOptions:
    """`primary` has them all, with the profile of a log of `.ibb` files."""

    primary: PrimaryOptions
    has_profile: bool  # one was given
    has_version: bool
    stages: StageOptions = field(default_factory=lambda: StageOptions())
    password: str = field(repr=False)

    def for_log(self, log: Log) -> PrimaryOptions:
        """Without a profile, traditional files are served as their own server did."""
        case = self.primary.name_case if self.primary.name_case is not None else log.name_case
        given = self.primary.row_event_max
        row_event_max = given if given is not None else log.row_event_max
        primary = replace(self.primary, name_case=case, row_event_max=row_event_max)
        written = log.stored.server_version
        if written is None:
            return primary
        profile = primary.profile
        if not self.has_profile:
            base = profile_of_server(written, version=profile.server_version if self.has_version else None)
            profile = replace(base, opening_timestamp=profile.opening_timestamp)
        elif not self.has_version:
            profile = profile.with_version(written)
        return replace(primary, profile=profile)


def check_options(**options: Unpack[ServingOptions]) -> CheckedOptions:
    """Of `serve`, before a log is touched. Raises ConfigurationError: one cannot be used as given; TypeError: there is
    no option of that name."""
    unknown = sorted(options.keys() - default_options().keys())
    if unknown:
        raise TypeError(f"serving has no option {unknown[0]!r}")
    given: ServingOptions = {**default_options(), **options}
    user, password, accounts, base = given["user"], given["password"], given["accounts"], given["base"]
    requires_tls = given["tls"] == "required"
    others = [] if accounts is None else read_accounts(Path(accounts), requires_tls=requires_tls)
    held = privileges.READING if given["grant"] is None else privileges.parse_privileges(given["grant"])
    first = next((one for one in others if one[0].user == user), None)
    if first is not None:
        if password or given["grant"] is not None:
            raise ConfigurationError(f"{accounts}: account {user!r} is the first account, too: leave out its password")
        others.remove(first)
    else:
        if not password and not is_loopback(given["host"]):
            raise ConfigurationError(f"{given['host']} can be reached from other machines: give the account a password")
        if given["auth"] == "ed25519" and not password:
            raise ConfigurationError("authentication by ed25519 needs a password")
        first = make_account(user, password, plugin=given["auth"], requires_tls=requires_tls), held
    for account, _ in [first, *others]:
        if account.requires_tls and given["tls"] == "off":
            raise ConfigurationError(f"{accounts}: account {account.user!r} requires TLS, which is off: see --tls")
    if not 1 <= given["server_id"] < 2**32:
        raise ConfigurationError(f"server id {given['server_id']}: expected a number from 1 to {2**32 - 1}")
    if not 0 <= given["port"] < 2**16:
        raise ConfigurationError(f"port {given['port']}: expected a number from 0 to {2**16 - 1}")
    if base is not None:
        _expect_dump(Path(base))
    if given["max_connections"] < 1:
        raise ConfigurationError(f"{given['max_connections']} connections: expected at least 1")
    if given["max_statement_time"] < 1:
        raise ConfigurationError(f"{given['max_statement_time']} seconds for a statement: expected at least 1")
    if given["max_hold"] is not None and given["max_hold"] < 0:
        raise ConfigurationError(f"{given['max_hold']} seconds to hold a file: expected 0 or more")
    primary = PrimaryOptions(
        host=given["host"],
        port=given["port"],
        account=first[0],
        held=first[1],
        other_accounts=tuple(others),
        certificate=_certificate(given["tls"], given["tls_cert"], given["tls_key"]),
        profile=_profile(given["profile"], given["server_version"], given["opening_timestamp"]),
        server_id=given["server_id"],
        connections_max=given["max_connections"],
        statement_s=given["max_statement_time"],
        hold_s=given["max_hold"],
        base=None if base is None else Path(base),
        name_case=parse_name_case("lower_case_table_names", given["lower_case_table_names"]),
        row_event_max=parse_row_event_max(given["max_row_event_bytes"]),
        closes_at_end=given["at_end"] == "close",
    )
    stages: Any = given_stages(given)
    check_stages(stages)
    return CheckedOptions(
        primary=primary,
        has_profile=given["profile"] is not None,
        has_version=given["server_version"] is not None,
        stages=stages,
        password=password,
    )


def _expect_dump(path: Path) -> None:
    from ibbmaster.schema.base_dump import expect_statement

    if not path.is_file():
        raise ConfigurationError(f"base {path}: there is no such file")
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            expect_statement(file.read(DUMP_HEAD_SIZE))
    except OSError as error:
        raise ConfigurationError(f"base {path}: {error.strerror}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"base {path} is not a dump: {error}") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; names other than localhost count as reachable."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _certificate(tls: str, cert: PathLike | None, key: PathLike | None) -> Certificate | None:
    if tls not in TLS_CHOICES:
        raise ConfigurationError(f"TLS {tls!r}: expected auto, off or required")
    if (cert is None) != (key is None):
        raise ConfigurationError("TLS certificate and key go together: give both or neither")
    if tls == "off":
        return None
    return make_certificate() if cert is None or key is None else load_certificate(Path(cert), Path(key))


def _profile(name: str | None, server_version: str | None, opening_timestamp: str | None) -> Profile:
    profile = PROFILES.get(name or DEFAULT_PROFILE)
    if profile is None:
        raise ConfigurationError(f"there is no profile {name!r}: choose one of {', '.join(PROFILES)}")
    if server_version is not None:
        profile = profile.with_version(server_version)
    if opening_timestamp is None:
        return profile
    try:
        return replace(profile, opening_timestamp=OpeningTimestamp(opening_timestamp))
    except ValueError:
        choices = " or ".join(choice.value for choice in OpeningTimestamp)
        raise ConfigurationError(f"opening timestamp {opening_timestamp!r}: expected {choices}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedReplica:
    """One dump that runs."""

    server_id: int
    user: str
    host: str


class RunningPrimary:
    """A log that is being served. As a context it is stopped at the end.

    Attributes:
        log: what it serves.
        host, port: where it listens.
        user, password: of the first account.
    """

    def __init__(self, log: Log, primary: Primary, password: str, port: int, stop: Callable[[], None]) -> None:
        self.log = log
        self.host = primary.options.host
        self.port = port
        self.user = primary.options.account.user
        self.password = password
        self.options = primary.options
        self._primary = primary
        self._stop = stop
        self._token = trio.lowlevel.current_trio_token()  # of the event loop that it is made in

    def __repr__(self) -> str:
        return f"<RunningPrimary of {self.log.path} on {address(self.host, self.port)}>"

    @property
    def dsn(self) -> str:
        """`mysql://user:password@host:port/`."""
        account = quote(self.user, safe="") + (f":{quote(self.password, safe='')}" if self.password else "")
        return f"mysql://{account}@{address(self.host, self.port)}/"

    @property
    def replicas(self) -> list[ConnectedReplica]:
        """Who follows the log now."""
        return [
            ConnectedReplica(server_id=session.dump_server_id, user=session.user, host=session.host)
            for session in self._primary.registry
            if session.dump_server_id is not None
        ]

    @property
    def figures(self) -> Figures:
        return self._primary.figures

    def in_loop(self, function: Callable[[Registry], Returned]) -> Returned:
        """Call a function with the registry of connections in the event loop, from another thread. Raises
        trio.RunFinishedError: the loop has ended."""
        return trio.from_thread.run_sync(function, self._primary.registry, trio_token=self._token)

    def stop(self) -> None:
        """Send every dump its last packet and stop listening; a second call does nothing. Waits for the end of a
        thread of its own; as a task it ends soon."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


async def serve_trio(
    log: Log | PathLike,
    *,
    handle_signals: bool = False,
    task_status: trio.TaskStatus[RunningPrimary] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[ServingOptions],
) -> None:
    """Serve a log until it is stopped or cancelled; a path is opened, and closed at the end.

    `await nursery.start(ibbmaster.serve_trio, log)` gives the `RunningPrimary`. `handle_signals` lets SIGINT and
    SIGTERM stop it. `options` and errors are those of `serve`.
    """
    await run_primary(log, check_options(**options), handle_signals=handle_signals, task_status=task_status)


async def run_primary(
    log: Log | PathLike,
    checked: CheckedOptions,
    *,
    handle_signals: bool = False,
    task_status: trio.TaskStatus[RunningPrimary] = trio.TASK_STATUS_IGNORED,
    read_again: Callable[[], CheckedOptions] | None = None,
) -> None:
    """`serve_trio` with options that are checked; at SIGHUP accounts, certificate and limits become those
    of `read_again`."""
    with contextlib.ExitStack() as stack:
        whole = log if isinstance(log, Log) else stack.enter_context(opening.open(log))
        opened = await trio.to_thread.run_sync(staged_log, whole, checked.stages)
        primary = Primary(opened.engine, checked.for_log(opened), opened.history_cache)
        if isinstance(whole, WritableLog):  # whose files are removed only while enough replicas are connected
            end = whole.count_replicas(lambda: sum(one.dump_server_id is not None for one in primary.registry))
            stack.callback(end)
            primary.figures.store, primary.figures.more = whole.store, whole.more_figures
            primary.administration.log = whole

        def announce(port: int) -> None:
            task_status.started(RunningPrimary(opened, primary, checked.password, port, primary.stop))

        again = None if read_again is None else lambda: read_again().primary
        await primary.serve(handle_signals=handle_signals, task_status=StatusCall(announce), read_again=again)


def serve(log: Log | PathLike, **options: Unpack[ServingOptions]) -> RunningPrimary:
    """Serve a log in a thread of its own; a path is opened, and closed at the end.

    Options: `host` ("127.0.0.1") and `port` (0: any free one) to listen on; `user` ("repl"), `password` ("": for this
    machine only), `auth` ("native" or "ed25519") and `grant` of the first account, `accounts`, a file with others;
    `tls` ("auto", "off" or "required"), `tls_cert` and `tls_key` (a self-signed certificate is made); `profile`, the
    server to emulate ("engine"; for traditional files the server that wrote them), `server_version`,
    `opening_timestamp`, `server_id` (1), `max_connections` (151), `max_statement_time` (3600 seconds at work);
    `max_hold` (no limit), for how long a slow replica may keep a file from being removed; `base`,
    a dump from which the log goes on; `lower_case_table_names` of the server that wrote the log (the log tells);
    `max_row_event_bytes`, as "512M", of a row event that SELECT reads (4 GiB). `after`, `until`, `only`, `except_`,
    `domain`, `server`, `kinds`, `drop_empty`, `rename`, `map_server_id` and `map_domain` are those of `Log.through`;
    replicas stay connected at the end of such a part, unless `at_end` is "close".

    Raises ConfigurationError: an option cannot be used, or the address cannot be listened on; FormatError, StoreError:
    the log cannot be read.
    """
    return serve_checked(log, check_options(**options))


def serve_checked(log: Log | PathLike, checked: CheckedOptions) -> RunningPrimary:
    started: Future[RunningPrimary] = Future()
    ended: list[BaseException] = []

    def run() -> None:
        try:
            trio.run(functools.partial(run_primary, log, checked, task_status=StatusCall(announce)))
        except BaseException as error:
            (ended.append if started.done() else started.set_exception)(error)

    def announce(primary: RunningPrimary) -> None:
        end = primary._stop

        def stop() -> None:
            with contextlib.suppress(trio.RunFinishedError):
                primary._token.run_sync_soon(end)
            thread.join()
            if ended:
                raise ended.pop()

        primary._stop = stop
        started.set_result(primary)

    thread = threading.Thread(target=run, name="ibbmaster-serve", daemon=True)
    thread.start()
    try:
        return started.result()
    except Exception:
        thread.join()
        raise


class StatusCall(Generic[Announced]):
    """A `trio.TaskStatus` that calls a function with what has started."""

    def __init__(self, call: Callable[[Announced], None]) -> None:
        self._call = call

    def started(self, value: Announced | None = None) -> None:
        assert value is not None
        self._call(value)


def staged_log(log: Log, options: StageOptions) -> Log:
    """The log, or what its stages leave of it; their notes are logged."""
    if not options:
        return log
    chosen = log.through(**options)
    for note in chosen.staged.notes:
        logger.info("%s", note)
    expect_tables(chosen.staged)
    return chosen
