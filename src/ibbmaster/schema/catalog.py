"""The databases, tables and programs at one place of a log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ibbmaster.sqltext.table_name import TableName
from .model import DatabaseVersion, SchemaPlace, TableVersion, UnknownTable
from .name_case import NameCase, lower_name

KnownTable = TableVersion | UnknownTable
TRIGGER, EVENT, PROCEDURE, FUNCTION = "TRIGGER", "EVENT", "PROCEDURE", "FUNCTION"
PACKAGES = ("PACKAGE", "PACKAGE BODY")
ROUTINES = (PROCEDURE, FUNCTION, *PACKAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A trigger, a routine or an event; its text is not interpreted."""

    kind: str  # TRIGGER, FUNCTION, PROCEDURE, PACKAGE, PACKAGE BODY or EVENT
    database: str
    name: str
    since: SchemaPlace | None
    table: str = ""  # of a trigger, in its database
    text: str  # that statement; of a trigger with its table's current name
    is_altered: bool = False
    sql_mode: int = 0  # of its session
    client: str  # character set of the client
    connection: str  # collation of the connection
    of_database: str  # collation of the database
    time_zone: str  # of an event


def program_key(database: str, kind: str, name: str) -> tuple[str, str, str]:
    """The letters of a trigger's name matter, those of others do not."""
    return database, kind, name if kind == TRIGGER else lower_name(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCatalog:
    """A schema at one place: tables and databases by names as `case` finds them, programs by database, kind, name."""

    databases: Mapping[str, DatabaseVersion] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[TableName, KnownTable] = field(default_factory=lambda: MappingProxyType({}))
    programs: Mapping[tuple[str, str, str], StoredProgram] = field(default_factory=lambda: MappingProxyType({}))
    case: NameCase = NameCase.EXACT

    def table(self, database: str, name: str) -> KnownTable | None:
        return self.tables.get(self.case.table_key(database, name))
