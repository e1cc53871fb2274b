"""What DDL comes to for a table: columns, indexes and constraints as a real server has them."""

import random
import re
import time

import pytest

from ibbmaster.schema.expression_text import expression_text
from ibbmaster.schema.model import TableKind, UnknownTable
from tests.case_table import data_beside
from tests.interop.lanes.hard_ddl import hard_statements

DATA = data_beside(__file__)

CREATE = "CREATE TABLE t (a INT, b VARCHAR(10), c INT NOT NULL)"
A, B, C = "a int(11) default NULL", "b varchar(10) utf8mb4_general_ci default NULL", "c int(11) not null"


@pytest.mark.parametrize(("written", "column"), DATA["columns"])
def test_columns_are_what_a_server_makes_of_them(folded, written, column):
    assert folded.run(f"CREATE TABLE t (x {written})").columns() == [f"x {column}"]


@pytest.mark.parametrize(("alter", "columns"), DATA["moves"])
def test_alter_table_moves_columns(folded, alter, columns):
    folded.run(CREATE, f"ALTER TABLE t {alter}")
    assert [column.name for column in folded.known().columns] == columns


def test_a_column_is_the_same_one_through_new_names_and_another_one_when_it_comes_again(folded):
    ids = {column.name: column.id for column in folded.run(CREATE).known().columns}
    folded.run("ALTER TABLE t CHANGE a x BIGINT, DROP b, RENAME COLUMN c TO y", "ALTER TABLE t ADD b INT")
    now = {column.name: column.id for column in folded.known().columns}
    assert (now["x"], now["y"]) == (ids["a"], ids["c"])
    assert now["b"] not in ids.values()


def test_old_rows_hold_what_an_added_column_had_as_its_default(folded):
    folded.run(
        CREATE,
        "ALTER TABLE t ADD d INT DEFAULT 5, ADD e INT NOT NULL, ADD f CHAR(3), ADD g UUID DEFAULT uuid(), "
        "ADD h DATETIME(3) NOT NULL, ADD i VARCHAR(9) DEFAULT 'it''s'",
        "ALTER TABLE t ALTER d SET DEFAULT 6, MODIFY i VARCHAR(10) DEFAULT 'b'",
    )
    table = folded.known()
    values = {column.name: column.first_value for column in table.columns}
    added = {"d": "5", "e": "0", "f": "NULL", "g": "?", "h": "'0000-00-00 00:00:00.000'", "i": "'it''s'"}
    assert values == {"a": None, "b": None, "c": None, **added}
    assert table.column("D").default == "6"


@pytest.mark.parametrize(("definitions", "indexes"), DATA["indexes"])
def test_indexes_have_the_names_and_the_order_that_a_server_gives_them(folded, definitions, indexes):
    assert folded.run(f"{CREATE[:-1]}, {definitions})").indexes() == indexes


def test_what_is_dropped_takes_its_part_of_an_index_with_it(folded):
    folded.run(CREATE, "ALTER TABLE t ADD KEY k (a, b), ADD UNIQUE (a)", "ALTER TABLE t DROP a")
    assert folded.indexes() == ["KEY k (b)"]
    folded.run("DROP INDEX k ON t", "CREATE UNIQUE INDEX u ON t (c, b)", "ALTER TABLE t RENAME INDEX u TO v")
    assert folded.indexes() == ["UNIQUE v (c, b)"]


def test_old_rows_hold_the_moment_at_which_a_timestamp_was_added(folded):
    folded.run(CREATE)  # each statement begins a second later
    folded.run(
        "ALTER TABLE t ADD d TIMESTAMP DEFAULT NOW(), ADD e TIMESTAMP(3) NULL DEFAULT NOW(3)", microseconds=45678
    )
    folded.run("ALTER TABLE t ADD f DATETIME DEFAULT NOW(), ADD g TIMESTAMP(6) DEFAULT NOW(3)")
    values = [column.first_value for column in folded.known().columns][3:]
    assert values == ["'1970-01-01 00:16:42'", "'1970-01-01 00:16:42.045'", "?", "?"]


def test_character_sets_come_from_the_table_the_database_or_the_server(folded):
    folded.run("CREATE DATABASE l CHARACTER SET latin1", "CREATE TABLE l.t (a CHAR(1))", server_collation=45)
    assert folded.columns(database="l") == ["a char(1) latin1_swedish_ci default NULL"]
    folded.run("ALTER DATABASE l COLLATE latin1_bin", "CREATE TABLE l.u (a CHAR(1), b TEXT CHARSET utf8)")
    assert folded.columns("u", "l") == ["a char(1) latin1_bin default NULL", "b text utf8mb3_general_ci default NULL"]
    folded.run("ALTER TABLE l.u DEFAULT CHARACTER SET utf8mb4, ADD c CHAR(1)")
    assert folded.columns("u", "l")[::2] == [
        "a char(1) latin1_bin default NULL",
        "c char(1) utf8mb4_general_ci default NULL",
    ]
    folded.run("ALTER TABLE l.u CONVERT TO CHARACTER SET utf8mb4 COLLATE uca1400_as_ci")
    assert folded.columns("u", "l") == [
        "a char(1) utf8mb4_uca1400_as_ci default NULL",
        "b mediumtext utf8mb4_uca1400_as_ci default NULL",
        "c char(1) utf8mb4_uca1400_as_ci default NULL",
    ]
    folded.run("CREATE DATABASE m", "CREATE TABLE m.t (a CHAR(1))", server_collation=8)
    folded.run("CREATE TABLE m.u (a CHAR(1) CHARACTER SET utf8mb4)", collations=((45, 2304),))
    assert folded.columns(database="m") == ["a char(1) latin1_swedish_ci default NULL"]
    assert folded.columns("u", "m") == ["a char(1) utf8mb4_uca1400_ai_ci default NULL"]


def test_a_partition_that_becomes_a_table_has_none(folded):
    folded.run("CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (9))")
    assert folded.known("t").partitioning is not None
    assert folded.run("ALTER TABLE t CONVERT PARTITION p TO TABLE u").known("u").partitioning is None
    assert folded.columns("u") == folded.columns("t")


def test_names_move_in_order_and_foreign_keys_follow(folded):
    folded.run("CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE u (b INT, FOREIGN KEY (b) REFERENCES t (a))")
    folded.run("RENAME TABLE t TO tmp, u TO t, tmp TO u", "ALTER TABLE u CHANGE a x INT")
    assert folded.columns("t") == ["b int(11) default NULL"]
    (key,) = folded.known("t").foreign_keys
    assert (key.name, key.parent_table, key.parent_columns) == ("t_ibfk_1", "u", ("x",))


def test_a_temporary_table_hides_the_real_one_in_its_own_session(folded):
    folded.run(CREATE)
    folded.run("CREATE TEMPORARY TABLE t (z INT)", "ALTER TABLE t ADD y INT", thread_id=2)
    folded.run("ALTER TABLE t DROP b", thread_id=3)
    assert folded.columns() == [A, C]
    folded.run("DROP TABLE t", thread_id=2)
    assert folded.columns() == [A, C]
    folded.run("DROP TABLE t", thread_id=2)
    assert folded.table_at("d", "t") is None


def test_like_or_replace_and_conditions(folded):
    folded.run(f"{CREATE[:-1]}, KEY (a), FOREIGN KEY (c) REFERENCES p (x))", "CREATE TABLE u LIKE t")
    assert folded.columns("u") == folded.columns()
    assert folded.known("u").foreign_keys == ()
    folded.run("CREATE TABLE IF NOT EXISTS u (z INT)", "CREATE OR REPLACE TABLE t (z INT)", "CREATE TABLE v (LIKE u)")
    assert (folded.columns("t"), folded.columns("v")) == (["z int(11) default NULL"], [A, B, C])
    generation = folded.known("v").generation
    assert folded.run("TRUNCATE v").known("v").generation > generation
    assert folded.run("SET STATEMENT max_statement_time=1 FOR ALTER TABLE v DROP a").columns("v") == [B, C]


def test_if_not_exists_makes_known_what_was_not(folded):
    folded.run("ALTER TABLE t ADD x INT", "CREATE TABLE IF NOT EXISTS t (a INT)")
    assert folded.columns() == [A]
    folded.run(
        "CREATE VIEW v AS select 1", "CREATE VIEW IF NOT EXISTS v AS select 2", "CREATE OR REPLACE VIEW w AS select 3"
    )
    assert [folded.known(name).text[-1] for name in "vw"] == ["1", "3"]


def test_versioned_tables_have_columns_that_nobody_sees(folded):
    folded.run("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING")
    ends = ["row_start timestamp(6) not null hidden", "row_end timestamp(6) not null hidden"]
    assert folded.columns() == [A, *ends]
    assert folded.run("ALTER TABLE t DROP SYSTEM VERSIONING").columns() == [A]
    assert folded.run("ALTER TABLE t ADD SYSTEM VERSIONING").columns() == [A, *ends]


def test_programs_views_and_sequences_are_known_by_name(folded):
    folded.run(
        CREATE,
        "CREATE DEFINER=`root`@`localhost` TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE DEFINER=`root`@`%` FUNCTION f() RETURNS INT RETURN 1",
        "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` AS select 1",
        "CREATE SEQUENCE s START WITH 5",
        "CREATE USER u IDENTIFIED BY 'x'",
    )
    assert {key: one.table for key, one in folded.at().programs.items()} == {
        ("d", "TRIGGER", "g"): "t",
        ("d", "FUNCTION", "f"): "",
    }
    assert (folded.known("v").kind, folded.known("s").kind) == (TableKind.VIEW, TableKind.SEQUENCE)
    folded.run("DROP TABLE t", "DROP VIEW v", "DROP FUNCTION f", "DROP SEQUENCE s")
    assert (dict(folded.at().tables), dict(folded.at().programs)) == ({}, {})


def test_what_is_in_a_database_goes_with_it(folded):
    folded.run("CREATE DATABASE d", CREATE, "CREATE TABLE e.t (a INT)", "DROP DATABASE d")
    assert list(folded.at().tables) == [("e", "t")]


@pytest.mark.parametrize(("statement", "reason"), DATA["unknown"])
def test_what_cannot_be_known_is_unknown_with_its_reason(folded, statement, reason):
    table = folded.run(CREATE, statement).table_at("d", "t")
    assert isinstance(table, UnknownTable)
    assert (table.gtid, reason in table.reason) == ("0-1-2", True), table.reason
    assert folded.run("DROP TABLE t", CREATE).columns() == [A, B, C]


def test_a_table_from_before_the_log_is_unknown_as_soon_as_it_shows(folded):
    folded.run("ALTER TABLE t ADD x INT", "RENAME TABLE u TO v", "TRUNCATE t")
    reasons = {name: folded.table_at("d", name).reason for name in ("t", "v")}
    assert reasons["t"].startswith("its CREATE TABLE is not in the log, which has an ALTER TABLE of it; give")
    assert reasons["v"].startswith("it was d.u before, whose CREATE TABLE is not in the log; give")


def test_what_need_not_be_there_is_not_made_up(folded):
    folded.run("ALTER TABLE IF EXISTS t ADD x INT", "RENAME TABLE IF EXISTS u TO v", "DROP TABLE IF EXISTS w")
    assert dict(folded.at().tables) == {}


def test_any_text_is_folded_or_makes_its_tables_unknown(folded):
    """Statements with tokens that are left out, doubled or moved: nothing else may be raised."""
    statements = [one.text for one in hard_statements("11.8")]
    rng = random.Random(random.randrange(2**32))  # of the suite's seed
    for _ in range(3000):
        parts = re.findall(r"\w+|\s+|.", rng.choice(statements), re.DOTALL)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(parts))
            kind = rng.randrange(4)
            if kind == 0:
                parts[at : at + rng.randint(1, 3)] = []
            elif kind == 1:
                parts.insert(at, rng.choice(parts))
            elif kind == 2:
                parts[at] = rng.choice(["(", ")", ",", "'", "`", "FOO", "9999999999999999999999", ".", "", "=", "\\"])
            else:
                parts[at:at] = re.findall(r"\w+|\s+|.", rng.choice(statements), re.DOTALL)[:9]
            parts = parts or [""]
        folded.run("".join(parts))
        if rng.random() < 0.02:
            folded.run(*rng.sample(statements, 3))
    assert len(folded.at().tables) > 5


def test_a_long_statement_is_folded_in_linear_time(folded):
    columns = ", ".join(f"c{number} INT" for number in range(4000))
    started = time.process_time()
    folded.run(f"CREATE TABLE t ({columns})")
    moved = ", ".join(f"MODIFY c{number} BIGINT AFTER c0" for number in range(1, 4000))
    folded.run(f"ALTER TABLE t {moved}")
    assert len(folded.known().columns) == 4000
    folded.run(f"CREATE TABLE u ({', '.join(['a INT'] * 100_000)})")
    assert "more than 8192 columns" in folded.table_at("d", "u").reason
    folded.run("CREATE TABLE v (a INT DEFAULT " + "(" * 100_000, "CREATE TABLE w " + "x" * 500_000, "(" * 100_000)
    assert time.process_time() - started < 60  # seconds; it would take longer if it were quadratic


def test_an_alter_that_has_only_begun_changes_nothing(folded):
    folded.run(CREATE).run("ALTER TABLE t DROP b", has_effect=False)
    assert folded.columns() == [A, B, C]


def test_sql_mode_says_what_operators_of_a_definition_mean(folded):
    sql = "(a VARCHAR(9), b VARCHAR(9) AS (a || 'x'), CHECK (NOT a = 'b'), d VARCHAR(9) DEFAULT (1 || 2))"
    seen = {}
    for name, mode in (("joined", 1 << 1), ("oracle", 1 << 1 | 1 << 9), ("negated", 1 << 29)):
        folded.run(f"CREATE TABLE {name} {sql}", sql_mode=mode)
        table = folded.known(name)
        texts = (table.columns[1].expression, table.checks[0].expression, table.columns[2].default)
        seen[name] = tuple(map(expression_text, texts))
    assert seen == {
        "joined": ("concat(`a`,'x')", "`a` <> 'b'", "concat(1,2)"),
        "oracle": ("concat_operator_oracle(`a`,'x')", "`a` <> 'b'", "concat_operator_oracle(1,2)"),
        "negated": ("`a` <> 0 or 'x'", "`a` = 0 = 'b'", "1 or 2"),
    }


def test_sql_mode_says_what_quotes_mean(folded):
    folded.run('CREATE TABLE "t" ("a b" INT DEFAULT 5, c VARCHAR(9) DEFAULT \'\\\')', sql_mode=(1 << 2) | (1 << 20))
    assert folded.columns() == ["a b int(11) default 5", "c varchar(9) utf8mb4_general_ci default '\\\\'"]


@pytest.mark.parametrize(("alter", "partitions"), DATA["partitions"])
def test_partitions_follow_their_clauses(folded, alter, partitions):
    folded.run(
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a) "
        "(PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))",
        f"ALTER TABLE t {alter}",
    )
    assert folded.known().partitioning == partitions


def test_without_explicit_defaults_the_first_timestamp_of_the_table_follows_changes(folded):
    folded.run("CREATE TABLE t (a INT, b TIMESTAMP, c TIMESTAMP)", flags=0)
    folded.run("ALTER TABLE t ADD d TIMESTAMP", "ALTER TABLE t ADD e TIMESTAMP FIRST", flags=0)
    zero, now = "default '0000-00-00 00:00:00'", "default current_timestamp() on update current_timestamp()"
    assert folded.columns() == [
        *(f"e timestamp not null {now}", "a int(11) default NULL", f"b timestamp not null {now}"),
        *(f"c timestamp not null {zero}", f"d timestamp not null {zero}"),
    ]
    assert folded.known().column("d").first_value == "'0000-00-00 00:00:00'"
    assert folded.known().column("e").first_value == "'1970-01-01 00:16:43'"


@pytest.mark.parametrize(
    ("version", "first_value"),
    [(100516, "?"), (100517, "now"), (100608, "?"), (100901, "?"), (100437, "?"), (101000, "now"), (None, "now")],
)
def test_a_server_that_does_not_say_it_may_have_explicit_defaults(folded, version, first_value):
    more = "ALTER TABLE t ADD b TIMESTAMP, ADD c TIMESTAMP NULL", "ALTER TABLE t ADD d DATE"
    folded.run("CREATE TABLE t (a INT)", *more, flags=0, server_version=version)
    found = [column.first_value for column in folded.known().columns]
    assert found == [None, "?" if first_value == "?" else "'1970-01-01 00:16:42'", "NULL", "NULL"]


@pytest.mark.parametrize(("kind", "made"), DATA["made_not_null"])
def test_what_may_be_null_no_more_is_zero_in_rows_of_before_or_now(folded, kind, made):
    plain = kind.removesuffix(" NULL")
    folded.run("CREATE TABLE t (a INT)", f"ALTER TABLE t ADD b {kind}", f"ALTER TABLE t MODIFY b {plain} NOT NULL")
    assert folded.known().column("b").first_value == made


def test_what_may_be_null_no_more_is_not_known_if_its_default_was_something_else(folded):
    folded.run("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "ALTER TABLE t ALTER b SET DEFAULT 5")
    folded.run("ALTER TABLE t ADD PRIMARY KEY (b)")
    assert folded.known().column("b").first_value == "?"


@pytest.mark.parametrize(("kind", "default", "kept"), DATA["kept_defaults"])
def test_old_rows_hold_a_default_as_the_column_keeps_it(folded, kind, default, kept):
    folded.run("CREATE TABLE t (a INT)", f"ALTER TABLE t ADD b {kind} DEFAULT {default}")
    assert folded.known().column("b").first_value == kept


@pytest.mark.parametrize(("time_zone", "default", "first_value"), DATA["moments"])
def test_a_timestamp_means_a_moment_of_its_session(folded, time_zone, default, first_value):
    folded.run("CREATE TABLE t (a INT)", f"ALTER TABLE t ADD b TIMESTAMP NULL DEFAULT {default}", time_zone=time_zone)
    assert folded.known().column("b").first_value == first_value


def test_convert_to_takes_what_the_same_statement_defines_along_but_not_the_table(folded):
    folded.run(
        "CREATE TABLE t (a TEXT CHARACTER SET latin1)",
        "ALTER TABLE t MODIFY a TEXT CHARACTER SET cp1251, "
        "ADD b VARCHAR(9) CHARACTER SET ucs2, ADD c BLOB, CONVERT TO CHARACTER SET utf8mb4, CHARACTER SET latin1",
    )
    assert [column.type.charset for column in folded.known().columns] == ["utf8mb4", "utf8mb4", None]
    assert folded.known().charset == "latin1"


def test_labels_keep_their_bytes_through_convert_to(folded):
    folded.run("CREATE TABLE t (e ENUM('ab','é','cde')) CHARSET utf8mb4")
    for charset, labels in DATA["converted_labels"]:
        folded.run(f"ALTER TABLE t CONVERT TO CHARACTER SET {charset}")
        assert folded.known().columns[0].type.labels == tuple(labels)
    folded.run("ALTER TABLE t MODIFY e ENUM('ж','€') CHARACTER SET koi8r")
    assert folded.known().columns[0].type.labels == ("ж", "?")


def test_what_follows_an_index_on_how_it_is_made_is_no_option_of_it(folded):
    folded.run("CREATE TABLE t (a INT)", "CREATE INDEX i ON t (a) ALGORITHM=INPLACE LOCK=NONE")
    assert folded.known().indexes[0].options == ()
    folded.run("CREATE INDEX j ON t (a) SOMETHING NEW")
    assert "the end of CREATE INDEX" in folded.table_at("d", "t").reason


def test_a_check_goes_with_its_only_column(folded):
    folded.run("CREATE TABLE t (a INT, x INT, CHECK (x IN (1, 2)), CHECK (a > 0))", "ALTER TABLE t DROP x")
    assert [check.expression for check in folded.known().checks] == ["a > 0"]


def test_the_index_of_a_foreign_key_is_called_as_its_constraint(folded):
    folded.run("CREATE TABLE p (a INT PRIMARY KEY)")
    folded.run("CREATE TABLE t (x INT, CONSTRAINT c FOREIGN KEY i (x) REFERENCES p (a))")
    assert folded.indexes() == [" c (x)"] or folded.indexes() == ["KEY c (x)"]


def test_brackets_are_around_names_under_mssql(folded):
    folded.run("CREATE TABLE [t t] ([a]]b] INT, [select] VARCHAR(5) DEFAULT 'x]y')", sql_mode=1 << 10)
    assert [column.name for column in folded.known("t t").columns] == ["a]b", "select"]
    folded.run("CREATE TABLE [u] (a INT)")
    assert folded.table_at("d", "u") is None


def test_utf8_is_what_it_was_for_the_server_that_wrote_the_log(folded):
    folded.run("CREATE TABLE t (a CHAR(3) CHARACTER SET utf8, b CHAR(3) COLLATE utf8_bin)", server_version=130001)
    folded.run("CREATE TABLE u (a CHAR(3) CHARACTER SET utf8, b CHAR(3) COLLATE utf8_bin)", server_version=130100)
    assert [one.type.collation for one in folded.known("t").columns] == ["utf8mb3_general_ci", "utf8mb3_bin"]
    assert [one.type.collation for one in folded.known("u").columns] == ["utf8mb4_general_ci", "utf8mb4_bin"]


def test_a_comment_for_older_servers_is_read_by_the_version_that_wrote_it(folded):
    text = "CREATE TABLE {} (a INT /*!!130100 NOT NULL */ /*!100100 DEFAULT 5 */)"
    for name, version in (("t", 130000), ("u", 130100), ("v", None)):
        folded.run(text.format(name), server_version=version)
    assert [folded.known(name).columns[0].is_nullable for name in "tuv"] == [False, True, False]
    assert {folded.known(name).columns[0].default for name in "tuv"} == {"5"}


def test_a_json_arrow_is_kept_in_an_expression(folded):
    folded.run("CREATE TABLE t (a JSON, b INT AS (a->'$.x') VIRTUAL)")
    assert folded.known().columns[1].expression == "a->'$.x'"


def test_a_column_that_the_same_statement_adds_is_changed_like_any_other(folded):
    folded.run("CREATE TABLE t (a INT, b INT)")
    folded.run(
        "ALTER TABLE t ADD x INT, ALTER x SET DEFAULT 5, ADD y INT, MODIFY y BIGINT FIRST, ALTER b SET DEFAULT 6"
    )
    folded.run("ALTER TABLE t DROP b, ADD b VARCHAR(3), ALTER b SET DEFAULT 'z', ADD u INT, ALTER u DROP DEFAULT")

    columns = [[one.name, one.type.word, one.default, one.first_value] for one in folded.known("t").columns]
    assert columns == DATA["changed_by_the_same"]


@pytest.mark.parametrize("clauses", ["ADD z INT, CHANGE z zz INT", "MODIFY z INT", "ADD z INT, DROP w"])
def test_a_column_that_is_not_there_makes_an_alter_table_unknown(folded, clauses):
    folded.run("CREATE TABLE t (a INT)", f"ALTER TABLE t {clauses}")

    assert "which there is not" in folded.at().table("d", "t").reason


@pytest.mark.parametrize("number", range(20))
def test_columns_stand_and_hold_for_old_rows_what_a_model_says_of_them(folded, number):
    """The model is a list of names, each with what rows from before the column have in it."""
    rng = random.Random(random.randrange(2**32))
    folded.run("CREATE TABLE t (k INT, j INT)")
    columns = [("k", None), ("j", None)]
    for step in range(15):
        verb = rng.choice(
            ("ADD", "ADD", "MODIFY", "MODIFY", "CHANGE", "RENAME COLUMN", "DROP", "SET DEFAULT", "CONVERT")
        )
        at = rng.randrange(len(columns))
        name, value = columns[at]
        new, default = f"c{step}", rng.randrange(100)
        if verb == "DROP" and len(columns) > 2:
            folded.run(f"ALTER TABLE t DROP {name}")
            del columns[at]
        elif verb == "SET DEFAULT":
            folded.run(
                rng.choice(
                    (f"ALTER TABLE t ALTER {name} SET DEFAULT {default}", f"ALTER TABLE t ALTER {name} DROP DEFAULT")
                )
            )
        elif verb == "RENAME COLUMN":
            folded.run(f"ALTER TABLE t RENAME COLUMN {name} TO {new}")
            columns[at] = (new, value)
        elif verb == "CONVERT":
            folded.run(
                rng.choice(("ALTER TABLE t CONVERT TO CHARACTER SET latin1", "ALTER TABLE t ENGINE=Aria, COMMENT 'x'"))
            )
        elif verb in ("ADD", "MODIFY", "CHANGE"):
            behind = rng.choice(("", "FIRST", *(one for one, _ in columns if verb == "ADD" or one != name)))
            where = behind if behind in ("", "FIRST") else f"AFTER {behind}"
            word = {"ADD": f"ADD {new}", "MODIFY": f"MODIFY {name}", "CHANGE": f"CHANGE {name} {new}"}[verb]
            folded.run(f"ALTER TABLE t {word} BIGINT DEFAULT {default} {where}")
            moved = (new, f"{default}") if verb == "ADD" else (name if verb == "MODIFY" else new, value)
            if verb != "ADD":
                del columns[at]
            place = {"": len(columns) if verb == "ADD" else at, "FIRST": 0}.get(behind)
            if place is None:
                place = next(n for n, (one, _) in enumerate(columns) if one == behind) + 1
            columns.insert(place, moved)
        assert [(one.name, one.first_value) for one in folded.known().columns] == columns, verb


@pytest.mark.parametrize("number", range(10))
def test_what_happens_to_temporary_tables_and_to_others_of_their_names_is_what_a_model_says(folded, number):
    rng = random.Random(random.randrange(2**32))
    shared, own = [None], {1: [None], 2: [None]}
    for step in range(25):
        thread = rng.choice((1, 2))
        seen = own[thread] if own[thread][0] is not None else shared
        verb = rng.choice(
            ("CREATE", "CREATE TEMPORARY", "DROP", "DROP TEMPORARY", "DROP TEMPORARY", "ALTER", "TRUNCATE", "RESTART")
        )
        condition = rng.choice(("", "IF NOT EXISTS "))
        if verb == "CREATE" and (condition or shared[0] is None):
            shared[0] = shared[0] or [f"a{step}"]
            folded.run(f"CREATE TABLE {condition}t (a{step} INT)", thread_id=thread)
        elif verb == "CREATE TEMPORARY" and (condition or own[thread][0] is None):
            own[thread][0] = own[thread][0] or [f"t{step}"]
            folded.run(f"CREATE TEMPORARY TABLE {condition}t (t{step} INT)", thread_id=thread)
        elif verb == "DROP":
            folded.run("DROP TABLE IF EXISTS t", thread_id=thread)
            seen[0] = None
        elif verb == "DROP TEMPORARY":  # logged also where the session has none
            folded.run("DROP TEMPORARY TABLE IF EXISTS t", thread_id=thread)
            own[thread][0] = None
        elif verb == "ALTER" and seen[0] is not None:
            folded.run(f"ALTER TABLE t ADD b{step} INT", thread_id=thread)
            seen[0] = [*seen[0], f"b{step}"]
        elif verb == "TRUNCATE" and seen[0] is not None:
            folded.run("TRUNCATE TABLE t", thread_id=thread)
        elif verb == "RESTART" and step % 5 == 0:
            folded.add_restart()
            own[1][0] = own[2][0] = None
        for like, ours in (("x", own[1]), ("y", own[2])):  # what a session sees is what it copies
            copied = ours[0] or shared[0]
            if copied is not None:
                folded.run(f"CREATE OR REPLACE TABLE {like} LIKE t", thread_id=1 if like == "x" else 2)
                assert [one.name for one in folded.known(like).columns] == copied, (step, verb)
        table = folded.table_at("d", "t")
        assert (table if table is None else [one.name for one in table.columns]) == shared[0], (step, verb)
