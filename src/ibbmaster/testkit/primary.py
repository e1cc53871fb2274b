"""A primary for a test: it writes what the test says, serves it, and reports what its replicas did."""

from __future__ import annotations

import functools
import importlib
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack, cast

import sniffio

from ibbmaster.api.serving import TLS_CHOICES, RunningPrimary, check_options, serve_checked
from ibbmaster.api.serving_options import PlainServingOptions, TlsChoice
from ibbmaster.api.writing import WritableLog, as_gtid
from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.primary.server.registry import Registry
from ibbmaster.replication.dump.profile import Profile
from ibbmaster.replication.event.gtid_event import GtidExtraFlag
from ibbmaster.replication.event.rows.encoding import RowImage, RowMetadata
from ibbmaster.replication.event.statement.logged import decode_statement
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.codec.printable import address
from .certificates import CERTIFICATES, authority_pem, made_certificate
from .classic_files import ClassicFiles
from .clock import FixtureClock
from .fault import PlannedFault
from .fault_stage import Faults
from .fixture_logs import expect_sound, fixture_log
from .incident import Incidents
from .query_events import is_new
from .tables import FixtureTable, RowFormat
from .transactions import FixtureWriter, GtidOptions, WrittenStatement
from .witness import POLL_S, SeenConnection, Witness

#: Version in scenarios -> the profile of its streams, and the version it claims.
VERSIONS: dict[str, tuple[str, str]] = {
    "10.6": ("classic-10.11", "10.6.22-MariaDB-log"),
    "10.11": ("classic-10.11", "10.11.19-MariaDB-log"),
    "11.4": ("classic-11.8", "11.4.7-MariaDB-log"),
    "11.8": ("classic-11.8", "11.8.6-MariaDB-log"),
    "12.3": ("engine", "12.3.2-MariaDB-log"),
}
FIRST_TABLE_ID = 18  # of a server that was just started
WAIT_S = 10.0
Replica = SeenConnection | int | str  # or all of a server id or of a user
Returned = TypeVar("Returned")


class FixturePrimary(FixtureWriter):
    """A primary of a test. As a context it serves, and verifies its log at the end.

    Attributes:
        log: the log it writes.
        clock: the time in that log, which the test moves.
        format: how its rows are written; may change between two statements.
    """

    def __init__(
        self,
        log: WritableLog | Path | str | None = None,
        *,
        domain: int = 0,
        clock: FixtureClock | None = None,
        image: RowImage | str = RowImage.FULL,
        metadata: RowMetadata | str = RowMetadata.FULL,
        is_compressed: bool = False,
        fragment_bytes: int | None = None,
        faults: Faults | None = None,
        tls: str = "off",
        **serving: Unpack[PlainServingOptions],
    ) -> None:
        """Prepare a primary for an existing log, or a new one at a path, or a temporary one. `serving` are the options
        of `ibbmaster.serve`; `profile` may be a version, as "10.6", and `tls` one of `CERTIFICATES`: "expired",
        "wrong-host", ... Raises ConfigurationError: an option cannot be used."""
        serving = {**version_options(serving.pop("profile", None)), **serving}
        if tls not in (*TLS_CHOICES, *CERTIFICATES):
            raise ConfigurationError(f"tls {tls!r}: expected one of {', '.join((*TLS_CHOICES, *CERTIFICATES))}")
        certificate = made_certificate(tls) if tls in CERTIFICATES else None
        checked = check_options(**serving, tls="off" if certificate else cast(TlsChoice, tls))
        format = replace(_row_format(image, metadata, is_compressed), fragment_bytes=fragment_bytes)
        self._scratch = tempfile.mkdtemp(prefix="ibbmaster-fixture-") if log is None else None
        self._is_own = not isinstance(log, WritableLog)
        given = checked.primary
        own = log if isinstance(log, WritableLog) else fixture_log(Path(log or self._scratch or ""))
        super().__init__(
            own,
            clock or FixtureClock(),
            writes_as=given.server_id,
            domain=domain,
            format=format,
            has_prepared_groups=given.profile.storage_engine is None,
            is_new=is_new(given.profile.server_version),
            history=LoggedSchema(own.engine).history() if own.position else SchemaHistory(),
        )
        self.faults = faults or Faults()
        self._incidents = Incidents(self, self.faults.set_down)
        self.faults.attach(self._incidents)
        self.witness = Witness(self.clock, self.faults)
        primary = replace(given, has_kernels=False, observer=self.witness, stages=self.witness.stages)
        if certificate is not None:
            primary = replace(primary, certificate=certificate)
        self._authority_file: Path | None = None
        self._checked = replace(checked, primary=primary)
        self._tables: list[FixtureTable] = []
        self._table_id = FIRST_TABLE_ID - 1
        self._live: list[ClassicFiles] = []  # that follow the log
        self._running: RunningPrimary | None = None

    def __repr__(self) -> str:
        where = "stopped" if self._running is None else f"on {address(self.host, self.port)}"
        return f"<FixturePrimary of {self.log.path}, {where}>"

    # Serving

    def start(self) -> Self:
        """Serve, after a stop on the same port. Raises ConfigurationError: the address cannot be listened on."""
        if self._running is None:
            for files in self._live:
                files.follow(self.log)  # it may have been recovered
            self._running = serve_checked(self.log, self._checked)
            self._checked = replace(self._checked, primary=replace(self._checked.primary, port=self._running.port))
        return self

    def stop(self) -> None:
        """End every dump with its last packet and stop listening; the log stays as it is."""
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def become(
        self, *, profile: str | None = None, log: WritableLog | None = None, server_id: int | None = None
    ) -> None:
        """Be another kind of server, or serve another log, from the next start on. Raises ConfigurationError: there is
        no such profile."""
        given = self._checked.primary
        if profile is not None:
            given = replace(given, profile=profile_of(profile))
            self.is_new = is_new(given.profile.server_version)
        if server_id is not None:
            given = replace(given, server_id=server_id)
        if log is not None:
            self._end_live()
            if self._is_own:
                self.log.close()
            self.log = log
            self._is_own = False
        self._checked = replace(self._checked, primary=given, has_profile=True, has_version=True)

    def end_incidents(self) -> None:
        """Let nothing more happen to the whole primary, and wait for nothing."""
        self._incidents.end()

    def fault(self, place: str, **given: object) -> PlannedFault:
        """Plan a fault: `fault("after gtid", action="cut", gtid="0-1-7")`. Raises ConfigurationError: a key or a
        value means nothing."""
        return self.faults.add(place, **given)

    def close(self) -> None:
        """Stop, and close a log of its own; a second call does nothing."""
        self._incidents.end()
        self.stop()
        self._end_live()
        self._incidents.clean_up()
        if self._is_own:
            self.log.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self._authority_file is not None:
            self._authority_file.unlink(missing_ok=True)

    def _end_live(self) -> None:
        while self._live:
            self._live.pop().close()

    def verify(self) -> None:
        """Raises AssertionError: the log is damaged; the text names the first fault."""
        expect_sound(self.log)

    def in_loop(self, function: Callable[[Registry], Returned]) -> Returned:
        """Call a function with the registry of connections in the event loop that serves. Raises ConfigurationError:
        nothing is served."""
        return self._served.in_loop(function)

    @property
    def _served(self) -> RunningPrimary:
        if self._running is None:
            raise ConfigurationError("the primary does not serve: use it as a context, or start() it")
        return self._running

    @property
    def host(self) -> str:
        return self._checked.primary.host

    @property
    def port(self) -> int:
        """Its port, also while it is stopped; 0 before it first serves."""
        return self._checked.primary.port

    @property
    def user(self) -> str:
        return self._checked.primary.account.user

    @property
    def password(self) -> str:
        return self._checked.password

    @property
    def dsn(self) -> str:
        """`mysql://user:password@host:port/`."""
        return self._served.dsn

    @property
    def authority_file(self) -> Path:
        """The file for `--ssl-ca` of a client: the authority that signed a "trusted" certificate."""
        if self._authority_file is None:
            with tempfile.NamedTemporaryFile(prefix="ibbmaster-", suffix=".pem", delete=False) as file:
                file.write(authority_pem())
            self._authority_file = Path(file.name)
        return self._authority_file

    @property
    def server_id(self) -> int:
        return self._checked.primary.server_id

    @property
    def server_version(self) -> str:
        return self._checked.primary.profile.server_version

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._incidents.end()
        try:
            self.stop()
            if error is None and self._is_own:
                self.verify()
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)  # some milliseconds

    # Writing

    def table(self, table_name: str, /, **columns: str) -> FixtureTable:
        """A table by its name, `database.table`; with columns, as `id="bigint unsigned primary key"`, it is created
        first. `ddl` creates any other table. Raises ConfigurationError: it exists already, or does not, or cannot be
        written."""
        table = parse_table_name(table_name)
        if columns:
            if self.history.case.table_key(*table) in self.history.at().tables:
                raise ConfigurationError(f"there is a table {table} already: ask for it without columns")
            declared = ", ".join(f"{quoted_name(column)} {text}" for column, text in columns.items())
            if table.database not in self.history.at().databases:
                self.ddl(f"CREATE DATABASE IF NOT EXISTS {quoted_name(table.database)}")
            self.ddl(f"CREATE TABLE {table.sql} ({declared}) CHARSET utf8mb4 COLLATE utf8mb4_general_ci")
        for known in self._tables:
            if known.name == str(table):
                return known
        found = FixtureTable(str(table), self.clock, self.taking)
        self._follow(found)
        found.expect_known()
        self._tables.append(found)
        return found

    def ddl(self, sql: str, *, database: str = "", **options: Unpack[GtidOptions]) -> Gtid:
        """Log a statement that is a group by itself; tables follow it. Raises ConfigurationError: it changes rows, or a
        table has become one whose rows cannot be written; GtidOrderError: its GTID is not newer than those of its
        domain."""
        return self._take_effect(self._log_ddl(sql, database, options))

    def commit_alter(self, started: Gtid | str, **options: Unpack[GtidOptions]) -> Gtid:
        """Log COMMIT ALTER for the START of that GTID; tables follow it. Raises ConfigurationError: there is no such
        START."""
        return self._take_effect(self._end_alter(started, GtidExtraFlag.COMMIT_ALTER, options))

    def _take_effect(self, logged: WrittenStatement) -> Gtid:
        place = SchemaPlace(logged.position, 1)
        self.history.add(place, str(logged.gtid), self.clock.timestamp, decode_statement(logged.query))
        for table in self._tables:
            self._follow(table)
        return logged.gtid

    def save_classic(self, directory: Path | str, *, is_live: bool = False) -> list[Path]:
        """Write the log as traditional files of the server that `profile` names; returns their paths.

        With `is_live` each further group is in them before its commit returns, until this closes or serves another log;
        `log.flush()` begins a file. Raises ConfigurationError: that server has no such files, or the directory exists.
        """
        profile = self._checked.primary.profile
        files = ClassicFiles(self.log, Path(directory), profile, server_id=self.server_id, clock=self.clock)
        if is_live:
            files.follow(self.log)
            self._live.append(files)
        else:
            files.close()
        return files.paths

    def _follow(self, handle: FixtureTable) -> None:
        found, old = self.history.table_at(*parse_table_name(handle.name)), handle.known
        if old is not None and (not isinstance(found, TableVersion) or found.generation != old.generation):
            tables = self.history.at().tables.values()
            same = (one for one in tables if isinstance(one, TableVersion) and one.generation == old.generation)
            found = next(same, found)  # it was renamed
        if found is old:
            return
        if not isinstance(found, TableVersion):
            handle.end(f"table {handle.name}: {found.reason}" if found else f"there is no table {handle.name}")
            return
        self._table_id += 1
        try:
            handle.become(found, self._table_id)
        except ConfigurationError as error:
            handle.end(str(error))

    # Asking

    @property
    def connections(self) -> list[SeenConnection]:
        """Every client that has connected, in order, also those that left."""
        return list(self.witness.connections)

    def wait_for(self, replica: Replica, gtid: Gtid | str | None = None, timeout: float = WAIT_S) -> None:
        """Wait until a replica has a group, or everything that is logged now: its system has acknowledged it, or under
        TLS it was sent. Raises TimeoutError: it has not, in `timeout` seconds; the text says what it was doing."""
        for one in self._wanted(gtid):
            if not self.witness.wait(functools.partial(self.witness.has, replica, one), timeout):
                raise self._late(replica, one, timeout)

    async def arrival(self, replica: Replica, gtid: Gtid | str | None = None, timeout: float = WAIT_S) -> None:
        sleep = importlib.import_module(sniffio.current_async_library()).sleep
        deadline = time.monotonic() + timeout
        for one in self._wanted(gtid):
            while not self.witness.has(replica, one):
                if time.monotonic() > deadline:
                    raise self._late(replica, one, timeout)
                await sleep(POLL_S)

    def _wanted(self, gtid: Gtid | str | None) -> list[Gtid]:
        return list(self.log.position.values()) if gtid is None else [as_gtid(gtid)]

    def _late(self, replica: Replica, gtid: Gtid, timeout: float) -> TimeoutError:
        return TimeoutError(f"{replica} has not got {gtid} within {timeout:g} s: {self.witness.told(replica)}")


def _row_format(image: RowImage | str, metadata: RowMetadata | str, is_compressed: bool) -> RowFormat:
    try:
        return RowFormat(image=RowImage(image), metadata=RowMetadata(metadata), is_compressed=is_compressed)
    except ValueError as error:
        choices = ", ".join(member.value for member in (*RowImage, *RowMetadata))
        raise ConfigurationError(f"{error}: an image or metadata is one of {choices}") from None


def profile_of(name: str) -> Profile:
    """The profile of a version, or of that name. Raises ConfigurationError: there is none."""
    return check_options(**version_options(name), tls="off").primary.profile


def version_options(name: str | None) -> PlainServingOptions:
    """The options for one of `VERSIONS`, or for a profile by its name; None: for the default one."""
    if name not in VERSIONS:
        return {} if name is None else {"profile": name}
    profile, server_version = VERSIONS[name]
    return {"profile": profile, "server_version": server_version} if profile != "engine" else {"profile": profile}
