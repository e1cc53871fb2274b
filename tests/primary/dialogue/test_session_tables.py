import gc
import weakref

import pytest

from ibbmaster.primary.dialogue.session_tables import SessionPosition
from ibbmaster.primary.dialogue.settings import UserVariables
from ibbmaster.replication.wire.response import Err, ResultSet
from tests.case_table import data_beside
from tests.primary.dialogue.conftest import grow, refused

DATA = data_beside(__file__)


@pytest.fixture
def dialog(shopping):
    return shopping


def ask(dialog, sql):
    return dialog.query(sql.encode())[-1]


def test_the_settings_of_the_session_go_with_a_query(dialog):
    def asked(sql):
        ask(dialog, f"{sql}; SELECT id + 1 FROM shop.item")
        query = dialog._facts.tables.queries[-1]
        return query.session.charset, query.session.collation_id, query.snapshot, query.session

    *found, _, session = asked("SET time_zone = '+02:00', NAMES latin1")
    assert (*found, session.is_binary, session.version, session.time_zone_s) == ("latin1", 8, False, 110806, 7200)
    assert asked("SET character_set_results = binary")[:2] == ("binary", 63)
    assert asked("SET character_set_results = NULL")[:2] == (None, 63)
    assert str(asked("SET @ibb_position = '0-1-2'")[2].position) == "0-1-2"


def test_a_session_that_waits_holds_no_place_in_the_log(dialog, monkeypatch):
    taken, newest = [], dialog._facts.tables.newest

    def noted():
        snapshot = newest()
        taken.append(weakref.ref(snapshot))
        return snapshot

    monkeypatch.setattr(dialog._facts.tables, "newest", noted)
    of_log, of_schema = "SELECT id FROM shop.item", "SELECT table_name FROM information_schema.tables"
    for sql in (of_log, of_schema, "SHOW TABLES FROM shop"):
        ask(dialog, sql)
        dialog._facts.tables.queries.clear()
        gc.collect()
        assert [place() for place in taken] == [None] * len(taken), sql
    assert taken


def test_a_prepared_query_wants_binary_rows(dialog):
    (prepared,) = dialog.prepared.prepare(b"SELECT id, x.Name AS n, x.* FROM shop.item x WHERE id = 1")
    assert [each.name for each in prepared.columns] == ["id", "n", "id", "name", "price"]
    dialog.prepared.execute(prepared.statement_id, b"")
    assert dialog._facts.tables.queries[-1].session.is_binary


@pytest.mark.parametrize(("sql", "expected"), DATA["codes"].items())
def test_what_is_missing_or_not_answered_has_its_code(dialog, sql, expected):
    answer = ask(dialog, sql)
    assert isinstance(answer, Err)
    assert [answer.code, answer.text if expected[1] else None] == expected


def test_other_tables_are_answered_without_the_log(dialog):
    answer = ask(dialog, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop' LIMIT 1")
    assert [tuple(row) for row in answer.rows] == [(b"all_items",)]


def rows_of(dialog, sql):
    answer = dialog.query(sql.encode())[-1]
    assert isinstance(answer, ResultSet), answer
    return answer.warning_count, [tuple(value and value.decode() for value in row) for row in answer.rows]


@pytest.mark.parametrize("table", ["columns", "statistics", "table_constraints", "key_column_usage"])
def test_a_table_whose_columns_nobody_knows_is_a_warning_beside_the_columns_of_others(dialog, table):
    count, _ = rows_of(dialog, f"SELECT table_name FROM information_schema.{table} WHERE table_schema = 'shop'")

    assert count == 1
    assert rows_of(dialog, "SHOW WARNINGS")[1] == [("Warning", "1105", "shop.lost: shop.lost: give --schema")]
    assert rows_of(dialog, "SHOW ERRORS")[1] == []
    assert rows_of(dialog, "SELECT table_name FROM information_schema.tables LIMIT 1")[0] == 0
    assert rows_of(dialog, "SHOW WARNINGS") == (0, [])


def test_one_column_or_those_of_a_pattern_are_described(dialog):
    for name, wanted in {"name": ["name"], "`n%`": ["name"], "'%e'": ["name", "price"], "nothing": []}.items():
        assert [row[0] for row in rows_of(dialog, f"DESCRIBE shop.item {name}")[1]] == wanted


def test_a_session_that_only_reads_says_so(dialog):
    for verb, value in {"ONLY": "1", "WRITE": "0"}.items():
        dialog.query(f"SET SESSION TRANSACTION READ {verb}".encode())
        assert rows_of(dialog, "SELECT @@tx_read_only, @@transaction_read_only")[1] == [(value, value)]


def test_what_exporters_ask_of_a_server_is_answered(dialog):
    assert rows_of(dialog, "SELECT page_size, compress_ops FROM information_schema.innodb_cmp") == (0, [])
    users = "SELECT user, SUBSTRING_INDEX(host, ':', 1) FROM information_schema.processlist GROUP BY 1, 2"
    assert len(rows_of(dialog, users)[1]) > 0
    shown = {row[0] for row in rows_of(dialog, "SHOW PLUGINS")[1]}
    assert shown == {row[0] for row in rows_of(dialog, "SELECT plugin_name FROM information_schema.plugins")[1]}
    assert {"binlog", "InnoDB"} <= shown


def test_a_statement_may_be_as_long_as_the_variable_says(dialog):
    (size,) = rows_of(dialog, "SELECT @@max_allowed_packet")[1][0]
    head = b"SELECT '"
    whole = head + b"x" * (int(size) - len(head) - 1) + b"'"

    assert isinstance(dialog.query(whole)[-1], ResultSet)
    assert dialog.query(whole + b" ")[-1].code == 1153


# Where a session is: at the end of the log, where it stopped, or where it has gone.


@pytest.fixture
def position(new_facts):
    facts = new_facts()
    facts.tables.catalogs += [("0-1-3", None)]
    return SessionPosition(facts, UserVariables())


def at(position):
    return str(position.snapshot().position)


END, GROWN = "0-2-8,3-1-1", "0-1-9,3-1-1"


STEPS = {
    "begin": lambda position: position.begin(has_snapshot=False),
    "snapshot": lambda position: position.begin(has_snapshot=True),
    "end": SessionPosition.end_transaction,
    "lock": SessionPosition.lock,
    "unlock": SessionPosition.unlock,
    "grow": lambda position: grow(position._tables),
}


# As mysql-test/suite/binlog_in_engine/binlog_legacy_pos.test
@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        *((steps, END) for steps in ("", "snapshot grow", "lock grow begin unlock", "lock grow snapshot unlock")),
        *((steps, GROWN) for steps in ("grow", "begin grow", "snapshot grow end", "snapshot grow snapshot")),
        *((steps, GROWN) for steps in ("snapshot grow lock unlock", "lock grow begin unlock end", "lock grow unlock")),
    ],
)
def test_a_snapshot_or_a_lock_stops_a_session_until_its_end(position, steps, seen):
    for step in steps.split():
        STEPS[step](position)
    assert at(position) == seen
    assert position.stopped is None or str(position.state().position()) == seen


def test_a_variable_takes_it_anywhere_and_back(position):
    position.lock()
    position._variables.assign("ibb_position", "0-1-3")
    assert at(position) == "0-1-3"
    assert position.end() == ("binlog-000000.ibb", 500)
    assert position.snapshot() is position.snapshot()
    position._variables.assign("ibb_position", "")
    assert at(position) == END
    position._variables.assign("ibb_position", None)
    assert at(position) == END


@pytest.mark.parametrize(("value", "code"), [("0-1-99", 1945), ("nonsense", 1941), ("0-1-1,0-2-2", 1943), (5, 1941)])
def test_a_place_that_is_none_is_refused(position, value, code):
    position._variables.assign("ibb_position", value)
    assert refused(position.snapshot)[0] == code
