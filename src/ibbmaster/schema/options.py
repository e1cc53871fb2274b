"""What stands after the columns of a table: its options, and its partitions."""

from ibbmaster.schema.clause import NO_CHARSET, TableOptions
from ibbmaster.schema.reading import (
    expect_brackets,
    expect_option,
    expect_table,
    expect_text,
    fail,
    merged,
    takes_database_charset,
    written,
)
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.token import Token, TokenKind

_TWO_WORDS = {"DATA": "DIRECTORY", "INDEX": "DIRECTORY"}
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE")
_ENGINES = {
    name.lower(): name
    for name in (
        *("InnoDB", "MyISAM", "Aria", "MEMORY", "ARCHIVE", "CSV", "BLACKHOLE", "MRG_MyISAM", "SEQUENCE", "FEDERATED"),
        *("CONNECT", "SPIDER", "S3", "ROCKSDB", "Mroonga", "OQGRAPH", "SPHINX", "ColumnStore", "VIDEX"),
    )
} | {"heap": "MEMORY", "merge": "MRG_MyISAM", "maria": "Aria", "innobase": "InnoDB"}


def parse_options(cursor: Cursor, database: str = "") -> TableOptions:
    """Options with or without commas between them, up to a query or to the end; partitions last. Raises
    NotUnderstoodError: an option cannot be read."""
    charset, named = NO_CHARSET, {}
    is_versioned = False
    partitioning = None
    while not cursor.is_at_end:
        if cursor.takes_sign(","):
            continue
        if (found := takes_database_charset(cursor)) is not None:
            charset = merged(charset, found)
        elif cursor.takes_words("WITH", "SYSTEM", "VERSIONING"):
            is_versioned = True
        elif takes_partitioning(cursor) is not None:
            partitioning = _partitioning(cursor)
        elif _begins_query(cursor):
            break
        elif cursor.takes_words("UNION"):
            cursor.takes_sign("=")
            named["UNION"] = _union(Cursor(expect_brackets(cursor)), database)
        else:
            name, value = _option(cursor)
            named[name] = value
    return TableOptions(charset=charset, named=named, is_versioned=is_versioned, partitioning=partitioning)


def _union(cursor: Cursor, database: str) -> str:
    """The tables of a MERGE table, with their databases where these are others."""
    tables = []
    while not cursor.is_at_end:
        table = expect_table(cursor, database)
        tables.append(quoted_name(table.name) if table.database == database else table.sql)
        cursor.takes_sign(",")
    return f"({','.join(tables)})"


def _begins_query(cursor: Cursor) -> bool:
    return cursor.peek().is_word("AS", *_QUERY, "IGNORE", "REPLACE", "LIKE") or cursor.peek().is_sign("(")


def takes_partitioning(cursor: Cursor) -> bool | None:
    return True if cursor.takes_words("PARTITION", "BY") else None


def _partitioning(cursor: Cursor) -> str:
    """All of PARTITION BY, up to a query."""
    found: list[Token] = []
    while not cursor.is_at_end:
        if cursor.peek().is_sign("("):
            opening = cursor.peek()
            found += [opening, *cursor.bracketed(), Token(TokenKind.SIGN, ")")]
        elif cursor.peek().is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH"):
            break
        else:
            found.append(cursor.take())
    return written(found).strip()


def _option(cursor: Cursor) -> tuple[str, str]:
    first = cursor.take()
    if not first.is_name:
        raise fail(Cursor([first, *cursor.rest()]), "an option of the table")
    name = first.text.upper() if first.kind is TokenKind.WORD else first.text
    if name in ("DEFAULT", "STORAGE", "WITHOUT", "ADD", "DROP"):
        raise fail(Cursor([first, *cursor.rest()]), "an option of the table")
    if name in _TWO_WORDS and cursor.takes_words(_TWO_WORDS[name]):
        name = f"{name} {_TWO_WORDS[name]}"
    if name == "COMMENT":
        cursor.takes_sign("=")
        return name, expect_text(cursor)
    if name == "TYPE":
        name = "ENGINE"
    if name == "TABLE_CHECKSUM":
        name = "CHECKSUM"
    if not cursor.peek().is_sign("=") and name not in _BARE:
        raise fail(Cursor([first, *cursor.rest()]), "an option of the table")
    value = expect_option(cursor)
    return name, _ENGINES.get(value.lower(), value) if name == "ENGINE" else value


_BARE = frozenset(  # options whose equals sign may be left out
    (
        *("ENGINE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM", "PAGE_CHECKSUM", "CONNECTION"),
        *("DATA DIRECTORY", "INDEX DIRECTORY", "DELAY_KEY_WRITE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS"),
        *("MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT"),
        *("STATS_SAMPLE_PAGES", "TABLESPACE", "TRANSACTIONAL", "SEQUENCE"),
    )
)
