import pytest

from ibbmaster.primary.dialogue.table_columns import INFORMATION_SCHEMA, SHOWN, information_columns, read_columns
from ibbmaster.replication.wire.response import COLLATION_BINARY, COLLATION_DEFAULT, FieldType


def test_a_column_is_a_name_a_type_a_length_flags_and_decimals():
    text, number, optional = read_columns("Log name v128, Maxlen l3:a1/2, Comment t64?")

    assert (text.name, text.column_type, text.length, text.flags) == ("Log name", FieldType.VAR_STRING, 128, 0x1001)
    assert (number.column_type, number.flags, number.decimals) == (FieldType.LONGLONG, 0xA1, 2)
    assert (optional.column_type, optional.flags) == (FieldType.BLOB, 0x1000)
    assert (text.collation_id, number.collation_id) == (COLLATION_DEFAULT, COLLATION_BINARY)


def test_a_column_of_a_table_has_its_own_name_behind_an_alias():
    (column,) = read_columns("A v1", schema="information_schema", table="T")
    names = column.schema, column.table, column.original_table, column.original_name
    assert names == ("information_schema", "T", "T", "A")
    assert read_columns("A v1")[0].original_name == ""


@pytest.mark.parametrize("table", INFORMATION_SCHEMA)
def test_each_table_of_information_schema_can_be_described(table):
    columns = information_columns(table)
    assert len({column.name for column in columns}) == len(columns) > 0


@pytest.mark.parametrize("what", SHOWN)
def test_each_answer_of_show_can_be_described(what):
    assert all(column.name and column.length for column in read_columns(SHOWN[what]))
