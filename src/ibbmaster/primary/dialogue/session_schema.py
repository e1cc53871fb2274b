"""The databases and tables that one session sees at one position. Loaded on demand."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ibbmaster.replication.event.column_types.registry import BY_CODE
from ibbmaster.replication.event.column_types.strings import TEXTS, VARCHAR
from ibbmaster.replication.wire.refusal import RefusedError, unknown_database, unknown_table
from ibbmaster.replication.wire.response import ColumnDefinition, ColumnFlag, FieldType
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
from ibbmaster.sqltext.expression import ColumnName, GivenTable, Item, Star
from ibbmaster.sqltext.token import SqlError
from . import privileges, table_columns
from .log_tables import UNKNOWN_SCHEMA
from .settings import Settings
from .sql import parse
from .statement import Select
from .table_columns import CHARSET, COLLATION, LETTER_SIZE, SYSTEM_DATABASES, information_columns

NESTING_MAX = 8  # views of views

FindTable = Callable[[str, str], TableVersion]


def with_columns(view: TableVersion, find: FindTable, depth: int = 0) -> TableVersion | None:
    """A view with its columns; None where one is an expression, or of a joined or unknown table."""
    parts = view_parts(view)
    try:
        (statement,) = parse(parts.query)
    except (SqlError, ValueError):
        return None
    query = statement.query if isinstance(statement, Select) else None
    if query is None or not isinstance(query.source, GivenTable) or depth > NESTING_MAX:
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


def _of_definitions(database: str, name: str, definitions: Sequence[ColumnDefinition]) -> TableVersion:
    columns = [
        TableColumn(id=no, name=column.name, type=_type(column), is_nullable=not column.flags & ColumnFlag.NOT_NULL)
        for no, column in enumerate(definitions)
    ]
    return TableVersion(database=database, name=name, columns=tuple(columns), charset=CHARSET, collation=COLLATION)


def _type(column: ColumnDefinition) -> SqlType:
    if column.column_type in (FieldType.VAR_STRING, FieldType.BLOB, FieldType.LONG_BLOB):
        is_long = column.column_type != FieldType.VAR_STRING
        return SqlType(
            word=(TEXTS[-1] if is_long else VARCHAR).word,
            length=None if is_long else column.length // LETTER_SIZE,
            charset=CHARSET,
            collation=COLLATION,
        )
    kind = BY_CODE[column.column_type]
    if kind.is_clock:
        return SqlType(word=kind.word, scale=column.decimals or None)
    scale = column.decimals if kind.has_scale else None
    length = column.length if kind.is_exact else None
    return SqlType(word=kind.word, length=length, scale=scale, is_unsigned=bool(column.flags & ColumnFlag.UNSIGNED))


@functools.cache
def information_table(name: str) -> TableVersion:
    table = _of_definitions("information_schema", name, information_columns(name))
    return replace(table, options={"ENGINE": "MEMORY"})


_PRIMARY = TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=0), IndexPart(column_id=1)))
GTID_SLAVE_POS = replace(
    _of_definitions("mysql", table_columns.GTID_SLAVE_POS, table_columns.GTID_SLAVE_POS_COLUMNS),
    indexes=(_PRIMARY,),
    charset="latin1",
    collation="latin1_swedish_ci",
    options={"ENGINE": "InnoDB", "COMMENT": "Replication slave GTID position"},
)
"""The one table of a server's own that clients read."""


class SessionSchema:
    """The schema for a session with these privileges. `own`: the databases of every server by name."""

    def __init__(self, catalog: SchemaCatalog, held: frozenset[str], own: Mapping[str, DatabaseVersion]) -> None:
        self._catalog = catalog
        self._held = held
        self._sees_tables = privileges.SELECT in held
        self._sees_databases = self._sees_tables or privileges.SHOW_DATABASES in held
        self._own = own

    def is_of(self, catalog: SchemaCatalog, held: frozenset[str]) -> bool:
        return self._catalog is catalog and self._held == held

    @property
    def case(self) -> NameCase:
        return self._catalog.case

    @functools.cached_property
    def databases(self) -> dict[str, DatabaseVersion]:
        """Sorted by key."""
        if not self._sees_databases:
            return {SYSTEM_DATABASES[0]: self._own[SYSTEM_DATABASES[0]]}
        found = dict(self._own)
        for place, table in self._catalog.tables.items():
            found.setdefault(place[0], DatabaseVersion(name=table.database))
        of_log = self._catalog.databases.items()
        found |= {name: database for name, database in of_log if name.lower() not in SYSTEM_DATABASES}
        return dict(sorted(found.items()))

    def database(self, name: str) -> DatabaseVersion:
        """Those of every server in any case. Raises RefusedError: there is none."""
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
        """All, or those of a database, sorted by name; also those with unknown columns."""
        wanted = None if database is None else self.case.key(database)
        for place, table in self._tables.items():
            if wanted is None or place[0] == wanted:
                yield table

    def tables(self, database: str | None = None) -> Iterator[TableVersion]:
        return (self._with_columns(table) for table in self.all_tables(database) if isinstance(table, TableVersion))

    def _with_columns(self, table: TableVersion) -> TableVersion:
        if table.kind is not TableKind.VIEW:
            return table
        return with_columns(table, self._find) or table

    def programs(self, database: str | None = None) -> Iterator[StoredProgram]:
        """All, or those of a database, sorted by name."""
        for key in sorted(self._catalog.programs) if self._sees_tables else ():
            if database is None or key[0] == self.case.key(database):
                yield self._catalog.programs[key]

    def program(self, database: str, kind: str, name: str) -> StoredProgram | None:
        """The name of a routine or an event in any case."""
        key = program_key(self.case.key(database), kind, name)
        return self._catalog.programs.get(key) if self._sees_tables else None

    def table(self, database: str, name: str) -> TableVersion:
        """A table or view. Raises RefusedError: there is none, or its columns are not known."""
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
    charset = str(settings.value("character_set_server", "global"))
    collation = str(settings.value("collation_server", "global"))
    for_mysql = DatabaseVersion(name="mysql", charset=charset, collation=collation)
    others = {name: DatabaseVersion(name=name, charset=CHARSET, collation=COLLATION) for name in SYSTEM_DATABASES}
    return {**others, "mysql": for_mysql}
