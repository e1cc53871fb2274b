"""Which statements are answered at once: those of a login, and none that reads the log or takes long."""

import pytest

from ibbmaster.dialogue import immediate
from ibbmaster.dialogue.immediate import IMMEDIATE_SIZE_MAX
from ibbmaster.dialogue.sql import parse
from ibbmaster.wire.response import Err, Ok, ResultSet

IMMEDIATE = [  # what replicas of 10.11, 11.8 and 12.3, mariadb-binlog and CDC clients send before a dump
    "SELECT UNIX_TIMESTAMP()",
    "SHOW VARIABLES LIKE 'SERVER_ID'",
    "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'",
    "SHOW VARIABLES LIKE 'BINLOG_ROW_METADATA';",
    "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'",
    "SET @master_heartbeat_period= 30000001024",
    "SET @master_binlog_checksum= @@global.binlog_checksum",
    "SELECT @master_binlog_checksum",
    "SELECT @@GLOBAL.gtid_domain_id",
    "SELECT @@GLOBAL.binlog_storage_engine",
    "SET @mariadb_slave_capability=4",
    "SET @slave_connect_state='0-1-7,3-1-1'",
    "SET @slave_gtid_strict_mode=0, @slave_gtid_ignore_duplicates=0",
    "SET NAMES utf8mb4",
    "SET AUTOCOMMIT = 0",
    "SELECT VERSION()",
    "SELECT @@nothing",  # an error is an answer, too
    "COMMIT",
    "BEGIN",
    "USE information_schema",
    "KILL 8",
    "KILL QUERY 9",
    "SHOW FULL PROCESSLIST",
]
HEAVY = [
    "SELECT @@global.gtid_binlog_state",
    "SELECT @@gtid_binlog_pos",
    "SET @x = @@gtid_current_pos",
    "SELECT unix_timestamp(@@gtid_binlog_pos)",
    "SET @x=1; SHOW MASTER STATUS",
    "SHOW VARIABLES",
    "SHOW VARIABLES LIKE '%state'",
    "SHOW VARIABLES WHERE Variable_name = 'server_id'",
    "SHOW BINARY LOGS",
    "SHOW BINLOG EVENTS",
    "SHOW STATUS",
    "SELECT repeat('x', 1000000)",
    "SELECT (SELECT @@gtid_binlog_pos)",
    "SELECT binlog_gtid_pos('binlog.000001', 4)",
    "SELECT 1 FROM information_schema.processlist",
    "SELECT 1 WHERE @@gtid_binlog_pos",
    "SHOW PROCESSLIST WHERE Id = 7",
    "SET @ibb_position = '0-1-1'",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "USE shop",
    "SHOW DATABASES",
    "SELECT",
    "",
    "SET @x = '" + "x" * IMMEDIATE_SIZE_MAX + "'",
]


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
