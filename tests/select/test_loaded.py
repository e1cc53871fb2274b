"""What queries load of tables, and what of it is there for the next statement of their session."""

import contextlib
import gc
import weakref

import pytest

from ibbmaster.select import engine, loaded
from ibbmaster.select.loaded import KeptDatabases
from ibbmaster.wire.refusal import RefusedError
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.sessions import session_evaluator


@pytest.fixture
def kept():
    with closed_at_end(KeptDatabases()) as kept:
        yield kept


@contextlib.contextmanager
def closed_at_end(kept):
    """As the sessions would do that ask."""
    try:
        yield kept
    finally:
        for session in list(kept._kept):
            kept.forget(session)


@pytest.fixture
def ask(run_of, kept):
    """The rows of a query, and what it has read: tables with names of columns."""

    def ask(sql, **settings):
        run_of.loads.clear()
        rows = list(run_of(sql, kept=kept, **settings).answer().rows)
        return rows, list(run_of.loads)

    return ask


def test_only_columns_that_are_named_are_loaded(ask):
    assert ask("SELECT COUNT(*) n FROM big x GROUP BY v")[1] == [("big", ["v"])]
    assert ask("SELECT COUNT(*) FROM (SELECT 1 FROM nk) q")[1] == [("nk", [])]


def test_a_star_loads_all_columns(ask):
    _, loads = ask("SELECT q.* FROM (SELECT x.* FROM nk x) q")
    assert loads == [("nk", ["a", "b"])]


def test_the_next_statement_finds_what_was_loaded(ask):
    first, loads = ask("SELECT v, COUNT(*) FROM big GROUP BY v")
    assert len(loads) == 1
    assert ask("SELECT v, COUNT(*) FROM big GROUP BY v") == (first, [])
    assert ask("SELECT COUNT(*) n FROM big x GROUP BY x.v LIMIT 1")[1] == []


def test_columns_that_are_not_there_yet_are_loaded_beside_the_others(ask):
    ask("SELECT MAX(b) FROM nk GROUP BY b")
    assert ask("SELECT a, COUNT(*) FROM nk GROUP BY a")[1] == [("nk", ["a", "b"])]
    assert ask("SELECT a, b, COUNT(*) FROM nk GROUP BY a, b")[1] == []


def test_a_column_that_is_compared_is_loaded_with_its_key(ask):
    assert ask("SELECT MAX(CRC32(s)), MAX(n) FROM q GROUP BY n")[1] == [("q", ["s", "n"])]
    once, loads = ask("SELECT s, COUNT(*) FROM q GROUP BY s")
    assert loads == [("q", ["s", "n"])]
    assert ask("SELECT s, COUNT(*) FROM q GROUP BY s") == (once, [])


def test_a_later_position_or_another_time_zone_is_loaded_anew(ask, run_of):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    ask(sql)
    end = run_of(sql)._snapshot.end
    later = end._replace(offset=end.offset + 1)
    assert ask(sql, end=later)[1] == [("big", ["v"])]
    assert ask(sql, end=later)[1] == []
    session = session_evaluator()
    ask(sql, session=session)
    session.settings.values["time_zone"] = "+02:00"
    assert ask(sql, session=session)[1] == [("big", ["v"])]


def test_another_session_sees_nothing_of_it(ask):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    ask(sql)
    other = session_evaluator()
    assert ask(sql, session=other)[1] == [("big", ["v"])]
    assert ask(sql, session=other)[1] == []


def test_what_is_kept_of_one_session_is_bounded(ask, monkeypatch):
    """The table that was asked for last stays; the one before it goes."""
    ask("SELECT v, COUNT(*) FROM big GROUP BY v, id")
    assert ask("SELECT a, COUNT(*) FROM nk GROUP BY a")[1]
    monkeypatch.setattr(engine, "KEPT_BYTES_MAX", 5 * 4096)
    assert not ask("SELECT a, COUNT(*) FROM nk GROUP BY a")[1]
    assert not ask("SELECT a, COUNT(*) FROM nk GROUP BY a")[1]
    assert ask("SELECT v, COUNT(*) FROM big GROUP BY v, id")[1]
    assert ask("SELECT v, COUNT(*) FROM big GROUP BY v, id")[1]


def test_as_many_sessions_as_may_have_something_kept(run_of):
    sessions = [session_evaluator() for _ in range(3)]
    with closed_at_end(KeptDatabases(2)) as kept:
        for session in sessions:
            list(run_of("SELECT COUNT(*) FROM big GROUP BY v", kept=kept, session=session).answer().rows)
        databases = [kept.take(session) for session in sessions]
    assert [database.loaded("t0") is None for database in databases] == [True, False, False]
    for database in databases:
        database.close()


def test_nothing_is_kept_behind_the_end_of_a_session(ask, run_of, kept):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    session = session_evaluator()
    ask(sql, session=session)
    answer = run_of("SELECT id + 0 FROM big", kept=kept, session=session).answer()
    kept.forget(session)  # while rows are read
    assert len(list(answer.rows)) == 2000
    assert kept.take(session).loaded("t0") is None
    seen = weakref.ref(session)
    del session, answer
    gc.collect()
    assert seen() is None


def test_nothing_of_a_query_is_kept_beside_its_tables(run_of, kept):
    run = run_of("SELECT v, AVG(id), SUM(id + 0.5) FROM big GROUP BY v HAVING COUNT(*) < 9", kept=kept)
    assert list(run.answer().rows)
    seen = weakref.ref(run)
    del run
    gc.collect()
    assert seen() is None


def test_a_query_whose_rows_are_still_read_shares_nothing_with_the_next_one(ask, run_of, kept):
    sql = "SELECT id + 0 FROM big"
    whole, _ = ask(sql)
    rows = iter(run_of(sql, kept=kept).answer().rows)
    found = [next(rows) for _ in range(5)]
    assert ask("SELECT COUNT(*) FROM big GROUP BY id % 1")[1] == [("big", ["id"])]
    assert [*found, *rows] == whole


@pytest.mark.parametrize(
    "sql", ["SELECT nothing FROM big GROUP BY v", "SELECT v FROM big WHERE v REGEXP 'a' GROUP BY v"]
)
def test_a_query_that_is_refused_costs_nothing_of_what_is_kept(ask, sql):
    ask("SELECT COUNT(*) FROM big GROUP BY v")
    with pytest.raises(RefusedError):
        ask(sql)
    assert not ask("SELECT COUNT(*) FROM big GROUP BY v")[1]


def test_columns_are_told_and_what_is_kept_stays(ask, run_of, kept):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    ask(sql)
    run_of(sql, kept=kept).columns()
    assert not ask(sql)[1]


def test_loading_can_be_broken_off_and_the_next_statement_loads_anew(ask):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    ask("SELECT COUNT(*) FROM big GROUP BY id % 2")
    work = Work(lambda: 0.0)
    work.break_off(BreakReason.KILLED)
    with doing(work), pytest.raises(BrokenOffError):
        ask(sql)
    rows, loads = ask(sql)
    assert rows
    assert loads == [("big", ["v"])]


def test_columns_that_are_loaded_beside_others_can_be_broken_off(ask, monkeypatch):
    """The table as it was is dropped first, which may take long, too."""
    ask("SELECT COUNT(*) FROM big GROUP BY id % 2")
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 1)
    work = Work(lambda: 0.0)
    work.break_off(BreakReason.KILLED)
    with doing(work), pytest.raises(BrokenOffError):
        ask("SELECT COUNT(*) FROM big GROUP BY v")


def test_loading_leaves_room_on_the_file_system(ask, monkeypatch):
    sql = "SELECT COUNT(*) FROM big GROUP BY v"
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 100)
    with monkeypatch.context() as patch:
        patch.setattr(loaded, "FREE_SHARE", 1.1)
        patch.setattr(loaded, "FREE_BYTES", 1 << 62)
        with pytest.raises(RefusedError, match=r"Out of memory: \d+ MiB are left in") as refused:
            ask(sql)
    assert refused.value.err.code == 1041
    assert ask(sql)[1] == [("big", ["v"])]
