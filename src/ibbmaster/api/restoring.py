"""A database brought to an exact transaction or second: its server replicates a part of a log, and stops."""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ibbmaster.errors import ConfigurationError, GtidError, RestoreError, SourceError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.capture.client import DENIED, PrimaryAddress, code_of, connected
from ibbmaster.logs.log.group_content import group_events
from ibbmaster.logs.log.interface import LogEngine, groups_from
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.filtering import GtidFilter
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.types import EventType
from .following import SourceOptions, Tls, primaries_of
from .log import Log, StagedView
from .log_files import PathLike
from .restore_plan import RestorePlan, TargetFacts, end_of, expect_between, expect_usable, start_of
from .seeking import Position, as_position

if TYPE_CHECKING:
    import pymysql

    from .serving import RunningPrimary
    from .serving_options import TlsChoice


OF_INNODB = "xtrabackup_binlog_pos_innodb"  # of the last commit that `--prepare` found in the data
FILES = [f"{program}_{what}_info" for what in ("binlog", "slave") for program in ("mariadb_backup", "xtrabackup")]
PART_SIZE = 1 << 16  # of a dump: the position is at its begin or, since 10.11, at its end
_GTIDS = re.compile(r"^(?:-- ?)?SET\s+GLOBAL\s+gtid_slave_pos\s*=\s*'([^']*)'|^[^\t\n]+\t\d+\t([-\d,]+)$", re.I | re.M)
_PLACE = re.compile(r"^(?:\./)?([^\s]+)\t(\d{1,18})\b")


class BinlogPlace(NamedTuple):
    """In a file of the server's binlog."""

    file: str
    offset: int


def backup_positions(path: Path, log: LogEngine) -> dict[str, GtidPosition]:
    """The position of a backup, by each file that says it. Raises ConfigurationError: there is none, it cannot be read,
    or the data of InnoDB are at another one."""
    gtids: dict[str, GtidPosition] = {}
    places: dict[str, BinlogPlace] = {}
    try:
        for name, text in _texts(path):
            for said in _GTIDS.finditer(text):
                position = GtidPosition.parse(said[1] or said[2])
                if gtids.setdefault(name, position) != position:
                    raise ConfigurationError(f"{path}: {name} says [{gtids[name]}] and [{position}]")
            if (found := _PLACE.search(text)) is not None:
                places[name] = BinlogPlace(found[1], int(found[2]))
    except (OSError, GtidError) as error:
        raise ConfigurationError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not gtids:
        raise ConfigurationError(
            f"{path}: says no GTID: expected {' or '.join(FILES)} of mariadb-backup, or a dump that was made with "
            "--master-data=2; --position says it, too"
        )
    of_data = places.pop(OF_INNODB, None)
    recorded = next(iter(places.values()), of_data)
    if of_data is not None and recorded is not None and not _are_same(log, gtids, of_data, recorded):
        raise ConfigurationError(
            f"{path}: the data are at {of_data.file} offset {of_data.offset} by InnoDB, and {recorded.file} offset "
            f"{recorded.offset} was recorded: if only DDL or other engines came between, or you know what the data "
            f"have, give --position; the recorded one is {next(iter(gtids.values()))}"
        )
    return gtids


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    found = [path / name for name in (*FILES, OF_INNODB) if (path / name).is_file()] if path.is_dir() else [path]
    for one in found:
        with one.open("rb") as file:
            parts = [file.read(PART_SIZE)]
            file.seek(max(PART_SIZE, one.stat().st_size - PART_SIZE))
            parts.append(file.read(PART_SIZE))
        yield one.name, "\n".join(part.decode("utf-8", "replace") for part in parts)


def _are_same(log: LogEngine, gtids: dict[str, GtidPosition], of_data: BinlogPlace, recorded: BinlogPlace) -> bool:
    """Whether data lack nothing of what was recorded, and have no more. Only a log with the files of that server says
    what came between: a transaction of an engine like InnoDB has an XID."""
    if of_data == recorded:
        return True
    names = {file.name.rpartition(".")[0] if file.is_packed else file.name: file.file_no for file in log.files()}
    if of_data > recorded or not {of_data.file, recorded.file} <= names.keys():
        return False
    begin, end = (LogPosition(names[place.file], place.offset) for place in (of_data, recorded))
    plan = log.start_of_file(begin.file_no)
    state = plan.state.copy()
    for group in groups_from(log, plan):
        if group.start >= end:
            break
        if group.start >= begin and any(event[TYPE_OFFSET] == EventType.XID for event in group_events(group)):
            return False
        if group.gtid is not None:
            state.log(group.gtid)
    return all(state.position() == position for position in gtids.values())


NAME = "ibbmaster"  # of the connection of the server to us, and of the lock that one restore has there
LISTEN = ("127.0.0.1", 0)
THREADS_MIN = 4
LOOK_S = 0.25
CONNECT_S = 15.0  # in which the server has to reach us
TIMEOUT_S = 24 * 3600  # STOP SLAVE waits for a transaction
TABLES = (
    "EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema NOT IN "
    "('mysql', 'sys', 'information_schema', 'performance_schema'))"
)
OnProgress = Callable[[int, int], object]


def restore(
    log: Log,
    into: str | None,
    *,
    until: str,
    before: bool = False,
    position: Position | None = None,
    backup: PathLike | None = None,
    skip: Sequence[str] = (),
    listen: tuple[str, int] = LISTEN,
    password: str = "",
    tls: Tls = "auto",
    ca: str | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> RestorePlan:
    """Bring a MariaDB server to the transaction or time `until`, or with `before` to the last one before it.

    `into` is `mysql://user@host:port` of a server that is empty or was restored from a backup; it replicates the log
    from `listen` with parallel threads, and is no replica afterwards. Where it is comes from the server or from
    `backup`, the directory of mariadb-backup or a dump; if they disagree, `position` decides. The transactions `skip`
    are left out, and keep their GTIDs. `password`, `tls` and `ca` are those of `follow`. `dry_run` changes nothing;
    then `into` may be None for a new server. `on_progress` hears how many transactions are done, of how many.

    Raises:
        ConfigurationError, GtidError: an option cannot be used.
        PositionError: a GTID is not in the log, or the log does not reach back to the position of the server.
        RestoreError: the server cannot be brought there, or stopped on the way: it is detached then.
        SourceError: the server cannot be reached, or refuses.
        StoreError, FormatError, ClassicFormatError: the log cannot be read.
    """
    with contextlib.nullcontext() if into is None else _connected(_address(into, password, tls, ca, listen)) as target:
        end, notes = end_of(log.engine, until, before=before)
        name, facts = ("a new server", TargetFacts()) if target is None else (str(target), target.facts())
        expect_usable(name, facts, log.state)
        if position is not None:
            start, source = as_position(position), "--position"
        else:
            said = {} if backup is None else backup_positions(Path(backup), log.engine)
            start, source = start_of(name, facts, said)
        plan = RestorePlan(name, start, source, end, tuple(map(Gtid.parse, skip)), notes)
        expect_between(plan, log.engine)
        if target is not None and not dry_run and (start != end or facts.slave_position != end):
            _replicate(log, plan, target, facts.server_id, listen, on_progress)
    return plan


def _address(into: str, password: str, tls: Tls, ca: str | None, listen: tuple[str, int]) -> PrimaryAddress:
    from .serving import is_loopback

    address, *others = primaries_of(into, SourceOptions(password=password, tls=tls, ca=ca), 0)
    if others:
        raise ConfigurationError(f"{into!r}: one server is restored at a time")
    if not address.is_socket and not is_loopback(address.host) and is_loopback(listen[0]):
        raise ConfigurationError(
            f"{address} may be another machine, which cannot reach {listen[0]} of this one: give --listen with an "
            "address of this machine that it reaches"
        )
    return address


@contextlib.contextmanager
def _connected(address: PrimaryAddress) -> Iterator[_Target]:
    try:
        with connected(address, timeout_s=TIMEOUT_S) as connection:
            yield _Target(address, connection)
    except SourceError as error:
        if code_of(error) not in DENIED:
            raise
        raise SourceError(
            f"{error}: give the password by --password-file or IBBMASTER_TARGET_PASSWORD; root of many systems logs in "
            "at the socket only, as mysql://root@%2Frun%2Fmysqld%2Fmysqld.sock"
        ) from error


class _Target:
    """The server that is restored."""

    def __init__(self, address: PrimaryAddress, connection: pymysql.Connection[Any]) -> None:
        self.address = address
        self._connection = connection

    def __str__(self) -> str:
        return str(self.address)

    def rows(self, statement: str, *arguments: object) -> list[dict[str, Any]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, arguments or None)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def value(self, expression: str, *arguments: object) -> Any:
        (row,) = self.rows(f"SELECT {expression} AS value", *arguments)
        return row["value"]

    def position(self, of: str = "slave") -> GtidPosition:
        return GtidPosition.parse(self.value(f"@@GLOBAL.gtid_{of}_pos"))

    def facts(self) -> TargetFacts:
        version = str(self.value("VERSION()"))
        if "MariaDB" not in version:  # it lacks the rest
            return TargetFacts(version)
        return TargetFacts(
            version=version,
            server_id=int(self.value("@@GLOBAL.server_id")),
            slave_position=self.position(),
            binlog_position=self.position("binlog"),
            binlog_state=tuple(GtidState.parse(self.value("@@GLOBAL.gtid_binlog_state"))),
            has_tables=bool(self.value(TABLES)),
            primaries=tuple(
                f"{one['Master_Host']}:{one['Master_Port']}"
                for one in self.rows("SHOW ALL SLAVES STATUS")
                if one["Connection_name"] != NAME and {one["Slave_IO_Running"], one["Slave_SQL_Running"]} != {"No"}
            ),
            skipped_errors=str(self.value("@@GLOBAL.slave_skip_errors")),
        )

    def status(self) -> dict[str, Any]:
        (row,) = self.rows(f"SHOW SLAVE '{NAME}' STATUS")
        return row

    def start(self, until: GtidPosition) -> None:
        self.rows(f"START SLAVE '{NAME}' UNTIL master_gtid_pos=%s", str(until))

    def stop(self) -> None:
        self.rows(f"STOP SLAVE '{NAME}'")

    def detach(self) -> None:
        """Does nothing if it does not follow us."""
        if any(one["Connection_name"] == NAME for one in self.rows("SHOW ALL SLAVES STATUS")):
            self.stop()
            self.rows(f"RESET SLAVE '{NAME}' ALL")


def _replicate(
    log: Log, plan: RestorePlan, target: _Target, server_id: int, listen: tuple[str, int], on_progress: OnProgress
) -> None:
    from .serving import is_loopback, serve

    if not target.value("GET_LOCK(%s, 0)", NAME):
        raise RestoreError(f"{target}: another restore is at work there")
    stages = [GtidFilter(frozenset(plan.skipped))] if plan.skipped else []
    part = StagedView(log, StagedLog(log.engine, stages))
    logged = {gtid.server_id for gtid in log.state}
    free = (number for number in itertools.count(2**31) if number not in {*logged, server_id})
    threads = max(THREADS_MIN, int(target.value("@@GLOBAL.slave_parallel_threads")))
    variables: dict[str, object] = {"slave_parallel_threads": threads, "slave_exec_mode": "STRICT"}
    if server_id in logged:  # a replica leaves out what a server with its own number has logged
        variables["server_id"] = next(free)
    host, port = listen
    user, password = secrets.token_hex(8), secrets.token_hex(20)
    tls: TlsChoice = "off" if is_loopback(host) else "auto"
    with (
        serve(part, host=host, port=port, user=user, password=password, tls=tls, server_id=next(free)) as primary,
        _attached(target, variables, primary),
    ):
        if target.position() != plan.start:
            target.rows("SET GLOBAL gtid_slave_pos=%s", str(plan.start))
        target.start(plan.end)
        _wait(part, plan, target, on_progress)
        target.stop()
        if (reached := target.position()) != plan.end:
            raise RestoreError(f"{target}: it is at [{reached}], and was to end at [{plan.end}]: others write there")


@contextlib.contextmanager
def _attached(target: _Target, variables: dict[str, object], primary: RunningPrimary) -> Iterator[None]:
    """Make a server our replica, with some variables, and detach it in the end, whatever comes."""
    before: dict[str, object] = {}
    try:
        target.detach()  # from a restore that was killed
        for name, value in variables.items():
            old = target.value(f"@@GLOBAL.{name}")
            target.rows(f"SET GLOBAL {name}=%s", value)
            before[name] = old
        target.rows(
            f"CHANGE MASTER '{NAME}' TO MASTER_HOST=%s, MASTER_PORT=%s, MASTER_USER=%s, MASTER_PASSWORD=%s, "
            "MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_SSL=%s, MASTER_SSL_VERIFY_SERVER_CERT=0",
            *(primary.host, primary.port, primary.user, primary.password, int(primary.options.certificate is not None)),
        )
        filters = [f"{name}={value}" for name, value in target.status().items() if name[:10] == "Replicate_" and value]
        if filters:
            raise RestoreError(f"{target}: it leaves out a part of what it replicates: {', '.join(filters)}")
        yield
    finally:
        with _connected(target.address) as fresh:  # the other connection may have broken off inside an answer
            fresh.detach()
            for name, value in before.items():
                fresh.rows(f"SET GLOBAL {name}=%s", value)


def _wait(part: Log, plan: RestorePlan, target: _Target, on_progress: OnProgress) -> None:
    """Wait for the end. After an error the rest is applied one by one: then the first transaction that is missing is
    that of the error. Raises RestoreError: it stops before."""
    is_serial = False
    last_seen = time.monotonic()
    while target.value("MASTER_GTID_WAIT(%s, %s)", str(plan.end), LOOK_S) != 0:
        status, position = target.status(), target.position()
        on_progress(plan.done(position), plan.done(plan.end))
        if status["Slave_IO_Running"] == "Yes":
            last_seen = time.monotonic()
        if status["Last_SQL_Errno"] and is_serial:
            failed = next(part.groups(after=position)).gtid
            raise RestoreError(
                f"{target}: {failed}: {status['Last_SQL_Error']}. It is at [{position}], and no replica any more: put "
                f"it right there, or leave it out with --skip {failed}, and go on with --position {position}"
            )
        if status["Last_SQL_Errno"]:
            is_serial = True
            target.stop()
            target.rows("SET GLOBAL slave_parallel_threads=0")
            target.start(plan.end)
        elif status["Slave_SQL_Running"] == "No" and position != plan.end:
            raise RestoreError(f"{target}: replication was stopped there at [{position}]")
        elif status["Last_IO_Errno"] and (
            status["Slave_IO_Running"] == "No" or time.monotonic() > last_seen + CONNECT_S
        ):
            raise RestoreError(f"{target}: {status['Last_IO_Error']}. It is at [{position}], and no replica any more")
