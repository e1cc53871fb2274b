"""The indexes of a table in the order and with the names that a server gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ibbmaster.schema.clause import IndexDefinition, NotUnderstoodError, PartDefinition
from ibbmaster.schema.model import IndexKind, IndexPart, TableColumn, TableIndex

_NAMES_MAX = 1 << 16


def arranged(indexes: Sequence[IndexDefinition], columns: Sequence[TableColumn]) -> tuple[TableIndex, ...]:
    """Indexes as they were written, the old ones of a table first: named, sorted, and without those that
    a foreign key no longer needs.

    Raises:
        NotUnderstoodError: an index is of a column that there is not.

    Source: MariaDB 11.8, sql_table.cc, mysql_prepare_create_table_finalize() and sort_keys().
    """
    by_name = {column.name.lower(): column for column in columns}
    kept = _needed(indexes)
    found: list[TableIndex] = []
    names: set[str] = set()
    for index in kept:
        name = index.name or _free_name(index.parts[0].name if index.parts else "", names)
        names.add(name.lower())
        found.append(_index(index, name, by_name))
    by_id = {column.id: column for column in columns}
    return tuple(sorted(found, key=lambda index: _rank(index, by_id)))


def _needed(indexes: Sequence[IndexDefinition]) -> list[IndexDefinition]:
    """All but those made for a foreign key whose work another one does."""
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
    """Whether one of them is made for a foreign key, and the other one begins with its columns."""
    short, long_ = one, other
    if one.is_of_foreign_key:
        if other.is_of_foreign_key and len(one.parts) > len(other.parts):
            short, long_ = other, one
    elif other.is_of_foreign_key:
        short, long_ = other, one
    else:
        return False
    if len(short.parts) > len(long_.parts):
        return False
    pairs = zip(short.parts, long_.parts, strict=False)
    return all(first.name.lower() == second.name.lower() for first, second in pairs)


def _free_name(column: str, names: set[str]) -> str:
    """The name of the first column, with a number if there is an index of that name."""
    if column.lower() not in names and column.lower() != "primary":
        return column
    return next(name for n in range(2, _NAMES_MAX) if (name := f"{column}_{n}").lower() not in names)


def _index(index: IndexDefinition, name: str, columns: Mapping[str, TableColumn]) -> TableIndex:
    return TableIndex(
        name=name,
        kind=index.kind,
        parts=tuple(_part(part, columns) for part in index.parts),
        algorithm=index.algorithm,
        is_ignored=index.is_ignored,
        comment=index.comment,
        options=index.options,
        without_overlaps=index.without_overlaps,
        is_of_foreign_key=index.is_of_foreign_key,
    )


def _part(part: PartDefinition, columns: Mapping[str, TableColumn]) -> IndexPart:
    column = columns.get(part.name.lower())
    if column is None:
        raise NotUnderstoodError(f"an index of column {part.name[:64]!r}, which there is not")
    length = None if part.length == column.type.length else part.length
    return IndexPart(column_id=column.id, length=length, is_descending=part.is_descending)


def _rank(index: TableIndex, columns: Mapping[int, TableColumn]) -> tuple[int, ...]:
    """Unique ones without NULL first, the primary key before them; FULLTEXT and VECTOR last."""
    if index.kind is IndexKind.PRIMARY:
        return (0,)
    parts = [(columns[part.column_id], part) for part in index.parts]
    if index.kind is IndexKind.UNIQUE:
        has_null = any(column.is_nullable for column, _ in parts)
        has_prefix = any(part.length is not None for _, part in parts)
        return (2 if has_null else 1, has_prefix)
    return (3 + (index.kind in (IndexKind.FULLTEXT, IndexKind.VECTOR)),)


def as_definitions(indexes: Iterable[TableIndex], names: Mapping[int, str]) -> list[IndexDefinition]:
    """Indexes of a table as an ALTER TABLE begins with them; `names` are its columns' now, without those dropped."""
    found = []
    for index in indexes:
        parts = tuple(
            PartDefinition(names[part.column_id], part.length, part.is_descending)
            for part in index.parts
            if part.column_id in names
        )
        if parts:
            found.append(
                IndexDefinition(
                    kind=index.kind,
                    name=index.name,
                    parts=parts,
                    algorithm=index.algorithm,
                    is_ignored=index.is_ignored,
                    comment=index.comment,
                    options=index.options,
                    without_overlaps=index.without_overlaps,
                    is_of_foreign_key=index.is_of_foreign_key,
                )
            )
    return found


def row_key(indexes: Sequence[TableIndex], columns: Sequence[TableColumn]) -> TableIndex | None:
    """What tells rows apart: the primary key, or the first unique index whose columns are whole and never NULL."""
    by_id = {column.id: column for column in columns}
    for index in indexes:
        if index.kind is IndexKind.PRIMARY:
            return index
        if index.kind is IndexKind.UNIQUE and not any(
            by_id[part.column_id].is_nullable or part.length is not None for part in index.parts
        ):
            return index
    return None
