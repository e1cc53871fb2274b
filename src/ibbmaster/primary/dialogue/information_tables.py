"""The rows of information_schema about databases, tables and programs."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from ibbmaster.schema import describing
from ibbmaster.schema.model import TableKind, TableVersion, UnknownTable
from ibbmaster.work import check_wanted
from .program_rows import ROWS
from .relation import RowValues
from .session_schema import SessionSchema, information_table
from .table_columns import INFORMATION_SCHEMA


class AboutTables:
    def __init__(self, schema: SessionSchema, version: int) -> None:
        self._schema = schema
        self._version = version

    def rows(self, table: str) -> Iterator[RowValues]:
        make, of_programs = _MAKERS.get(table), ROWS.get(table)
        found = () if make is None else make(self)
        for row in found if of_programs is None else of_programs(self._schema.programs()):
            check_wanted()
            yield row

    def refused(self) -> tuple[UnknownTable, ...]:
        """The tables that COLUMNS lacks, as their columns are unknown."""
        return tuple(table for table in self._schema.all_tables() if isinstance(table, UnknownTable))

    def _schemata(self) -> Iterator[RowValues]:
        for database in self._schema.databases.values():
            yield describing.CATALOG, database.name, database.charset, database.collation, None, database.comment

    def _tables(self) -> Iterator[RowValues]:
        for name in INFORMATION_SCHEMA:
            row = describing.table_row(information_table(name))
            yield (*row[:3], "SYSTEM VIEW", *row[4:-1], "Y")
        for table in self._schema.all_tables():
            if isinstance(table, TableVersion):
                yield describing.table_row(table)
            else:
                first = (describing.CATALOG, table.database, table.name, TableKind.BASE.value)
                yield (*first, *(None,) * 16, table.reason, None, "N")

    def _columns(self) -> Iterator[RowValues]:
        for table in self._and_information():
            yield from describing.column_rows(table, self._version)

    def _and_information(self) -> Iterator[TableVersion]:
        yield from map(information_table, INFORMATION_SCHEMA)
        yield from self._schema.tables()

    def _of_tables(self, rows: Callable[[TableVersion], Iterable[RowValues]]) -> Iterator[RowValues]:
        for table in self._schema.tables():
            yield from rows(table)

    def _references(self) -> Iterator[RowValues]:
        parents = {(table.database, table.name): table for table in self._schema.tables()}
        return self._of_tables(lambda table: describing.reference_rows(table, parents))

    def _views(self) -> Iterator[RowValues]:
        views = (table for table in self._schema.tables() if table.kind is TableKind.VIEW)
        return map(describing.view_row, views)


_MAKERS: Mapping[str, Callable[[AboutTables], Iterable[RowValues]]] = {
    "SCHEMATA": AboutTables._schemata,
    "TABLES": AboutTables._tables,
    "COLUMNS": AboutTables._columns,
    "STATISTICS": lambda about: about._of_tables(lambda table: describing.index_rows(table, about._version)),
    "KEY_COLUMN_USAGE": lambda about: about._of_tables(describing.key_column_rows),
    "TABLE_CONSTRAINTS": lambda about: about._of_tables(describing.constraint_rows),
    "CHECK_CONSTRAINTS": lambda about: about._of_tables(describing.check_rows),
    "REFERENTIAL_CONSTRAINTS": AboutTables._references,
    "PARTITIONS": lambda about: about._of_tables(describing.partition_rows),
    "VIEWS": AboutTables._views,
}
