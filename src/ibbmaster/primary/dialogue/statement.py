"""The SQL statements that replicas, CDC clients and operators send to a primary, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ibbmaster.replication.wire.response import Ok, Response
from ibbmaster.sqltext.expression import Expression, GivenTable, Item, SqlQuery, SystemVariable, UserVariable

if TYPE_CHECKING:
    from ibbmaster.sqltext.token import SqlError


@dataclass(frozen=True, slots=True)
class Select:
    query: SqlQuery | None  # None where its form is unknown; `problem` says why, and `tables` what it names
    tables: tuple[GivenTable, ...] = ()
    sql_mode: int = field(default=0, compare=False)  # it was read under
    problem: SqlError | None = field(default=None, compare=False)

    @property
    def values(self) -> tuple[Item, ...] | None:
        """Its items, if there is nothing else."""
        query = self.query
        if query is None or query.source or query.where or query.group_by or query.having or query.order_by:
            return None
        return query.items


@dataclass(frozen=True, slots=True)
class Unread:
    verb: str
    tables: tuple[GivenTable, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    target: UserVariable | SystemVariable
    value: Expression


@dataclass(frozen=True, slots=True)
class CharsetAssignment:
    """SET NAMES, or with `is_names` False SET CHARACTER SET; `charset` None is DEFAULT."""

    charset: str | None
    collation: str | None = None
    is_names: bool = True


AnyAssignment: TypeAlias = Assignment | CharsetAssignment


@dataclass(frozen=True, slots=True)
class Set:
    assignments: tuple[AnyAssignment, ...]


@dataclass(frozen=True, slots=True)
class SetStatement:
    assignments: tuple[Assignment, ...]
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    what: str
    scope: str = ""  # 'global', 'session' or ''
    is_full: bool = False
    table: GivenTable | None = None  # or another thing that has a name
    database: str | None = None
    pattern: str | None = None
    where: Expression | None = None
    file_name: str | None = None
    offset: int | None = None
    limit: tuple[int, int | None] | None = None  # rows to leave out, rows to show
    user: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    database: str


@dataclass(frozen=True, slots=True)
class Transaction:
    verb: str
    has_snapshot: bool = False  # WITH CONSISTENT SNAPSHOT


@dataclass(frozen=True, slots=True)
class Savepoint:
    verb: str
    name: str


@dataclass(frozen=True, slots=True)
class LockTables:
    """LOCK TABLES, UNLOCK TABLES (no tables), FLUSH TABLES (`privilege` RELOAD); `writes`: a WRITE lock. `stops`: later
    statements see what is there now."""

    tables: tuple[GivenTable, ...]
    privilege: str | None
    writes: bool = False
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """Comments, or without effect."""


@dataclass(frozen=True, slots=True)
class Administration:
    """CHANGE MASTER, INSERT and so on: refused."""

    verb: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """KILL [CONNECTION|QUERY] n: the driver ends another connection, or its statement, and the client gets `answer`."""

    connection_id: int
    query_only: bool
    answer: Response = field(default_factory=Ok)


@dataclass(frozen=True, slots=True)
class PurgeLogs:
    """PURGE BINARY LOGS; `before` is an expression until a session computes it, in seconds since 1970."""

    to: str | None = None
    before: Expression | float | None = None


@dataclass(frozen=True, slots=True)
class FlushLogs:
    """FLUSH BINARY LOGS, with domains for DELETE_DOMAIN_ID."""

    domain_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ResetLog:
    """RESET MASTER."""


@dataclass(frozen=True, slots=True)
class SetState:
    """SET GLOBAL gtid_binlog_state."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Shutdown:
    """SHUTDOWN; with `waits` FOR ALL REPLICAS."""

    waits: bool = False


Administrative: TypeAlias = PurgeLogs | FlushLogs | ResetLog | SetState | Shutdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The driver carries this out in a worker thread, and `Dialog.acted` answers; `has_more`: other statements
    follow."""

    what: Administrative
    has_more: bool = False


#: What a statement yields: what to send, or to do before that.
Answer: TypeAlias = Response | Kill | Act
_Settings: TypeAlias = Set | SetStatement | Use | Transaction | Savepoint | LockTables
Statement: TypeAlias = Select | Unread | Show | _Settings | Kill | Nothing | Administration | Administrative
