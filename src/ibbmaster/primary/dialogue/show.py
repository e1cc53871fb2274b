"""Answers to SHOW: tables with MariaDB's columns. Table: protocol/wire/replica-dialog.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from ibbmaster.replication.wire.refusal import RefusedError, missing_privilege
from ibbmaster.replication.wire.response import Err
from ibbmaster.versions import Difference
from . import privileges
from .evaluating import Evaluator
from .information_schema import ENGINES, LICENSE, PLUGINS, Catalog, character_set_rows, collation_rows
from .log_tables import UNKNOWN_SCHEMA, ServerFacts
from .relation import Relation, RowValues, matcher
from .settings import shown, version_number
from .statement import Show
from .table_columns import information_columns, shown_columns

if TYPE_CHECKING:
    from .show_tables import TableShower

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
                from .information_tables import listed_programs

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
                    from .information_tables import created_program

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
        from .show_tables import TableShower

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
