"""The columns of the tables of information_schema and of SHOW: a row each in `table_columns.tsv`."""

import functools
from dataclasses import replace

from ibbmaster.facts import rows_of
from ibbmaster.replication.wire.response import COLLATION_BINARY, COLLATION_DEFAULT, ColumnDefinition, FieldType

GTID_SLAVE_POS = "gtid_slave_pos"
SYSTEM_DATABASES = ("information_schema", "mysql", "performance_schema")
CHARSET, COLLATION = "utf8mb3", "utf8mb3_general_ci"  # of texts in these tables
LETTER_SIZE = 4  # bytes of the longest letter of utf8mb4, in which all texts are sent
_FLAGS = 0x1001  # NOT NULL, and without a default
_MAY_BE_NULL = 0x1000
_TYPES = {
    "v": FieldType.VAR_STRING,
    "t": FieldType.BLOB,
    "b": FieldType.LONG_BLOB,
    "y": FieldType.TINY,
    "s": FieldType.SHORT,
    "i": FieldType.LONG,
    "l": FieldType.LONGLONG,
    "n": FieldType.NEWDECIMAL,
    "r": FieldType.FLOAT,
    "f": FieldType.DOUBLE,
    "d": FieldType.DATETIME,
}
_TEXTS = "vtb"


def read_columns(text: str, *, schema: str = "", table: str = "") -> tuple[ColumnDefinition, ...]:
    """Columns of a text such as `Charset v128, Maxlen l3`: name, letter of the type, length in bytes, `?` if it may be
    NULL, `:` and other flags in hexadecimal, `/` and decimals."""
    return tuple(_column(part, schema, table) for part in text.split(", "))


@functools.cache
def information_columns(table: str) -> tuple[ColumnDefinition, ...]:
    return read_columns(INFORMATION_SCHEMA[table], schema="information_schema", table=table)


def shown_columns(what: str, name: str = "") -> tuple[ColumnDefinition, ...]:
    """The columns of SHOW; `name`: another name of the first one."""
    columns = _shown(what)
    return (replace(columns[0], name=name), *columns[1:]) if name else columns


@functools.cache
def _shown(what: str) -> tuple[ColumnDefinition, ...]:
    return read_columns(SHOWN[what])


def _column(text: str, schema: str, table: str) -> ColumnDefinition:
    name, _, rest = text.rpartition(" ")
    rest, _, decimals = rest.partition("/")
    rest, _, flags = rest.partition(":")
    may_be_null = rest.endswith("?")
    return ColumnDefinition(
        name=name,
        column_type=_TYPES[rest[0]],
        length=int(rest[1:].removesuffix("?")),
        collation_id=COLLATION_DEFAULT if rest[0] in _TEXTS else COLLATION_BINARY,
        flags=int(flags, 16) if flags else _MAY_BE_NULL if may_be_null else _FLAGS,
        decimals=int(decimals or 0),
        schema=schema,
        table=table,
        original_table=table,
        original_name=name if table else "",
    )


def _columns_of(statement: str) -> dict[str, str]:
    rows = rows_of("ibbmaster.primary.dialogue", "table_columns")
    return {listed: ", ".join(columns) for asked, listed, *columns in rows if asked == statement}


INFORMATION_SCHEMA = _columns_of("SELECT")
SHOWN = _columns_of("SHOW")  # by what is shown
GTID_SLAVE_POS_COLUMNS = read_columns(
    "domain_id i10:5023, sub_id l20:5023, server_id i10:1021, seq_no l20:1021", schema="mysql", table=GTID_SLAVE_POS
)
