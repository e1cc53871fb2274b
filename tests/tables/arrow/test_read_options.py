"""What names the shape that a table is read in."""

import pytest

from ibbmaster.errors import ConfigurationError
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


@pytest.mark.parametrize("text", ["", "newest", "at", "at:", "latest:0-1-1", "asWritten:0-1-1", "0-1-1"])
def test_anything_else_is_refused(text) -> None:
    with pytest.raises(ConfigurationError, match=r"it is '.*', expected latest, asWritten or at:GTID"):
        parse_schema_mode("it", text)


def test_a_position_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="option schemaMode: '0-1' is not a valid GTID"):
        parse_options({"path": "/x", "schemaMode": "at:0-1"})


def test_of_a_primary_no_position_of_the_past_is_known() -> None:
    with pytest.raises(ConfigurationError, match="a primary does not tell what its tables were; give a path"):
        parse_options({"host": "here", "schemaMode": "at:0-1-1"})
