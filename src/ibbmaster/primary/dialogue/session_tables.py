"""Where in the log one session sees the tables, and which of them it can name there: protocol/wire/sql.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ibbmaster.errors import DuplicateDomainError, GtidError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.replication.wire.refusal import NOT_SUPPORTED, RefusedError, not_supported
from ibbmaster.sqltext.expression import GivenTable, SqlQuery
from ibbmaster.sqltext.token import UnreadSqlError
from . import privileges
from .evaluating import Evaluator
from .information_schema import Catalog
from .relation import Relation, text_of
from .settings import UserVariables
from .statement import Select

if TYPE_CHECKING:  # loaded when a statement asks for tables
    from ibbmaster.replication.wire.response import BlockResultSet, ColumnDefinition
    from ibbmaster.schema.model import TableVersion
    from .log_tables import LogSnapshot, ServerFacts, TableQuery
    from .session_schema import SessionSchema


POSITION_VARIABLE = "ibb_position"
Answer = TypeVar("Answer")


class SessionPosition:
    def __init__(self, facts: ServerFacts, variables: UserVariables) -> None:
        self._facts = facts
        self._tables = facts.tables
        self._variables = variables
        self._locked: LogSnapshot | None = None
        self._of_transaction: LogSnapshot | None = None
        self._chosen: tuple[str, LogSnapshot] | None = None  # the text it was chosen by

    @property
    def stopped(self) -> LogSnapshot | None:
        """Where the session stopped; None: at the end of the log. Raises RefusedError: the log has no place
        `@ibb_position`."""
        value = self._variables.get(POSITION_VARIABLE)
        text = "" if value is None else text_of(value).strip()
        if not text:
            self._chosen = None
            return self._of_transaction or self._locked
        if self._chosen is None or self._chosen[0] != text:
            self._chosen = text, self._tables.snapshot_at(_parse(text))
        return self._chosen[1]

    def snapshot(self) -> LogSnapshot:
        return self.stopped or self._tables.newest()

    def state(self) -> GtidState:
        stopped = self.stopped
        return self._facts.binlog_state() if stopped is None else stopped.state

    def end(self) -> tuple[str, int]:
        stopped = self.stopped
        return self._facts.binlog_end() if stopped is None else (stopped.file_name, stopped.end.offset)

    def lock(self) -> None:
        """LOCK TABLES … READ, FLUSH TABLES WITH READ LOCK: stop until UNLOCK TABLES; a transaction ends."""
        self._of_transaction = None
        self._locked = self._tables.newest()

    def unlock(self) -> None:
        """UNLOCK TABLES: a transaction that has begun since stays where it is."""
        self._locked = None

    def begin(self, *, has_snapshot: bool) -> None:
        """BEGIN, or START TRANSACTION: with a consistent snapshot, or under a lock, stop until its end."""
        self._of_transaction = self._locked or (self._tables.newest() if has_snapshot else None)

    def end_transaction(self) -> None:
        self._of_transaction = None


class SessionTables:
    catalog: Catalog

    def __init__(
        self, facts: ServerFacts, evaluator: Evaluator, position: SessionPosition, held: Callable[[], frozenset[str]]
    ) -> None:
        self._facts = facts
        self._evaluator = evaluator
        self._position = position
        self._held = held
        self._snapshot: LogSnapshot | None = None  # of the query that is answered; kept, it would freeze rows
        self._seen: SessionSchema | None = None  # by the statement that is carried out
        self._last_seen: SessionSchema | None = None

    def begin_statement(self) -> None:
        self._seen = None

    def schema(self) -> SessionSchema:
        """At the session's place: the same throughout a statement."""
        if self._seen is None:
            from .session_schema import SessionSchema, own_databases

            catalog = self._facts.tables.catalog(self._snapshot or self._position.snapshot())
            last = self._last_seen
            if last is None or not last.is_of(catalog, self._held()):
                last = SessionSchema(catalog, self._held(), own_databases(self._evaluator.settings))
            self._seen = self._last_seen = last
        return self._seen

    def answer(self, select: Select, *, is_binary: bool) -> Relation | BlockResultSet:
        """Raises RefusedError: it names what does not exist, or a server's answer is not known; SqlError: it makes no
        sense.
        """
        return self._asked(select, self._facts.tables.compute, is_binary=is_binary)

    def columns(self, select: Select) -> tuple[ColumnDefinition, ...]:
        return self._asked(select, self._facts.tables.computed_columns, is_binary=True)

    def _asked(self, select: Select, ask: Callable[[TableQuery], Answer], *, is_binary: bool) -> Answer:
        """Look from one place; a refusal says where its rows are."""
        of_log: list[TableVersion] = []

        def find(table: GivenTable) -> Relation | TableVersion:
            found = self.find(table)
            if not isinstance(found, Relation):
                of_log.append(found)
            return found

        self._snapshot = self._position.snapshot()
        try:
            if select.query is not None:
                return ask(self._query(select, select.query, find, is_binary=is_binary))
            for table in select.tables:
                find(table)
            assert select.problem is not None
            raise not_supported(select.problem.what) if isinstance(select.problem, UnreadSqlError) else select.problem
        except RefusedError as refused:
            if refused.err.code != NOT_SUPPORTED or not of_log:
                raise
            name = of_log[0].full_name
            text = f'{refused.err.text}; its rows: log.snapshot("{name}", at=…), and DuckDB (docs/arrow.md)'
            raise RefusedError(NOT_SUPPORTED, refused.err.sqlstate, text) from None
        finally:
            self._snapshot = None

    def _query(
        self, select: Select, query: SqlQuery, find: Callable[[GivenTable], object], *, is_binary: bool
    ) -> TableQuery:
        from .log_tables import TableQuery

        settings = self._evaluator.settings
        charset = settings.value("character_set_results")
        session = self._evaluator.query_session(
            None if charset is None else str(charset), settings.results_collation_number, is_binary=is_binary
        )
        assert self._snapshot is not None
        return TableQuery(snapshot=self._snapshot, query=query, sql_mode=select.sql_mode, find=find, session=session)

    def find(self, table: GivenTable) -> Relation | TableVersion:
        """A table that exists. Raises RefusedError: it does not, or the account may not read it."""
        database, name = self._evaluator.who.located(table)
        found = self.catalog.find(database, name)
        if database.lower() == "information_schema" and found is None:
            raise RefusedError(1109, "42S02", f"Unknown table '{name}' in information_schema")
        if database.lower() != "information_schema" and privileges.SELECT not in self._held():
            who = self._evaluator.who
            text = f"SELECT command denied to user '{who.user}'@'{who.host}' for table `{database}`.`{name}`"
            raise RefusedError(1142, "42000", text)
        return self.schema().table(database, name) if found is None else found


def _parse(text: str) -> GtidPosition:
    try:
        return GtidPosition.parse(text)
    except DuplicateDomainError as error:
        raise RefusedError(1943, "HY000", f"@{POSITION_VARIABLE}: {error}") from None
    except GtidError as error:
        raise RefusedError(1941, "HY000", f"@{POSITION_VARIABLE}: {error}") from None
