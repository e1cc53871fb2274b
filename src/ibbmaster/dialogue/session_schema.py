"""The databases and tables that one session sees at one position. Loaded when a statement asks for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.settings import Settings
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.statement import Select
from ibbmaster.dialogue.table_columns import SYSTEM_DATABASES
from ibbmaster.event.column_types.integer import BIGINT, INT
from ibbmaster.schema.catalog import SchemaCatalog, StoredProgram, program_key
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
from ibbmaster.schema.view_text import view_parts
from ibbmaster.sqltext.expression import ColumnName, Star
from ibbmaster.sqltext.query_tree import GivenTable, Item, SelectBlock
from ibbmaster.sqltext.token import SqlError
from ibbmaster.wire.refusal import RefusedError, unknown_database, unknown_table

NESTING_MAX = 8  # views of views

FindTable = Callable[[str, str], TableVersion]


def with_columns(view: TableVersion, find: FindTable, depth: int = 0) -> TableVersion | None:
    """A view with its columns; None where one of them is an expression, or of a table that is joined or not known."""
    parts = view_parts(view)
    try:
        (statement,) = parse(parts.query)
    except (SqlError, ValueError):
        return None
    query = statement.query if isinstance(statement, Select) else None
    if not isinstance(query, SelectBlock) or not isinstance(query.source, GivenTable) or depth > NESTING_MAX:
        return None
    name = query.source
    table = _found(name, view.database, find)
    if table is not None and table.kind is TableKind.VIEW:
        table = with_columns(table, find, depth + 1)
    if table is None:
        return None
    columns = list(_columns(query.items, table, name))
    names = [part.strip().strip("`") for part in parts.columns.strip(" ()").split(",")] if parts.columns else None
    if None in columns or (names is not None and len(names) != len(columns)):
        return None
    found = [column for column in columns if column is not None]
    if names is not None:
        found = [replace(column, name=name) for column, name in zip(found, names, strict=True)]
    return replace(view, columns=tuple(found))


def _found(name: GivenTable, database: str, find: FindTable) -> TableVersion | None:
    try:
        return find(name.database or database, name.name)
    except RefusedError:
        return None


def _columns(items: Sequence[Item], table: TableVersion, name: GivenTable) -> Iterator[TableColumn | None]:
    qualifiers = {name.alias or name.name}
    for item in items:
        match item.node:
            case Star(table=()):
                yield from (_seen(each) for each in table.columns if not (each.is_invisible or each.is_hidden))
            case ColumnName(parts=parts):
                column = table.column(parts[-1])
                is_known = column is not None and (len(parts) == 1 or parts[-2] in qualifiers)
                yield replace(_seen(column), name=item.name) if column is not None and is_known else None
            case _:
                yield None


def _seen(column: TableColumn) -> TableColumn:
    """A column as a view shows it: its value alone."""
    default = "0" if column.is_auto_increment else column.default
    return replace(
        column,
        default="NULL" if column.expression is not None and column.is_nullable else default,
        is_auto_increment=False,
        expression=None,
        on_update=None,
        is_invisible=False,
        is_unversioned=False,
        period=None,
        check=None,
    )


UNKNOWN_SCHEMA = 1105

_INT = SqlType(word=INT.word, length=10, is_unsigned=True)
_BIGINT = SqlType(word=BIGINT.word, length=20, is_unsigned=True)

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
        """A database by its name; those of a server by their names in any case. Raises RefusedError: there is none."""
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
        """A table whose columns are known, or a view. Raises RefusedError: there is none of that name, or its columns
        are not known."""
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
