"""Tables as a real server describes them in information_schema, and the same out of a schema history."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.group_content import group_events
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.describing import column_keys, index_rows
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableColumn, TableKind, TableVersion, UnknownTable
from ibbmaster.schema.names import disagreement
from ibbmaster.testkit.mariadb_server import RealServer
from lanes.sql import sql_beside

ASKED = {part: asked for part, (asked,) in sql_beside(__file__).items()}
_PLAIN_DEFAULT = re.compile(r"NULL|-?[1-9][0-9.]*|'(?:[^'\\]|'')*'|current_timestamp\([0-9]?\)")

Described = dict[str, list[tuple[Any, ...]]]


def described_by(server: RealServer) -> Described:
    found = {part: [tuple(row) for row in server.sql(asked)] for part, asked in ASKED.items()}
    found["indexes"].sort(key=lambda row: row[:2])
    found["tables"].sort()
    return found


def described(tables: list[TableVersion]) -> Described:
    """Tables of a history in the same form."""
    found: Described = {"columns": [], "indexes": [], "foreign keys": [], "tables": []}
    for table in sorted(tables, key=lambda table: (table.database, table.name)):
        if table.kind is TableKind.VIEW:
            continue
        head = table.database, table.name
        shown = [column for column in table.columns if not column.is_hidden]
        for number, column in enumerate(shown, start=1):
            found["columns"].append((*head, number, *_column(table, column)))
        for row in index_rows(table, 0):
            _, _, _, is_plain, _, index, number, name, _, _, length, *_, ignored = row
            found["indexes"].append((*head, index, number, name, length, is_plain, ignored))
        for key in table.foreign_keys:
            row = key.name, key.parent_table, key.on_update, key.on_delete
            found["foreign keys"].append((*head, *row))
        options = table.options
        found["tables"].append((*head, table.collation, options.get("ENGINE"), options.get("COMMENT", "")))
    found["foreign keys"].sort()
    found["tables"].sort()
    return found


def _column(table: TableVersion, column: TableColumn) -> tuple[Any, ...]:
    type_ = column.type
    return (
        column.name,
        type_text(column),
        "YES" if column.is_nullable else "NO",
        type_.charset,
        type_.collation,
        column_keys(table).get(column.id, ""),
        _extra(column),
        column.comment,
        column.default,
    )


def type_text(column: TableColumn) -> str:
    """COLUMN_TYPE."""
    type_ = column.type
    inside = ""
    if type_.labels:
        inside = ",".join("'" + label.replace("\\", "\\\\").replace("'", "''") + "'" for label in type_.labels)
    elif type_.length is not None:
        inside = f"{type_.length}" + (f",{type_.scale}" if type_.scale is not None else "")
    elif type_.scale is not None:
        inside = f"{type_.scale}"
    text = f"{type_.word}({inside})" if inside else type_.word
    text += " unsigned" * type_.is_unsigned + " zerofill" * type_.is_zerofill
    return text + " /*M!100301 COMPRESSED*/" * type_.is_compressed


def _extra(column: TableColumn) -> str:
    parts = []
    if column.is_auto_increment:
        parts.append("auto_increment")
    if column.expression is not None:
        parts.append("STORED GENERATED" if column.is_stored else "VIRTUAL GENERATED")
    if column.period is not None:
        parts.append("STORED GENERATED")
    if column.on_update is not None:
        parts.append(f"on update {column.on_update}")
    if column.is_unversioned:
        parts.append("WITHOUT SYSTEM VERSIONING")
    if column.is_invisible:
        parts.append("INVISIBLE")
    return ", ".join(parts)


def differences(catalog: SchemaCatalog, server: Described) -> list[str]:
    """What a catalog says otherwise than the server said, one line each; tables that it does not know are one, too."""
    tables = list(catalog.tables.values())
    found = [f"{table.full_name}: {table.reason}" for table in tables if isinstance(table, UnknownTable)]
    ours = described([table for table in tables if isinstance(table, TableVersion)])
    for part, rows in ours.items():
        theirs = server[part]
        if part == "columns":
            masked = {row[:4] for row in rows if _PLAIN_DEFAULT.fullmatch(row[-1] or "NULL") is None}
            masked |= {row[:4] for row in theirs if "GENERATED" in row[-3]}
            rows, theirs = _masked(rows, masked), _masked(theirs, masked)
        found += [f"{part}: {row} is only in the catalog" for row in rows if row not in theirs]
        found += [f"{part}: {row} is only in the server" for row in theirs if row not in rows]
        if not found and rows != theirs:
            pairs = [pair for pair in zip(rows, theirs, strict=True) if pair[0] != pair[1]]
            found.append(f"{part}: in another order, as {pairs[0]}")
    return found


def _masked(rows: list[tuple[Any, ...]], masked: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Columns, some without their default: an expression, which a server writes in its own words."""
    return [(*row[:-1], "an expression") if row[:4] in masked else row for row in rows]


def groups_of(log: ClassicBinlog) -> Iterator[EventGroup]:
    with contextlib.closing(log.groups(log.start_of_file())) as groups:
        while (group := groups.next_group()) is not None:
            if group.gtid is not None:
                yield group


def places_by_gtid(log: ClassicBinlog) -> dict[str, SchemaPlace]:
    """Behind each group of a log."""
    return {str(group.gtid): SchemaPlace(group.end, 0) for group in groups_of(log)}


def expect_history(log: ClassicBinlog, history: SchemaHistory, told: Iterable[tuple[str, str, Described]]) -> int:
    """The tables of a history are those that a server had after statements, each with its text and GTID.

    Returns how many TABLE_MAP events agree with it, too.
    """
    places = places_by_gtid(log)
    for text, gtid, described in told:
        assert differences(history.at(places[gtid]), described) == [], text
    count = put_beside_rows(log, history)
    assert history.disagreements == []
    return count


def put_beside_rows(log: ClassicBinlog, history: SchemaHistory) -> int:
    """Compare each TABLE_MAP event of a log with the history, which notes what differs; how many there were."""
    count = 0
    for group in groups_of(log):
        for number, event in enumerate(group_events(group)):
            if event[4] == EventType.TABLE_MAP:
                schema = decode_table_schema(event)
                known = history.table_at(schema.database, schema.table, SchemaPlace(group.start, number))
                problem = disagreement(known, schema) if isinstance(known, TableVersion) else None
                if problem is not None:
                    history.disagreements.append(f"GTID {group.gtid}: table {schema.name}: {problem}")
                count += 1
    return count
