from itertools import chain

import pytest

from ibbmaster.primary.dialogue import immediate
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.primary.dialogue.immediate import IMMEDIATE_SIZE_MAX, KnownAnswers, key_of
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.response import Ok, ResultSet, SharedResultSet
from tests.case_table import cases_beside

CASES = cases_beside(__file__)  # what replicas, mariadb-binlog and CDC clients send before a dump, and what is heavy
IMMEDIATE = [sql for sql, (when,) in CASES.items() if when == "at once"]
HEAVY = [sql for sql, (when,) in CASES.items() if when == "by work"] + ["SET @x = '" + "x" * IMMEDIATE_SIZE_MAX + "'"]


def sent(answers):
    return b"".join(chain.from_iterable(map(encode_response, answers)))


@pytest.mark.parametrize("sql", IMMEDIATE)
def test_an_immediate_statement_reads_nothing_of_the_log_and_has_the_same_answer(new_dialog, sql, monkeypatch):
    expected = sent(new_dialog().query(sql.encode()))
    dialog = new_dialog()
    for name in ("binlog_state", "binlog_end", "binary_logs", "binlog_events", "gtid_position_at"):
        monkeypatch.setattr(type(dialog._facts), name, None)
    assert sent(dialog.query_at_once(sql.encode())) == expected


@pytest.mark.parametrize("sql", HEAVY)
def test_what_reads_the_log_or_may_take_long_is_not_immediate_and_nothing_is_done(new_dialog, sql):
    dialog = new_dialog()
    assert dialog.query_at_once(sql.encode()) is None
    assert dialog.variables.get("x") is None


def test_what_one_replica_has_said_is_not_parsed_again_for_another(new_dialog, monkeypatch):
    parsed = []

    def note(text, *, version, sql_mode):
        parsed.append(text)
        return parse(text, version=version, sql_mode=sql_mode)

    monkeypatch.setattr(immediate, "parse", note)
    immediate.immediate_statements.cache_clear()
    for value in ("1", "2"):
        asked, other = new_dialog(), new_dialog()
        assert sent(asked.query_at_once(b"SET @a = " + value.encode())) == sent([Ok()])
        other.query_at_once(b"SET @a = " + value.encode())
        assert (asked.variables["a"], other.variables["a"]) == (int(value), int(value))
    assert parsed == ["SET @a = 1", "SET @a = 2"]
    assert immediate.immediate_statements.cache_info().maxsize == immediate.STATEMENTS_KEPT


def test_what_is_kept_of_a_text_does_not_serve_a_session_with_other_quotes(new_dialog):
    text = b'SELECT "a"'
    plain, ansi = new_dialog(), new_dialog()
    assert plain.query_at_once(text) is not None

    ansi.query_at_once(b"SET sql_mode = ANSI_QUOTES")

    assert ansi.query_at_once(text) is None  # it is a column
    assert ansi.query(text)[0].code == 1054


@pytest.fixture
def new_session(new_facts):
    facts, ready = new_facts("engine"), KnownAnswers()
    who = {"connection_id": 7, "user": "repl", "host": "127.0.0.1"}
    return lambda **options: Dialog(facts, **who, **{"ready": ready, **options})


@pytest.mark.parametrize("sql", [*IMMEDIATE, "SELECT @x, @@server_id LIMIT 1", "SHOW VARIABLES LIKE 'no_such'"])
def test_the_second_session_gets_what_a_session_alone_does(new_session, sql):
    alone = new_session(ready=None)
    expected = sent(alone.query(sql.encode()))
    for _ in range(3):
        session = new_session()
        assert sent(session.query_at_once(sql.encode())) == expected
        assert len({sent(one.query(b"SELECT @@warning_count")) for one in (session, alone)}) == 1
        alone = new_session(ready=None)
        alone.query(sql.encode())


@pytest.mark.parametrize("values", [("1", "'1'", "1.0", "NULL"), ("'a'", "'b'", "x'61'"), ("1", "1e0", "TRUE")])
def test_an_answer_is_that_of_the_values_in_it_and_of_their_types(new_session, values):
    for value in (*values, *values):
        session, alone = new_session(), new_session(ready=None)
        for one in (session, alone):
            one.query_at_once(f"SET @x = {value}".encode())
        assert sent(session.query_at_once(b"SELECT @x")) == sent(alone.query(b"SELECT @x"))


@pytest.mark.parametrize(
    "before", ["SET NAMES latin1", "SET character_set_results = NULL", "SET autocommit = 0", "BEGIN"]
)
def test_what_a_session_has_set_is_in_its_answers_alone(new_session, before):
    plain, other, alone = new_session(), new_session(), new_session(ready=None)
    question = b"SELECT @@server_id, VERSION()"
    expected = sent(plain.query_at_once(question))
    for one in (other, alone):
        one.query(before.encode())
    assert sent(other.query_at_once(question)) == sent(alone.query(question))
    assert sent(new_session().query_at_once(question)) == expected


def test_an_answer_is_made_once(new_session):
    first, second = (new_session().query_at_once(b"SELECT @@server_id")[0] for _ in range(2))
    assert first is second
    assert isinstance(first, SharedResultSet)


def test_a_large_answer_is_not_kept_and_no_more_than_some_are(monkeypatch):
    monkeypatch.setattr(immediate, "ANSWERS_KEPT", 2)
    ready, answer = KnownAnswers(), ResultSet(columns=())
    size_max = immediate.SIZE_MAX
    for text, size in ((b"a", size_max), (b"b", size_max + 1), (b"c", 1)):
        assert ready.keep(key_of(text, ()), answer, ((bytes(size), None),)).rows == ((bytes(size), None),)
    in_no_row = key_of(b"SELECT @x LIMIT 0", ["x" * size_max + "x"])
    assert ready.keep(in_no_row, answer, ()).rows == ()
    assert ready.find(in_no_row) is None
    assert [ready.find(key_of(text, ())) is not None for text in (b"a", b"b", b"c")] == [True, False, True]
    ready.keep(key_of(b"d", ()), answer, ())
    assert ready.find(key_of(b"d", ())) is not None
    assert ready.find(key_of(b"a", ())) is None
