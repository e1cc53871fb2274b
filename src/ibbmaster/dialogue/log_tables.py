"""What a session asks of the tables whose changes the log holds, and where in the log it sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ibbmaster.dialogue.variables import NamedTables, ServerFacts
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.position import LogPosition

if TYPE_CHECKING:  # a replica's session needs none of these
    from ibbmaster.dialogue.evaluating import Evaluator
    from ibbmaster.dialogue.relation import Relation
    from ibbmaster.schema.catalog import SchemaCatalog
    from ibbmaster.sqltext.expression import Expression
    from ibbmaster.sqltext.literals import Value
    from ibbmaster.sqltext.query_tree import GivenTable, Query
    from ibbmaster.wire.response import BlockResultSet, ColumnDefinition


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class LogSnapshot:
    """One place between the groups of a log: what is before it is seen, and nothing else.

    Who reads tables may keep what belongs to a snapshot for as long as somebody holds it.

    `end` is the first byte behind the last group, `state` what was logged up to there; nobody changes it.
    """

    end: LogPosition
    file_name: str
    state: GtidState

    @property
    def position(self) -> GtidPosition:
        """What a replica that has seen the same would ask from."""
        return self.state.position()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One query of a session."""

    snapshot: LogSnapshot
    query: Query
    sql_mode: int  # what it was read under
    find: Callable[[GivenTable], object]  # gives a table that it names, as its rows or as one of the log
    evaluator: Evaluator
    text_charset: str | None  # what texts are sent in; None and `binary` send them as they are stored
    text_collation_id: int  # the number columns of texts get; they have their own where `text_charset` is None
    is_binary: bool  # the rows of a prepared statement are wanted
    version: int  # of the server that is emulated: 101119, 120302


class LogTables(NamedTables, Protocol):
    """The tables of a log. Called from worker threads; any call may read the disk. Raises RefusedError: what is asked
    for is not known, with the reason; IbbMasterError: the log cannot be read."""

    def newest(self) -> LogSnapshot:
        """Everything that is durable."""

    def snapshot_at(self, position: GtidPosition) -> LogSnapshot:
        """The place behind the last of these GTIDs, all of which must be in the log."""

    def catalog(self, snapshot: LogSnapshot) -> SchemaCatalog:
        """Databases and tables as they are there."""

    def compute(self, query: TableQuery) -> Relation | BlockResultSet:
        """The rows of a query."""

    def computed_columns(self, query: TableQuery) -> tuple[ColumnDefinition, ...]:
        """The columns that `compute` would give; no row is read."""

    def constant_value(self, expression: Expression, session: Evaluator, version: int) -> Value:
        """The value of an expression that names no column."""

    def row_condition(
        self, expression: Expression, columns: Sequence[ColumnDefinition], session: Evaluator, version: int
    ) -> Callable[[Sequence[Value]], bool | None]:
        """Whether a row of these columns meets a condition."""


class LogFacts(ServerFacts, Protocol):
    """What the conversation needs to know of a primary and of the tables of its log."""

    @property
    def tables(self) -> LogTables:
        """The tables of the log."""
