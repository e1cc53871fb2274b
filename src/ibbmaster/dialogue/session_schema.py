"""The databases and tables that one session sees at one position. Loaded when a statement asks for them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.settings import Settings
from ibbmaster.dialogue.table_columns import SYSTEM_DATABASES
from ibbmaster.dialogue.view_columns import with_columns
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.model import (
    DatabaseVersion,
    IndexKind,
    IndexPart,
    SqlType,
    TableColumn,
    TableIndex,
    TableKind,
    TableVersion,
    UnknownTable,
)
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.programs import StoredProgram, program_key
from ibbmaster.wire.refusal import RefusedError, unknown_database, unknown_table

UNKNOWN_SCHEMA = 1105

_INT = SqlType(word="int", length=10, is_unsigned=True)
_BIGINT = SqlType(word="bigint", length=20, is_unsigned=True)

GTID_SLAVE_POS = TableVersion(
    database="mysql",
    name="gtid_slave_pos",
    columns=tuple(
        TableColumn(id=no, name=name, type=column_type, is_nullable=False)
        for no, (name, column_type) in enumerate(
            (("domain_id", _INT), ("sub_id", _BIGINT), ("server_id", _INT), ("seq_no", _BIGINT))
        )
    ),
    indexes=(
        TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=0), IndexPart(column_id=1))),
    ),
    charset="latin1",
    collation="latin1_swedish_ci",
    options={"ENGINE": "InnoDB", "COMMENT": "Replication slave GTID position"},
)
"""The one table of a server's own that clients read here, as DDL would define it."""


class SessionSchema:
    """What a session with these privileges sees. `own` are the databases of a server itself, by name."""

    def __init__(self, catalog: SchemaCatalog, held: frozenset[str], own: Mapping[str, DatabaseVersion]) -> None:
        self._catalog = catalog
        self._held = held
        self._sees_tables = privileges.SELECT in held
        self._sees_databases = self._sees_tables or privileges.SHOW_DATABASES in held
        self._own = own

    def is_of(self, catalog: SchemaCatalog, held: frozenset[str]) -> bool:
        """Whether it is what a session with these privileges sees of a catalog."""
        return self._catalog is catalog and self._held == held

    @property
    def case(self) -> NameCase:
        """How names of databases and tables are compared."""
        return self._catalog.case

    @functools.cached_property
    def databases(self) -> dict[str, DatabaseVersion]:
        """Every database by what it is found by, the server's own among them, sorted."""
        if not self._sees_databases:
            return {SYSTEM_DATABASES[0]: self._own[SYSTEM_DATABASES[0]]}
        found = dict(self._own)
        for place, table in self._catalog.tables.items():
            found.setdefault(place[0], DatabaseVersion(name=table.database))
        of_log = self._catalog.databases.items()
        found |= {name: database for name, database in of_log if name.lower() not in SYSTEM_DATABASES}
        return dict(sorted(found.items()))

    def database(self, name: str) -> DatabaseVersion:
        """A database by its name; those of a server by their names in any case.

        Raises:
            RefusedError: there is none.
        """
        found = self._own.get(name.lower()) or self.databases.get(self.case.key(name))
        if found is None:
            raise unknown_database(name)
        return found

    @functools.cached_property
    def _tables(self) -> dict[tuple[str, str], TableVersion | UnknownTable]:
        found: dict[tuple[str, str], TableVersion | UnknownTable] = {}
        if self._sees_tables:
            of_log = self._catalog.tables.items()
            found = {place: table for place, table in of_log if place[0].lower() not in SYSTEM_DATABASES}
            found[GTID_SLAVE_POS.database, GTID_SLAVE_POS.name] = GTID_SLAVE_POS
        return dict(sorted(found.items()))

    def all_tables(self, database: str | None = None) -> Iterator[TableVersion | UnknownTable]:
        """Every table, or those of a database, sorted by name; also those whose columns are not known."""
        wanted = None if database is None else self.case.key(database)
        for place, table in self._tables.items():
            if wanted is None or place[0] == wanted:
                yield table

    def tables(self, database: str | None = None) -> Iterator[TableVersion]:
        """Every table whose columns are known, and every view, sorted by name."""
        return (self._with_columns(table) for table in self.all_tables(database) if isinstance(table, TableVersion))

    def _with_columns(self, table: TableVersion) -> TableVersion:
        """A view with its columns, where they can be determined; another table as it is."""
        if table.kind is not TableKind.VIEW:
            return table
        return with_columns(table, self._find) or table

    def programs(self, database: str | None = None) -> Iterator[StoredProgram]:
        """Every trigger, routine and event, or those of a database, sorted by name."""
        for key in sorted(self._catalog.programs) if self._sees_tables else ():
            if database is None or key[0] == self.case.key(database):
                yield self._catalog.programs[key]

    def program(self, database: str, kind: str, name: str) -> StoredProgram | None:
        """One of them, or None; the name of a routine or an event in any case."""
        key = program_key(self.case.key(database), kind, name)
        return self._catalog.programs.get(key) if self._sees_tables else None

    def table(self, database: str, name: str) -> TableVersion:
        """A table whose columns are known, or a view.

        Raises:
            RefusedError: there is none of that name, or its columns are not known.
        """
        return self._with_columns(self._find(database, name))

    def _find(self, database: str, name: str) -> TableVersion:
        known = database.lower() if database.lower() in SYSTEM_DATABASES else database
        found = self._tables.get(self.case.table_key(known, name))
        if found is None:
            raise unknown_table(database, name)
        if isinstance(found, UnknownTable):
            raise RefusedError(UNKNOWN_SCHEMA, "HY000", found.reason)
        return found


def own_databases(settings: Settings) -> dict[str, DatabaseVersion]:
    """The databases that every server has."""
    charset = str(settings.value("character_set_server", "global"))
    collation = str(settings.value("collation_server", "global"))
    for_mysql = DatabaseVersion(name="mysql", charset=charset, collation=collation)
    others = [
        DatabaseVersion(name=name, charset="utf8mb3", collation="utf8mb3_general_ci") for name in SYSTEM_DATABASES
    ]
    return {**{database.name: database for database in others}, "mysql": for_mysql}
