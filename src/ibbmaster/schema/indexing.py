"""A table's indexes in a server's order, with its names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ibbmaster.replication.event.column_types.registry import BY_NAME
from .clause import IndexDefinition, NotUnderstoodError, PartDefinition
from .column_type import key_bytes
from .model import IndexKind, IndexPart, TableColumn, TableIndex, TableVersion

DEFAULT_ENGINE = "InnoDB"
BYTES_MAX = {"InnoDB": 3072, "MyISAM": 1000}  # of an index; for longer unique ones these engines keep a hash
BYTES_MAX_OF_OTHERS = 2300
_NAMES_MAX = 1 << 16


def arranged(indexes: Sequence[IndexDefinition], columns: Sequence[TableColumn], engine: str) -> tuple[TableIndex, ...]:
    """Indexes as written, old ones first: named, sorted, without those that a foreign key no longer needs. `columns`
    lack the NOT NULL of the primary key. Raises NotUnderstoodError: an index is of a missing column. Source: MariaDB
    11.8, sql_table.cc, mysql_prepare_create_table_finalize() and sort_keys()."""
    by_name = {column.name.lower(): column for column in columns}
    kept = _needed(indexes)
    found: list[tuple[tuple[int, ...], TableIndex]] = []
    names: set[str] = set()
    nullable = {column.id for column in columns if column.is_nullable}
    by_id = {column.id: column for column in columns}
    for index in kept:
        name = index.name or _free_name(index.parts[0].name if index.parts else "", names)
        names.add(name.lower())
        one = _index(index, name, by_name, engine)
        if one.kind is IndexKind.PRIMARY:
            nullable -= {part.column_id for part in one.parts}
        found.append((_rank(one, by_id, nullable), one))
    return tuple(index for _, index in sorted(found, key=lambda pair: pair[0]))


def is_by_hash(index: TableIndex, engine: str) -> bool:
    """Whether a unique index is so long that a hidden column holds a hash."""
    return index.kind is IndexKind.UNIQUE and index.algorithm == "HASH" and engine in BYTES_MAX


def _needed(indexes: Sequence[IndexDefinition]) -> list[IndexDefinition]:
    if not any(index.is_of_foreign_key for index in indexes):
        return list(indexes)
    kept: list[IndexDefinition | None] = []
    for index in indexes:
        is_kept = True
        for number, other in enumerate(kept):
            if other is None or not _is_prefix(index, other):
                continue
            if not other.is_of_foreign_key or (index.is_of_foreign_key and len(index.parts) < len(other.parts)):
                is_kept = False
            else:
                kept[number] = None
            break
        kept.append(index if is_kept else None)
    return [index for index in kept if index is not None]


def _is_prefix(one: IndexDefinition, other: IndexDefinition) -> bool:
    if not (one.is_of_foreign_key or other.is_of_foreign_key):
        return False
    if other.is_of_foreign_key and (not one.is_of_foreign_key or len(one.parts) > len(other.parts)):
        one, other = other, one
    if len(one.parts) > len(other.parts):
        return False
    pairs = zip(one.parts, other.parts, strict=False)
    return all(first.name.lower() == second.name.lower() for first, second in pairs)


def _free_name(column: str, names: set[str]) -> str:
    if column.lower() not in names and column.lower() != "primary":
        return column
    return next(name for n in range(2, _NAMES_MAX) if (name := f"{column}_{n}").lower() not in names)


def _index(index: IndexDefinition, name: str, columns: Mapping[str, TableColumn], engine: str) -> TableIndex:
    bytes_max = BYTES_MAX.get(engine, BYTES_MAX_OF_OTHERS)
    algorithm = index.algorithm
    parts = tuple(_part(part, columns) for part in index.parts)
    if index.kind is IndexKind.UNIQUE and engine in BYTES_MAX:
        sizes = [
            key_bytes(columns[one.name.lower()].type, part.length) for one, part in zip(index.parts, parts, strict=True)
        ]
        is_long = None in sizes or sum(size or 0 for size in sizes) > bytes_max
        algorithm = "HASH" if is_long or algorithm == "HASH" else algorithm
    elif index.kind is IndexKind.PLAIN:
        parts = tuple(
            _shortened(part, columns[one.name.lower()], bytes_max) for one, part in zip(index.parts, parts, strict=True)
        )
    return TableIndex(name=name, parts=parts, algorithm=algorithm, **_same(index))


def _part(part: PartDefinition, columns: Mapping[str, TableColumn]) -> IndexPart:
    column = columns.get(part.name.lower())
    if column is None:
        raise NotUnderstoodError(f"an index of column {part.name[:64]!r}, which there is not")
    length, whole = part.length, column.type.length
    if not BY_NAME[column.type.word].has_prefixes or (length is not None and whole is not None and length >= whole):
        length = None
    return IndexPart(column_id=column.id, length=length, is_descending=part.is_descending)


def _shortened(part: IndexPart, column: TableColumn, bytes_max: int) -> IndexPart:
    size = key_bytes(column.type, part.length)
    if size is not None and size <= bytes_max:
        return part
    unit = key_bytes(column.type, 1) or 1
    return replace(part, length=bytes_max // unit)


def _rank(index: TableIndex, columns: Mapping[int, TableColumn], nullable: set[int]) -> tuple[int, ...]:
    """Unique indexes without NULL first, the primary key before them; FULLTEXT and VECTOR last."""
    if index.kind is IndexKind.PRIMARY:
        return (0,)
    parts = [(columns[part.column_id], part) for part in index.parts]
    if index.kind is IndexKind.UNIQUE:
        has_null = any(column.id in nullable for column, _ in parts)
        has_prefix = any(part.length is not None or BY_NAME[column.type.word].is_large for column, part in parts)
        return (2, 2) if index.algorithm == "HASH" else (2 if has_null else 1, has_prefix)
    return (3 + (index.kind in (IndexKind.FULLTEXT, IndexKind.VECTOR)),)


def as_definitions(indexes: Iterable[TableIndex], names: Mapping[int, str], engine: str) -> list[IndexDefinition]:
    """As an ALTER TABLE starts with them; `names` are current, without dropped columns."""
    found = []
    for index in indexes:
        parts = tuple(
            PartDefinition(names[part.column_id], part.length, part.is_descending)
            for part in index.parts
            if part.column_id in names
        )
        if parts:
            algorithm = None if is_by_hash(index, engine) else index.algorithm  # found out anew
            found.append(IndexDefinition(name=index.name, parts=parts, algorithm=algorithm, **_same(index)))
    return found


def _same(index: IndexDefinition | TableIndex) -> dict[str, Any]:
    names = ("kind", "is_ignored", "comment", "options", "without_overlaps", "is_of_foreign_key")
    return {name: getattr(index, name) for name in names}


def row_key(table: TableVersion) -> TableIndex | None:
    """What identifies rows: the primary key, or the first unique index of whole columns that are never NULL."""
    by_id = {column.id: column for column in table.columns}
    engine = table.options.get("ENGINE", DEFAULT_ENGINE)
    for index in table.indexes:
        is_whole = not any(by_id[part.column_id].is_nullable or part.length is not None for part in index.parts)
        is_unique = index.kind is IndexKind.UNIQUE and not is_by_hash(index, engine)
        if index.kind is IndexKind.PRIMARY or (is_unique and is_whole):
            ends = [IndexPart(column_id=column.id) for column in period_ends(table, index)]
            return replace(index, parts=(*index.parts, *ends))
    return None


def period_ends(table: TableVersion, index: TableIndex) -> list[TableColumn]:
    """Of the period that an index is WITHOUT OVERLAPS of, in its order."""
    names = [name for period, start, end in table.periods if period == index.without_overlaps for name in (end, start)]
    return [column for name in names if (column := table.column(name)) is not None]
