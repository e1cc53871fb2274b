"""Answers to SHOW about databases and their tables. Loaded on demand."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ibbmaster.replication.wire.refusal import RefusedError, no_database, not_supported
from ibbmaster.schema import describing, render, view_text
from ibbmaster.schema.model import TableKind, TableVersion, UnknownTable
from .relation import Relation
from .session_schema import SessionSchema, information_table
from .statement import Show
from .table_columns import INFORMATION_SCHEMA, LETTER_SIZE, shown_columns


@dataclass(frozen=True, slots=True)
class TableShower:
    """Methods raise RefusedError: there is no such database or table, it has another kind, or its columns are
    unknown."""

    schema: SessionSchema
    version: int

    def of_database(self, show: Show, default: str) -> Relation:
        name = show.database or default
        if show.what == "OPEN TABLES":  # there are none
            return Relation(shown_columns(show.what))
        if not name:
            raise no_database()
        database = self.schema.database(name).name
        if show.what == "TABLE STATUS":
            columns = shown_columns(show.what)
            rows = [describing.status_row(table) for table in self.schema.tables(database)]
            comment = next(place for place, column in enumerate(columns) if column.name == "Comment")
            before, behind = (None,) * (comment - 1), (None,) * (len(columns) - comment - 1)
            unknown = (table for table in self.schema.all_tables(database) if isinstance(table, UnknownTable))
            rows += [(table.name, *before, table.reason, *behind) for table in unknown]  # as of a broken view
            return Relation(columns, sorted(rows, key=lambda row: str(row[0])))
        suffix = f" ({show.pattern})" if show.pattern is not None else ""
        name = database if self.schema.case.folds else name
        columns = shown_columns("TABLES", f"Tables_in_{name}{suffix}")
        if not show.is_full and show.where is None:
            return Relation(columns[:1], [row[:1] for row in self._types(database)])
        return Relation(columns, list(self._types(database)))

    def _types(self, database: str) -> Iterator[tuple[str, str]]:
        if database == "information_schema":
            yield from ((name, "SYSTEM VIEW") for name in INFORMATION_SCHEMA)
        for table in self.schema.all_tables(database):
            yield table.name, table.kind.value if isinstance(table, TableVersion) else TableKind.BASE.value

    def of_table(self, show: Show, database: str, name: str) -> Relation:
        table = self._table(database, name)
        if show.what == "INDEX":
            return Relation(shown_columns("INDEX"), list(describing.shown_index_rows(table, self.version)))
        if table.kind is TableKind.VIEW and not table.columns:  # what its query gives is not known
            raise not_supported("the columns of a view")
        rows = list(describing.shown_column_rows(table, self.version, is_full=show.is_full))
        return Relation(shown_columns("FULL COLUMNS" if show.is_full else "COLUMNS"), rows)

    def created_database(self, show: Show) -> Relation:
        assert show.table is not None
        database = self.schema.database(show.table.name)
        text = render.create_database(database, if_not_exists=show.if_not_exists)
        return Relation(shown_columns("CREATE DATABASE"), [(database.name, text)])

    def created(self, show: Show, database: str, name: str, default: str) -> Relation:
        """SHOW CREATE TABLE, VIEW and SEQUENCE; `default` is the session's database."""
        table = self._table(database, name)
        if show.what == "CREATE VIEW" and table.kind is not TableKind.VIEW:
            raise RefusedError(1347, "HY000", f"'{database}.{name}' is not of type 'VIEW'")
        if show.what == "CREATE SEQUENCE" and table.kind is not TableKind.SEQUENCE:
            raise RefusedError(4089, "42S02", f"'{database}.{name}' is not a SEQUENCE")
        if table.kind is TableKind.VIEW:
            text = view_text.create_view(table, is_qualified=table.database != default)
            row = (table.name, text, table.charset, table.collation)
            return Relation(shown_columns("CREATE VIEW"), [row])
        is_sequence = show.what == "CREATE SEQUENCE"
        text = view_text.create_sequence(table) if is_sequence else render.create_table(table, self.version)
        name_column, text_column = shown_columns("CREATE TABLE")
        length = max(text_column.length, len(text.encode("utf-8", "surrogateescape")) * LETTER_SIZE)
        return Relation((name_column, replace(text_column, length=length)), [(table.name, text)])

    def _table(self, database: str, name: str) -> TableVersion:
        if database.lower() == "information_schema" and name.upper() in INFORMATION_SCHEMA:
            return information_table(name.upper())
        return self.schema.table(database, name)
