import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.column_types.kind import ColumnKind, Layout, ResultType, read_declared
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind

COLUMN = Column(name="a", type=ColumnType.VARCHAR, metadata=40, kind=ValueKind.BINARY)


@pytest.mark.parametrize(
    ("text", "word", "inside", "length", "scale"),
    [
        ("INT", "int", None, None, 0),
        (" decimal ( 10 , 2 ) unsigned", "decimal", " 10 , 2 ", 10, 2),
        ("varchar(40) charset utf8mb4", "varchar", "40", 40, 0),
        ("enum('a)','it''s') not null", "enum", "'a)','it''s'", None, 0),
        ("datetime(\n3)", "datetime", "\n3", 3, 0),
        ("int(\u0663)", "int", "\u0663", None, 0),  # a digit, but of another script
    ],
)
def test_a_type_is_a_word_and_what_stands_in_its_brackets(text, word, inside, length, scale):
    declared = read_declared("column a", text)
    assert (declared.word, declared.inside, declared.length, declared.scale) == (word, inside, length, scale)


@pytest.mark.parametrize("text", ["", "  ", "()", "`int`"])
def test_what_begins_with_no_word_is_no_type(text):
    with pytest.raises(ConfigurationError, match=r"column a: .* is no column type"):
        read_declared("column a", text)


def test_a_type_that_contradicts_the_binlog_is_refused_with_both():
    declared = read_declared("column a", "uuid")
    declared.expect(COLUMN, True)
    with pytest.raises(
        ConfigurationError, match=r"column a: declared as 'uuid', but the binlog has it as VARCHAR\(40\)"
    ):
        declared.expect(COLUMN, False)


class Silent(ColumnKind):
    """Says no more than it must."""

    def convert(self, column):
        return bytes

    def result(self, told):
        return ResultType(0, 0)


class Pairs(ColumnKind):
    def __init__(self, size):
        self.size = size

    def fixed_size(self, column):
        return self.size

    def length_size(self, column):
        return 2

    def convert(self, column):
        return bytes.hex

    def result(self, told):
        return ResultType(0, 0)


def test_a_kind_reads_values_of_a_fixed_size_or_behind_their_length():
    assert Pairs(2).reader(COLUMN)(b"\1\2\3", 0) == ("0102", 2)
    assert Pairs(None).reader(COLUMN)(b"\1\0\3", 0) == ("03", 3)


def test_a_kind_that_says_nothing_has_no_metadata_is_not_declared_and_not_written():
    kind = Silent()
    assert kind.layout("column a", ColumnType.LONG, 0, b"") == Layout(ColumnType.LONG)
    assert kind.declare(COLUMN, read_declared("column a", "int")) == {}
    assert kind.write(read_declared("column a", "int")) is None
    assert (kind.fixed_size(COLUMN), kind.length_size(COLUMN)) == (None, 0)


def test_a_kind_must_say_how_its_values_are_read():
    with pytest.raises(TypeError, match="convert"):
        ColumnKind()
