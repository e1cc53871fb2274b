"""A TABLE_MAP event beside what DDL says of its table, and a table out of such an event alone."""

from collections.abc import Callable

from ibbmaster.event.column_types.strings import GEOMETRIES
from ibbmaster.event.rows.charset import character_size
from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.facts import NULL, rows_of
from ibbmaster.schema.collations import character_sets
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion
from ibbmaster.schema.type_clause import INTEGERS

_Code = ColumnType
_SCALED = (_Code.NEWDECIMAL, _Code.TIME2, _Code.DATETIME2, _Code.TIMESTAMP2)  # older ones do not have it
_BLOBS = (_Code.BLOB, _Code.BLOB_COMPRESSED)
_STRINGS = (_Code.VARCHAR, _Code.VARCHAR_COMPRESSED, _Code.VAR_STRING)
_BLOB_LENGTHS = {"tiny": 1, "": 2, "medium": 3, "long": 4}
CODES: dict[str, tuple[int, ...]] = {
    word: tuple(ColumnType[code] for code in codes.split(" "))
    for word, _, codes, _ in rows_of(__package__, "types")
    if codes != NULL
}
_SIZES = {"uuid": 16, "inet4": 4, "inet6": 16}
_WORDS = {code: word for word, codes in reversed(CODES.items()) for code in codes} | {_Code.GEOMETRY: "geometry"}


def disagreement(table: TableVersion, schema: TableSchema) -> str | None:
    """Where a TABLE_MAP event contradicts a version of its table, in words; None if it does not.

    Of a table that no statement defines names are compared alone: what ALTER TABLE adds may hang on what is not known.
    """
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
    if found.type not in CODES.get(type_.word, ()):
        return f"a {found.type_name} and not {type_.word}"
    size = expected_size(type_)
    if size is not None and found.size != size:
        return f"a {found.type_name} and not {type_.word} of {size} bytes or digits"
    if found.type in _SCALED and found.scale != (type_.scale or 0):
        return f"a {found.type_name} and not {type_.word} with {type_.scale or 0} digits"
    if found.is_unsigned is not None and type_.word in INTEGERS and found.is_unsigned != type_.is_unsigned:
        return "signed" if type_.is_unsigned else "unsigned"
    if found.labels is not None and type_.labels and found.labels != type_.labels:
        return f"of other labels: {', '.join(found.labels)[:64]}"
    if found.charset is not None and type_.charset is not None and found.charset != type_.charset:
        return f"of character set {found.charset} and not {type_.charset}"
    return None


def expected_size(type_: SqlType) -> int | None:
    """What `Column.size` is of a type; None where it does not say anything, or a TABLE_MAP may have it otherwise."""
    unit = character_size(type_.charset)
    match type_.word:
        case "varchar" | "char" | "varbinary" | "binary" if type_.length is not None:
            return type_.length * unit + type_.is_compressed
        case "decimal" | "bit":
            return type_.length
        case "uuid" | "inet4" | "inet6":
            return _SIZES[type_.word]
        case word if word.endswith(("text", "blob")):
            return _BLOB_LENGTHS[word[:-4]]
    return None


def derived_table(schema: TableSchema, place: SchemaPlace, gtid: str, new_id: Callable[[], int]) -> TableVersion | None:
    """The table that a TABLE_MAP event with names describes; None if it has no names.

    What it does not have is not there: defaults, widths, most indexes; types that are one in the
    event are the commonest of them.
    """
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
    word = _WORDS.get(column.type, "longblob")
    charset = column.charset if column.kind in (ValueKind.TEXT, ValueKind.ENUM, ValueKind.SET) else None
    charset = charset if charset in character_sets() else None
    collation = character_sets()[charset].old_default if charset is not None else None
    length: int | None = None
    scale = column.scale or None
    if column.type in _BLOBS:
        size = next((size for size, length in _BLOB_LENGTHS.items() if length == column.size), "long")
        word = f"{size}{'blob' if charset is None else 'text'}"
    elif column.type == ColumnType.STRING or column.type in _STRINGS:
        is_fixed = column.type == ColumnType.STRING
        size_max = column.size - (column.type == ColumnType.VARCHAR_COMPRESSED)
        if charset is None:
            word, length = "binary" if is_fixed else "varbinary", size_max
        else:
            word = "char" if is_fixed else "varchar"
            length = size_max // character_sets()[charset].size_max
    elif word in INTEGERS:
        length = INTEGERS[word][bool(column.is_unsigned)]
    elif word in ("decimal", "bit"):
        length = column.size
        scale = column.scale if word == "decimal" else None
    elif word == "year":
        length = 4
    elif word == "geometry" and column.geometry_type is not None and column.geometry_type < len(GEOMETRIES):
        word = GEOMETRIES[column.geometry_type]
    return SqlType(
        word=word,
        length=length,
        scale=scale,
        is_unsigned=bool(column.is_unsigned),
        labels=column.labels or (),
        charset=charset,
        collation=collation,
        is_compressed=column.type in (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED),
    )
