import datetime
import re
import struct
from decimal import Decimal

import pytest

from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.replication.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.replication.event.rows.encoding import encode_table_map, written_table
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.schema.names import column_of
from ibbmaster.sqltext.moment import Moment
from ibbmaster.tables.arrow.cell import (
    cell_reader,
    completed,
    completed_columns,
    day_cell,
    image_as_map,
    moment_cell,
    text_of,
)
from tests.case_table import data_beside

DATA = data_beside(__file__)

TEXTS = {
    "NULL": (None, None),
    "a text": ("漢 ", "漢 "),
    "an empty text": ("", ""),
    "bytes": (b"\0\xff", "0x00ff"),
    "no bytes": (b"", "0x"),
    "a number": (-5, "-5"),
    "the largest number": (18446744073709551615, "18446744073709551615"),
    "a decimal with zeros at its end": (Decimal("1.50"), "1.50"),
    "a small decimal": (Decimal("0.0000000001"), "0.0000000001"),
    "a decimal that is zero": (Decimal("0E-30"), "0." + "0" * 30),
    "a large decimal": (Decimal("9" * 65), "9" * 65),
    "a float": (1.5, "1.5"),
    "a vector": ((1.0, -0.5), "[1.0, -0.5]"),
    "an empty vector": ((), "[]"),
}


def column(name="a", kind=ValueKind.INTEGER, type_=ColumnType.LONG):
    return Column(name=name, type=type_, metadata=0, kind=kind)


@pytest.mark.parametrize(("value", "text"), TEXTS.values(), ids=TEXTS)
def test_a_value_is_text_as_mariadb_shows_it(value, text):
    assert text_of(value) == text


def test_an_image_is_a_map_of_the_columns_it_has():
    schema = TableSchema(
        table_id=1, database="db", table="t", columns=tuple(column(name) for name in ("id", "left_out", "nothing"))
    )

    assert image_as_map(schema, (1, ABSENT, None)) == {"id": "1", "nothing": None}
    assert image_as_map(schema, (ABSENT,) * 3) == {}
    assert image_as_map(schema, None) is None


def test_an_image_with_more_values_than_columns_is_no_map():
    with pytest.raises(ValueError, match="argument 2 is longer"):
        image_as_map(TableSchema(table_id=1, database="db", table="t", columns=(column(),)), (1, 2))


@pytest.mark.parametrize(
    ("declared", "spark_type", "value", "cell"),
    [
        ("int", "int", 7, 7),
        ("bigint", "bigint", 1 << 62, 1 << 62),
        ("varbinary(9)", "binary", b"\0", b"\0"),
        ("double", "double", 0.5, 0.5),
        ("decimal(10,2)", "decimal(10,2)", "1.50", Decimal("1.50")),
        ("bigint unsigned", "decimal(20,0)", 18446744073709551615, Decimal("18446744073709551615")),
        ("decimal(10,2)", "string", "1.50", "1.50"),
        ("varbinary(9)", "string", b"\1", "0x01"),
        ("date", "date", "1970-01-02", 1),
        ("timestamp", "timestamp", "1970-01-01 00:00:01", 1_000_000),
        ("datetime(1)", "timestamp_ntz", "1970-01-01 00:00:01.5", 1_500_000),
        ("datetime(1)", "string", "1970-01-01 00:00:01.5", "1970-01-01 00:00:01.5"),
    ],
)
def test_a_value_becomes_what_the_type_of_its_column_takes(declared, spark_type, value, cell):
    table = written_table("d.t", {"a": declared}, table_id=1)
    (column,) = decode_table_schema(encode_table_map(table, server_id=1)).columns
    data = table.columns[0].encode(value)
    found, end = cell_reader(column, spark_type)(data, 0)

    assert (found, type(found), end) == (cell, type(cell), len(data))


def test_a_vector_is_a_list_of_numbers():
    column = Column(name="a", type=ColumnType.VARCHAR, metadata=8, kind=ValueKind.VECTOR, size=8)

    assert cell_reader(column, "array<float>")(b"\x08" + struct.pack("<2f", 1, 2), 0) == ([1.0, 2.0], 9)


def moment(text) -> Moment:
    return Moment(*map(int, re.split("[-: .]", text)))


@pytest.mark.parametrize("text", ["1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31", "2024-02-29", "2000-02-29"])
def test_a_date_is_a_number_of_days_since_1970(text):
    days = day_cell(moment(text))

    assert isinstance(days, int)
    assert (datetime.date(1970, 1, 1) + datetime.timedelta(days=days)).isoformat() == text
    assert day_cell(moment(f"{text} 23:59:59.999999")) == days


@pytest.mark.parametrize("text", DATA["no_days"])
def test_what_is_no_day_is_no_date_and_no_moment(text):
    assert day_cell(moment(text)) is None
    assert moment_cell(moment(f"{text} 00:00:00")) is None
    assert moment_cell(moment(f"{text} 12:34:56.789000")) is None


@pytest.mark.parametrize(("text", "microseconds"), DATA["moments"])
def test_a_moment_is_a_number_of_microseconds_since_1970(text, microseconds):
    assert moment_cell(moment(text)) == microseconds


@pytest.mark.parametrize(
    "clock", ["24:00:00", "31:00:00", "00:60:00", "23:63:00", "00:00:60", "23:59:63.999999", "31:63:63", "24:00:00.000"]
)
def test_a_clock_beyond_the_last_second_of_a_day_is_no_moment(clock):
    assert moment_cell(moment(f"2024-02-29 {clock}")) is None
    assert moment_cell(moment(f"9999-12-31 {clock}")) is None
    assert day_cell(moment(f"2024-02-29 {clock}")) == day_cell(moment("2024-02-29"))


NAMES = ("id", "a", "made")
KNOWN = tuple(
    TableColumn(id=number, name=name, type=SqlType(word="int"), expression="id + 1" if name == "made" else None)
    for number, name in enumerate(NAMES)
)
COLUMNS = tuple(map(column_of, KNOWN))
SCHEMA = TableSchema(table_id=1, database="d", table="t", columns=COLUMNS, primary_key=(0,), has_names=True)
VERSION = TableVersion(database="d", name="t", columns=KNOWN)


def test_a_server_computes_a_generated_column_anew() -> None:
    assert completed_columns(SCHEMA, VERSION) == 0b011


def test_where_nobody_knows_what_is_generated_the_key_is_taken_alone() -> None:
    assert completed_columns(SCHEMA, None) == 0b001


def test_only_what_is_absent_is_taken() -> None:
    assert completed((1, 2, 3), (ABSENT, 5, ABSENT), 0b011) == (1, 5, ABSENT)
    assert completed((1, ABSENT, 3), (7, ABSENT, None), 0b111) == (7, ABSENT, None)
