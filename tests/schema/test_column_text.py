"""Types and defaults of columns; the expected texts were printed by MariaDB 10.11 and 11.8."""

import pytest

from ibbmaster.schema.column_text import default_text, type_text
from ibbmaster.schema.model import RowPeriod, SqlType, TableColumn
from ibbmaster.sqltext.quoting import quoted_text, unquoted

TYPES = {
    "int(10) unsigned zerofill": SqlType(word="int", length=10, is_unsigned=True, is_zerofill=True),
    "decimal(5,2)": SqlType(word="decimal", length=5, scale=2),
    "double": SqlType(word="double"),
    "float(7,3)": SqlType(word="float", length=7, scale=3),
    "enum('a','b''c','\\\\')": SqlType(word="enum", labels=("a", "b'c", "\\")),
    "set('x','y')": SqlType(word="set", labels=("x", "y")),
    "datetime(3)": SqlType(word="datetime", scale=3),
    "timestamp": SqlType(word="timestamp"),
    "varchar(9) /*M!100301 COMPRESSED*/": SqlType(word="varchar", length=9, is_compressed=True),
    "bit(10)": SqlType(word="bit", length=10),
}
DEFAULTS = [
    ("int(11)", SqlType(word="int", length=11), "'5'", "5"),
    ("int, rounded", SqlType(word="int", length=11), "1.5", "2"),
    ("int, negative", SqlType(word="int", length=11), "- 1", "-1"),
    ("zerofill", SqlType(word="int", length=10, is_zerofill=True), "5", "0000000005"),
    ("boolean", SqlType(word="tinyint", length=1), "TRUE", "1"),
    ("decimal", SqlType(word="decimal", length=10, scale=3), "1.5e1", "15.000"),
    ("double", SqlType(word="double"), "1.50", "1.5"),
    ("a large double", SqlType(word="double"), "1e20", "1e20"),
    ("float(7,3)", SqlType(word="float", length=7, scale=3), "2", "2.000"),
    ("bit, of a number", SqlType(word="bit", length=10), "5", "b'101'"),
    ("bit", SqlType(word="bit", length=3), "b'101'", "b'101'"),
    ("year", SqlType(word="year", length=4), "70", "1970"),
    ("date, of a number", SqlType(word="date"), "20200101", "'2020-01-01'"),
    ("date, of zero", SqlType(word="date"), "0", "'0000-00-00'"),
    ("datetime", SqlType(word="datetime", scale=2), "'2020-1-2 3:04:05.678'", "'2020-01-02 03:04:05.67'"),
    ("timestamp, of a date", SqlType(word="timestamp"), "'2020-01-01'", "'2020-01-01 00:00:00'"),
    ("now", SqlType(word="datetime", scale=3), "NOW(3)", "current_timestamp(3)"),
    ("time, of zero", SqlType(word="time"), "0", "'00:00:00'"),
    ("time", SqlType(word="time", scale=2), "'12:00:00'", "'12:00:00.00'"),
    ("varchar, of a number", SqlType(word="varchar", length=10), "1", "'1'"),
    ("varchar", SqlType(word="varchar", length=10), "'x''y\\\\z'", "'x''y\\\\z'"),
    ("enum", SqlType(word="enum", labels=("a", "B")), "'b'", "'B'"),
    ("set", SqlType(word="set", labels=("x", "y", "z")), "'z,x'", "'x,z'"),
    ("varbinary", SqlType(word="varbinary", length=5), "0x4142", "x'4142'"),
    ("binary", SqlType(word="binary", length=3), "'a'", "x'610000'"),
    ("blob", SqlType(word="blob"), "'x'", "'x'"),
    ("text, an expression", SqlType(word="text"), "(concat('a', 'b'))", "concat('a','b')"),
    ("sequence", SqlType(word="bigint", length=20), "nextval(d.s)", "nextval(`d`.`s`)"),
    ("null", SqlType(word="text"), "NULL", "NULL"),
    ("nonsense stays", SqlType(word="date"), "'never'", "'never'"),
    ("a number that is none", SqlType(word="int", length=11), "'five'", "'five'"),
    ("an expression", SqlType(word="int", length=11), "(1+2)", "(1 + 2)"),
]


@pytest.mark.parametrize(("text", "column_type"), TYPES.items(), ids=list(TYPES))
def test_a_type_is_printed_as_a_server_prints_it(text, column_type):
    assert type_text(column_type) == text


@pytest.mark.parametrize(("_", "column_type", "written", "printed"), DEFAULTS, ids=[case[0] for case in DEFAULTS])
def test_a_default_is_printed_as_the_value_it_is_in_its_type(_, column_type, written, printed):
    assert default_text(TableColumn(id=1, name="c", type=column_type, default=written), 110806) == printed


def test_an_older_server_prints_bytes_as_text():
    column = TableColumn(id=1, name="c", type=SqlType(word="binary", length=3), default="'a'")
    assert default_text(column, 101119) == "'a\\0\\0'"


def test_the_ends_of_a_period_and_columns_without_a_default_print_none():
    period = TableColumn(id=1, name="c", type=SqlType(word="timestamp"), default="0", period=RowPeriod.START)
    assert default_text(period, 110806) is None
    assert default_text(TableColumn(id=1, name="c", type=SqlType(word="date")), 110806) is None


@pytest.mark.parametrize("text", ["", "it's", "a\\b\n\r\0", "ü€𝄞"])
def test_a_text_survives_its_quotes(text):
    assert unquoted(quoted_text(text)) == text
