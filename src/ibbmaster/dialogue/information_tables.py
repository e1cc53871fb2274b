"""The tables of information_schema as DDL would define them, and the rows that are about tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

from ibbmaster.dialogue.program_rows import ROWS
from ibbmaster.dialogue.relation import RowValues
from ibbmaster.dialogue.session_schema import SessionSchema
from ibbmaster.dialogue.table_columns import INFORMATION_SCHEMA, information_columns
from ibbmaster.event.column_types.registry import BY_CODE
from ibbmaster.event.column_types.strings import TEXTS, VARCHAR
from ibbmaster.schema import describing
from ibbmaster.schema.model import SqlType, TableColumn, TableKind, TableVersion, UnknownTable
from ibbmaster.wire.response import ColumnDefinition, ColumnFlag, FieldType
from ibbmaster.work import check_wanted

CHARSET, COLLATION = "utf8mb3", "utf8mb3_general_ci"
LETTER_SIZE = 4  # bytes of a letter in the lengths of columns


@functools.cache
def information_table(name: str) -> TableVersion:
    """A table of information_schema, by its name in upper case."""
    columns = [
        TableColumn(id=no, name=column.name, type=_type(column), is_nullable=not column.flags & ColumnFlag.NOT_NULL)
        for no, column in enumerate(information_columns(name))
    ]
    return TableVersion(
        database="information_schema",
        name=name,
        columns=tuple(columns),
        charset=CHARSET,
        collation=COLLATION,
        options={"ENGINE": "MEMORY"},
    )


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


class MadeRows:
    """Rows that are made each time they are read, so that those of a large schema are not kept."""

    def __init__(self, make: Callable[[], Iterable[RowValues]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[RowValues]:
        for row in self._make():
            check_wanted()
            yield row


class AboutTables:
    """The rows of information_schema about databases, tables and programs, as a server of this version has them."""

    def __init__(self, schema: SessionSchema, version: int) -> None:
        self.schema = schema
        self._version = version
        self._made: dict[str, MadeRows] = {}

    def rows(self, table: str) -> MadeRows:
        """The rows of a table, by its name in upper case: always the same object; empty if it is of other things."""
        if table not in self._made:
            make = _MAKERS.get(table)
            rows = ROWS.get(table)
            if rows is not None:
                self._made[table] = MadeRows(lambda: rows(self.schema.programs()))
            else:
                self._made[table] = MadeRows(lambda: () if make is None else make(self))
        return self._made[table]

    def refused(self) -> tuple[UnknownTable, ...]:
        """The tables that have no rows in COLUMNS because they are not known."""
        return tuple(table for table in self.schema.all_tables() if isinstance(table, UnknownTable))

    def _schemata(self) -> Iterator[RowValues]:
        for database in self.schema.databases.values():
            yield describing.CATALOG, database.name, database.charset, database.collation, None, database.comment

    def _tables(self) -> Iterator[RowValues]:
        for name in INFORMATION_SCHEMA:
            row = describing.table_row(information_table(name))
            yield (*row[:3], "SYSTEM VIEW", *row[4:-1], "Y")
        for table in self.schema.all_tables():
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
        yield from self.schema.tables()

    def _of_tables(self, rows: Callable[[TableVersion], Iterable[RowValues]]) -> Iterator[RowValues]:
        for table in self.schema.tables():
            yield from rows(table)

    def _references(self) -> Iterator[RowValues]:
        parents = {(table.database, table.name): table for table in self.schema.tables()}
        return self._of_tables(lambda table: describing.reference_rows(table, parents))

    def _views(self) -> Iterator[RowValues]:
        views = (table for table in self.schema.tables() if table.kind is TableKind.VIEW)
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
