"""SHOW CREATE TABLE and SHOW CREATE DATABASE; the expected texts were printed by MariaDB 11.8."""

import pytest

from ibbmaster.schema.model import DatabaseVersion
from ibbmaster.schema.render import create_database, create_table
from ibbmaster.schema.view_text import create_sequence
from tests.case_table import data_beside

DATA = data_beside(__file__)

TAIL = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
#: What is made, and what is printed between the first line and TAIL.
COLUMNS = DATA["columns"]
#: What stands behind the columns, and what is printed there.
OPTIONS = DATA["options"]


def text_of(folded, version=110806, table="t"):
    return create_table(folded.known(table), version)


@pytest.fixture
def database(folded):
    folded.run("CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    folded.run("CREATE TABLE p (id int primary key)")
    return folded


@pytest.mark.parametrize(("made", "printed"), COLUMNS.items(), ids=list(COLUMNS))
def test_columns_and_indexes_are_printed_as_a_server_prints_them(database, made, printed):
    database.run(f"CREATE TABLE t ({made})")
    assert text_of(database) == f"CREATE TABLE `t` (\n  {printed}\n{TAIL}"


def test_aria_says_that_it_checks_its_pages(database):
    database.run("CREATE TABLE t (a int) ENGINE=Aria TRANSACTIONAL=1")
    assert text_of(database).endswith(" COLLATE=utf8mb4_general_ci PAGE_CHECKSUM=1 TRANSACTIONAL=1")


@pytest.mark.parametrize(("made", "printed"), OPTIONS.items(), ids=list(OPTIONS))
def test_options_are_printed_as_a_server_prints_them(database, made, printed):
    database.run(f"CREATE TABLE t (a int) {made}")
    assert text_of(database) == f"CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n{TAIL}{printed}"


def test_an_older_server_prints_invisible_before_the_default(database):
    database.run("CREATE TABLE t (a int, v int invisible default 7)")
    assert "`v` int(11) INVISIBLE DEFAULT 7" in text_of(database, version=101119)


def test_the_period_of_rows_stands_where_its_columns_are_the_tables_own(database):
    database.run(
        "CREATE TABLE t (a int without system versioning, rs timestamp(6) generated always as row start, "
        "re timestamp(6) generated always as row end, period for system_time(rs, re)) with system versioning"
    )
    assert text_of(database).split("\n")[1:5] == [
        "  `a` int(11) DEFAULT NULL WITHOUT SYSTEM VERSIONING,",
        "  `rs` timestamp(6) GENERATED ALWAYS AS ROW START,",
        "  `re` timestamp(6) GENERATED ALWAYS AS ROW END,",
        "  PERIOD FOR SYSTEM_TIME (`rs`, `re`)",
    ]


def test_what_is_printed_makes_the_same_table(database, folded):
    database.run("CREATE TABLE t (a int primary key, b varchar(5) default (a + 1), c int as (b) stored, check (a > 0))")
    first = text_of(database)
    database.run("DROP TABLE t", first)
    assert text_of(database) == first


def test_a_database_is_printed_with_its_collation_and_comment():
    database = DatabaseVersion(name="r1", charset="utf8mb4", collation="utf8mb4_general_ci", comment="it's")
    text = "`r1` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */ COMMENT 'it''s'"
    assert create_database(database) == f"CREATE DATABASE {text}"
    assert create_database(database, if_not_exists=True) == f"CREATE DATABASE /*!32312 IF NOT EXISTS*/ {text}"


@pytest.mark.parametrize(("statements", "number"), DATA["next_numbers"])
def test_the_next_number_is_what_ddl_has_set(folded, statements, number):
    table = folded.run(*statements).known()
    assert table.auto_increment == number
    text = create_table(table, 110806)
    assert (f" AUTO_INCREMENT={number} DEFAULT CHARSET" in text) == (number is not None)
    assert text.count("AUTO_INCREMENT=") == (number is not None)


def test_the_comment_of_a_sequence_is_that_of_its_last_alter_table(folded):
    folded.run("CREATE SEQUENCE s COMMENT = 'a'")
    assert create_sequence(folded.known("s")).endswith(" nocycle ENGINE=InnoDB COMMENT='a'")
    folded.run("ALTER TABLE s COMMENT 'it''s'")
    assert create_table(folded.known("s"), 110806).endswith(") ENGINE=InnoDB SEQUENCE=1 COMMENT='it''s'")
    assert create_sequence(folded.known("s")).endswith(" nocycle ENGINE=InnoDB COMMENT='it''s'")


def test_a_view_has_the_character_set_and_the_collation_of_its_session(folded):
    folded.run("CREATE VIEW v AS SELECT 1", client_collation=8, connection_collation=46)

    assert (folded.known("v").charset, folded.known("v").collation) == ("latin1", "utf8mb4_bin")


def test_tables_of_a_merge_table_are_named_with_their_databases_where_these_are_others(folded):
    folded.run("CREATE TABLE m (a INT) ENGINE=MERGE UNION=(a, `d`.`b`, e.c, d) INSERT_METHOD=NO")

    assert create_table(folded.known("m"), 110806).endswith(" UNION=(`a`,`b`,`e`.`c`,`d`)")
