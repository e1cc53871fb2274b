"""Rows about tables, as in SHOW and information_schema. What only a server knows of its files is NULL."""

from collections.abc import Iterator

from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.sqltext.quoting import unquoted
from ibbmaster.versions import Difference
from .column_text import default_text, on_update_text, type_text
from .expression_text import expression_text
from .indexing import is_by_hash, period_ends, row_key
from .model import (
    AUTO_INCREMENT,
    ForeignConstraint,
    IndexKind,
    RowPeriod,
    SqlType,
    TableColumn,
    TableIndex,
    TableKind,
    TableVersion,
)
from .partition_text import partitions
from .render import OF_MERGE_TABLES, sorted_options
from .view_text import view_parts

RowValue = int | str | None
RowValues = tuple[RowValue, ...]

CATALOG = "def"
PRIVILEGES = "select"
FRM_VERSION, FRM_VERSION_WITH_EXPRESSIONS = 10, 11
SPATIAL_PREFIX = 32
_ROW_FORMATS = {"InnoDB": "Dynamic", "Aria": "Page", "CSV": "Fixed", "MEMORY": "Fixed"}
_KINDS = {IndexKind.FULLTEXT: "FULLTEXT", IndexKind.SPATIAL: "SPATIAL", IndexKind.VECTOR: "VECTOR"}
_HASHING = frozenset(("MEMORY",))
_UNIQUE = (IndexKind.PRIMARY, IndexKind.UNIQUE)
_UNLISTED = frozenset((AUTO_INCREMENT, "COMMENT", "CONNECTION", "DATA DIRECTORY", "INDEX DIRECTORY", *OF_MERGE_TABLES))


def visible_columns(table: TableVersion) -> list[TableColumn]:
    return [column for column in table.columns if not column.is_hidden]


def table_type(table: TableVersion) -> str:
    return "SYSTEM VERSIONED" if table.is_versioned else table.kind.value


def _named(table: TableVersion) -> RowValues:
    return CATALOG, table.database, table.name


def table_row(table: TableVersion) -> RowValues:
    """A row of TABLES, without numbers of rows and bytes and without times."""
    if table.kind is TableKind.VIEW:
        return (*_named(table), "VIEW", *(None,) * 16, "VIEW", None, None)
    engine = table.options.get("ENGINE", "InnoDB")
    written = table.options.get("ROW_FORMAT")
    row_format = _row_format(table, engine) if written is None else written.capitalize()
    has_expressions = any(column.expression is not None or column.check is not None for column in table.columns)
    version = FRM_VERSION_WITH_EXPRESSIONS if has_expressions or table.checks else FRM_VERSION
    files = (engine, version, row_format, *(None,) * 6, table.auto_increment, *(None,) * 3)
    rest = (table.collation, None, create_options(table), table.comment, None, "N")
    return (*_named(table), table_type(table), *files, *rest)


def _row_format(table: TableVersion, engine: str) -> str:
    has_fixed_rows = not any(BY_NAME[column.type.word].is_varying for column in table.columns)
    if table.kind is TableKind.SEQUENCE or (engine in ("MyISAM", "MRG_MyISAM") and has_fixed_rows):
        return "Fixed"
    return _ROW_FORMATS.get(engine, "Dynamic")


def create_options(table: TableVersion) -> str:
    is_aria = table.options.get("ENGINE") == "Aria" and table.partitioning is None
    given = {**({"TRANSACTIONAL": "1"} if is_aria else {}), **table.options}
    options = [f"{name.lower()}={value}" for name, value in sorted_options(given) if name not in _UNLISTED]
    return " ".join([*options, *(["partitioned"] if table.partitioning is not None else [])])


def status_row(table: TableVersion) -> RowValues:
    """SHOW TABLE STATUS: TABLES from the name on, without the type."""
    row = table_row(table)
    return (row[2], *row[4:])


def column_rows(table: TableVersion, version: int) -> Iterator[RowValues]:
    keys = column_keys(table)
    for no, column in enumerate(visible_columns(table), 1):
        period = None if column.period is None else f"ROW {column.period.value}"
        expression = period if column.expression is None else expression_text(column.expression)
        sizes = (column.type.word, *type_sizes(column.type), type_text(column.type))
        yield (
            *(*_named(table), column.name, no, _default(column, version), "YES" if column.is_nullable else "NO"),
            *(*sizes, keys.get(column.id, ""), extra(column), PRIVILEGES, column.comment),
            *("NEVER" if expression is None else "ALWAYS", expression),
            *("YES" if period == end else "NO" for end in ("ROW START", "ROW END")),
        )


def shown_column_rows(table: TableVersion, version: int, *, is_full: bool) -> Iterator[RowValues]:
    keys = column_keys(table)
    for column in visible_columns(table):
        first: RowValues = (column.name, type_text(column.type))
        common: RowValues = (
            "YES" if column.is_nullable else "NO",
            keys.get(column.id, ""),
            _shown_default(column, version),
            extra(column),
        )
        if is_full:
            yield (*first, column.type.collation, *common, PRIVILEGES, column.comment)
        else:
            yield (*first, *common)


def column_keys(table: TableVersion) -> dict[int, str]:
    """By column id: PRI, UNI or MUL."""
    keys: dict[int, str] = {}
    first = row_key(table)
    for index in table.indexes:
        columns = [column.id for column, _, _ in index_parts(table, index)]
        if first is not None and index.name == first.name:
            keys |= dict.fromkeys(columns, "PRI")
        elif keys.get(columns[0]) not in ("PRI", "UNI"):
            keys[columns[0]] = "UNI" if index.kind is IndexKind.UNIQUE and len(columns) == 1 else "MUL"
    return keys


def row_end(table: TableVersion) -> TableColumn | None:
    """The end of a row's time, part of every key of a system-versioned table."""
    if not table.is_versioned:
        return None
    return next((column for column in table.columns if column.period is RowPeriod.END), None)


def extra(column: TableColumn) -> str:
    is_generated = column.expression is not None
    words = {
        "auto_increment": column.is_auto_increment,
        f"on update {on_update_text(column.on_update or '')}": column.on_update is not None,
        "STORED GENERATED": column.is_stored if is_generated else column.period is not None,
        "VIRTUAL GENERATED": is_generated and not column.is_stored,
        "WITHOUT SYSTEM VERSIONING": column.is_unversioned,
        "INVISIBLE": column.is_invisible,
    }
    return ", ".join(word for word, is_so in words.items() if is_so)


def _default(column: TableColumn, version: int) -> str | None:
    if column.expression is not None:
        return "NULL" if column.is_nullable else None
    return None if column.is_auto_increment else default_text(column, version)


def _shown_default(column: TableColumn, version: int) -> str | None:
    text = _default(column, version)
    if text is None or text == "NULL":
        return None
    is_literal = text.startswith("'") and not BY_NAME[column.type.word].is_large
    return unquoted(text) if is_literal and column.expression is None else text


def type_sizes(column_type: SqlType) -> RowValues:
    """CHARACTER_MAXIMUM_LENGTH up to COLLATION_NAME."""
    return *BY_NAME[column_type.word].sizes(column_type), column_type.charset, column_type.collation


def index_rows(table: TableVersion, version: int) -> Iterator[RowValues]:
    """Rows of STATISTICS."""
    engine = table.options.get("ENGINE", "InnoDB")
    for index in table.indexes:
        kind = _KINDS.get(index.kind) or _algorithm(index, engine, version)
        has_order = kind not in ("FULLTEXT", "VECTOR") and not (engine in _HASHING and kind == "HASH")
        parts = [one for one in index_parts(table, index) if not one[0].is_hidden]
        for no, (column, length, is_descending) in enumerate(parts, 1):
            collation = "D" if is_descending else "A" if has_order else None
            size = SPATIAL_PREFIX if kind == "SPATIAL" else length
            yield (
                *(*_named(table), int(index.kind not in _UNIQUE), table.database, index.name, no, column.name),
                *(collation, None, size, None, "YES" if column.is_nullable else "", kind, "", index.comment),
                "YES" if index.is_ignored else "NO",
            )


def shown_index_rows(table: TableVersion, version: int) -> Iterator[RowValues]:
    for row in index_rows(table, version):
        yield (row[2], row[3], *row[5:])


def index_parts(table: TableVersion, index: TableIndex) -> Iterator[tuple[TableColumn, int | None, bool]]:
    """With columns that a server adds: each with its prefix length, and whether it descends."""
    columns = {column.id: column for column in table.columns}
    for part in index.parts:
        yield columns[part.column_id], part.length, part.is_descending
    end = row_end(table)
    if end is not None and index.kind in _UNIQUE and all(part.column_id != end.id for part in index.parts):
        yield end, None, False
    for column in period_ends(table, index):
        yield column, None, False


def _algorithm(index: TableIndex, engine: str, version: int) -> str:
    if engine in _HASHING:
        return index.algorithm or "HASH"
    if is_by_hash(index, engine):
        return "HASH"
    is_told = Difference.TELLS_INDEX_ALGORITHM.holds(version) and index.kind not in _UNIQUE
    return index.algorithm if is_told and index.algorithm is not None else "BTREE"


def constraint_rows(table: TableVersion) -> Iterator[RowValues]:
    for name, kind in _constraints(table):
        yield CATALOG, table.database, name, table.database, table.name, kind


def _constraints(table: TableVersion) -> Iterator[tuple[str, str]]:
    for index in table.indexes:
        if index.kind in _UNIQUE:
            yield index.name, "PRIMARY KEY" if index.kind is IndexKind.PRIMARY else "UNIQUE"
    for _, name, _ in _checks(table):
        yield name, "CHECK"
    for key in table.foreign_keys:
        yield key.name, "FOREIGN KEY"


def _checks(table: TableVersion) -> Iterator[tuple[str, str, str]]:
    for name, start, end in table.periods:
        if name.upper() != "SYSTEM_TIME":
            yield "Table", name, f"`{start}` < `{end}`"
    for column in table.columns:
        if column.check is not None:
            yield "Column", column.name, expression_text(column.check)
    for check in table.checks:
        yield "Table", check.name, expression_text(check.expression)


def check_rows(table: TableVersion) -> Iterator[RowValues]:
    for level, name, condition in _checks(table):
        yield *_named(table), name, level, condition


def key_column_rows(table: TableVersion) -> Iterator[RowValues]:
    columns = {column.id: column for column in table.columns}
    for index in table.indexes:
        if index.kind in _UNIQUE:
            for no, (column, _, _) in enumerate(index_parts(table, index), 1):
                yield (*_key_column(table, index.name, column.name), no, None, None, None, None)
    for key in table.foreign_keys:
        for no, (column_id, parent) in enumerate(zip(key.column_ids, key.parent_columns, strict=False), 1):
            name = columns[column_id].name
            yield (*_key_column(table, key.name, name), no, no, key.parent_database, key.parent_table, parent)


def _key_column(table: TableVersion, constraint: str, column: str) -> RowValues:
    return CATALOG, table.database, constraint, CATALOG, table.database, table.name, column


def reference_rows(table: TableVersion, parents: dict[tuple[str, str], TableVersion]) -> Iterator[RowValues]:
    """Rows of REFERENTIAL_CONSTRAINTS; `parents` are by database and name."""
    for key in table.foreign_keys:
        parent = parents.get((key.parent_database, key.parent_table))
        unique = (CATALOG, key.parent_database, None if parent is None else _parent_index(parent, key))
        rules = ("NONE", key.on_update, key.on_delete)
        yield CATALOG, table.database, key.name, *unique, *rules, table.name, key.parent_table


def _parent_index(parent: TableVersion, key: ForeignConstraint) -> str | None:
    names = {column.id: column.name.lower() for column in parent.columns}
    wanted = [name.lower() for name in key.parent_columns]
    for index in parent.indexes:
        if [names[part.column_id] for part in index.parts[: len(wanted)]] == wanted:
            return index.name
    return None


def partition_rows(table: TableVersion) -> Iterator[RowValues]:
    """Rows of PARTITIONS: a nameless one without partitions."""
    if table.kind is TableKind.VIEW:
        return
    if table.partitioning is None:
        yield (*_named(table), *(None,) * 19, "", "", None)
        return
    for part in partitions(table.partitioning):
        yield (*_named(table), *part[:-1], *(None,) * 10, part.comment, "default", None)


def view_row(table: TableVersion) -> RowValues:
    """VIEWS, with the query as written."""
    view = view_parts(table)
    rest = (view.query, view.check_option, "YES", view.definer, view.security)
    return (*_named(table), *rest, table.charset, table.collation, view.algorithm)
