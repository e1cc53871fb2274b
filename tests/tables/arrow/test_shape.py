"""Columns of DataFrames: names that cannot collide, and types that Arrow and Spark agree on."""

import random

import pyarrow as pa
import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.rows.encoding import encode_table_map, written_table
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.rows.shape import TableShape
from ibbmaster.tables.arrow.read_options import Granularity, ZeroDates
from ibbmaster.tables.arrow.shape import (
    SHAPES,
    TAKEN,
    ShapeField,
    arrow_schema,
    arrow_type,
    field_name,
    generic_shape,
    own_name,
    spark_ddl,
    table_fields,
)
from tests.case_table import data_beside

SPARK_TYPES = data_beside(__file__)


def shape_of(columns):
    table_map = encode_table_map(written_table("d.t", columns, table_id=1), server_id=1)
    return TableShape(schema=decode_table_schema(table_map))


def test_each_kind_of_column_has_its_type():
    shape = shape_of({f"c{number}": declared for number, declared in enumerate(SPARK_TYPES)})
    found = [field.type for field in table_fields(shape, ZeroDates.NULL) if field.name.startswith("c")]
    assert found == list(SPARK_TYPES.values())


def test_a_column_named_as_ours_gets_an_underscore_and_loses_it_again():
    names = [*TAKEN, "_GTID", "__gtid", "gtid", "_other", "__other"]
    for name in names:
        assert own_name(field_name(name)) == name
    assert len({field_name(name) for name in names}) == len(names)
    assert not {field_name(name).lower() for name in TAKEN} & TAKEN
    assert (field_name("_gtid"), field_name("_other")) == ("__gtid", "_other")


@pytest.mark.parametrize("granularity", SHAPES)
def test_columns_are_those_asked_for_in_that_order(granularity):
    names = [field.name for field in generic_shape(granularity)]
    wanted = random.sample(names, 2)
    assert [field.name for field in generic_shape(granularity, wanted)] == wanted
    with pytest.raises(ConfigurationError, match=f"no column nothing; there are {names[0]}"):
        generic_shape(granularity, ["nothing"])


def test_names_that_differ_in_their_case_alone_are_refused():
    with pytest.raises(ConfigurationError, match=r"d\.t has two columns that differ only in their case: a"):
        table_fields(shape_of({"a": "int", "A": "int"}), ZeroDates.NULL)


def test_a_table_without_names_asks_for_a_declaration():
    schema = decode_table_schema(_nameless())
    with pytest.raises(ConfigurationError, match="declare them with option schema"):
        table_fields(TableShape(schema=schema), ZeroDates.NULL)


def _nameless() -> bytes:
    from ibbmaster.replication.event.header import encode_event

    body = bytes.fromhex("070000000000 0100 01 64 00 01 74 00 01 03 00 00")
    return encode_event(event_type=19, body=body, server_id=1)


def test_arrow_has_a_type_for_each_of_sparks():
    for fields in SHAPES.values():
        assert arrow_schema(fields).names == [field.name for field in fields]
    assert arrow_type("decimal(10,2)") == pa.decimal128(10, 2)
    assert all(arrow_type(name) is not None for name in SPARK_TYPES.values())


def test_a_schema_is_told_in_words_that_spark_reads():
    assert spark_ddl([ShapeField("a`b", "int"), ShapeField("c", "array<string>")]) == "`a``b` int, `c` array<string>"
    assert Granularity.PAGES in SHAPES
