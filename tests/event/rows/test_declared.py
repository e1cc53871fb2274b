"""What a declaration says of columns, beside what real logs say of them."""

from __future__ import annotations

import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.event.query import decode_query
from ibbmaster.event.rows.column import Kind
from ibbmaster.event.rows.ddl import parse_create_table
from ibbmaster.event.rows.declared import declare
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.types import EventType


def tables_of(capture):
    """Each table as the log has it, with the columns of the CREATE TABLE statement before it."""
    declarations = {}
    for event in raw_events(CLASSIC / capture):
        if event[4] in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            query = decode_query(event)
            found = parse_create_table(query.text.decode("utf-8", "replace"), database=query.database.decode())
            if found is not None:
                declarations[found[0]] = found[1]
        elif event[4] == EventType.TABLE_MAP:
            schema = decode_table_schema(event)
            yield schema, declarations[schema.name]


@pytest.mark.parametrize("capture", ["10.11/types-full-crc32", "11.8/types-full-crc32"])
def test_a_declared_number_has_the_sign_that_full_metadata_tells(capture):
    compared = {}
    for schema, declaration in tables_of(capture):
        declared = declare(schema, declaration)
        for text, told, column in zip(declaration.values(), schema.columns, declared.columns, strict=True):
            if told.kind is Kind.INTEGER:
                assert column.is_unsigned == told.is_unsigned, text
                compared[text] = told.is_unsigned
    assert compared["INT(7) ZEROFILL"]
    assert compared["INT UNSIGNED"]
    assert not compared["INT"]


def ints():
    """The table of integers as a log without metadata has it."""
    return next(schema for schema, _ in tables_of("11.8/types-minimal-none") if schema.name == "types.ints")


def strings():
    return next(schema for schema, _ in tables_of("11.8/types-minimal-none") if schema.name == "types.strings")


@pytest.mark.parametrize(
    ("text", "is_unsigned"),
    [
        ("bigint unsigned", True),
        ("bigint zerofill", True),
        ("serial", True),
        ("bigint comment 'unsigned'", False),
        ("bigint default 'zerofill'", False),
        ("bigint as (cast(a as unsigned))", False),
        ("bigint", False),
    ],
)
def test_a_sign_is_what_attributes_say_and_not_what_strings_say(text, is_unsigned):
    column = declare(ints(), {"@1": text}).columns[0]

    assert column.is_unsigned is is_unsigned
    assert column.is_declared


def test_a_character_set_is_no_word_of_a_comment():
    name = next(column.name for column in strings().columns if column.type_name.startswith("VARCHAR"))

    def charset(text):
        return next(c for c in declare(strings(), {name: text}).columns if c.name == name).charset

    assert charset("varchar(9) character set latin1 comment 'character set utf16'") == "latin1"
    assert charset("varchar(9) comment 'CHARSET latin1'") == "utf8mb4"
    assert charset("varchar(9) CHARACTER  SET utf8") == "utf8mb3"
