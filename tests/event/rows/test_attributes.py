"""What the types of columns say beyond their word."""

import pytest

from ibbmaster.event.rows.attributes import attributes_of, is_nullable, is_primary_key, is_unsigned, named_charset

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
    "int comment 'never closed unsigned": "int comment",
    "": "",
}


@pytest.mark.parametrize(("declared", "words"), ATTRIBUTES.items())
def test_words_in_strings_names_brackets_and_comments_are_no_attributes(declared, words):
    assert attributes_of(declared) == words.split()


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
