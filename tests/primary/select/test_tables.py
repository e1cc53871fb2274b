import sqlite3

import pytest

from ibbmaster.primary.select import tables
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.case_table import data_beside

DATA = data_beside(__file__)


@pytest.fixture
def loads(run_of):
    def loads(sql):
        run_of.loads.clear()
        list(run_of(sql).answer().rows)
        return list(run_of.loads)

    return loads


def test_only_columns_that_are_named_are_loaded(loads):
    assert loads("SELECT COUNT(*) n FROM big x GROUP BY v") == [("big", ["v"], 2000)]
    assert loads("SELECT COUNT(*) FROM (SELECT 1 FROM nk) q")[0][:2] == ("nk", [])


def test_a_star_loads_all_columns(loads):
    assert loads("SELECT q.* FROM (SELECT x.* FROM nk x) q")[0][:2] == ("nk", ["a", "b"])


@pytest.mark.parametrize(("sql", "count"), DATA["rows of queries in brackets"])
def test_a_query_in_brackets_has_only_the_rows_loaded_that_it_gives(loads, sql, count):
    assert [rows for _, _, rows in loads(sql)] == [count]


def test_loading_can_be_broken_off(loads):
    work = Work(lambda: 0.0)
    work.break_off(BreakReason.KILLED)
    with doing(work), pytest.raises(BrokenOffError):
        loads("SELECT COUNT(*) FROM big GROUP BY v")


def test_the_next_query_finds_what_was_loaded_if_it_needs_the_same_of_the_same_place(run_of):
    kept = tables.KeptDatabase()

    def loads(sql, place):
        run_of.loads.clear()
        rows = list(run_of(sql, kept=kept, place=place).answer().rows)
        return rows, len(run_of.loads)

    first, count = loads("SELECT v, COUNT(*) FROM big GROUP BY v", 1)
    assert count == 1
    assert loads("SELECT v, COUNT(*) FROM big GROUP BY v", 1) == (first, 0)
    assert loads("SELECT MAX(v), COUNT(DISTINCT v) FROM big", 1)[1] == 0
    assert loads("SELECT v, COUNT(*) FROM big GROUP BY v", 2) == (first, 1)
    assert loads("SELECT v, COUNT(*) FROM big WHERE id < 9 GROUP BY v", 2)[1] == 1
    assert loads("SELECT a, COUNT(*) FROM nk GROUP BY a", 2)[1] == 1


def test_a_large_table_and_what_a_query_has_left_half_read_are_not_kept(run_of, monkeypatch):
    kept = tables.KeptDatabase()
    sql = "SELECT CONCAT(v, 'x'), id FROM big GROUP BY v, id"
    next(iter(run_of(sql, kept=kept, place=1).answer().rows))
    monkeypatch.setattr(tables, "KEPT_BYTES_MAX", 4096)
    for _ in range(2):
        list(run_of(sql, kept=kept, place=1).answer().rows)
    assert [name for name, _, _ in run_of.loads] == ["big"] * 3


def test_a_table_that_cannot_be_kept_is_no_error_of_the_query_that_loaded_it(run_of, monkeypatch):
    kept = tables.KeptDatabase()

    def give(key, database):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(kept, "give", give)
    for _ in range(2):
        assert len(list(run_of("SELECT v, COUNT(*) FROM big GROUP BY v", kept=kept, place=1).answer().rows)) == 2000
    assert [name for name, _, _ in run_of.loads] == ["big"] * 2
