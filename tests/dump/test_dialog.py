"""The conversation beside a dump: every statement clients are known to send, and whatever else may come."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from ibbmaster.dump.dialog import Dialog, Kill
from ibbmaster.dump.profile import PROFILES
from ibbmaster.dump.variables import BinlogEventRow, ProcessRow
from ibbmaster.gtid import GtidState
from ibbmaster.wire.response import Err, Ok, ResultSet


class Facts(SimpleNamespace):
    """A primary with two files, one replica and two connections."""

    def binlog_state(self):
        return GtidState.parse("0-1-7,0-2-8,3-1-1")

    def binlog_end(self):
        return "binlog-000001.ibb", 16640

    def binary_logs(self):
        return [("binlog-000000.ibb", 65536), ("binlog-000001.ibb", 1073741824)]

    def binlog_events(self, file_name, offset):
        if file_name not in (None, "binlog-000000.ibb"):
            raise KeyError(file_name)
        row = BinlogEventRow(file_name="binlog-000000.ibb", event_type="Gtid", server_id=1, info="GTID 0-1-1")
        return iter([row] * 5)

    def replica_hosts(self):
        return [(2, "replica.example", 3306)]

    def processes(self):
        row = ProcessRow(connection_id=7, user="repl", host="::1", command="Query", seconds=0, state="")
        return [row, row.__class__(**{**{f: getattr(row, f) for f in row.__slots__}, "connection_id": 8})]

    def unix_timestamp(self):
        return 1778384896.5

    def uptime_s(self):
        return 60


def new_dialog(profile="engine"):
    facts = Facts(server_id=1, server_version=PROFILES[profile].server_version, profile=PROFILES[profile])
    return Dialog(facts, connection_id=7, user="repl", host="127.0.0.1")


@pytest.fixture
def dialog():
    return new_dialog()


def told(answer):
    """An answer as something to compare with: rows, an error's code and state, or OK."""
    match answer:
        case ResultSet():
            return [tuple(None if value is None else value.decode() for value in row) for row in answer.rows]
        case Err():
            return answer.code, answer.sqlstate
        case Ok():
            return "OK"
        case _:
            return answer


def ask(dialog, sql):
    answers = dialog.query(sql.encode() if isinstance(sql, str) else sql)
    return told(answers[-1])


STATEMENTS = {  # as replicas, mariadb-binlog, CDC clients and operators send them: what the engine profile answers
    "SELECT UNIX_TIMESTAMP()": [("1778384896",)],
    "SHOW VARIABLES LIKE 'SERVER_ID'": [("server_id", "1")],
    "SET @master_heartbeat_period= 30000001024": "OK",
    "SET @master_binlog_checksum= @@global.binlog_checksum": "OK",
    "SET @master_binlog_checksum='NONE'": "OK",
    "SET skip_replication=1": "OK",
    "SELECT @@GLOBAL.binlog_storage_engine": [("InnoDB",)],
    "SET @mariadb_slave_capability=4": "OK",
    "SELECT @@GLOBAL.gtid_domain_id": [("0",)],
    "SET @slave_connect_state='0-1-7,3-1-1'": "OK",
    "SET @slave_connect_state=NULL": "OK",
    "SET @slave_gtid_strict_mode=0": "OK",
    "SET @slave_gtid_ignore_duplicates=0": "OK",
    "SET @slave_until_gtid='0-1-9'": "OK",
    "SELECT binlog_gtid_pos('binlog.000001',4)": (4247, "HY000"),
    "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'": [],
    "SET @rpl_semi_sync_slave= 1": "OK",
    "SET NAMES utf8mb4": "OK",
    "SET AUTOCOMMIT = 0": "OK",
    "SET SESSION net_write_timeout=600": "OK",
    "SET net_read_timeout=30": "OK",
    "SHOW GLOBAL VARIABLES LIKE 'BINLOG_CHECKSUM'": [("binlog_checksum", "NONE")],
    "SHOW VARIABLES LIKE 'BINLOG_ROW_METADATA';": [("binlog_row_metadata", "FULL")],
    "SET @slave_uuid = 'a-b', @replica_uuid = 'a-b'": "OK",
    "SET @master_binlog_checksum='NONE', @source_binlog_checksum='NONE'": "OK",
    "SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')": [],
    "show master status": [("binlog-000001.ibb", "16640", "", "")],
    "SHOW BINLOG STATUS": [("binlog-000001.ibb", "16640", "", "")],
    "show global variables like 'binlog_checksum'": [("binlog_checksum", "NONE")],
    "select @@server_id": [("1",)],
    "SHOW BINARY LOGS": [("binlog-000000.ibb", "65536"), ("binlog-000001.ibb", "1073741824")],
    "SHOW SLAVE HOSTS": [("2", "replica.example", "3306", "1")],
    "SHOW SLAVE STATUS": [],
    "SHOW BINLOG EVENTS IN 'binlog-000000.ibb' LIMIT 1": [("binlog-000000.ibb", "0", "Gtid", "1", "0", "GTID 0-1-1")],
    "SHOW BINLOG EVENTS IN 'nothing'": (1373, "HY000"),
    "select @@version_comment limit 1": [("ibbmaster",)],
    "SELECT VERSION()": [("10.11.19-MariaDB-log",)],
    "SELECT @@version": [("12.3.2-MariaDB-log",)],
    "SELECT @@gtid_binlog_pos": [("0-2-8,3-1-1",)],
    "SELECT @@gtid_binlog_state": [("0-1-7,0-2-8,3-1-1",)],
    "SELECT @@max_allowed_packet": [("1073741824",)],
    "SELECT @@global.binlog_format, @@global.binlog_row_image": [("ROW", "FULL")],
    "SELECT DATABASE()": [(None,)],
    "SELECT CONNECTION_ID()": [("7",)],
    "SELECT 1": [("1",)],
    "SELECT @nothing": [(None,)],
    "SELECT MASTER_GTID_WAIT('0-1-1', 0)": [("-1",)],
    "SELECT @@GLOBAL.GTID_MODE": (1193, "HY000"),
    "SELECT @@server_uuid": (1193, "HY000"),
    "SET no_such_variable=1": (1193, "HY000"),
    "SET GLOBAL gtid_binlog_state='0-1-1'": (1227, "42000"),
    "SET @@server_id=3": (1238, "HY000"),
    "KILL 999999": (1094, "HY000"),
    "KILL 8": Kill(connection_id=8, query_only=False),
    "KILL QUERY 8": Kill(connection_id=8, query_only=True),
    "PURGE BINARY LOGS TO 'binlog-000001.ibb'": (1290, "HY000"),
    "RESET MASTER": (1290, "HY000"),
    "SELECT * FROM information_schema.COLUMNS": (1146, "42S02"),
    "SELECT no_such_function()": (1305, "42000"),
    "USE nothere": (1049, "42000"),
    "nonsense": (1064, "42000"),
    "": (1064, "42000"),
    "SELECT 'unclosed": (1064, "42000"),
    "BEGIN": "OK",
    "COMMIT": "OK",
}


@pytest.mark.parametrize(("sql", "expected"), STATEMENTS.items(), ids=list(STATEMENTS))
def test_a_known_statement_gets_its_answer(dialog, sql, expected):
    assert ask(dialog, sql) == expected


@pytest.mark.parametrize("seed", range(20))
def test_case_spaces_and_comments_change_no_answer(dialog, seed):
    random_source = random.Random(seed)
    for sql, expected in STATEMENTS.items():
        if not sql or "unclosed" in sql or "nonsense" in sql:
            continue
        parts = sql.split("'")
        for index in range(0, len(parts), 2):  # outside of quotes
            letters = [random_source.choice((letter.lower(), letter.upper())) for letter in parts[index]]
            filler = random_source.choice((" ", "  ", "\n", "\t ", " /* so */ "))
            parts[index] = "".join(letters).replace(" ", filler)
        ending = random_source.choice(("", ";", " ; ", " -- end", " # end"))
        assert ask(dialog, "'".join(parts) + ending) == expected, (seed, sql)


def test_a_user_variable_keeps_its_value_and_type(dialog):
    for sql in ("SET @A=5, @b = 'x''y', @`c` := -1.5", "SET @d=@a, @e=@@global.binlog_checksum, @F=NULL"):
        assert ask(dialog, sql) == "OK"
    assert dialog.variables == {"a": 5, "b": "x'y", "c": -1.5, "d": 5, "e": "NONE", "f": None}
    assert ask(dialog, "SELECT @B, @d") == [("x'y", "5")]


def test_a_reset_forgets_the_session(dialog):
    ask(dialog, "SET @a=1, skip_replication=1")
    assert dialog.skip_replication
    dialog.reset()
    assert (dialog.variables, dialog.skip_replication) == ({}, False)


def test_a_traditional_primary_has_no_storage_engine_for_its_binlog_and_checksums():
    dialog = new_dialog("classic-10.11")
    assert ask(dialog, "SELECT @@GLOBAL.binlog_storage_engine") == (1193, "HY000")
    assert ask(dialog, "SELECT @@binlog_checksum") == [("CRC32",)]


def test_columns_are_named_and_typed_as_mariadb_does(dialog):
    cases = {  # statement: (name, type, collation, length, flags, decimals), recorded from real servers
        "SELECT UNIX_TIMESTAMP()": ("UNIX_TIMESTAMP()", 8, 63, 17, 0x80, 0),
        "SELECT @@GLOBAL.gtid_domain_id": ("@@GLOBAL.gtid_domain_id", 8, 63, 21, 0xA0, 0),
    }
    for sql, expected in cases.items():
        (column,) = dialog.query(sql.encode())[0].columns
        found = column.name, column.column_type, column.collation_id, column.length, column.flags, column.decimals
        assert found == expected
    ask(dialog, "SET @master_binlog_checksum='NONE'")
    (column,) = dialog.query(b"SELECT @master_binlog_checksum")[0].columns
    assert (column.name, column.column_type, column.length, column.decimals) == (
        "@master_binlog_checksum",
        251,
        67108860,
        39,
    )
    names = [column.name for column in dialog.query(b"SHOW VARIABLES LIKE 'x'")[0].columns]
    assert names == ["Variable_name", "Value"]


def test_the_last_error_is_shown_as_a_warning(dialog):
    ask(dialog, "KILL 999999")
    assert ask(dialog, "SHOW WARNINGS") == [("Error", "1094", "Unknown thread id: 999999")]
    ask(dialog, "SELECT 1")
    ask(dialog, "SET @a=1")
    assert ask(dialog, "SHOW WARNINGS") == []


def test_an_error_names_the_place_and_the_line(dialog):
    (answer,) = dialog.query(b"SELECT 1,\n  wrong wrong")
    assert answer.text.endswith("right syntax to use near 'wrong wrong' at line 2")


def test_several_statements_are_answered_up_to_the_first_error(dialog):
    answers = dialog.query(b"SELECT 1; SELECT @@nothing; SELECT 2")
    assert [told(answer) for answer in answers] == [[("1",)], (1193, "HY000")]


def test_variables_do_not_grow_without_bound(dialog):
    for number in range(1000):
        assert ask(dialog, f"SET @v{number}=1") == "OK"
    assert ask(dialog, "SET @one_more=1") == (1041, "HY000")
    assert ask(dialog, "SET @v1=2") == "OK"


def test_a_statement_that_is_too_long_is_refused(dialog):
    assert ask(dialog, b"SELECT '" + b"x" * (1 << 20) + b"'") == (1153, "08S01")


def test_a_pattern_made_to_be_slow_is_answered_at_once(dialog):
    assert ask(dialog, "SHOW VARIABLES LIKE '" + "%a" * 3000 + "'") == []


@pytest.mark.parametrize("seed", range(10))
def test_whatever_comes_is_answered(dialog, seed):
    random_source = random.Random(seed)
    words = [
        "SELECT",
        "SET",
        "SHOW",
        "@",
        "@@",
        "x",
        "=",
        "'",
        '"',
        "`",
        ",",
        "(",
        ")",
        ";",
        "/*",
        "*/",
        "--",
        "\\",
        "1e9",
    ]
    words += [
        "VARIABLES",
        "LIKE",
        "%",
        "KILL",
        "-",
        "NULL",
        "\0",
        "\xff",
        "0x",
        "LIMIT",
        "@@global.",
        "/*!",
        "99999999999999",
    ]
    for _ in range(500):
        text = " ".join(random_source.choices(words, k=random_source.randint(1, 12)))
        sql = text.replace(" ", random_source.choice((" ", ""))).encode("latin-1")
        for answer in dialog.query(sql):
            assert isinstance(answer, (Ok, Err, ResultSet, Kill)), sql
            if isinstance(answer, ResultSet):
                list(answer.rows)
