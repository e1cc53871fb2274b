"""The versions of tables in a log, for readers of its rows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ibbmaster.logs.log.base_file import base_position, base_schema
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine, OnFault
from ibbmaster.logs.log.locating import readable_groups
from ibbmaster.logs.log.schema_history import LoggedSchema, StatementScan
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.rows.attributes import KEY_MARK, is_primary_key
from ibbmaster.replication.event.rows.declared import Declaration
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.name_case import NameCase
from ibbmaster.schema.versions import NameRange, TableVersions
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import TableName, parse_table_name


def schema_of_log(
    log: LogEngine,
    declarations: Mapping[str, Declaration],
    cache: HistoryCache,
    *,
    scan: StatementScan | None = None,
    case: NameCase | None = None,
    is_once: bool = False,
    takes_rows: bool = False,
    dump: Path | None = None,
) -> LoggedSchema:
    """`declarations` are the tables when the log began, `dump` one whose GTID position it goes on from. The history is
    cached unless it begins with declarations. `scan` is a faster beginning, `case` how the server compares names;
    `is_once` and `takes_rows` as in `LoggedSchema`."""
    base, position = declared_schema(declarations), None
    if dump is not None:
        found, position = base_schema(dump).catalog, base_position(dump)
        base = dataclasses.replace(found, tables={**found.tables, **base.tables})
    return LoggedSchema(
        log,
        cache=None if base.tables else cache,
        base=base if base.tables else None,
        behind=position,
        scan=scan,
        case=case,
        is_once=is_once,
        takes_rows=takes_rows,
    )


def readable_history(
    log: LogEngine,
    declarations: Mapping[str, Declaration],
    on_fault: OnFault,
    case: NameCase | None = None,
    takes_rows: bool = False,
) -> SchemaHistory:
    """The history of what is readable of a damaged log; `takes_rows` as in `LoggedSchema`."""
    history = SchemaHistory(declared_schema(declarations), case, is_whole=False)
    folding = GroupFolding(history, takes_rows=takes_rows)
    for group in readable_groups(log, LOG_START, on_fault):
        if group.gtid is not None:
            folding.fold(group)
    return history


def declared_schema(declarations: Mapping[str, Declaration]) -> SchemaCatalog:
    """Declared tables, as if there when the log began."""
    return schema_of_texts(declared_texts(declarations))


def declared_texts(declarations: Mapping[str, Declaration]) -> dict[TableName, str]:
    texts = {}
    for name, declaration in declarations.items():
        table = parse_table_name(name)
        if not any(column.startswith("@") for column in declaration):  # by position: not all of the table
            texts[table] = _create_table(table[1], declaration)
    return texts


def schema_of_texts(texts: Mapping[TableName, str]) -> SchemaCatalog:
    history = SchemaHistory()
    for (database, _), text in texts.items():
        history.add(SchemaPlace(LOG_START, 0), "", 0, LoggedStatement(text, database, 0, 0, True))
    catalog = history.at()
    known = {
        name: dataclasses.replace(one, since=None, gtid=None, is_created_in_log=False)
        for name, one in catalog.tables.items()
        if isinstance(one, TableVersion)
    }
    return SchemaCatalog(tables=known)


def _create_table(table: str, declaration: Declaration) -> str:
    parts = [f"{quoted_name(name)} {text.removesuffix(KEY_MARK)}" for name, text in declaration.items()]
    key = [quoted_name(name) for name, text in declaration.items() if text.endswith(KEY_MARK)]
    if key and not any(is_primary_key(text.removesuffix(KEY_MARK)) for text in declaration.values()):
        parts.append(f"PRIMARY KEY ({', '.join(key)})")
    return f"CREATE TABLE {quoted_name(table)} ({', '.join(parts)})"


def versions_of(history: SchemaHistory, takes: Callable[[TableName], bool]) -> TableVersions:
    """The versions of tables by names that are taken, whatever table was called so."""
    return TableVersions({name: history.versions(*name) for name in history.names() if takes(name)}, history.case)


def versions_between(history: SchemaHistory, name: TableName, ranges: Sequence[NameRange]) -> TableVersions:
    """The versions of a table with these names, and of `name` in any case."""
    return TableVersions(
        {one: history.versions(*one) for one in {name, *(one_range.name for one_range in ranges)}}, history.case, ranges
    )
