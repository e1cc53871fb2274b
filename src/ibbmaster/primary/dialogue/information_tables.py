"""The rows of information_schema about databases, tables, and programs, with what SHOW says. What only the text
of a program tells is NULL; SHOW CREATE has the text of the log."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ibbmaster.replication.wire.refusal import RefusedError, no_database, not_supported
from ibbmaster.schema import describing
from ibbmaster.schema.catalog import EVENT, FUNCTION, PROCEDURE, ROUTINES, TRIGGER, StoredProgram
from ibbmaster.schema.describing import CATALOG
from ibbmaster.schema.history import BEFORE
from ibbmaster.schema.model import TableKind, TableVersion, UnknownTable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.sql_mode import sql_mode_text
from ibbmaster.sqltext.table_name import printed_table
from ibbmaster.work import check_wanted
from .relation import Relation, RowValues
from .session_schema import SessionSchema, information_table
from .statement import Show
from .table_columns import INFORMATION_SCHEMA, information_columns, shown_columns

_STATUS = " STATUS"
#: Columns of information_schema in SHOW, before those of character sets.
SHOWN_COLUMNS = {
    "TRIGGERS": (
        "TRIGGER_NAME EVENT_MANIPULATION EVENT_OBJECT_TABLE ACTION_STATEMENT ACTION_TIMING CREATED SQL_MODE DEFINER"
    ),
    "ROUTINES": ("ROUTINE_SCHEMA ROUTINE_NAME ROUTINE_TYPE DEFINER LAST_ALTERED CREATED SECURITY_TYPE ROUTINE_COMMENT"),
    "EVENTS": (
        "EVENT_SCHEMA EVENT_NAME DEFINER TIME_ZONE EVENT_TYPE EXECUTE_AT INTERVAL_VALUE INTERVAL_FIELD STARTS ENDS "
        "STATUS ORIGINATOR"
    ),
}
_CHARACTERS = "CHARACTER_SET_CLIENT COLLATION_CONNECTION DATABASE_COLLATION"


def _row(table: str, program: StoredProgram, **known: Value) -> RowValues:
    kind = table.lower().removesuffix("s")
    known = {
        f"{kind}_catalog": CATALOG,
        f"{kind}_schema": program.database,
        f"{kind}_name": program.name,
        "sql_mode": sql_mode_text(program.sql_mode),
        "character_set_client": program.client,
        "collation_connection": program.connection,
        "database_collation": program.of_database,
        **known,
    }
    return tuple(known.get(column.name.lower()) for column in information_columns(table))


def trigger_rows(programs: Iterable[StoredProgram]) -> Iterator[RowValues]:
    """In the order of their statements, so that FOLLOWS finds the trigger it names."""
    found = [program for program in programs if program.kind == TRIGGER]
    for program in sorted(found, key=lambda one: one.since or BEFORE):
        yield _row(
            "TRIGGERS",
            program,
            event_object_catalog=CATALOG,
            event_object_schema=program.database,
            event_object_table=program.table,
            action_orientation="ROW",
            action_reference_old_row="OLD",
            action_reference_new_row="NEW",
        )


def routine_rows(programs: Iterable[StoredProgram]) -> Iterator[RowValues]:
    for program in programs:
        if program.kind in ROUTINES:
            data_type = None if program.kind == FUNCTION else ""
            known = {"specific_name": program.name, "routine_type": program.kind, "data_type": data_type}
            yield _row("ROUTINES", program, **known, routine_body="SQL", parameter_style="SQL")


def parameter_rows(programs: Iterable[StoredProgram]) -> Iterable[RowValues]:
    """Raises RefusedError: there are routines, which may have parameters."""
    if any(program.kind in (FUNCTION, PROCEDURE) for program in programs):
        raise not_supported("information_schema.PARAMETERS of stored routines; SHOW CREATE has their parameters")
    return ()


def event_rows(programs: Iterable[StoredProgram]) -> Iterator[RowValues]:
    """Of an altered event, settings of the session are not known."""
    for program in programs:
        if program.kind == EVENT:
            known: dict[str, Value] = {"time_zone": program.time_zone}
            if program.is_altered:
                known = dict.fromkeys(("time_zone", "sql_mode", "character_set_client", "collation_connection"))
            yield _row("EVENTS", program, event_body="SQL", **known)


ROWS: dict[str, Callable[[Iterable[StoredProgram]], Iterable[RowValues]]] = {
    "TRIGGERS": trigger_rows,
    "ROUTINES": routine_rows,
    "EVENTS": event_rows,
    "PARAMETERS": parameter_rows,
}


def listed_programs(schema: SessionSchema, show: Show, default: str) -> Relation:
    """SHOW TRIGGERS, EVENTS, PROCEDURE STATUS and the like; `default` is the session's database. Raises RefusedError:
    there is no such database."""
    if show.what.endswith(_STATUS):
        kind = show.what.removesuffix(_STATUS)
        programs = [program for program in schema.programs() if program.kind == kind]
        return _picked("ROUTINES", "PROCEDURE STATUS", programs)
    name = show.database or default
    if not name:
        raise no_database()
    if show.what == "TRIGGERS":
        name = schema.database(name).name
    return _picked(show.what, show.what, schema.programs(name))


def _picked(table: str, shown: str, programs: Iterable[StoredProgram]) -> Relation:
    names = [column.name for column in information_columns(table)]
    places = [names.index(name) for name in f"{SHOWN_COLUMNS[table]} {_CHARACTERS}".split()]
    rows = [tuple(row[place] for place in places) for row in ROWS[table](programs)]
    return Relation(shown_columns(shown), rows)


def created_program(schema: SessionSchema, kind: str, database: str, name: str) -> Relation:
    """SHOW CREATE of a program. Raises RefusedError: there is none, or it was altered."""
    program = schema.program(database, kind, name)
    if program is None:
        missing = {
            TRIGGER: (1360, "HY000", "Trigger does not exist"),
            EVENT: (1539, "HY000", f"Unknown event '{name}'"),
        }
        raise RefusedError(*missing.get(kind, (1305, "42000", f"{kind} {name} does not exist")))
    if program.is_altered:
        shown = f"SHOW CREATE {kind} {printed_table(program.database, program.name)} after ALTER"
        raise not_supported(f"{shown}; the log has both statements: ibbmaster cat, SHOW BINLOG EVENTS")
    columns = shown_columns(f"CREATE {kind}" if kind in (EVENT, TRIGGER) else "CREATE PROCEDURE")
    row: RowValues = (program.name, sql_mode_text(program.sql_mode))
    if kind == EVENT:
        row = (*row, program.time_zone)
    elif kind != TRIGGER:
        named = replace(columns[2], name=f"Create {kind.title()}")
        columns = (replace(columns[0], name=kind.capitalize()), columns[1], named, *columns[3:])
    row = (*row, program.text, program.client, program.connection, program.of_database)
    return Relation(columns, [(*row, None) if kind == TRIGGER else row])


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
