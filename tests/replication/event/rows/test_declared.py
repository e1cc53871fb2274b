import dataclasses

import pytest
from lanes.replay import CLASSIC, created_table, raw_events

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.rows.column import ValueKind
from ibbmaster.replication.event.rows.declared import declare
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.declarations import parse_declarations
from tests.case_table import data_beside

CASES = data_beside(__file__)


def tables_of(capture):
    """Each table as the log has it, with the columns of the CREATE TABLE statement before it."""
    declarations = {}
    for event in raw_events(CLASSIC / capture):
        if (created := created_table(event)) is not None:
            declarations[created[0]] = created[1]
        elif event[4] == EventType.TABLE_MAP:
            schema = decode_table_schema(event)
            yield schema, declarations[schema.name]


@pytest.mark.parametrize("capture", ["10.11/types-full-crc32", "11.8/types-full-crc32"])
def test_a_declared_number_has_the_sign_that_full_metadata_tells(capture):
    compared = {}
    for schema, declaration in tables_of(capture):
        declared = declare(schema, declaration)
        for text, told, column in zip(declaration.values(), schema.columns, declared.columns, strict=True):
            if told.kind is ValueKind.INTEGER:
                assert column.is_unsigned == told.is_unsigned, text
                compared[text] = told.is_unsigned
    assert compared["INT(7) ZEROFILL"]
    assert compared["INT UNSIGNED"]
    assert not compared["INT"]


def without_metadata(name):
    return next(schema for schema, _ in tables_of("11.8/types-minimal-none") if schema.name == name)


@pytest.mark.parametrize("word", ["int1", "int2", "int3", "middleint", "int4", "int8"])
def test_integers_have_other_names_too(word):
    ints = without_metadata("types.ints")
    assert declare(ints, {"@1": f"{word} unsigned"}).columns[0].is_unsigned is True
    assert declare(ints, {"@1": word}).columns[0].is_unsigned is False


def text_column(declared, *, told=None):
    schema = without_metadata("types.strings")
    number = next(n for n, column in enumerate(schema.columns) if column.type_name.startswith("VARCHAR"))
    column = dataclasses.replace(schema.columns[number], charset=told, name="a")
    columns = (*schema.columns[:number], column, *schema.columns[number + 1 :])
    return declare(dataclasses.replace(schema, columns=columns), {"a": declared}).columns[number]


@pytest.mark.parametrize(("sql", "charset"), CASES)
def test_without_metadata_a_column_s_own_character_set_goes_before_its_collation_and_its_table(sql, charset):
    column = text_column(next(parse_declarations(sql))[1]["a"])

    assert (column.kind, column.charset) == (ValueKind.TEXT, charset)


@pytest.mark.parametrize(
    ("told", "declared", "charset"),
    [
        (None, "CHARACTER SET binary", "binary"),
        (None, "COLLATE binary", "binary"),
        ("utf8mb4", "CHARACTER SET latin1", "utf8mb4"),
        ("latin1", "", "latin1"),
        ("binary", "CHARACTER SET latin1", "latin1"),
        ("binary", "", "utf8mb4"),
        ("collation 999", "CHARACTER SET latin1", "latin1"),
    ],
)
def test_the_charset_of_an_event_goes_before_a_declared_one_unless_it_is_binary_or_not_known(told, declared, charset):
    column = text_column(f"varchar(9) {declared}", told=told)
    assert (column.kind, column.charset) == (ValueKind.BINARY if charset == "binary" else ValueKind.TEXT, charset)


@pytest.mark.parametrize(
    ("told", "declared", "unknown"),
    [
        (None, "CHARSET latin99", "latin99"),
        (None, "COLLATE latin99_bin", "latin99"),
        ("collation 999", "", "collation 999"),
    ],
)
def test_a_character_set_that_does_not_exist_or_is_not_known_is_refused(told, declared, unknown):
    with pytest.raises(ConfigurationError, match=f"column a: character set {unknown} is not known"):
        text_column(f"varchar(9) {declared}", told=told)


@pytest.mark.parametrize("capture", ["10.11/types-full-crc32", "11.8/types-full-crc32"])
def test_a_declared_key_is_the_one_that_full_metadata_tells(capture):
    sizes = set()
    for schema, declaration in tables_of(capture):
        declared = declare(dataclasses.replace(schema, primary_key=()), declaration)
        assert sorted(declared.primary_key) == sorted(schema.primary_key), schema.name
        assert declare(schema, declaration).primary_key == schema.primary_key
        sizes.add(len(schema.primary_key))
    assert len(sizes) > 1


@pytest.mark.parametrize("capture", ["10.11/types-full-crc32", "11.8/types-full-crc32"])
def test_what_full_metadata_tells_goes_before_what_is_declared(capture):
    """As a user has it whose table was altered since: other labels, other signs, bytes for text."""
    others = {
        ValueKind.ENUM: "enum('other')",
        ValueKind.SET: "set('other')",
        ValueKind.INTEGER: "bigint",
        ValueKind.TEXT: "longblob",
    }
    seen = set()
    for schema, _ in tables_of(capture):
        for column in schema.columns:
            if column.kind in others:
                text = others[column.kind] + " unsigned" * (column.is_unsigned is False)
                (found,) = (one for one in declare(schema, {column.name: text}).columns if one.name == column.name)
                assert found == column
                seen.add(column.kind)
    assert seen == set(others)


def test_labels_are_declared_where_the_event_has_none():
    schema = next(schema for schema, _ in tables_of("11.8/types-minimal-none") if "ENUM" in str(schema.columns))
    name = next(column.name for column in schema.columns if column.kind is ValueKind.ENUM)
    (column,) = (column for column in declare(schema, {name: "enum('x','y')"}).columns if column.name == name)
    assert column.labels == ("x", "y")
