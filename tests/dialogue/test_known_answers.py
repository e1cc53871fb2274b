"""Answers that sessions share: the same bytes as of a session alone, whatever the values in them are."""

from itertools import chain

import pytest

from ibbmaster.dialogue import known_answers
from ibbmaster.dialogue.dialog import Dialog
from ibbmaster.dialogue.known_answers import KnownAnswers, key_of
from ibbmaster.wire.answer import encode_response
from ibbmaster.wire.response import ResultSet, SharedResultSet
from tests.dialogue.test_immediate import IMMEDIATE


@pytest.fixture
def new_session(new_facts):
    facts, ready = new_facts("engine"), KnownAnswers()
    who = {"connection_id": 7, "user": "repl", "host": "127.0.0.1"}
    return lambda **options: Dialog(facts, **who, **{"ready": ready, **options})


def sent(answers):
    return b"".join(chain.from_iterable(map(encode_response, answers)))


@pytest.mark.parametrize("sql", [*IMMEDIATE, "SELECT @x, @@server_id LIMIT 1", "SHOW VARIABLES LIKE 'no_such'"])
def test_the_second_session_gets_what_a_session_alone_does(new_session, sql):
    alone = new_session(ready=None)
    expected = sent(alone.query(sql.encode()))
    for _ in range(3):
        session = new_session()
        assert sent(session.query_at_once(sql.encode())) == expected
        assert len({sent(one.query(b"SELECT FOUND_ROWS(), @@warning_count")) for one in (session, alone)}) == 1
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
    monkeypatch.setattr(known_answers, "ANSWERS_KEPT", 2)
    ready, answer = KnownAnswers(), ResultSet(columns=())
    size_max = known_answers.SIZE_MAX
    for text, size in ((b"a", size_max), (b"b", size_max + 1), (b"c", 1)):
        assert ready.keep(key_of(text, ()), answer, ((bytes(size), None),)).rows == ((bytes(size), None),)
    in_no_row = key_of(b"SELECT @x LIMIT 0", ["x" * size_max + "x"])
    assert ready.keep(in_no_row, answer, ()).rows == ()
    assert ready.find(in_no_row) is None
    assert [ready.find(key_of(text, ())) is not None for text in (b"a", b"b", b"c")] == [True, False, True]
    ready.keep(key_of(b"d", ()), answer, ())
    assert ready.find(key_of(b"d", ())) is not None
    assert ready.find(key_of(b"a", ())) is None
