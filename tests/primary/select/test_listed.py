import pytest

from ibbmaster.primary.dialogue.log_tables import TableQuery
from ibbmaster.primary.dialogue.relation import Relation
from ibbmaster.primary.select import engine
from ibbmaster.primary.select.engine import QueryRun
from ibbmaster.replication.wire.refusal import RefusedError, not_supported, unknown_table
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from ibbmaster.sqltext.token import SqlError
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.case_table import data_beside
from tests.primary.select.conftest import query_of
from tests.sessions import session_evaluator

COLUMNS = tuple(
    ColumnDefinition(name=name, column_type=kind, length=64, original_table="TABLES")
    for name, kind in (("TABLE_SCHEMA", FieldType.VAR_STRING), ("Name", FieldType.VAR_STRING), ("Size", FieldType.LONG))
)
ROWS = [("d", "b", 2), ("d", "a", 10), ("D", "c", None), ("d", "B", 2)]


@pytest.fixture
def ask():
    evaluator = session_evaluator()
    evaluator.who.database = "information_schema"

    def find(table):
        if table.name.lower() not in ("t", "u"):
            raise unknown_table("information_schema", table.name)
        return Relation(COLUMNS, ROWS if table.name.lower() == "t" else ROWS[:1])

    def no_rows(table, column_ids, wanted):
        raise not_supported(table.full_name)

    def relation_of(sql):
        query = TableQuery(snapshot=None, query=query_of(sql), sql_mode=0, find=find, session=evaluator.query_session())
        return QueryRun(query, no_rows).answer()

    def ask(sql):
        relation = relation_of(sql)
        ask.columns = relation.columns
        rows = [tuple(None if value is None else value.decode() for value in row) for row in relation.rows]
        return [column.name for column in relation.columns], rows

    ask.evaluator, ask.relation = evaluator, relation_of
    return ask


CASES = data_beside(__file__)
ANSWERS, REFUSED = CASES["answers"], CASES["refused"]


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(ask, sql, expected):
    names, rows = expected
    assert ask(sql) == (names, [tuple(None if value is None else str(value) for value in row) for row in rows])


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_missing_or_not_answered_has_its_code(ask, sql, code):
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == code


@pytest.mark.parametrize(("sql", "text"), CASES["missing columns"].items())
def test_a_missing_column_is_told_with_its_clause(ask, sql, text):
    with pytest.raises(RefusedError, match=f"^{text}$"):
        ask(sql)


def test_a_column_keeps_its_definition_and_others_have_that_of_their_expression(ask):
    ask("SELECT name AS n, size, COUNT(*), 'abc', 10 / 4, SUM(size), USER() FROM t")
    kinds = [FieldType(column.column_type).name for column in ask.columns]
    assert kinds == ["VAR_STRING", "LONG", "LONGLONG", "VAR_STRING", "NEWDECIMAL", "NEWDECIMAL", "VAR_STRING"]
    assert [column.original_table for column in ask.columns] == ["TABLES"] * 2 + [""] * 5
    assert ask.columns[-1].length == 384 * 4


JOINED = "SELECT a.name, a.size + b.size, IF(f.name = 'c', 'x', 1) FROM t a, t b, t c, t d, t e, t f"


@pytest.mark.parametrize("sql", [f"SELECT COUNT(*) FROM ({JOINED.replace('a.name, ', '')}) q", JOINED])
def test_a_query_that_takes_too_long_is_ended(ask, monkeypatch, sql):
    monkeypatch.setattr(engine, "STEPS_MAX", 3_000)
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 1_000)
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == 1104


def test_the_rows_of_a_long_answer_are_computed_while_they_are_read(ask):
    relation = ask.relation(JOINED)
    assert relation.is_open
    assert len(list(relation.rows)) == len(ROWS) ** 6


def test_a_statement_that_nobody_waits_for_ends(ask, monkeypatch):
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 1_000)
    work = Work(lambda: 0.0)
    with doing(work):
        rows = iter(ask.relation(JOINED).rows)
        next(rows)
        work.break_off(BreakReason.KILLED)
        with pytest.raises(BrokenOffError):
            list(rows)
    assert ask("SELECT 1 FROM u")[1] == [("1",)]


@pytest.mark.parametrize("sql", CASES["out of reach"])
def test_nothing_but_the_tables_can_be_reached(ask, sql):
    with pytest.raises((RefusedError, SqlError)):
        ask(sql)


def test_letters_that_are_none_do_no_harm(ask):
    with pytest.raises(RefusedError):
        ask("SELECT name FROM t WHERE name = '\udcff'")
