"""What there is at one place of a log: databases, tables and programs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ibbmaster.schema.model import DatabaseVersion, TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.programs import StoredProgram
from ibbmaster.sqltext.table_name import TableName

KnownTable = TableVersion | UnknownTable


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaCatalog:
    """A schema at one place. Temporary tables are not in it.

    Attributes:
        databases, tables: by the names that `case` finds them by.
        programs: triggers, functions, procedures, packages and events, by database, kind and name.
    """

    databases: Mapping[str, DatabaseVersion] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[TableName, KnownTable] = field(default_factory=lambda: MappingProxyType({}))
    programs: Mapping[tuple[str, str, str], StoredProgram] = field(default_factory=lambda: MappingProxyType({}))
    case: NameCase = NameCase.EXACT

    def table(self, database: str, name: str) -> KnownTable | None:
        """A table, a view or a sequence; None if there is none."""
        return self.tables.get(self.case.table_key(database, name))
