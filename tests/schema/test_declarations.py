from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.rows.attributes import named_charset
from ibbmaster.schema.declarations import parse_declarations
from tests.case_table import data_beside


def parse_one(sql):
    (found,) = parse_declarations(sql)
    return found


TABLES = data_beside(__file__)


@pytest.mark.parametrize(("sql", "columns"), TABLES.values(), ids=TABLES)
def test_the_columns_of_a_table_are_what_stands_between_its_commas(sql, columns):
    assert parse_one(sql) == ("a.b", columns)


def test_a_script_gives_all_its_tables_whatever_their_strings_hold():
    script = """
        -- CREATE TABLE x.y (no int);
        CREATE TABLE a.b (id int COMMENT "it's; here", c int);
        INSERT INTO a.b VALUES (1, 'CREATE TABLE x.z (no int);');
        CREATE TABLE a.d (e int COMMENT 'a "; b', `f;g` int)
    """
    assert dict(parse_declarations(script)) == {
        "a.b": {"id": 'int COMMENT "it\'s; here"', "c": "int"},
        "a.d": {"e": "int COMMENT 'a \"; b'", "f;g": "int"},
    }


DUMP = Path(__file__).with_name("declared_dump.sql").read_text()


def test_tables_of_a_dump_are_in_the_database_of_the_use_before_them():
    assert dict(parse_declarations(DUMP)) == {
        "shop.orders": {"id": "int(11) NOT NULL PRIMARY KEY", "note": "varchar(9) DEFAULT 'USE x;'"},
        "lake.t": {"a": "int"},
        "`my``shop`.t": {"b": "int"},
    }


@pytest.mark.parametrize(
    "use",
    ["USE a;", "use a ;", "USE\ta;", "USE `a`;", "use b; USE a;", "USE b\nUSE a\n", "USE a -- it\n", "/* 1 */USE a;"],
)
def test_use_ends_with_a_semicolon_or_its_line(use):
    assert dict(parse_declarations(f"{use}CREATE TABLE t (c int)")) == {"a.t": {"c": "int"}}


@pytest.mark.parametrize(
    "script", ["", "CREATE TABLE u (c int); USE a;\n", "-- USE a;\n", "SELECT 'USE a;';", "USED a;"]
)
def test_without_use_before_it_a_table_has_no_database(script):
    assert next(parse_declarations(script + "CREATE TABLE t (c int)"))[0].startswith(".")


def test_routines_up_to_the_end_of_a_script_declare_nothing():
    script = "CREATE TABLE a.b (c int);\ndelimiter //\nCREATE PROCEDURE p() BEGIN DO 1; CREATE TABLE a.d (e int); END//"
    assert dict(parse_declarations(script)) == {"a.b": {"c": "int"}}


def test_a_semicolon_as_delimiter_changes_nothing():
    script = "DELIMITER ;\nCREATE TABLE a.b (c int);\ndelimiter ;\nCREATE TABLE a.d (e int);"
    assert dict(parse_declarations(script)) == {"a.b": {"c": "int"}, "a.d": {"e": "int"}}


TEXTS = "a varchar(9) NOT NULL, b text COLLATE cp1251_bin, c char(1) charset utf8mb4, d text COLLATE uca1400_ai_ci"


def test_a_column_without_character_set_has_that_of_its_table():
    _, columns = parse_one(f"CREATE TABLE a.b ({TEXTS}) ENGINE=InnoDB DEFAULT CHARSET=latin1")

    assert list(map(named_charset, columns.values())) == ["latin1", "cp1251", "utf8mb4", "latin1"]


@pytest.mark.parametrize("options", ["", "CHARSET utf8mb4", "COLLATE=utf8mb4_bin", "COLLATE uca1400_ai_ci"])
def test_utf8mb4_is_what_a_column_without_character_set_stands_for(options):
    assert parse_one(f"CREATE TABLE a.b (a text, b int) {options}") == ("a.b", {"a": "text", "b": "int"})


def test_what_is_no_text_and_json_have_nothing_of_the_table_s_character_set():
    sql = "CREATE TABLE a.b (a int, b blob, c varbinary(2), d json, e enum('x'), f uuid, g tinytext) CHARSET=latin1"
    _, columns = parse_one(sql)

    assert [name for name, declared in columns.items() if named_charset(declared)] == ["g"]


def test_the_key_of_a_table_is_marked_at_its_columns():
    keys = "KEY k (b(3)), CONSTRAINT x PRIMARY KEY USING BTREE (c, `a` DESC)"
    sql = f"CREATE TABLE d.t (`a` int, b text, c varchar(9), {keys})"
    assert parse_one(sql) == ("d.t", {"a": "int PRIMARY KEY", "b": "text", "c": "varchar(9) PRIMARY KEY"})
    assert parse_one("CREATE TABLE d.t (a int primary key, primary key (a))") == ("d.t", {"a": "int primary key"})
    sql = "CREATE TABLE d.t (a varchar(9), primary key (a)) CHARSET latin1"
    assert parse_one(sql) == ("d.t", {"a": "varchar(9) CHARACTER SET latin1 PRIMARY KEY"})


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE a.b (LIKE c)", "CREATE TABLE a.b (SELECT 1 AS c, 2 AS d)", "CREATE VIEW v AS SELECT 1"]
)
def test_a_table_whose_columns_are_those_of_another_gives_none(sql):
    assert list(parse_declarations(sql)) == []


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE a.b (c int, d varchar(9", "CREATE TABLE a.b (c int comment 'x)", "/* CREATE TABLE a.b (c int)"],
)
def test_a_script_that_ends_inside_a_statement_is_refused(sql):
    with pytest.raises(ConfigurationError, match="the text ends inside a statement"):
        list(parse_declarations(sql))


def test_what_is_not_understood_of_a_table_leaves_its_columns():
    sql = "CREATE TABLE a.b (c int, d color, e int shiny, PRIMARY KEY (C), KEY (c, lower(d)) fast) SHINY"
    assert parse_one(sql) == ("a.b", {"c": "int PRIMARY KEY", "d": "color", "e": "int shiny"})
