"""Statements that administrate: what a session makes of them, and who may; a driver that carries them out is ours."""

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.primary.dialogue.privileges import PRIVILEGES, READING
from ibbmaster.primary.dialogue.statement import Act, FlushLogs, PurgeLogs, ResetLog, SetState, Shutdown
from ibbmaster.replication.wire.capability import StatusFlag
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import Err, Ok

NOW = 1778384896.0  # of the facts
DAY = 86_400
MOMENT = 1704164645.0  # 2024-01-02 03:04:05 in UTC
ADMINISTRATOR = READING | {"BINLOG ADMIN", "SHUTDOWN"}


@pytest.fixture
def administrator(new_dialog):
    dialog = new_dialog()
    dialog.begin(user="boss", database=None, held=ADMINISTRATOR)
    return dialog


def asked(dialog, sql):
    (answer,) = dialog.query(sql.encode())
    return answer


def rows(dialog, sql="SHOW WARNINGS"):
    return [tuple(value.decode() for value in row) for row in asked(dialog, sql).rows]


ACTS = {
    "PURGE BINARY LOGS TO 'binlog-000001.ibb'": PurgeLogs(to="binlog-000001.ibb"),
    "PURGE MASTER LOGS BEFORE '2024-01-02 03:04:05'": PurgeLogs(before=MOMENT),
    "PURGE BINARY LOGS BEFORE '2024-1-2 3:4:5.500000'": PurgeLogs(before=MOMENT + 0.5),
    "SET STATEMENT time_zone = '+02:00' FOR PURGE BINARY LOGS BEFORE '2024-01-02 05:04:05'": PurgeLogs(before=MOMENT),
    "PURGE BINARY LOGS BEFORE NOW()": PurgeLogs(before=NOW),
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY": PurgeLogs(before=NOW - 3 * DAY),
    "PURGE BINARY LOGS BEFORE DATE_SUB(NOW(), INTERVAL '36' HOUR)": PurgeLogs(before=NOW - 1.5 * DAY),
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1 WEEK - INTERVAL 1 DAY": PurgeLogs(before=NOW - 8 * DAY),
    "PURGE BINARY LOGS BEFORE CONCAT('2024-01-02', ' 03:04:05')": PurgeLogs(before=MOMENT),
    "PURGE BINARY LOGS BEFORE NULL": PurgeLogs(before=0.0),
    "FLUSH BINARY LOGS": FlushLogs(),
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7,4294967295)": FlushLogs((7, 4294967295)),
    "RESET MASTER": ResetLog(),
    "SET GLOBAL gtid_binlog_state = '0-1-5'": SetState("0-1-5"),
    "SET @@GLOBAL.gtid_binlog_state := CONCAT('0-1-', 5)": SetState("0-1-5"),
    "SET GLOBAL gtid_binlog_state = NULL": SetState(None),
    "SHUTDOWN": Shutdown(),
    "SHUTDOWN WAIT FOR ALL REPLICAS": Shutdown(waits=True),
}


@pytest.mark.parametrize(("sql", "what"), ACTS.items(), ids=ACTS)
def test_a_statement_is_left_to_the_driver_with_its_values_computed(administrator, sql, what):
    assert administrator.query_at_once(sql.encode()) is None
    assert asked(administrator, sql) == Act(what=what)


REFUSED = {
    "PURGE BINARY LOGS BEFORE nothing": 1054,
    "PURGE BINARY LOGS BEFORE @@nothing": 1193,
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 1 MONTH": 1235,
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL NULL DAY": 1235,
    "FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7,4294967296)": 1076,
    "FLUSH BINARY LOGS, STATUS": 1290,
    "RESET MASTER TO 3": 1235,
    "RESET QUERY CACHE": 1290,
    "SET GLOBAL gtid_binlog_state = 5": 1232,
    "SET GLOBAL gtid_binlog_state = DEFAULT": 1230,
    "SET GLOBAL gtid_binlog_state = '0-1-5', @a = 1": 1235,
    "SET gtid_binlog_state = '0-1-5'": 1229,
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=REFUSED)
def test_what_a_driver_cannot_be_asked_for_is_refused(administrator, sql, code):
    answer = asked(administrator, sql)
    assert (type(answer), answer.code) == (Err, code)
    assert rows(administrator) == [("Error", str(code), answer.text)]


NEEDED = {  # statement: the privileges that it takes
    "PURGE BINARY LOGS TO 'x'": {"BINLOG ADMIN"},
    "FLUSH BINARY LOGS": {"RELOAD", "BINLOG ADMIN"},
    "RESET MASTER": {"RELOAD", "BINLOG ADMIN"},
    "SET GLOBAL gtid_binlog_state = '0-1-5'": {"REPLICATION MASTER ADMIN", "BINLOG ADMIN"},
    "SHUTDOWN": {"SHUTDOWN"},
}


@pytest.mark.parametrize(("sql", "needed"), NEEDED.items(), ids=NEEDED)
def test_each_privilege_is_needed_and_no_other_is_and_who_only_reads_lacks_one(new_dialog, sql, needed):
    def answer_with(*held):
        (dialog := new_dialog()).begin(user="boss", database=None, held=frozenset(held))
        return asked(dialog, sql)

    assert isinstance(answer_with(*needed), Act)
    for missing in needed:
        refused = answer_with(*PRIVILEGES[: PRIVILEGES.index(missing)], *PRIVILEGES[PRIVILEGES.index(missing) + 1 :])
        assert (refused.code, f" {missing} privilege" in refused.text) == (1227, True)
    assert answer_with(*READING).code == 1227


@pytest.mark.parametrize("sql", NEEDED)
def test_super_is_enough_for_the_log_before_11_0(new_dialog, sql):
    (dialog := new_dialog("classic-10.11")).begin(user="boss", database=None, held=frozenset({"SUPER", "RELOAD"}))
    assert isinstance(asked(dialog, sql), Err if sql == "SHUTDOWN" else Act)
    dialog.begin(user="boss", database=None, held=frozenset({"RELOAD"}))
    told = " SUPER, " in asked(dialog, sql).text
    assert told == (sql != "SHUTDOWN")


def test_what_the_driver_says_is_the_answer_and_stays_for_show_warnings(administrator):
    note = ("Note", 1375, "Binary log 'x' is not purged because it is read")
    act = asked(administrator, "PURGE BINARY LOGS BEFORE 'rubbish'")
    assert act.what == PurgeLogs(before=0.0)
    assert administrator.acted(act, lambda: [note]) == Ok(warning_count=2)
    warned = ("Warning", "1292", "Incorrect datetime value: 'rubbish'")
    assert rows(administrator) == [warned, ("Note", "1375", note[2])]
    assert rows(administrator, "SHOW ERRORS") == []
    assert asked(administrator, "SET @a = 1") == Ok()
    assert rows(administrator) == []


@pytest.mark.parametrize(
    ("error", "code"), [(RefusedError(1956, "HY000", "no"), 1956), (StoreError("the disk fails"), 1105)], ids=str
)
def test_an_error_of_the_driver_ends_the_statements_of_a_text(administrator, error, code):
    def fail():
        raise error

    answers = administrator.answers(b"RESET MASTER; SET @a = 1")
    act = next(answers)
    assert act == Act(what=ResetLog(), has_more=True)
    assert administrator.acted(act, fail).code == code
    assert list(answers) == []
    assert "a" not in administrator.variables
    assert [row[:2] for row in rows(administrator)] == [("Error", str(code))]


def test_statements_behind_one_that_succeeds_follow(administrator):
    answers = administrator.answers(b"RESET MASTER; SET @a = 1")
    answer = administrator.acted(next(answers), list)
    assert answer.status & StatusFlag.MORE_RESULTS
    assert list(answers) == [Ok()]


def test_a_prepared_statement_is_left_to_the_driver_too(administrator):
    ((prepared),) = administrator.prepared.prepare(b"PURGE BINARY LOGS BEFORE '2024-01-02 03:04:05'")
    assert administrator.prepared.execute(prepared.statement_id, b"") == [Act(what=PurgeLogs(before=MOMENT))]
