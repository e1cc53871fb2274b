import json
import random

import pytest

from ibbmaster.primary.dialogue.log_tables import ProcessRow
from ibbmaster.primary.dialogue.statement import Kill
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.wire.capability import StatusFlag
from ibbmaster.replication.wire.response import Err, Ok, ResultSet
from tests.case_table import cases_beside, data_beside
from tests.primary.dialogue.conftest import grow

DATA = data_beside(__file__)


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
    return told(dialog.query(sql.encode() if isinstance(sql, str) else sql)[-1])  # of several statements the last


def expected(cell):
    match json.loads(cell):
        case [int() as code, state]:
            return code, state
        case [*rows]:
            return list(map(tuple, rows))
        case {} as kill if kill:
            return Kill(**kill)
        case answer:
            return answer


#: As replicas, mariadb-binlog, CDC clients and operators send them: what the engine profile answers.
STATEMENTS = {sql: expected(cell) for sql, (cell,) in cases_beside(__file__).items()}


@pytest.mark.parametrize(("sql", "expected"), STATEMENTS.items(), ids=list(STATEMENTS))
def test_a_known_statement_gets_its_answer(dialog, sql, expected):
    assert ask(dialog, sql) == expected


@pytest.mark.parametrize("seed", range(20))
def test_case_spaces_and_comments_change_no_answer(dialog, seed):
    random_source = random.Random(seed)
    for sql, expected in STATEMENTS.items():
        if not sql.strip(" ;") or "unclosed" in sql or "nonsense" in sql or "/*" in sql:
            continue
        if "0x" in sql or "gtid_slave_pos" in sql:  # where case matters
            continue
        parts = sql.split("'")
        for index in range(0, len(parts), 2):  # outside of quotes
            letters = [random_source.choice((letter.lower(), letter.upper())) for letter in parts[index]]
            parts[index] = "".join(letters).replace(" ", random_source.choice((" ", "  ", "\n", "\t ", " /* so */ ")))
        ending = random_source.choice(("", ";", " ; ", " -- end", " # end"))
        dialog.reset()
        assert ask(dialog, "'".join(parts) + ending) == expected, (seed, sql)


def test_a_user_variable_keeps_its_value_and_type(dialog):
    for sql in ("SET @A=5, @b = 'x''y', @`c` := -1.5", "SET @d=@a, @e=@@global.binlog_checksum, @F=NULL"):
        assert ask(dialog, sql) == "OK"
    assert dialog.variables == {"a": 5, "b": "x'y", "c": -1.5, "d": 5, "e": "NONE", "f": None}
    assert ask(dialog, "SELECT @B, @d") == [("x'y", "5")]


# As mysql-test/suite/binlog_in_engine/trx_cache_truncate.test
def test_a_reset_forgets_the_session(dialog):
    ask(dialog, "SET @a=1, skip_replication=1")
    assert dialog.skip_replication
    dialog.reset()
    assert (dialog.variables, dialog.skip_replication) == ({}, False)


def test_a_traditional_primary_has_no_storage_engine_for_its_binlog_and_checksums(new_dialog):
    dialog = new_dialog("classic-10.11")
    assert ask(dialog, "SELECT @@GLOBAL.binlog_storage_engine") == (1193, "HY000")
    assert ask(dialog, "SELECT @@binlog_checksum") == [("CRC32",)]


def test_the_last_error_is_shown_as_a_warning(dialog):
    ask(dialog, "KILL 999999")
    assert ask(dialog, "SHOW WARNINGS") == [("Error", "1094", "Unknown thread id: 999999")]
    ask(dialog, "SELECT 1")
    ask(dialog, "SET @a=1")
    assert ask(dialog, "SHOW WARNINGS") == []


def test_an_error_names_the_place_and_the_line(dialog):
    (answer,) = dialog.query(b"SELECT 1,\n  wrong wrong wrong")
    assert answer.text.endswith("right syntax to use near 'wrong' at line 2")


def test_a_small_statement_makes_no_large_value(dialog):
    assert ask(dialog, "SET @a='1'") == "OK"
    assert ask(dialog, f"SET @a=CONCAT({','.join(['SUBSTRING(@a,1,2)'] * 50)})") == "OK"
    assert ask(dialog, f"SET @a='{'1' * 500_000}'") == "OK"
    assert ask(dialog, f"SELECT CONCAT({','.join(['@a'] * 500)})") == (1041, "HY000")
    assert ask(dialog, f"SELECT {','.join(['@a'] * 500)}") == (1153, "08S01")


def test_settings_of_a_session_are_kept_and_shown(dialog):
    assert ask(dialog, "SET lock_wait_timeout=10, SESSION sql_mode='ansi_quotes,STRICT_TRANS_TABLES'") == "OK"
    assert ask(dialog, "SELECT @@lock_wait_timeout, @@sql_mode, @@global.lock_wait_timeout") == [
        ("10", "ANSI_QUOTES,STRICT_TRANS_TABLES", "86400")
    ]
    assert ask(dialog, "SHOW VARIABLES LIKE 'lock_wait_timeout'") == [("lock_wait_timeout", "10")]
    assert ask(dialog, "SHOW GLOBAL VARIABLES LIKE 'lock_wait_timeout'") == [("lock_wait_timeout", "86400")]
    assert ask(dialog, "SET lock_wait_timeout=DEFAULT") == "OK"
    assert ask(dialog, "SELECT @@lock_wait_timeout") == [("86400",)]


def test_a_list_of_settings_is_taken_as_a_whole_or_not_at_all(dialog):
    assert ask(dialog, "SET lock_wait_timeout=10, nothing=1") == (1193, "HY000")
    assert ask(dialog, "SELECT @@lock_wait_timeout") == [("86400",)]


def test_a_statement_with_settings_of_its_own_leaves_those_of_the_session(dialog):
    assert ask(dialog, "SET STATEMENT lock_wait_timeout=1 FOR SELECT a FROM shop.t") == (1146, "42S02")
    assert ask(dialog, "SELECT @@lock_wait_timeout") == [("86400",)]


@pytest.mark.parametrize(("sql", "number"), DATA["collations"].items())
def test_texts_of_an_answer_have_the_collation_that_the_session_has_chosen(dialog, sql, number):
    ask(dialog, sql)
    for question in (b"SELECT 'a', 1", b"SHOW VARIABLES LIKE 'version'"):
        (answer,) = dialog.query(question)
        assert answer.columns[0].collation_id == number
    assert dialog.query(b"SELECT 'a', 1")[0].columns[1].collation_id == 63


@pytest.mark.parametrize(("sql", "expected"), DATA["character sets"].items())
def test_character_sets_go_together(dialog, sql, expected):
    assert ask(dialog, sql) == "OK"
    names = "client", "connection", "results"
    variables = ",".join([*(f"@@character_set_{name}" for name in names), "@@collation_connection"])
    assert ask(dialog, f"SELECT {variables}") == [tuple(expected)]


def test_an_account_sees_and_does_what_it_has_the_right_to(dialog):
    other = ProcessRow(connection_id=9, user="other", host="::1", command="Query", seconds=0, state="")
    dialog._facts.others = [other]
    dialog.begin(user="repl", database=None, held=frozenset({"REPLICATION SLAVE"}))
    assert ask(dialog, "SHOW GRANTS") == [("GRANT REPLICATION SLAVE ON *.* TO `repl`@`%`",)]
    assert [row[0] for row in ask(dialog, "SHOW PROCESSLIST")] == ["7", "8"]
    for sql, expected in {
        "FLUSH TABLES WITH READ LOCK": (1227, "42000"),
        "LOCK TABLES a.b READ": (1044, "42000"),
        "SELECT * FROM mysql.gtid_slave_pos": (1142, "42000"),
        "SHOW DATABASES": [("information_schema",)],
        "KILL 8": Kill(connection_id=8, query_only=False),
        "KILL 9": (1095, "HY000"),
        "KILL QUERY 9": (1095, "HY000"),
    }.items():
        assert ask(dialog, sql) == expected, sql
    dialog.begin(user="repl", database=None, held=frozenset({"CONNECTION ADMIN", "PROCESS"}))
    assert ask(dialog, "KILL 9") == Kill(connection_id=9, query_only=False)
    assert [row[0] for row in ask(dialog, "SHOW PROCESSLIST")] == ["7", "8", "9"]
    with pytest.raises(DumpError, match="REPLICATION SLAVE"):
        dialog.check_dump()


def test_a_traditional_primary_tells_the_gtid_position_of_a_place(new_dialog):
    dialog = new_dialog("classic-10.11")
    for place, expected in DATA["positions of places"].items():
        assert ask(dialog, f"SELECT BINLOG_GTID_POS({place})") == [(expected,)], place


@pytest.mark.parametrize(("sql", "expected"), DATA["conditional comments"].items())  # what 10.11.19 and 11.8.6 answer
def test_conditional_comments_are_code_for_the_versions_they_name(new_dialog, sql, expected):
    answers = [ask(new_dialog(f"classic-{version}"), sql) for version in ("10.11", "11.8")]
    for answer, wanted in zip(answers, expected, strict=True):
        assert answer == {"OK": "OK", 1064: (1064, "42000")}.get(wanted, [(wanted,)])


def test_a_column_is_named_after_what_was_executed(new_dialog):
    (answer,) = new_dialog("classic-10.11").query(b"SELECT 1 /*!101100 +1 */ + 5")
    assert [column.name for column in answer.columns] == ["1  +1  + 5"]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_statement_is_answered(dialog, seed):
    random_source = random.Random(seed)
    for sql in [*STATEMENTS, *DATA["conditional comments"]]:
        data = bytearray(sql.encode())
        variants = [bytes(data[: random_source.randrange(len(data) + 1)]) for _ in range(3)]
        for _ in range(6):
            changed = bytearray(data)
            for _ in range(random_source.randint(1, 4)):
                place = random_source.randrange(len(changed) + 1)
                changed[place : place + random_source.randint(0, 2)] = random_source.randbytes(1)
            variants.append(bytes(changed))
        for variant in variants:
            check_answers(dialog, variant, seed)


@pytest.mark.parametrize(
    "sql",
    {
        "brackets": "SELECT " + "(" * 4000 + "1" + ")" * 4000,
        "calls": "SELECT " + "abs(" * 3000 + "1" + ")" * 3000,
        "operators": "SELECT 1" + "-1" * 4000,
        "sums": "SELECT 1" + "+1" * 4000,
        "alternatives": "SELECT * FROM information_schema.engines WHERE " + " OR ".join(["engine='x'"] * 2000),
        "negations": "SELECT " + "NOT " * 5000 + "1",
        "signs": "SELECT " + "- " * 5000 + "1",
        "queries": "SELECT " + "(SELECT " * 2000 + "1" + ")" * 2000,
        "comparisons": "SELECT 1" + "=1" * 4000,
        "settings": "SET STATEMENT autocommit=1 FOR " * 500 + "SELECT 1",
        "cases": "SELECT " + "CASE WHEN 1 THEN " * 1000 + "1" + " END" * 1000,
        "number": "SELECT " + "9" * 100_000 + "." + "9" * 100_000,
        "exponent": "SELECT 1e999999, 1e308 * 10, 1e308 DIV 1e-300, -1e400, CAST(1e300 AS UNSIGNED)",
        "round": "SELECT ROUND(1e308, -300), ROUND(1.5, 1000000), FLOOR(1e400), ROUND('1e400', 5)",
        "shift": "SELECT 1 << 99999999999, 1 << -1, ~0, 5 DIV 0, 5 MOD 0, 5 / 0",
    }.items(),
    ids=lambda item: item[0],
)
def test_a_statement_made_to_be_costly_is_answered(dialog, sql):
    check_answers(dialog, sql[1].encode(), 0)


def check_answers(dialog, sql, seed):
    for answer in dialog.query(sql):
        assert isinstance(answer, (Ok, Err, ResultSet, Kill)), (seed, sql)
        if isinstance(answer, ResultSet):
            assert all(len(row) == len(answer.columns) for row in answer.rows), (seed, sql)


WORDS = r"""SELECT SET SHOW @ @@ x = ' " ` , ( ) ; /* */ -- \ 1e9
    VARIABLES LIKE % KILL - NULL 0x LIMIT @@global. /*! 99999999999999"""


@pytest.mark.parametrize("seed", range(10))
def test_whatever_comes_is_answered(dialog, seed):
    random_source = random.Random(seed)
    words = [*WORDS.split(), "\0", "\xff"]
    for _ in range(500):
        text = " ".join(random_source.choices(words, k=random_source.randint(1, 12)))
        check_answers(dialog, text.replace(" ", random_source.choice((" ", ""))).encode("latin-1"), seed)


SEEN = (
    "SHOW MASTER STATUS; SHOW BINLOG STATUS; SELECT @@gtid_binlog_pos, @@global.gtid_current_pos; "
    "SHOW STATUS LIKE 'Binlog_snapshot%'; SHOW CREATE TABLE shop.item; "
    "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'shop'"
)


def seen(dialog):
    return [[tuple(row) for row in answer.rows] for answer in dialog.query(SEEN.encode())]


@pytest.mark.parametrize(("begin", "end"), DATA["stops"])
def test_a_session_that_has_stopped_is_told_the_same_by_every_statement(shopping, begin, end):
    assert all(isinstance(answer, Ok) for answer in shopping.query(begin.encode()))
    before = seen(shopping)
    grow(shopping._facts.tables)
    assert seen(shopping) == before
    shopping.query(end.encode())
    shopping._facts.binlog_end = lambda: ("binlog-000001.ibb", 20000)
    assert seen(shopping)[0] == [(b"binlog-000001.ibb", b"20000", b"", b"")] != before[0]


def test_a_savepoint_ends_no_transaction_and_flushing_tables_alone_stops_nothing(shopping):
    shopping.query(b"FLUSH TABLES")
    assert shopping._position.stopped is None
    shopping.query(b"START TRANSACTION WITH CONSISTENT SNAPSHOT; SAVEPOINT a")
    stopped = shopping._position.stopped
    shopping.query(b"ROLLBACK TO SAVEPOINT a; RELEASE SAVEPOINT a")
    assert shopping._position.stopped is stopped is not None


def test_a_session_goes_to_any_place_and_back(shopping):
    now = seen(shopping)
    assert ask(shopping, "SET @ibb_position = '0-1-2'") == "OK"
    then = seen(shopping)
    assert then[0] == then[1] == [(b"binlog-000000.ibb", b"500", b"", b"")]
    assert then[2] == [(b"0-1-2", b"0-1-2")]
    assert then[5] == [(b"2",)]
    assert ask(shopping, "SET @ibb_position = NULL") == "OK"
    assert seen(shopping)[2:] == now[2:]


def test_a_place_that_is_not_in_the_log_is_refused_and_the_session_stays(shopping):
    ask(shopping, "SET @ibb_position = '0-1-2'")
    assert ask(shopping, "SET @ibb_position = '0-1-99'") == (1945, "HY000")
    assert ask(shopping, "SET @ibb_position = 'nonsense'") == (1941, "HY000")
    assert seen(shopping)[2] == [(b"0-1-2", b"0-1-2")]
    shopping.reset()
    assert shopping._position.stopped is None


def test_a_database_of_the_log_can_be_chosen(shopping):
    assert ask(shopping, "USE nothing") == (1049, "42000")
    assert ask(shopping, "USE shop; SELECT @@collation_database, DATABASE()") == [("latin1_swedish_ci", "shop")]
    assert ask(shopping, "SHOW CREATE TABLE nothing") == (1146, "42S02")
    (answer,) = shopping.query(b"SHOW COLUMNS FROM lost")
    assert (answer.code, answer.text) == (1105, "shop.lost: give --schema")


@pytest.mark.parametrize("mode", ["ANSI_QUOTES", "ANSI", "STRICT_TRANS_TABLES,ANSI_QUOTES"])
def test_double_quotes_are_around_names_where_the_session_says_so(shopping, mode):
    assert ask(shopping, 'SELECT "id"') == [("id",)]
    ask(shopping, f"SET sql_mode = '{mode}'")
    assert ask(shopping, 'SELECT "id"') == (1054, "42S22")
    ask(shopping, 'SELECT "id" FROM "shop"."item" WHERE "id" = 1')
    assert [item.name for item in shopping._facts.tables.queries[-1].query.items] == ["id"]
    (prepared,) = shopping.prepared.prepare(b'SELECT "name" FROM shop.item')
    assert [column.name for column in prepared.columns] == ["name"]
    assert ask(shopping, "SET @a = 'x', sql_mode = DEFAULT; SELECT @a") == [("x",)]


def test_each_statement_of_a_text_is_read_as_the_one_before_it_says(new_dialog):
    dialog = new_dialog("classic-11.8")
    text = rb"""SELECT 'a\n' || "b"; SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES';; SELECT 'a\n' || "b"; """
    first, second, third = dialog.query(text)
    assert [list(answer.rows) for answer in (first, third)] == [[(b"0",)], [(rb"a\nb",)]]
    assert [answer.status & StatusFlag.MORE_RESULTS for answer in (first, second, third)] == [8, 8, 0]

    first, second = dialog.query(b"SELECT 1; SELEC 2; SELECT 3")
    assert (list(first.rows), second.code) == ([(b"1",)], 1064)


@pytest.mark.parametrize("charset", ["gbk", "sjis", "cp932", "big5"])
def test_a_backslash_may_be_a_part_of_a_letter(new_dialog, charset):
    dialog = new_dialog("classic-11.8")
    letter = b"\x95\x5c"
    dialog.query(f"SET NAMES {charset}".encode())
    (answer,) = dialog.query(b"SELECT '%s', LEFT('%s', 1), x'955c'" % (letter, letter))
    assert list(answer.rows) == [(letter, letter, letter)]
    assert list(dialog.query_at_once(b"SELECT '%s'" % letter)[0].rows) == [(letter,)]
    dialog.query(b"SET NAMES utf8mb4")
    assert dialog.query(b"SELECT '%s'" % letter)[0].code == 1064


@pytest.mark.parametrize(("profile", "count"), [("engine", 5), ("classic-11.8", 4), ("classic-10.11", 4)])
def test_the_end_of_the_log_is_told_by_gtid_since_12_3(new_dialog, profile, count):
    (answer,) = new_dialog(profile).query(b"SHOW MASTER STATUS")
    assert len(answer.columns) == count
    assert answer.columns[-1].name == ("Gtid_Binlog_Pos" if count == 5 else "Binlog_Ignore_DB")
