"""The tables that every server has: of information_schema, and mysql.gtid_slave_pos."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ibbmaster.facts import rows_of
from ibbmaster.schema.collations import character_sets, collations
from .log_tables import ProcessRow, ServerFacts
from .relation import Relation, RowValues
from .settings import Settings, is_uca_default, shown, version_number
from .table_columns import GTID_SLAVE_POS, GTID_SLAVE_POS_COLUMNS, INFORMATION_SCHEMA, information_columns

if TYPE_CHECKING:
    from ibbmaster.schema.model import UnknownTable
    from .session_schema import SessionSchema

WARNINGS_MAX = 64  # as `max_error_count`
OF_COLUMNS = frozenset(("COLUMNS", "STATISTICS", "KEY_COLUMN_USAGE", "TABLE_CONSTRAINTS", "REFERENTIAL_CONSTRAINTS"))
LICENSE = "GPL"  # of a server's own plugins
ENGINES = tuple(map(tuple, rows_of("ibbmaster.primary.dialogue", "engines")))
PLUGINS = (  # name, type, version, version of the type, description
    ("binlog", "DAEMON", "1.0", "110806.0", "This is a pseudo storage engine to represent the binlog in a transaction"),
    ("mysql_native_password", "AUTHENTICATION", "1.0", "2.2", "Native MySQL authentication"),
    *((name, "STORAGE ENGINE", "1.0", "110806.0", comment) for name, _, comment, *_ in ENGINES),
)


class Catalog:
    def __init__(
        self,
        facts: ServerFacts,
        settings: Settings,
        processes: Callable[[], Iterable[ProcessRow]],
        status: Callable[[], Mapping[str, object]],
        schema: Callable[[], SessionSchema],
    ) -> None:
        """`processes` are the connections that the session may see, `status` the rows of SHOW STATUS."""
        self._facts = facts
        self._settings = settings
        self.processes = processes
        self.status = status
        self.schema = schema
        self.refused: tuple[UnknownTable, ...] = ()  # whose unknown columns the last statement asked for

    def find(self, database: str, table: str) -> Relation | None:
        if database.lower() == "mysql" and table == GTID_SLAVE_POS:
            return Relation(GTID_SLAVE_POS_COLUMNS)  # empty: the server was never a replica
        if database.lower() != "information_schema" or table.upper() not in INFORMATION_SCHEMA:
            return None
        name = table.upper()
        return Relation(information_columns(name), self._rows(name))

    def _rows(self, table: str) -> Iterable[RowValues]:
        match table:
            case "ENGINES":
                return ENGINES
            case "PLUGINS":
                return [
                    (name, version, "ACTIVE", kind, of_kind, *[None] * 3, comment, LICENSE, "ON", "Stable", version)
                    for name, kind, version, of_kind, comment in PLUGINS
                ]
            case "CHARACTER_SETS":
                return (
                    (name, *collation, text, size) for name, text, *collation, size in character_set_rows(self._facts)
                )
            case "COLLATIONS":
                return ((*row, "") for row in collation_rows(self._facts))
            case "GLOBAL_VARIABLES":
                return self._variables("global")
            case "SESSION_VARIABLES":
                return self._variables("")
            case "GLOBAL_STATUS" | "SESSION_STATUS":
                return [(name.upper(), str(value)) for name, value in self.status().items()]
            case "PROCESSLIST":
                return self._process_rows()
            case "COLLATION_CHARACTER_SET_APPLICABILITY":
                rows = collation_rows(self._facts)
                return ((name, charset, name, *known) for name, charset, *known, _, _ in rows if charset is not None)
            case _:
                return self._about_tables(table)

    def _about_tables(self, table: str) -> Iterable[RowValues]:
        from .information_tables import AboutTables  # replicas never ask for these

        about = AboutTables(self.schema(), version_number(self._facts))
        if table in OF_COLUMNS:
            self.refused = about.refused()[:WARNINGS_MAX]
        return about.rows(table)

    def _variables(self, scope: str) -> Iterator[RowValues]:
        for name in self._settings.names():
            if scope != "global" or not self._settings.is_of_sessions(name):
                yield name.upper(), shown(self._settings.value(name, scope))

    def _process_rows(self) -> Iterator[RowValues]:
        width = len(information_columns("PROCESSLIST"))
        for row in self.processes():
            first = (row.connection_id, row.user, row.host, None, row.command, row.seconds, row.state, row.info)
            yield (*first, f"{row.seconds}.000", 0, 0, "0.000", *[0] * (width - len(first) - 4))


def character_set_rows(facts: ServerFacts) -> Iterator[RowValues]:
    """Name, description, default collation, and most bytes of a letter."""
    for charset in character_sets().values():
        collation = charset.default_collation(is_uca=is_uca_default(facts))
        yield charset.name, charset.description, collation, charset.size_max


def collation_rows(facts: ServerFacts) -> Iterator[RowValues]:
    """Name, character set, number, is it the default, is it compiled in, sort length."""
    is_uca = is_uca_default(facts)
    defaults = {charset.default_collation(is_uca=is_uca) for charset in character_sets().values()}
    for collation in collations().values():
        if collation.is_newer and not is_uca:
            continue
        if collation.charset is None:
            yield collation.name, None, None, None, "Yes", collation.sort_length
        else:
            is_default = "Yes" if collation.name in defaults else ""
            yield collation.name, collation.charset, collation.number, is_default, "Yes", collation.sort_length
