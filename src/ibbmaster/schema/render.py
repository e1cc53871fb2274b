"""SHOW CREATE of tables and databases, letter by letter as 10.11 and 11.8 print it, except: AUTO_INCREMENT=n is the
number of DDL, and an expression of unknown printed form stays as written."""

from collections.abc import Iterator, Mapping

from ibbmaster.facts import NULL, rows_of
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.sqltext.quoting import quoted_name, quoted_text
from ibbmaster.versions import Difference
from . import model
from .column_text import default_text, on_update_text, type_text
from .expression_text import expression_text
from .partition_text import partition_text
from .view_text import create_view

SYSTEM_TIME = "SYSTEM_TIME"  # the period of a row, which its columns show
_OPTIONS = {name: printed for name, _, printed, _ in rows_of(__package__, "table_options") if printed != NULL}
OF_MERGE_TABLES = ("INSERT_METHOD", "UNION")


def create_table(table: model.TableVersion, version: int) -> str:
    """Of a server of this version; of a view SHOW CREATE VIEW."""
    if table.kind is model.TableKind.VIEW:
        return create_view(table)
    lines = list(_lines(table, version))
    return f"CREATE TABLE {quoted_name(table.name)} (\n" + ",\n".join(lines) + "\n)" + _options(table)


def create_database(database: model.DatabaseVersion, *, if_not_exists: bool = False) -> str:
    comment = f" COMMENT {quoted_text(database.comment)}" if database.comment else ""
    condition = "/*!32312 IF NOT EXISTS*/ " if if_not_exists else ""
    return (
        f"CREATE DATABASE {condition}{quoted_name(database.name)} /*!40100 DEFAULT CHARACTER SET {database.charset} "
        f"COLLATE {database.collation} */{comment}"
    )


def _lines(table: model.TableVersion, version: int) -> Iterator[str]:
    for column in table.columns:
        if not column.is_hidden:
            yield "  " + _column(table, column, version)
    names = {column.id: column.name for column in table.columns}
    for name, start, end in table.periods:
        if name.upper() == SYSTEM_TIME:
            continue
        yield f"  PERIOD FOR {quoted_name(name)} ({quoted_name(start)}, {quoted_name(end)})"
    for index in table.indexes:
        yield "  " + _index(table, index, names)
    if table.is_versioned and (ends := _row_period(table)) is not None:
        yield f"  PERIOD FOR SYSTEM_TIME ({ends[0]}, {ends[1]})"
    for key in sorted(table.foreign_keys, key=lambda key: key.name):
        yield "  " + _foreign_key(table, key, names)
    for check in table.checks:
        yield f"  CONSTRAINT {quoted_name(check.name)} CHECK ({expression_text(check.expression)})"


def _row_period(table: model.TableVersion) -> tuple[str, str] | None:
    ends = {column.period: column for column in table.columns if column.period is not None}
    start, end = ends.get(model.RowPeriod.START), ends.get(model.RowPeriod.END)
    if start is None or end is None or start.is_hidden:
        return None
    return quoted_name(start.name), quoted_name(end.name)


def _column(table: model.TableVersion, column: model.TableColumn, version: int) -> str:
    parts = [quoted_name(column.name), type_text(column.type)]
    own = column.type.charset, column.type.collation
    if column.type.charset is not None and own != (table.charset, table.collation):
        collation = f" COLLATE {column.type.collation}" if column.type.charset != "binary" else ""
        parts.append(f"CHARACTER SET {column.type.charset}{collation}")
    parts += _generated(column) if column.expression is not None else _stored(column, version)
    if column.comment:
        parts.append(f"COMMENT {quoted_text(column.comment)}")
    if column.check is not None:
        parts.append(f"CHECK ({expression_text(column.check)})")
    return " ".join(parts)


def _generated(column: model.TableColumn) -> Iterator[str]:
    yield f"GENERATED ALWAYS AS ({expression_text(column.expression or '')})"
    yield "STORED" if column.is_stored else "VIRTUAL"
    if column.is_invisible:
        yield "INVISIBLE"


def _stored(column: model.TableColumn, version: int) -> Iterator[str]:
    if column.period is not None:
        yield f"GENERATED ALWAYS AS ROW {column.period.value}"
    elif not column.is_nullable:
        yield "NOT NULL"
    elif BY_NAME[column.type.word].is_zoned:
        yield "NULL"
    is_invisible_last = Difference.INVISIBLE_IS_LAST.holds(version)
    if column.is_invisible and not is_invisible_last:
        yield "INVISIBLE"
    default = None if column.is_auto_increment else default_text(column, version)
    if default is not None:
        yield f"DEFAULT {default}"
    if column.is_unversioned:
        yield "WITHOUT SYSTEM VERSIONING"
    if column.on_update is not None:
        yield f"ON UPDATE {on_update_text(column.on_update)}"
    if column.is_auto_increment:
        yield "AUTO_INCREMENT"
    if column.is_invisible and is_invisible_last:
        yield "INVISIBLE"


def _index(table: model.TableVersion, index: model.TableIndex, names: Mapping[int, str]) -> str:
    parts = []
    for part in index.parts:
        length = "" if part.length is None else f"({part.length})"
        parts.append(quoted_name(names[part.column_id]) + length + (" DESC" if part.is_descending else ""))
    ends = (column for column in table.columns if column.period is model.RowPeriod.END and not column.is_hidden)
    if table.is_versioned and index.kind in (model.IndexKind.PRIMARY, model.IndexKind.UNIQUE):
        parts += [quoted_name(end.name) for end in ends if all(part.column_id != end.id for part in index.parts)]
    if index.without_overlaps is not None:
        parts.append(f"{quoted_name(index.without_overlaps)} WITHOUT OVERLAPS")
    name = "" if index.kind is model.IndexKind.PRIMARY else f" {quoted_name(index.name)}"
    text = f"{index.kind.value}{name} ({','.join(parts)})"
    if index.algorithm is not None:
        text += f" USING {index.algorithm}"
    if index.comment:
        text += f" COMMENT {quoted_text(index.comment)}"
    if index.is_ignored:
        text += " IGNORED"
    return text + "".join(f" {name}={value}" for name, value in index.options)


def _foreign_key(table: model.TableVersion, key: model.ForeignConstraint, names: Mapping[int, str]) -> str:
    columns = ", ".join(quoted_name(names[column_id]) for column_id in key.column_ids)
    parent = quoted_name(key.parent_table)
    if key.parent_database != table.database:
        parent = f"{quoted_name(key.parent_database)}.{parent}"
    parents = ", ".join(map(quoted_name, key.parent_columns))
    text = f"CONSTRAINT {quoted_name(key.name)} FOREIGN KEY ({columns}) REFERENCES {parent} ({parents})"
    for event, rule in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
        text += "" if rule == "RESTRICT" else f" ON {event} {rule}"
    return text


def sorted_options(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Without the leading ones, in a server's order; those of a storage engine come last."""
    options = {name: value for name, value in given.items() if name not in ("ENGINE", model.AUTO_INCREMENT)}
    known = [(name, options.pop(name)) for name in _OPTIONS if name in options]
    return [*known, *options.items()]


def _options(table: model.TableVersion) -> str:
    engine = table.options.get("ENGINE", "InnoDB")
    text = f" ENGINE={engine}"
    if table.kind is model.TableKind.SEQUENCE:
        return f"{text} SEQUENCE=1" + (f" COMMENT={quoted_text(comment)}" if (comment := table.comment) else "")
    text += f" AUTO_INCREMENT={table.auto_increment}" if table.auto_increment is not None else ""
    text += f" DEFAULT CHARSET={table.charset} COLLATE={table.collation}"
    implied = {"PAGE_CHECKSUM": "1"} if engine == "Aria" and table.partitioning is None else {}
    for name, value in sorted_options({**implied, **table.options}):
        if name in OF_MERGE_TABLES and engine != "MRG_MyISAM":
            continue
        shown = name if name in _OPTIONS else quoted_name(name)
        text += f" {shown}={quoted_text(value) if _OPTIONS.get(name) == 'quoted' else value}"
    text += " WITH SYSTEM VERSIONING" if table.is_versioned else ""
    if table.partitioning is not None:
        text += "\n" + partition_text(table.partitioning, engine)
    return text
