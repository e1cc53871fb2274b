"""The versions of tables in a log, for those who read its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.event.header import TYPE_OFFSET, decode_event_header
from ibbmaster.event.rows.ddl import KEY_MARK, is_primary_key
from ibbmaster.event.rows.declared import Declaration
from ibbmaster.event.statement.logged import STATEMENT_TYPES, LoggedStatement, decode_statement
from ibbmaster.log.group_content import group_events
from ibbmaster.log.interface import LogEngine, OnFault
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.versions import TableVersions


def read_history(
    log: LogEngine, history: SchemaHistory, end: LogPosition | None = None, *, on_fault: OnFault | None = None
) -> SchemaHistory:
    """Fold what a log has behind the end of a history, up to a position or its own end."""
    end = log.end() if end is None else end
    for log_range in log.ranges(history.end, end, size=WHOLE_FILE):
        for group in log.groups_in(log_range, on_fault=on_fault):
            if group.gtid is None or not group.gtid_event[GTID_FLAGS_OFFSET] & GtidFlag.DDL:
                continue
            timestamp = decode_event_header(group.gtid_event).timestamp
            for number, event in enumerate(group_events(group)):
                if event[TYPE_OFFSET] in STATEMENT_TYPES:
                    place = SchemaPlace(group.start, number)
                    history.add(place, str(group.gtid), timestamp, decode_statement(event))
    history.end = max(history.end, end)
    return history


def declared_schema(declarations: Mapping[str, Declaration]) -> SchemaCatalog:
    """What a user has declared, as the tables that were there when the log began."""
    history = SchemaHistory()
    place = SchemaPlace(LOG_START, 0)
    for name, declaration in declarations.items():
        database, _, table = name.partition(".")
        if any(column.startswith("@") for column in declaration):
            continue  # by position: not all of the table
        history.add(place, "", 0, LoggedStatement(_create_table(table, declaration), database, 0, 0, True))
    catalog = history.at()
    known = {
        name: dataclasses.replace(one, since=None, gtid=None, is_created_in_log=False)
        for name, one in catalog.tables.items()
        if isinstance(one, TableVersion)
    }
    return SchemaCatalog(tables=known)


def _create_table(table: str, declaration: Declaration) -> str:
    parts = [f"{_quoted(name)} {text.removesuffix(KEY_MARK)}" for name, text in declaration.items()]
    key = [_quoted(name) for name, text in declaration.items() if text.endswith(KEY_MARK)]
    if key and not any(is_primary_key(text.removesuffix(KEY_MARK)) for text in declaration.values()):
        parts.append(f"PRIMARY KEY ({', '.join(key)})")
    return f"CREATE TABLE {_quoted(table)} ({', '.join(parts)})"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def versions_of(history: SchemaHistory, takes: Callable[[str], bool]) -> TableVersions:
    """The versions of the tables whose names are taken."""
    wanted = [(database, table) for database, table in history.names() if takes(f"{database}.{table}")]
    return TableVersions({name: history.versions(*name) for name in wanted})
