"""A type that was told is compared with the logged one, by number or as SQL."""

import pytest

from ibbmaster.event.rows.encoding import encode_table_map, written_table
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.scorecard.same_type import is_same_type
from tests.case_table import cases_beside

CASES = cases_beside(__file__)


@pytest.mark.parametrize(("declared", "told", "is_same"), CASES.values(), ids=CASES)
def test_a_type_is_the_one_that_was_logged(declared, told, is_same):
    table = written_table("shop.t", {"a": declared}, table_id=1)
    (column,) = decode_table_schema(encode_table_map(table, server_id=1)).columns
    assert is_same_type(column, int(told) if told.isdigit() else told) is (is_same == "yes")
