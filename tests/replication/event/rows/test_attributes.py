import pytest

from ibbmaster.replication.event.rows import attributes
from tests.case_table import data_beside

DATA = data_beside(__file__)

ATTRIBUTES = DATA["attributes"]  # declared type: its words


@pytest.mark.parametrize(("declared", "words"), ATTRIBUTES.items())
def test_words_in_strings_names_brackets_and_comments_are_no_attributes(declared, words):
    assert attributes.attributes_of(declared) == words.split()


@pytest.mark.parametrize(
    "declared",
    ["int unsigned", "INT(7) ZEROFILL", "tinyint unsigned zerofill", "decimal(5,2) zerofill", "serial", "SERIAL KEY"],
)
def test_numbers_without_a_sign_are_unsigned_zerofill_or_serial(declared):
    assert attributes.is_unsigned(declared)


@pytest.mark.parametrize("declared", DATA["numbers"])
def test_other_numbers_have_a_sign(declared):
    assert not attributes.is_unsigned(declared)


@pytest.mark.parametrize(
    "declared",
    ["int primary key", "int KEY", "int unique primary key", "int unique key primary  key", "int auto_increment key"],
)
def test_a_column_is_the_primary_key_also_by_the_word_key_alone(declared):
    assert attributes.is_primary_key(declared)
    assert not attributes.is_nullable(declared)


@pytest.mark.parametrize(
    "declared", ["int", "int unique", "int unique key", "int comment 'primary key'", "int encryption_key_id=1"]
)
def test_other_columns_are_not_the_primary_key(declared):
    assert not attributes.is_primary_key(declared)
    assert attributes.is_nullable(declared)


def test_a_column_may_be_null_unless_it_says_not_null():
    assert not attributes.is_nullable("int not null")
    assert not attributes.is_nullable("int NOT\n NULL default 0")
    assert attributes.is_nullable("int null")
    assert attributes.is_nullable("int comment 'not null'")
    assert attributes.is_nullable("int default 'not null' check (a is not null)")


CHARSETS = DATA["charsets"]  # type of a column, or options of a table: the character set it names


@pytest.mark.parametrize(("text", "charset"), CHARSETS.items())
def test_a_character_set_is_named_by_itself_or_by_a_collation(text, charset):
    assert attributes.named_charset(text) == charset
