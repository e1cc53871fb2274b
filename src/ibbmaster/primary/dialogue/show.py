"""Answers to SHOW: tables with MariaDB's columns. Table: protocol/wire/replica-dialog.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from ibbmaster.replication.wire.refusal import RefusedError, missing_privilege, no_database, not_supported
from ibbmaster.replication.wire.response import Err
from ibbmaster.schema import describing, render, view_text
from ibbmaster.schema.model import TableKind, TableVersion, UnknownTable
from ibbmaster.versions import Difference
from . import privileges
from .evaluating import Evaluator
from .information_schema import ENGINES, LICENSE, PLUGINS, Catalog, character_set_rows, collation_rows
from .log_tables import UNKNOWN_SCHEMA, ServerFacts
from .relation import Relation, RowValues, matcher
from .session_schema import SessionSchema, information_table
from .statement import Show
from .table_columns import INFORMATION_SCHEMA, LETTER_SIZE, information_columns, shown_columns
from .variables import shown, version_number


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


Note: TypeAlias = tuple[str, int, str]  # its level, as Warning, its number and text
NO_TARGET_LOG = RefusedError(1373, "HY000", "Target log not found in binlog index")
#: The privileges that an account needs.
_NEEDED = {
    "BINARY LOGS": privileges.BINLOG_MONITOR,
    "MASTER STATUS": privileges.BINLOG_MONITOR,
    "BINLOG EVENTS": privileges.BINLOG_MONITOR,
    "SLAVE HOSTS": privileges.REPLICATION_MASTER_ADMIN,
    "SLAVE STATUS": privileges.SLAVE_MONITOR,
    "ALL SLAVES STATUS": privileges.SLAVE_MONITOR,
    "ENGINE": privileges.PROCESS,
}
#: Lists of programs by the column that LIKE is about: the table of a trigger, the name of others.
_LIKE_IS_ABOUT = {
    "TRIGGERS": 2,
    **dict.fromkeys(("EVENTS", "PROCEDURE STATUS", "FUNCTION STATUS", "PACKAGE STATUS", "PACKAGE BODY STATUS"), 1),
}


@dataclass(frozen=True, slots=True)
class Shower:
    facts: ServerFacts
    evaluator: Evaluator
    catalog: Catalog
    held: frozenset[str]  # the account's privileges
    end: Callable[[], tuple[str, int]]  # file and offset where the session is
    last_error: Err | None
    notes: tuple[Note, ...] = ()  # of the last statement

    def answer(self, show: Show) -> Relation:
        """Raises RefusedError: there is no such thing, or the account may not see it."""
        needed = _NEEDED.get(show.what)
        if needed is not None and needed not in self.held:
            raise missing_privilege(needed)
        if show.what == "BINLOG EVENTS":
            return self._binlog_events(show)
        return self._chosen(show, self._all(show)).limited(show.limit)

    def _all(self, show: Show) -> Relation:
        what = show.what
        match what:
            case "VARIABLES":
                settings = self.evaluator.settings
                names = settings.names(show.pattern)  # before values are computed: one of many is asked for
                if show.scope == "global":
                    names = [name for name in names if not settings.is_of_sessions(name)]
                return _named([(name, shown(settings.value(name, show.scope))) for name in names], "VARIABLES", show)
            case "STATUS":
                return _named([(name, str(value)) for name, value in self.catalog.status().items()], "STATUS", show)
            case "MASTER STATUS":
                columns, row = shown_columns(what), (*self.end(), "", "")
                if not Difference.STATUS_HAS_GTID.holds(version_number(self.facts)):
                    return Relation(columns[:-1], [row])
                return Relation(columns, [(*row, shown(self.evaluator.settings.value("gtid_binlog_pos")))])
            case "GRANTS":
                return self._grants(show)
            case "DATABASES":
                name = f"Database ({show.pattern})" if show.pattern is not None else ""
                return Relation(
                    shown_columns(what, name), [(each.name,) for each in self.catalog.schema().databases.values()]
                )
            case _ if what in _LIKE_IS_ABOUT:  # a list of programs
                from .program_rows import listed_programs

                return listed_programs(self.catalog.schema(), show, self.evaluator.who.database)
            case "TABLES" | "TABLE STATUS" | "OPEN TABLES":
                return self._tables().of_database(show, self.evaluator.who.database)
            case "COLUMNS" | "INDEX":
                return self._tables().of_table(show, *self._located(show))
            case "CREATE DATABASE" | "CREATE SCHEMA":
                return self._tables().created_database(show)
            case _ if what.startswith("CREATE "):
                place = self._located(show)
                kind = what.removeprefix("CREATE ")
                if kind not in ("TABLE", "VIEW", "SEQUENCE"):
                    from .program_rows import created_program

                    return created_program(self.catalog.schema(), kind, *place)
                return self._tables().created(show, *place, self.evaluator.who.database)
            case "ENGINE":
                assert show.table is not None
                if show.table.name.lower() not in {engine[0].lower() for engine in ENGINES}:
                    raise RefusedError(1286, "42000", f"Unknown storage engine '{show.table.name}'")
        return Relation(shown_columns(what), list(self._rows(what)))

    def _rows(self, what: str) -> Iterable[RowValues]:
        facts = self.facts
        match what:
            case "BINARY LOGS":
                return facts.binary_logs()
            case "SLAVE HOSTS":
                return [(*host, facts.server_id) for host in facts.replica_hosts()]
            case "PROCESSLIST":
                return [
                    (it.connection_id, it.user, it.host, None, it.command, it.seconds, it.state, it.info, "0.000")
                    for it in self.catalog.processes()
                ]
            case "WARNINGS" | "ERRORS":
                return self._messages(with_warnings=what == "WARNINGS")
            case "COLLATION":
                return collation_rows(facts)
            case "CHARACTER SET":
                return character_set_rows(facts)
            case "ENGINES":
                return ENGINES
            case "PLUGINS":
                return [(name, "ACTIVE", kind, None, LICENSE) for name, kind, *_ in PLUGINS]
        return ()

    def _messages(self, *, with_warnings: bool) -> Iterator[RowValues]:
        """The last statement's error, and a warning for each of its tables whose columns are unknown."""
        if self.last_error is not None:
            yield "Error", self.last_error.code, self.last_error.text
        if with_warnings:
            yield from self.notes
        for table in self.catalog.refused if with_warnings else ():
            yield "Warning", UNKNOWN_SCHEMA, f"{table.full_name}: {table.reason}"

    def _chosen(self, show: Show, relation: Relation) -> Relation:
        if show.pattern is not None:
            matches = matcher(show.pattern)
            place = _LIKE_IS_ABOUT.get(show.what, 0)
            return replace(relation, rows=[row for row in relation.rows if matches(str(row[place]))])
        if show.where is None:
            return relation
        from .lone_expressions import row_condition

        holds = row_condition(show.where, relation.columns, self.evaluator.query_session())
        return replace(relation, rows=[row for row in relation.rows if holds(row)])

    def _grants(self, show: Show) -> Relation:
        user = self.evaluator.who.user
        if show.user is not None and show.user != user:
            raise RefusedError(1141, "42000", f"There is no such grant defined for user '{show.user}' on host '%'")
        columns = shown_columns("GRANTS", f"Grants for {user}@%")
        return Relation(columns, [(privileges.grant_text(user, self.held),)])

    def _located(self, show: Show) -> tuple[str, str]:
        assert show.table is not None
        return self.evaluator.who.located(show.table)

    def _tables(self) -> TableShower:
        return TableShower(self.catalog.schema(), version_number(self.facts))

    def _binlog_events(self, show: Show) -> Relation:
        try:
            events = self.facts.binlog_events(show.file_name, show.offset or 0)
        except KeyError:
            raise NO_TARGET_LOG from None
        rows = (
            (event.file_name, event.position, event.event_type, event.server_id, event.end_position, event.info)
            for event in events
        )
        return Relation(shown_columns(show.what), rows).limited(show.limit)


def _named(rows: list[tuple[str, str]], kind: str, show: Show) -> Relation:
    table = f"{'GLOBAL' if show.scope == 'global' else 'SESSION'}_{kind}"
    name, value = information_columns(table)
    return Relation((replace(name, name="Variable_name"), replace(value, name="Value")), rows)
