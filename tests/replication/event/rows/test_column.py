import pytest

from ibbmaster.replication.event.rows.column import ColumnType, TableSchema
from tests.replication.event.conftest import column_of


def test_a_type_has_a_name_also_one_that_is_not_known():
    types = (ColumnType.LONG, 0), (ColumnType.VARCHAR, 40), (200, 0), (200, 7)
    names = [column_of(code, metadata=metadata).type_name for code, metadata in types]
    assert names == ["LONG", "VARCHAR(40)", "type 200", "type 200(7)"]


def test_a_table_is_named_with_its_database():
    assert TableSchema(table_id=1, database="shop", table="t", columns=()).name == "shop.t"


SAID = {  # of the types that differ in how their values are stored
    ColumnType.STRING: {"is_fixed_length"},
    ColumnType.BLOB: {"is_blob"},
    ColumnType.BLOB_COMPRESSED: {"is_blob", "is_compressed"},
    ColumnType.VARCHAR_COMPRESSED: {"is_compressed"},
    ColumnType.FLOAT: {"is_single_precision"},
    ColumnType.TIME: {"has_old_format"},
    ColumnType.DATETIME: {"has_old_format"},
    ColumnType.TIMESTAMP: {"has_old_format"},
}
PROPERTIES = ("is_fixed_length", "is_blob", "is_compressed", "is_single_precision", "has_old_format")


@pytest.mark.parametrize("code", ColumnType, ids=lambda code: code.name)
def test_a_column_says_how_its_values_are_stored(code):
    assert {name for name in PROPERTIES if getattr(column_of(code), name)} == SAID.get(code, set())
