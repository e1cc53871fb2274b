"""Queries of any form over a small log; what a real server says to hundreds more is in interop/test_queries.py."""

import pytest

from ibbmaster.primary.select import engine, tables
from ibbmaster.replication.wire.refusal import RefusedError
from tests.case_table import data_beside


def test_rows_are_grouped_and_ordered(rows_of):
    assert rows_of("SELECT id % 3 AS k, COUNT(*), MAX(id) FROM big GROUP BY k ORDER BY k DESC") == [
        ("2", "667", "2000"), ("1", "667", "1999"), ("0", "666", "1998"),
    ]  # fmt: skip


def test_aggregates_are_exact(rows_of):
    assert rows_of("SELECT COUNT(*), SUM(id), AVG(id), MIN(id), MAX(id) FROM big") == [
        ("2000", "2001000", "1000.5000", "1", "2000")
    ]
    assert rows_of("SELECT SUM(id) / 7, SUM(id) DIV 7, SUM(id) % 7 FROM big") == [("285857.1429", "285857", "1")]


def test_columns_are_told_without_rows(run_of):
    columns = run_of("SELECT COUNT(*) AS n, SUM(id), CONCAT(id, 'x') FROM big GROUP BY id").columns()
    assert [column.name for column in columns] == ["n", "SUM(id)", "CONCAT(id, 'x')"]
    assert [column.column_type for column in columns] == [8, 246, 253]


REFUSED = data_beside(__file__)


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_answered_has_the_number_of_its_error(rows_of, sql, code):
    with pytest.raises(RefusedError) as refused:
        rows_of(sql)
    assert refused.value.err.code == code


def test_a_query_takes_no_more_memory_than_it_may(run_of, monkeypatch):
    monkeypatch.setattr(engine, "PAGES_MAX", 2)
    with pytest.raises(RefusedError) as refused:
        run_of("SELECT id FROM big ORDER BY v").answer()
    assert refused.value.err.code == 1041


def test_a_query_that_sorts_without_end_leaves_room_on_the_file_system(run_of, monkeypatch):
    run = run_of("SELECT id FROM big ORDER BY v")
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 100)
    monkeypatch.setattr(tables, "FREE_SHARE", 1.1)
    monkeypatch.setattr(tables, "FREE_BYTES", 1 << 62)
    with pytest.raises(RefusedError, match=r"Out of memory: \d+ MiB are left in /\S+ for what queries sort") as refused:
        run.answer()
    assert refused.value.err.code == 1041
