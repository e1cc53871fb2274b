"""What CREATE TABLE statements and the types in them say."""

from __future__ import annotations

import pytest

from ibbmaster.event.rows.ddl import (
    attributes_of,
    is_nullable,
    is_primary_key,
    is_unsigned,
    named_charset,
    parse_create_table,
    parse_declarations,
)

ATTRIBUTES = {  # declared type: its words
    "INT": "int",
    "int(10)  Unsigned\nNOT\tNULL": "int unsigned not null",
    "int comment 'was unsigned, NOT NULL PRIMARY KEY'": "int comment",
    "int default '' comment 'it''s unsigned'": "int default comment",
    r"int comment 'a \' unsigned' zerofill": "int comment zerofill",
    r"int comment '\\' unsigned": "int comment unsigned",
    'int comment "unsigned ""really"" \' not" not null': "int comment not null",
    "int references `unsigned` (`zerofill`)": "int references",
    "bigint as (cast(a as unsigned)) virtual": "bigint as virtual",
    "int check (a is not null and b <> ')') unsigned": "int check unsigned",
    "enum('unsigned','not null') not null": "enum not null",
    "int /* unsigned */ -- zerofill\n not null # unsigned": "int not null",
    "int `encryption_key_id`=1": "int 1",
    "varchar(10) character  set latin1 comment 'character set utf8'": "varchar character set latin1 comment",
    "int comment 'never closed unsigned": "int comment never closed unsigned",
    "": "",
}


@pytest.mark.parametrize(("declared", "words"), ATTRIBUTES.items())
def test_words_in_strings_names_brackets_and_comments_are_no_attributes(declared, words):
    assert attributes_of(declared) == words


@pytest.mark.parametrize(
    "declared",
    ["int unsigned", "INT(7) ZEROFILL", "tinyint unsigned zerofill", "decimal(5,2) zerofill", "serial", "SERIAL KEY"],
)
def test_numbers_without_a_sign_are_unsigned_zerofill_or_serial(declared):
    assert is_unsigned(declared)


@pytest.mark.parametrize(
    "declared",
    [
        "int",
        "int signed",
        "int comment 'unsigned'",
        "int comment 'zerofill'",
        'int default "unsigned"',
        "int as (cast(a as unsigned))",
        "int unsigned_",
        "int /* zerofill */",
    ],
)
def test_other_numbers_have_a_sign(declared):
    assert not is_unsigned(declared)


@pytest.mark.parametrize(
    "declared",
    ["int primary key", "int KEY", "int unique primary key", "int unique key primary  key", "int auto_increment key"],
)
def test_a_column_is_the_primary_key_also_by_the_word_key_alone(declared):
    assert is_primary_key(declared)
    assert not is_nullable(declared)


@pytest.mark.parametrize(
    "declared", ["int", "int unique", "int unique key", "int comment 'primary key'", "int encryption_key_id=1"]
)
def test_other_columns_are_not_the_primary_key(declared):
    assert not is_primary_key(declared)
    assert is_nullable(declared)


def test_a_column_may_be_null_unless_it_says_not_null():
    assert not is_nullable("int not null")
    assert not is_nullable("int NOT\n NULL default 0")
    assert is_nullable("int null")
    assert is_nullable("int comment 'not null'")
    assert is_nullable("int default 'not null' check (a is not null)")


TABLES = {
    "a comment on a column": (
        "CREATE TABLE a.b (id int COMMENT 'x, y int -- no', c int)",
        {"id": "int COMMENT 'x, y int -- no'", "c": "int"},
    ),
    "what looks like a comment in a string": (
        "CREATE TABLE a.b (w varchar(9) DEFAULT '/* # */', c int)",
        {"w": "varchar(9) DEFAULT '/* # */'", "c": "int"},
    ),
    "what looks like a comment in a name": ("CREATE TABLE a.b (`-- x` int)", {"-- x": "int"}),
    "comments of each kind": (
        "CREATE /* a */ TABLE a.b ( -- one, two int\n id int, # three int\n c int --\n)",
        {"id": "int", "c": "int"},
    ),
    "a bracket in a string": (
        "CREATE TABLE a.b (id int COMMENT ')', c int)",
        {"id": "int COMMENT ')'", "c": "int"},
    ),
    "a column named period": ("CREATE TABLE a.b (period int, c int)", {"period": "int", "c": "int"}),
    "a period of system time": (
        "CREATE TABLE a.b (c int, s timestamp(6) as row start, PERIOD FOR SYSTEM_TIME(s, e))",
        {"c": "int", "s": "timestamp(6) as row start"},
    ),
    "keys and checks": (
        "CREATE TABLE a.b (c int, PRIMARY KEY (c), UNIQUE u (c), KEY (c), CHECK (c > 0), CONSTRAINT x CHECK (c > 0))",
        {"c": "int PRIMARY KEY"},
    ),
}


@pytest.mark.parametrize(("sql", "columns"), TABLES.values(), ids=TABLES)
def test_the_columns_of_a_table_are_what_stands_between_its_commas(sql, columns):
    assert parse_create_table(sql) == ("a.b", columns)


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


DUMP = """
/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET latin1 */;

USE `shop`;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int(11) NOT NULL,
  `note` varchar(9) DEFAULT 'USE x;',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `orders` VALUES (1,';
USE x;
');
CREATE TABLE lake.t (a int);
/*!50001 CREATE TABLE `seen_as_view` (a int) */;
DELIMITER ;;
CREATE PROCEDURE p()
BEGIN
  SET @a = 1;
  CREATE TEMPORARY TABLE orders (wrong int);
END ;;
DELIMITER ;
USE `my``shop`;
CREATE TABLE t (b int);
"""


def test_tables_of_a_dump_are_in_the_database_of_the_use_before_them():
    assert dict(parse_declarations(DUMP)) == {
        "shop.orders": {"id": "int(11) NOT NULL PRIMARY KEY", "note": "varchar(9) DEFAULT 'USE x;'"},
        "lake.t": {"a": "int"},
        "my`shop.t": {"b": "int"},
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


CHARSETS = {  # type of a column, or options of a table: the character set it names
    "varchar(9)": None,
    "varchar(9) CHARACTER SET latin1 NOT NULL": "latin1",
    "varchar(9) character\n set = Latin1": "latin1",
    "char(9) charset latin2": "latin2",
    "text char set koi8r": "koi8r",
    "text CHARSET 'latin1' not null": "latin1",
    'text CHARACTER SET "latin1"': "latin1",
    "text CHARSET `latin1`": "latin1",
    "text CHARSET utf8": "utf8mb3",
    "text charset binary": "binary",
    "text COLLATE latin1_swedish_ci": "latin1",
    "text NOT NULL COLLATE 'cp1251_bin'": "cp1251",
    "text COLLATE utf8_general_ci": "utf8mb3",
    "text COLLATE utf8mb4_uca1400_ai_ci": "utf8mb4",
    "text COLLATE binary": "binary",
    "text COLLATE uca1400_ai_ci": None,
    "text COLLATE DEFAULT": None,
    "text CHARACTER SET DEFAULT": None,
    "text CHARACTER SET latin1 COLLATE uca1400_ai_ci": "latin1",
    "text COLLATE ucs2_bin CHARACTER SET ucs2": "ucs2",
    "varchar(9) COMMENT 'character set latin1'": None,
    "varchar(9) COMMENT 'charset' NOT NULL": None,
    "varchar(9) DEFAULT (a COLLATE latin1_bin)": None,
    "varchar(9) /* charset latin1 */": None,
    " ENGINE=InnoDB DEFAULT CHARSET=latin1": "latin1",
    " ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci": "utf8mb4",
    " CHARSET greek, COMMENT='charset=latin1'": "greek",
    " default character set = cp1250 collate cp1250_bin": "cp1250",
    " COLLATE=hebrew_bin": "hebrew",
    " COLLATE=uca1400_ai_ci": None,
    " ENGINE=InnoDB": None,
}


@pytest.mark.parametrize(("text", "charset"), CHARSETS.items())
def test_a_character_set_is_named_by_itself_or_by_a_collation(text, charset):
    assert named_charset(text) == charset


TEXTS = "a varchar(9) NOT NULL, b text COLLATE cp1251_bin, c char(1) charset utf8mb4, d text COLLATE uca1400_ai_ci"


def test_a_column_without_character_set_has_that_of_its_table():
    _, columns = parse_create_table(f"CREATE TABLE a.b ({TEXTS}) ENGINE=InnoDB DEFAULT CHARSET=latin1")

    assert list(map(named_charset, columns.values())) == ["latin1", "cp1251", "utf8mb4", "latin1"]


@pytest.mark.parametrize("options", ["", "CHARSET utf8mb4", "COLLATE=utf8mb4_bin", "COLLATE uca1400_ai_ci"])
def test_utf8mb4_is_what_a_column_without_character_set_stands_for(options):
    assert parse_create_table(f"CREATE TABLE a.b (a text, b int) {options}") == ("a.b", {"a": "text", "b": "int"})


def test_what_is_no_text_and_json_have_nothing_of_the_table_s_character_set():
    sql = "CREATE TABLE a.b (a int, b blob, c varbinary(2), d json, e enum('x'), f uuid, g tinytext) CHARSET=latin1"
    _, columns = parse_create_table(sql)

    assert [name for name, declared in columns.items() if named_charset(declared)] == ["g"]


def test_the_key_of_a_table_is_marked_at_its_columns():
    keys = "KEY k (b(3)), CONSTRAINT x PRIMARY KEY USING BTREE (c, `a` DESC)"
    sql = f"CREATE TABLE d.t (`a` int, b text, c varchar(9), {keys})"
    assert parse_create_table(sql) == (
        "d.t",
        {"a": "int PRIMARY KEY", "b": "text", "c": "varchar(9) PRIMARY KEY"},
    )
    assert parse_create_table("CREATE TABLE d.t (a int primary key, primary key (a))") == (
        "d.t",
        {"a": "int primary key"},
    )
    sql = "CREATE TABLE d.t (a varchar(9), primary key (a)) CHARSET latin1"
    assert parse_create_table(sql) == ("d.t", {"a": "varchar(9) CHARACTER SET latin1 PRIMARY KEY"})
