"""A log that follows a running primary: the source as users name it, and the thread that follows."""

from __future__ import annotations

import functools
import logging
import math
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack
from urllib.parse import unquote
from zlib import crc32

from ibbmaster.errors import ConfigurationError, SourceError
from ibbmaster.gtid import ID_MAX, GtidState
from ibbmaster.kernel.loading import load
from ibbmaster.logs.capture.client import PrimaryAddress
from ibbmaster.logs.capture.following import BUFFER_BYTES, FollowStatus, PrimaryFollower, start_state
from ibbmaster.logs.classic.convert import GroupConverter
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_names import holds_log
from ibbmaster.sizes import parse_size
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.place import local_place
from .log_files import PathLike, log_path
from .stores import Size, WritingOptions, new_store

if TYPE_CHECKING:
    import trio

    from ibbmaster.logs.archive.archiver import Archiver
    from ibbmaster.primary.server.figures import Figure
    from .writing import WritableLog

log = logging.getLogger(__name__)

SOURCE = re.compile(r"mysql://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<hosts>[^/@]+)/?")
HOST = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>\d{1,5}))?")
DEFAULT_PORT = 3306

Tls = Literal["off", "auto", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How to follow; sizes are in bytes."""

    start: str = "oldest"
    password: str = ""
    tls: Tls = "auto"
    ca: str | None = None
    server_id: int | None = None
    semi_sync: bool = False
    buffer_bytes: Size = BUFFER_BYTES


class FollowOptions(WritingOptions, total=False):
    """Those of `follow`."""

    start: str
    password: str
    tls: Tls
    ca: str | None
    server_id: int | None
    semi_sync: bool
    until_end: bool
    buffer_bytes: Size
    archive: PathLike | None


def primaries_of(source: str, options: SourceOptions, server_id: int) -> list[PrimaryAddress]:
    """The servers that `mysql://user@host:port,host:port` names; the path of a socket may stand for a host, as
    `%2Frun%2Fs`. Raises ConfigurationError: it has another shape."""
    expected = "expected mysql://USER@HOST[:PORT][,HOST…], as in mysql://repl@db1,db2"
    named = SOURCE.fullmatch(source)
    if named is None:
        raise ConfigurationError(f"{source!r}: {expected}")
    if options.ca is not None and options.tls != "verify":
        raise ConfigurationError("a file with certificates of authorities is for TLS that is verified")
    if options.ca is not None and not Path(options.ca).is_file():
        raise ConfigurationError(f"{options.ca}: no such file")
    found = []
    for text in named["hosts"].split(","):
        host = HOST.fullmatch(text)
        if host is None or not 0 < int(host["port"] or DEFAULT_PORT) < 2**16:
            raise ConfigurationError(f"{source!r} names the host {text!r}: {expected}")
        found.append(
            PrimaryAddress(
                host=unquote(host["host"].strip("[]")),
                port=int(host["port"] or DEFAULT_PORT),
                user=unquote(named["user"] or "repl"),
                password=unquote(named["password"]) if named["password"] is not None else options.password,
                uses_tls=options.tls != "off",
                verifies=options.tls == "verify",
                ca=options.ca,
                server_id=server_id,
            )
        )
    return found


def server_id_of(path: Path) -> int:
    """The server id of a follower: its own for each directory and machine, as a primary takes two of one id for one."""
    return 2**31 | crc32(f"{socket.gethostname()}:{path.resolve()}".encode()) >> 1


def first_state(primaries: Sequence[PrimaryAddress], start: str) -> GtidState:
    """Where a new log begins, as the first primary that answers says. Raises SourceError: none does."""
    problems = []
    for primary in primaries:
        try:
            return start_state(primary, start)
        except SourceError as error:
            problems.append(str(error))
    raise SourceError("; ".join(problems))


class Followed:
    """A log that follows a primary, in a thread. Made by `ibbmaster.follow`; as a context it stops at the end, and
    closes `log`."""

    def __init__(
        self, path: Path, store: BinlogStore, follower: PrimaryFollower, hosts: str, archive: PathLike | None = None
    ) -> None:
        self.hosts = hosts
        self._path = path
        self._store = store
        self._archive = archive
        self._archiver: Archiver | None = None
        with ExitStack() as stack:
            stack.callback(store.close)
            stack.enter_context(Background(store))
            if archive is not None:
                from .archiving import archived

                self._archiver = stack.enter_context(archived(store, archive, is_origin=False))
            self._stack = stack.pop_all()
        self._follower = follower
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ibbmaster-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._follower.run()
        except BaseException as error:
            self._problem = error
            log.error("the log follows no longer: %s", error)

    @functools.cached_property
    def log(self) -> WritableLog:
        """The log, also to be served."""
        from .writing import WritableLog

        made = WritableLog(self._path, self._store, has_background=False)
        made.more_figures.append(self.figures)
        made.bound = (
            f"it follows {self.hosts}, and would fetch what it has had again; stop that, and use `ibbmaster reset`"
        )
        if self._archive is not None:
            from .archiving import join_archive

            join_archive(made, self._archive)
        return made

    @property
    def state(self) -> GtidState:
        """What is durable."""
        return self._store.state()

    @property
    def status(self) -> FollowStatus:
        """How far it is."""
        return self._follower.status

    def figures(self) -> Iterator[Figure]:
        """For /metrics and SHOW GLOBAL STATUS, see the table in docs/operation.md."""
        from ibbmaster.primary.server.figures import Figure

        status = self.status
        is_following = status.state == "following"
        behind_s = 0.0 if status.is_at_end or not status.last_timestamp else time.time() - status.last_timestamp
        labels = {"master_host": status.primary}
        yield Figure("mysql_slave_status_slave_io_running", int(is_following), labels)
        yield Figure("mysql_slave_status_slave_sql_running", int(status.state != "ended"), labels)
        if is_following:
            yield Figure("mysql_slave_status_seconds_behind_master", max(0, int(behind_s)), labels)
            yield Figure("ibbmaster_follow_behind_seconds", max(0, int(behind_s)))
        yield Figure("ibbmaster_follow_connected", int(is_following))
        yield Figure("ibbmaster_follow_groups_total", status.groups)
        yield Figure("ibbmaster_follow_connections_total", status.connections)
        yield Figure("ibbmaster_follow_held_back", int(status.is_held_back))
        if self._archiver is not None:
            from .archiving import archive_figures

            yield from archive_figures(self._archiver)

    def problems(self) -> list[str]:
        """Why it does not follow now."""
        status = self.status
        return [] if status.state == "following" else [f"{status.state}: {status.problem or 'no primary yet'}"]

    def silent_s(self) -> float:
        """Since its thread was seen."""
        return 0.0 if self._thread.is_alive() else math.inf

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended; whether it has. Raises EventError: a primary sends what is no event; SourceError: no
        primary can be followed; StoreError: the log cannot be written."""
        self._thread.join(timeout_s)
        if self._problem is not None:
            raise self._problem
        return not self._thread.is_alive()

    def read_again(self, primaries: Sequence[PrimaryAddress]) -> None:
        """Use the passwords of these for the next connection."""
        self._follower.read_again(primaries)

    def stop(self) -> None:
        """End after the groups that have come are stored. Leaves `log` open. Raises as `wait`."""
        self._follower.stop()
        self.wait()

    def close(self) -> None:
        """Stop, and close `log`, also after an error. Raises as `wait`."""
        with self._stack:
            self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def follow(
    source: str,
    to: PathLike,
    *,
    start: str = "oldest",
    password: str = "",
    tls: Tls = "auto",
    ca: str | None = None,
    server_id: int | None = None,
    semi_sync: bool = False,
    until_end: bool = False,
    buffer_bytes: Size = BUFFER_BYTES,
    archive: PathLike | None = None,
    **options: Unpack[WritingOptions],
) -> Followed:
    """Follow a running primary as a replica does: what it logs is logged in a directory of `.ibb` files.

    `source` is `mysql://user@host:port`; of several hosts with commas between them the first is followed that has all
    that is here. A new log begins after `start`: before the "oldest" group that the primary has, "now", or at a GTID
    position; an existing one goes on. With `tls` "auto" the connection is encrypted where the primary can, with
    "verify" its certificate has to be of that host, by the authorities of the system or of the file `ca`. `semi_sync`
    acknowledges each group once it is durable here. `until_end` ends with what the primary has logged now. At most
    `buffer_bytes` wait for the disk; then the dump of the primary waits. `archive` names an object store or a directory
    that gets segments of the log: docs/archiving.md. `server_id` is that of the replica (by
    default of the directory and the machine), `options` are those of `ibbmaster.create`.

    Raises:
        BusyError: another process writes there.
        ConfigurationError: the source or an option cannot be used.
        SourceError: no primary can be reached, or each refuses.
        StoreError: the directory cannot be written, or holds another log; or the archive.
    """
    given = SourceOptions(
        start=start,
        password=password,
        tls=tls,
        ca=ca,
        server_id=server_id,
        semi_sync=semi_sync,
        buffer_bytes=buffer_bytes,
    )
    return follow_with(source, to, given, options, until_end=until_end, archive=archive)


async def follow_trio(
    source: str,
    to: PathLike,
    *,
    task_status: trio.TaskStatus[Followed] | None = None,
    **options: Unpack[FollowOptions],
) -> None:
    """`follow` as a task of trio, until it has ended, is stopped or cancelled; then the log is closed, and has every
    group that was stored.

    `await nursery.start(ibbmaster.follow_trio, source, to)` gives the `Followed` once a primary has been asked. Raises
    as `follow` and `Followed.wait`.
    """
    import trio

    followed = await trio.to_thread.run_sync(functools.partial(follow, source, to, **options))
    try:
        if task_status is not None:
            task_status.started(followed)
        limiter = trio.CapacityLimiter(1)  # it holds a thread for all the time
        await trio.to_thread.run_sync(followed.wait, abandon_on_cancel=True, limiter=limiter)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(followed.close)


def follow_with(
    source: str,
    to: PathLike,
    given: SourceOptions,
    options: WritingOptions,
    *,
    until_end: bool = False,
    retries_refusals: bool = False,
    archive: PathLike | None = None,
) -> Followed:
    """`follow` with options in one piece; errors as there. `retries_refusals`: an existing log goes on asking although
    every primary refuses."""
    where = local_place(log_path(to), "a log that is written")
    server_id = server_id_of(where) if given.server_id is None else given.server_id
    if not 0 < server_id <= ID_MAX:
        raise ConfigurationError(f"server id {server_id}: expected 1 to {ID_MAX}")
    buffer_bytes = parse_size(given.buffer_bytes) if isinstance(given.buffer_bytes, str) else given.buffer_bytes
    primaries = primaries_of(source, given, server_id)
    is_new = not where.is_dir() or not holds_log(RealDisk(where))
    state = first_state(primaries, given.start) if is_new else GtidState()
    # A primary without gtid_strict_mode may go back in a domain; the follower looks at the order of each server.
    store = new_store(where, {"gtid_strict": False, **options}, state, exist_ok=True)
    try:
        follower = PrimaryFollower(
            primaries,
            store,
            bulk=None if (ready := load()) is None else GroupConverter(store, ready),
            is_semi_sync=given.semi_sync,
            until_end=until_end,
            retries_refusals=retries_refusals,
            buffer_bytes=buffer_bytes,
        )
        return Followed(where, store, follower, ",".join(map(str, primaries)), archive)
    except BaseException:
        store.close()
        raise
