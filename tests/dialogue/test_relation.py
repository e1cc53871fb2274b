"""Tables as values: chosen from, cut to size, and turned into an answer."""

import itertools

import pytest

from ibbmaster.dialogue.relation import Relation
from ibbmaster.wire.response import ColumnDefinition, FieldType

COLUMNS = tuple(
    ColumnDefinition(name=name, column_type=FieldType.VAR_STRING, length=64) for name in ("Log_name", "Size")
)
ROWS = [("a", 1), ("b", None), ("c", 3)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        *((None, ROWS), ((0, 1), ROWS[:1]), ((1, 1), ROWS[1:2]), ((2, None), ROWS[2:]), ((0, 2**64 - 1), ROWS)),
        ((9, 9), []),
    ],
)
def test_a_limit_leaves_rows_out_in_front_and_behind(limit, expected):
    assert list(Relation(COLUMNS, iter(ROWS)).limited(limit).rows) == expected


def test_a_limit_reads_no_row_behind_it():
    rows = Relation(COLUMNS, iter(itertools.repeat(("a", 1)))).limited((0, 2))

    assert list(rows.rows) == [("a", 1)] * 2  # of a table without end


def test_an_answer_has_texts_and_keeps_null():
    answer = Relation(COLUMNS, ROWS).result(status=2)

    assert answer.columns == COLUMNS
    assert list(answer.rows) == [(b"a", b"1"), (b"b", None), (b"c", b"3")]
