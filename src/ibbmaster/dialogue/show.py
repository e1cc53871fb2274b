"""Answers to SHOW: tables with MariaDB's columns. Table: protocol/wire/replica-dialog.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.information_schema import ENGINES, LICENSE, PLUGINS, Catalog, collation_rows
from ibbmaster.dialogue.matching import matcher
from ibbmaster.dialogue.refusal import RefusedError, missing_privilege
from ibbmaster.dialogue.relation import Relation, RowValues
from ibbmaster.dialogue.statement import Show
from ibbmaster.dialogue.table_columns import SHOWN, read_columns
from ibbmaster.dialogue.variables import ProcessRow, ServerFacts, is_uca_default, shown, version_number
from ibbmaster.schema.collations import character_sets
from ibbmaster.sqltext.expression import Expression
from ibbmaster.sqltext.literals import Value
from ibbmaster.versions import Difference
from ibbmaster.wire.response import ColumnDefinition, Err

if TYPE_CHECKING:
    from ibbmaster.dialogue.session_schema import SessionSchema
    from ibbmaster.dialogue.show_tables import TableShower

_T = ":1/39"  # the flags and decimals of texts that are made up for one answer
FILE_SIZE_COLUMNS = read_columns(f"Log_name v1020{_T}, File_size l20:a1")
STATUS_COLUMNS = read_columns(f"File v2048{_T}, Position l20:a1, Binlog_Do_DB v1020{_T}, Binlog_Ignore_DB v1020{_T}")
GTID_POSITION_COLUMN = read_columns(f"Gtid_Binlog_Pos v1020{_T}")
EVENT_COLUMNS = read_columns(
    f"Log_name v80{_T}, Pos l21:a1, Event_type v80{_T}, Server_id i10:a1, End_log_pos l21:a1, Info v80{_T}"
)
HOST_COLUMNS = read_columns(f"Server_id i10:a1, Host v80{_T}, Port i7:a1, Master_id i10:a1")
PROCESS_COLUMNS = read_columns(
    f"Id l11:81, User v512{_T}, Host v256{_T}, db v256:0/39, Command v64{_T}, Time i7:81, State v120:0/39, "
    "Info v400:0/39, Progress f7:81/3"
)
WARNING_COLUMNS = read_columns(f"Level v28{_T}, Code i4:a1, Message v2048{_T}")
UNKNOWN_SCHEMA = 1105
NO_TARGET_LOG = RefusedError(1373, "HY000", "Target log not found in binlog index")
#: What is asked of an account for what it is shown.
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
#: What does not exist, by what SHOW CREATE is asked for.
_MISSING: Mapping[str, Callable[[str], RefusedError]] = {
    "PROCEDURE": lambda name: RefusedError(1305, "42000", f"PROCEDURE {name} does not exist"),
    "FUNCTION": lambda name: RefusedError(1305, "42000", f"FUNCTION {name} does not exist"),
    "PACKAGE": lambda name: RefusedError(1305, "42000", f"PACKAGE {name} does not exist"),
    "PACKAGE BODY": lambda name: RefusedError(1305, "42000", f"PACKAGE BODY {name} does not exist"),
    "TRIGGER": lambda _: RefusedError(1360, "HY000", "Trigger does not exist"),
    "EVENT": lambda name: RefusedError(1539, "HY000", f"Unknown event '{name}'"),
}


@dataclass(frozen=True, slots=True)
class Shower:
    """Answers SHOW for one session. `status` is what SHOW STATUS has, `schema` what it sees of databases."""

    facts: ServerFacts
    evaluator: Evaluator
    catalog: Catalog
    schema: Callable[[], SessionSchema]
    held: frozenset[str]  # the account's privileges
    processes: Callable[[], Iterable[ProcessRow]]
    status: Callable[[], Mapping[str, object]]
    end: Callable[[], tuple[str, int]]  # file and offset where the session is
    choose: Callable[[Expression, Sequence[ColumnDefinition]], Callable[[RowValues], bool | None]]
    last_error: Err | None

    def answer(self, show: Show) -> Relation:
        """The table that is asked for.

        Raises:
            RefusedError: it is of something that does not exist, or that the account may not see.
        """
        needed = _NEEDED.get(show.what)
        if needed is not None and needed not in self.held:
            raise missing_privilege(needed)
        if show.what == "BINLOG EVENTS":
            return self._binlog_events(show)
        return self._chosen(show, self._all(show)).limited(show.limit)

    def _all(self, show: Show) -> Relation:
        facts, what = self.facts, show.what
        match what:
            case "VARIABLES":
                settings = self.evaluator.settings
                names = settings.names(show.pattern)  # before values are computed: one of many is asked for
                if show.scope == "global":
                    names = [name for name in names if not settings.is_of_sessions(name)]
                return _named([(name, shown(settings.value(name, show.scope))) for name in names], "VARIABLES", show)
            case "STATUS":
                return _named([(name, str(value)) for name, value in self.status().items()], "STATUS", show)
            case "BINARY LOGS":
                return Relation(FILE_SIZE_COLUMNS, facts.binary_logs())
            case "MASTER STATUS":
                return self._log_status()
            case "SLAVE HOSTS":
                return Relation(HOST_COLUMNS, [(*host, facts.server_id) for host in facts.replica_hosts()])
            case "PROCESSLIST":
                return Relation(PROCESS_COLUMNS, list(self._process_rows()))
            case "WARNINGS" | "ERRORS":
                return Relation(WARNING_COLUMNS, list(self._messages(with_warnings=what == "WARNINGS")))
            case "COUNT":
                kind = "error" if show.pattern == "ERRORS" else "warning"
                columns = read_columns(f"@@session.{kind}_count l21:a0")
                return Relation(columns, [(len(list(self._messages(with_warnings=kind == "warning"))),)])
            case "GRANTS":
                return self._grants(show)
            case "DATABASES":
                name = f"Database ({show.pattern})" if show.pattern is not None else "Database"
                return Relation(
                    _renamed("DATABASES", name), [(each.name,) for each in self.schema().databases.values()]
                )
            case "COLLATION":
                return Relation(read_columns(SHOWN[what]), list(collation_rows(facts)))
            case "CHARACTER SET":
                rows = [
                    (each.name, each.description, each.default_collation(is_uca=is_uca_default(facts)), each.size_max)
                    for each in character_sets().values()
                ]
                return Relation(read_columns(SHOWN[what]), rows)
            case "ENGINES":
                return Relation(read_columns(SHOWN[what]), ENGINES)
            case "PLUGINS":
                plugins = [(name, "ACTIVE", kind, None, LICENSE) for name, kind, *_ in PLUGINS]
                return Relation(read_columns(SHOWN[what]), plugins)
            case _ if what in _LIKE_IS_ABOUT:  # a list of programs
                from ibbmaster.dialogue.program_rows import listed_programs  # replicas never ask for it

                default, zone_s = self.evaluator.who.database, self.evaluator.settings.time_zone_s
                return listed_programs(self.schema(), show, default, zone_s)
            case "TABLES" | "TABLE STATUS" | "OPEN TABLES":
                return self._tables().of_database(show, self.evaluator.who.database)
            case "COLUMNS" | "INDEX":
                return self._tables().of_table(show, *self._located(show))
            case "ENGINE":
                return self._engine(show)
            case "CREATE DATABASE" | "CREATE SCHEMA":
                return self._tables().created_database(show)
            case _ if what.startswith("CREATE "):
                place = self._located(show)
                kind = what.removeprefix("CREATE ")
                if (missing := _MISSING.get(kind)) is not None:
                    from ibbmaster.dialogue.program_rows import created_relation  # as above

                    found = created_relation(self.schema(), kind, *place, self.evaluator.settings.time_zone_s)
                    if found is None:
                        raise missing(place[1])
                    return found
                return self._tables().created(show, *place, self.evaluator.who.database)
            case "AUTHORS":
                return Relation(read_columns(SHOWN["CONTRIBUTORS"]))
            case _:
                return Relation(read_columns(SHOWN[what]))

    def _messages(self, *, with_warnings: bool) -> Iterator[RowValues]:
        """The last statement's error, and a warning for each table it asked for whose columns are not known."""
        if self.last_error is not None:
            yield "Error", self.last_error.code, self.last_error.text
        for table in self.catalog.refused if with_warnings else ():
            yield "Warning", UNKNOWN_SCHEMA, f"{table.full_name}: {table.reason}"

    def _chosen(self, show: Show, relation: Relation) -> Relation:
        """The rows that LIKE and WHERE choose."""
        if show.pattern is not None and show.what != "COUNT":
            matches = matcher(show.pattern)
            place = _LIKE_IS_ABOUT.get(show.what, 0)
            return replace(relation, rows=[row for row in relation.rows if matches(str(row[place]))])
        condition = show.where
        if condition is None:
            return relation

        holds = self.choose(condition, relation.columns)
        return replace(relation, rows=[row for row in relation.rows if holds(row)])

    def _log_status(self) -> Relation:
        """Where the log ends, for some versions by GTID, too."""
        row = (*self.end(), "", "")
        if not Difference.STATUS_HAS_GTID.holds(version_number(self.facts)):
            return Relation(STATUS_COLUMNS, [row])
        position = shown(self.evaluator.settings.value("gtid_binlog_pos"))
        return Relation((*STATUS_COLUMNS, *GTID_POSITION_COLUMN), [(*row, position)])

    def _process_rows(self) -> Iterator[tuple[Value, ...]]:
        for row in self.processes():
            yield row.connection_id, row.user, row.host, None, row.command, row.seconds, row.state, None, "0.000"

    def _grants(self, show: Show) -> Relation:
        user = self.evaluator.who.user
        if show.user is not None and show.user != user:
            raise RefusedError(1141, "42000", f"There is no such grant defined for user '{show.user}' on host '%'")
        columns = read_columns(f"Grants for user v4096{_T}")
        renamed = replace(columns[0], name=f"Grants for {user}@%")
        return Relation((renamed,), [(privileges.grant_text(user, self.held),)])

    def _located(self, show: Show) -> tuple[str, str]:
        assert show.table is not None
        return self.evaluator.who.located(show.table)

    def _tables(self) -> TableShower:
        from ibbmaster.dialogue.show_tables import TableShower  # with the rows of tables: replicas never ask for it

        return TableShower(self.schema(), version_number(self.facts))

    def _engine(self, show: Show) -> Relation:
        assert show.table is not None
        if show.table.name.lower() not in {engine[0].lower() for engine in ENGINES}:
            raise RefusedError(1286, "42000", f"Unknown storage engine '{show.table.name}'")
        return Relation(read_columns(SHOWN["ENGINE"]))

    def _binlog_events(self, show: Show) -> Relation:
        try:
            events = self.facts.binlog_events(show.file_name, show.offset or 0)
        except KeyError:
            raise NO_TARGET_LOG from None
        rows = (
            (event.file_name, event.position, event.event_type, event.server_id, event.end_position, event.info)
            for event in events
        )
        return Relation(EVENT_COLUMNS, rows).limited(show.limit)


def _renamed(what: str, name: str) -> tuple[ColumnDefinition, ...]:
    first, *others = read_columns(SHOWN[what])
    return replace(first, name=name), *others


def _named(rows: list[tuple[str, str]], kind: str, show: Show) -> Relation:
    """Names and values, as of variables."""
    table = f"{'GLOBAL' if show.scope == 'global' else 'SESSION'}_{kind}"
    name, value = read_columns("Variable_name v256, Value v16384", schema="information_schema", table=table)
    names = replace(name, original_name="VARIABLE_NAME"), replace(value, original_name="VARIABLE_VALUE")
    return Relation(names, rows)
