import pytest

from ibbmaster.rows.shape import SchemaMode
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.read_options import parse_schema_mode


@pytest.mark.parametrize(
    ("text", "mode", "gtid"),
    [
        ("latest", SchemaMode.LATEST, None),
        (" ASWRITTEN ", SchemaMode.AS_WRITTEN, None),
        ("at:0-1-5, 1-1-7", SchemaMode.AT, "0-1-5,1-1-7"),
    ],
)
def test_a_shape_is_that_of_the_end_of_each_row_or_of_a_position(text, mode, gtid) -> None:
    assert parse_schema_mode("it", text) == (mode, gtid)
    options = parse_options({"path": "/x", "table": "a.b", "schemaMode": text})
    assert (options.schema_mode, options.schema_at) == (mode, gtid)
