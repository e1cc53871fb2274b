"""Which statements are answered at once: those of a login, and none that reads the log or takes long."""

import pytest

from ibbmaster.dialogue import immediate
from ibbmaster.dialogue.immediate import IMMEDIATE_SIZE_MAX
from ibbmaster.dialogue.sql import parse
from ibbmaster.wire.response import Err, Ok, ResultSet
from tests.case_table import cases_beside

CASES = cases_beside(__file__)  # what replicas, mariadb-binlog and CDC clients send before a dump, and what is heavy
IMMEDIATE = [sql for sql, (when,) in CASES.items() if when == "at once"]
HEAVY = [sql for sql, (when,) in CASES.items() if when == "by work"] + ["SET @x = '" + "x" * IMMEDIATE_SIZE_MAX + "'"]


def told(answers):
    """What can be compared; a result set is read."""
    shown = []
    for answer in answers:
        match answer:
            case ResultSet():
                shown.append((answer.columns, list(answer.rows)))
            case Ok() | Err():
                shown.append(answer)
    return shown


@pytest.mark.parametrize("sql", IMMEDIATE)
def test_an_immediate_statement_reads_nothing_of_the_log_and_has_the_same_answer(new_dialog, sql, monkeypatch):
    expected = told(new_dialog().query(sql.encode()))
    dialog = new_dialog()
    for name in ("binlog_state", "binlog_end", "binary_logs", "binlog_events", "gtid_position_at"):
        monkeypatch.setattr(type(dialog._facts), name, None)
    assert told(dialog.query_at_once(sql.encode())) == expected


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
        assert told(asked.query_at_once(b"SET @a = " + value.encode())) == told([Ok()])
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
