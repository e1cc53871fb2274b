"""A TABLE_MAP event beside what DDL says of its table, and a table out of such an event alone."""

from collections.abc import Callable

from ibbmaster.event.column_types.registry import BY_CODE, BY_NAME
from ibbmaster.event.rows.column import LETTERS, Column, TableSchema
from ibbmaster.schema.collations import character_sets
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion


def disagreement(table: TableVersion, schema: TableSchema) -> str | None:
    """Where a TABLE_MAP event contradicts a version of its table, in words; None if it does not. Of a table that no
    statement defines names are compared alone: what ALTER TABLE adds may hang on what is not known."""
    if len(schema.columns) != len(table.columns):
        return f"rows of {len(schema.columns)} columns, by its DDL it has {len(table.columns)}"
    only_names = schema.has_names and bool(table.undefined_because)
    for number, (found, column) in enumerate(zip(schema.columns, table.columns, strict=True), start=1):
        if only_names and found.name == column.name:
            continue
        problem = _difference(found, column, has_names=schema.has_names)
        if problem is not None:
            return f"column {number} ({column.name[:64]}) is {problem} in its rows"
    return None


def _difference(found: Column, column: TableColumn, *, has_names: bool) -> str | None:
    type_ = column.type
    if has_names and found.name != column.name:
        return f"called {found.name[:64]!r}"
    kind = BY_NAME.get(type_.word)
    if kind is None or found.type not in kind.codes:
        return f"a {found.type_name} and not {type_.word}"
    size = kind.size_of(type_) if kind.compares_size else None
    if size is not None and found.size != size:
        return f"a {found.type_name} and not {type_.word} of {size} bytes or digits"
    if kind.has_scale and found.type == kind.codes[0] and found.scale != (type_.scale or 0):
        return f"a {found.type_name} and not {type_.word} with {type_.scale or 0} digits"
    if found.is_unsigned is not None and kind.is_integer and found.is_unsigned != type_.is_unsigned:
        return "signed" if type_.is_unsigned else "unsigned"
    if found.labels is not None and type_.labels and found.labels != type_.labels:
        return f"of other labels: {', '.join(found.labels)[:64]}"
    if found.charset is not None and type_.charset is not None and found.charset != type_.charset:
        return f"of character set {found.charset} and not {type_.charset}"
    return None


def derived_table(schema: TableSchema, place: SchemaPlace, gtid: str, new_id: Callable[[], int]) -> TableVersion | None:
    """The table that a TABLE_MAP event with names describes; None if it has no names. What it does not have is not
    there: defaults, widths, most indexes; types that are one in the event are the commonest of them."""
    if not schema.has_names:
        return None
    columns = tuple(
        TableColumn(
            id=new_id(),
            name=column.name,
            type=_type_of(column),
            is_nullable=column.is_nullable,
            is_hidden=column.is_internal,
        )
        for column in schema.columns
    )
    parts = tuple(IndexPart(column_id=columns[number].id) for number in schema.primary_key)
    return TableVersion(
        database=schema.database,
        name=schema.table,
        columns=columns,
        indexes=(TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=parts),) if parts else (),
        since=place,
        gtid=gtid,
    )


def _type_of(column: Column) -> SqlType:
    kind = BY_CODE.get(column.type)
    charset = column.charset if column.kind in LETTERS else None
    charset = charset if charset in character_sets() else None
    collation = character_sets()[charset].old_default if charset is not None else None
    unit = None if charset is None else character_sets()[charset].size_max
    word, length, scale = ("longblob", None, column.scale or None) if kind is None else kind.derived(column, unit)
    return SqlType(
        word=word,
        length=length,
        scale=scale,
        is_unsigned=bool(column.is_unsigned),
        labels=column.labels or (),
        charset=charset,
        collation=collation,
        is_compressed=column.is_compressed,
    )
