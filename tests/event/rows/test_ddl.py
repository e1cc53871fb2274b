"""What CREATE TABLE statements and the types in them say."""

from __future__ import annotations

import pytest

from ibbmaster.event.rows.ddl import (
    attributes_of,
    is_nullable,
    is_primary_key,
    is_unsigned,
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
        {"c": "int"},
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
