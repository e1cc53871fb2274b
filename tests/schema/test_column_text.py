"""Types and defaults of columns; the expected texts were printed by MariaDB 10.11 and 11.8."""

import pytest

from ibbmaster.schema.column_text import default_text, type_text
from ibbmaster.schema.model import RowPeriod, SqlType, TableColumn
from tests.case_table import data_beside
from tests.schema.conftest import type_of

DATA = data_beside(__file__)
DEFAULTS = DATA["defaults"]  # name, type, as written, as printed


@pytest.mark.parametrize("text", DATA["types"])
def test_a_type_is_printed_as_a_server_prints_it(text):
    assert type_text(type_of(text)) == text


@pytest.mark.parametrize(("_", "declared", "written", "printed"), DEFAULTS, ids=[case[0] for case in DEFAULTS])
def test_a_default_is_printed_as_the_value_it_is_in_its_type(_, declared, written, printed):
    assert default_text(TableColumn(id=1, name="c", type=type_of(declared), default=written), 110806) == printed


def test_an_older_server_prints_bytes_as_text():
    column = TableColumn(id=1, name="c", type=SqlType(word="binary", length=3), default="'a'")
    assert default_text(column, 101119) == "'a\\0\\0'"


def test_the_ends_of_a_period_and_columns_without_a_default_print_none():
    period = TableColumn(id=1, name="c", type=SqlType(word="timestamp"), default="0", period=RowPeriod.START)
    assert default_text(period, 110806) is None
    assert default_text(TableColumn(id=1, name="c", type=SqlType(word="date")), 110806) is None
