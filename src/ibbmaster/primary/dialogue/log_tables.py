"""What a session asks of the primary around it, and of the tables whose changes the log holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.profile import Profile

if TYPE_CHECKING:  # a replica's session needs none of these
    from ibbmaster.replication.wire.response import BlockResultSet, ColumnDefinition
    from ibbmaster.rows.expr.session_facts import QuerySession
    from ibbmaster.schema.catalog import SchemaCatalog
    from ibbmaster.sqltext.expression import GivenTable, SqlQuery
    from .relation import Relation


UNKNOWN_SCHEMA = 1105  # the code of errors about tables whose columns are not known


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class LogSnapshot:
    """A place between the groups of a log: a session sees what is before it. `end`: the first byte behind the last
    group; `state`: what was logged up to there, which nobody changes. What readers of tables keep for a snapshot goes
    with it.
    """

    end: LogPosition
    file_name: str
    state: GtidState

    @property
    def position(self) -> GtidPosition:
        """The position from which a replica that has seen the same asks."""
        return self.state.position()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    snapshot: LogSnapshot
    query: SqlQuery
    sql_mode: int  # it was read under
    find: Callable[[GivenTable], object]  # gives a table that it names, as its rows or as one of the log
    session: QuerySession


class LogTables(Protocol):
    """The tables of a log. Called from worker threads; any call may read the disk. Raises RefusedError: what is asked
    for is not known; IbbMasterError: the log cannot be read."""

    def name_case(self) -> int:
        """`lower_case_table_names` of the server of the log."""

    def newest(self) -> LogSnapshot:
        """Everything durable."""

    def snapshot_at(self, position: GtidPosition) -> LogSnapshot:
        """The place behind the last of these GTIDs, all of which must be in the log."""

    def catalog(self, snapshot: LogSnapshot) -> SchemaCatalog: ...

    def compute(self, query: TableQuery) -> Relation | BlockResultSet: ...

    def computed_columns(self, query: TableQuery) -> tuple[ColumnDefinition, ...]: ...


class ServerFacts(Protocol):
    """The primary around a session; its methods may read the disk."""

    server_id: int
    server_version: str
    profile: Profile

    @property
    def tables(self) -> LogTables: ...

    def binlog_state(self) -> GtidState: ...

    def binlog_end(self) -> tuple[str, int]: ...

    def binary_logs(self) -> list[tuple[str, int]]:
        """Name and size in bytes of every file, the oldest first."""

    def binlog_events(self, file_name: str | None, offset: int) -> Iterator[BinlogEventRow]:
        """The events of a file, the oldest one without a name, from the first group at or after `offset`. Raises
        KeyError: there is no such file."""

    def gtid_position_at(self, file_name: str, offset: int) -> str | None:
        """The GTID position of a replica at any byte of a file; the first file is ''. None: there is no such place."""

    def replica_hosts(self) -> list[tuple[int, str, int]]:
        """Server id, host and port of every registered replica."""

    def processes(self) -> list[ProcessRow]: ...

    def unix_timestamp(self) -> float: ...

    def status(self) -> Mapping[str, int]:
        """Counts over all connections, by name in SHOW STATUS."""

    def without_paths(self, text: str) -> str:
        """An error for clients on other machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogEventRow:
    """Of SHOW BINLOG EVENTS; in an engine binlog both positions are 0."""

    file_name: str
    event_type: str
    server_id: int
    info: str
    position: int = 0
    end_position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    connection_id: int
    user: str
    host: str
    command: str
    seconds: int
    state: str
    info: str | None = None  # of a dump: how far it is
