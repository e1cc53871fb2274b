import pytest

from ibbmaster.position import LogPosition
from ibbmaster.replication.event.rows.charset import charset_of
from ibbmaster.schema.collations import (
    character_sets,
    charset_of_collation,
    collation_name,
    collation_number,
    collations,
    find_charset,
    find_collation,
)
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion
from tests.case_table import data_beside

TABLE = "CREATE TABLE t (a INT)"
BY = {"client_collation": 8, "connection_collation": 47, "time_zone": "+01:00"}


def programs(folded, kind):
    return {key[2]: program for key, program in folded.at().programs.items() if key[1] == kind}


def trigger(name, more=""):
    return f"CREATE TRIGGER {name} BEFORE INSERT ON t FOR EACH ROW {more} SET @a = 1"


def test_a_program_is_kept_as_it_was_logged_with_what_its_session_had_set(folded):
    logged = "CREATE OR REPLACE DEFINER=staff PROCEDURE IF NOT EXISTS `p`() SELECT 1"
    folded.run("CREATE DATABASE d CHARACTER SET latin2", f"{logged} ;\n", **BY)
    found = programs(folded, "PROCEDURE")["p"]
    assert (found.text, found.client, found.connection) == (logged, "latin1", "latin1_bin")
    assert (found.of_database, found.time_zone) == ("latin2_general_ci", "+01:00")


def test_what_is_there_already_stays_with_if_not_exists_in_any_letters(folded):
    folded.run("CREATE PROCEDURE p() SELECT 1", "CREATE PROCEDURE IF NOT EXISTS P() SELECT 2")
    assert programs(folded, "PROCEDURE")["p"].text.endswith("SELECT 1")
    assert programs(folded.run("DROP PROCEDURE P"), "PROCEDURE") == {}


def test_programs_go_with_what_they_belong_to(folded):
    folded.run(TABLE, trigger("a").replace(" t ", " d . t "), 'RENAME TABLE t TO `u"v`')
    found = programs(folded, "TRIGGER")["a"]
    assert (found.table, found.text) == ('u"v', trigger("a").replace(" t ", ' `u"v` '))
    folded.run('DROP TABLE `u"v`', "CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "DROP DATABASE d")
    assert dict(folded.at().programs) == {}


def test_dropping_a_package_drops_its_body(folded):
    folded.run("CREATE PACKAGE k AS END", "CREATE PACKAGE BODY k AS END", "DROP PACKAGE BODY k")
    assert [key[1] for key in folded.at().programs] == ["PACKAGE"]
    folded.run("CREATE PACKAGE BODY k AS END", "DROP PACKAGE k")
    assert dict(folded.at().programs) == {}


def test_what_an_alter_has_changed_is_known_by_its_name(folded):
    folded.run("CREATE PROCEDURE p() NO SQL SELECT 1", "ALTER PROCEDURE p COMMENT 'c' SQL SECURITY INVOKER")
    assert programs(folded, "PROCEDURE")["p"].is_altered
    folded.run("CREATE EVENT e ON SCHEDULE AT '2030-01-01' DO SELECT 1", "ALTER EVENT E RENAME TO x.f COMMENT 'c'")
    assert list(programs(folded, "EVENT")) == ["f"]
    assert folded.at().programs["x", "EVENT", "f"].is_altered
    folded.run("CREATE OR REPLACE EVENT x.f ON SCHEDULE AT '2030-01-01' DO SELECT 2")
    assert not programs(folded, "EVENT")["f"].is_altered


def test_what_is_altered_and_was_there_before_the_log_stays_unknown(folded):
    folded.run("ALTER PROCEDURE p COMMENT 'c'", "ALTER EVENT e ENABLE", TABLE)
    assert (dict(folded.at().programs), folded.known().name) == ({}, "t")


ID = TableColumn(id=1, name="Id", type=SqlType(word="int", length=11), is_nullable=False)
NAME = TableColumn(id=2, name="name", type=SqlType(word="varchar", length=40))
KEY = TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=1),))


def test_a_column_is_found_by_its_name_in_any_case() -> None:
    table = TableVersion(database="shop", name="orders", columns=(ID, NAME))

    assert table.column("ID") is ID
    assert table.column("NaMe") is NAME
    assert table.column("price") is None


def test_a_table_has_a_primary_key_only_where_one_is_declared() -> None:
    unique = TableIndex(name="name", kind=IndexKind.UNIQUE, parts=(IndexPart(column_id=2),))

    assert TableVersion(database="shop", name="orders", indexes=(unique, KEY)).primary_key is KEY
    assert TableVersion(database="shop", name="orders", indexes=(unique,)).primary_key is None


def test_places_compare_in_the_order_of_the_log() -> None:
    second, first = SchemaPlace(LogPosition(0, 40), 2), SchemaPlace(LogPosition(0, 40), 1)

    assert first < second < SchemaPlace(LogPosition(1, 16), 0)


@pytest.mark.parametrize(("indexes", "name"), data_beside(__file__))
def test_rows_are_known_by_a_unique_index_of_whole_columns_that_are_never_null(folded, indexes, name):
    columns = "a INT NOT NULL, b INT NOT NULL, n INT, t VARCHAR(9) NOT NULL"
    key = row_key(folded.run(f"CREATE TABLE t ({columns}, {indexes})").known())
    assert (None if key is None else key.name) == name


def test_numbers_mean_the_character_sets_that_rows_are_decoded_with():
    numbered = {each.number: each.charset for each in collations().values() if each.number and not each.is_newer}
    assert {number: charset_of(number) for number in numbered} == numbered


def test_every_default_is_a_collation_of_its_character_set():
    for charset in character_sets().values():
        for is_uca in (False, True):
            name = charset.default_collation(is_uca=is_uca)
            assert find_collation(name) == name
            assert charset_of_collation(name) == charset.name


def test_old_names_mean_what_they_mean_today():
    assert find_charset("UTF8") == "utf8mb3"
    assert find_collation("utf8_general_ci") == "utf8mb3_general_ci"
    assert find_collation("uca1400_ai_ci", "utf8mb4") == "utf8mb4_uca1400_ai_ci"
    assert find_collation("uca1400_ai_ci", "latin1") is None
    assert find_charset("nothing") is None


def test_numbers_have_the_names_that_servers_give_them():
    numbered = {each.number: each.name for each in collations().values() if each.number is not None}
    assert {number: collation_name(number) for number in numbered} == numbered
    assert collation_name(2304) == "utf8mb4_uca1400_ai_ci"
    assert collation_name(2309) == "utf8mb4_uca1400_nopad_ai_cs"
    assert collation_name(2048 + 256 * 4 + 8) == "utf32_uca1400_icelandic_ai_ci"
    assert collation_name(2304 + 8 * 23) == "utf8mb4_uca1400_vietnamese_ai_ci"
    assert collation_name(2304 + 8 * 24 + 7) == "utf8mb4_uca1400_croatian_nopad_as_cs"
    assert all(collation_number(name) == number for number, name in numbered.items())
    assert all(collation_number(collation_name(number)) == number for number in (2304, 2309, 3080, 2488, 2503))
    assert [collation_number(name) for name in ("latin1_uca1400_ai_ci", "utf8mb4_x", "uca1400_ai_ci")] == [None] * 3
    assert [collation_name(number) for number in (0, 500, 2048 + 255, 2304 + 8 * 21, 65535)] == [None] * 5
