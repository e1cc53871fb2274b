"""The tables that one session can name, where it is in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.information_schema import Catalog
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.session_position import SessionPosition
from ibbmaster.dialogue.statement import GivenTable, Select, Unread
from ibbmaster.dialogue.variables import version_number

if TYPE_CHECKING:  # loaded when a statement asks for tables
    from ibbmaster.dialogue.log_tables import AnyQuery, LogFacts, TableQuery
    from ibbmaster.dialogue.session_schema import SessionSchema
    from ibbmaster.dialogue.table_queries import FoundTable
    from ibbmaster.wire.response import ColumnDefinition

#: Errors of who answers the plain forms that another form may be the reason for: not supported, unknown column
#: or function.
OF_THE_FORM = frozenset((1235, 1054, 1305))


class SessionTables:
    """Finds tables, and answers queries over those that every server has. `catalog` are these."""

    catalog: Catalog

    def __init__(
        self,
        facts: LogFacts,
        evaluator: Evaluator,
        position: SessionPosition,
        held: Callable[[], frozenset[str]],
    ) -> None:
        """`held` are the session's privileges."""
        self._facts = facts
        self._evaluator = evaluator
        self._position = position
        self._held = held
        self._seen: SessionSchema | None = None  # by the statement that is carried out
        self._last_seen: SessionSchema | None = None

    def begin_statement(self) -> None:
        """Look anew where the session is."""
        self._seen = None

    def schema(self) -> SessionSchema:
        """Databases and tables where the session is: the same throughout a statement."""
        if self._seen is None:
            from ibbmaster.dialogue.session_schema import SessionSchema, own_databases

            catalog = self._facts.tables.catalog(self._position.snapshot())
            last = self._last_seen
            if last is None or not last.is_of(catalog, self._held()):
                last = SessionSchema(catalog, self._held(), own_databases(self._evaluator.settings))
            self._seen = self._last_seen = last
        return self._seen

    def answer(self, query: Select | Unread, *, is_binary: bool) -> Relation | TableQuery:
        """The rows of a query, or what is to be asked of the log where it is about a table of a user.

        Raises:
            RefusedError: it names what does not exist, or is of a kind that is not answered here.
        """
        from ibbmaster.dialogue.table_queries import TableQuerying

        querying = TableQuerying(self._evaluator, self.find, version_number(self._facts))
        try:
            found = querying.read(query, self._position.snapshot, is_binary=is_binary)
        except RefusedError as refused:
            if refused.err.code not in OF_THE_FORM:
                raise
            found = None
        return self.computed(query, is_binary=is_binary) if found is None else found

    def computed(self, query: Select | Unread, *, is_binary: bool) -> Relation:
        """The rows of a query in any form.

        Raises:
            RefusedError: it is not answered as a server would.
        """
        return self._facts.tables.compute(self._any_query(query, is_binary=is_binary))

    def computed_columns(self, query: Select | Unread) -> tuple[ColumnDefinition, ...]:
        """The columns that `computed` gives."""
        return self._facts.tables.computed_columns(self._any_query(query, is_binary=True))

    def _any_query(self, query: Select | Unread, *, is_binary: bool) -> AnyQuery:
        from ibbmaster.dialogue.log_tables import AnyQuery
        from ibbmaster.dialogue.table_queries import results_charset

        assert query.source is not None
        charset = results_charset(self._evaluator.settings)
        return AnyQuery(
            snapshot=self._position.snapshot(),
            tokens=query.source.tokens,
            find=self.find,
            evaluator=self._evaluator,
            text_charset=charset,
            text_collation_id=self._evaluator.settings.results_collation_number,
            is_binary=is_binary,
            version=version_number(self._facts),
        )

    def find(self, table: GivenTable) -> FoundTable:
        """A table that exists.

        Raises:
            RefusedError: it does not, or the account may not read it.
        """
        database, name = self._evaluator.who.located(table)
        found = self.catalog.find(database, name)
        if database.lower() == "information_schema" and found is None:
            raise RefusedError(1109, "42S02", f"Unknown table '{name}' in information_schema")
        if database.lower() != "information_schema" and privileges.SELECT not in self._held():
            who = self._evaluator.who
            text = f"SELECT command denied to user '{who.user}'@'{who.host}' for table `{database}`.`{name}`"
            raise RefusedError(1142, "42000", text)
        return self.schema().table(database, name) if found is None else found
