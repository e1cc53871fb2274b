import zlib

import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.column_types.kind import Layout, read_declared
from ibbmaster.replication.event.column_types.registry import BY_TYPE, BY_WORD
from ibbmaster.replication.event.column_types.strings import VARCHAR
from ibbmaster.replication.event.rows.column import ColumnType, ValueKind
from tests.replication.event.conftest import column_of, written


def declare(kind: ColumnType, text: str, **given):
    declared = read_declared("column a", text)
    return BY_WORD[declared.word].declare(column_of(kind, **{"size": 1} | given), declared)


@pytest.mark.parametrize(
    ("raw", "layout"),
    [
        ("fe28", Layout(ColumnType.STRING, 40)),
        ("ee18", Layout(ColumnType.STRING, 280)),  # bits 8 and 9 of the length, inverted
        ("ceff", Layout(ColumnType.STRING, 1023)),
        ("f701", Layout(ColumnType.ENUM, 1)),
        ("f808", Layout(ColumnType.SET, 8)),
    ],
)
def test_a_string_has_its_real_type_and_length_in_two_bytes(raw, layout):
    raw = bytes.fromhex(raw)
    assert BY_TYPE[ColumnType.STRING].layout("column 1", ColumnType.STRING, int.from_bytes(raw, "big"), raw) == layout


@pytest.mark.parametrize(
    ("kind", "raw", "problem"),
    [
        (ColumnType.STRING, "f709", "column 1 has string metadata 0xf709"),
        (ColumnType.STRING, "0301", "string metadata"),
        (ColumnType.BLOB, "05", "column 1 has lengths of 5 bytes"),
        (ColumnType.GEOMETRY, "00", "lengths of 0 bytes"),
    ],
)
def test_no_column_has_such_metadata(kind, raw, problem):
    raw = bytes.fromhex(raw)
    with pytest.raises(EventError, match=problem):
        BY_TYPE[kind].layout("column 1", kind, int.from_bytes(raw, "big"), raw)


@pytest.mark.parametrize(
    ("kind", "size", "length_size"),
    [(ColumnType.VARCHAR, 255, 1), (ColumnType.VARCHAR, 256, 2), (ColumnType.BLOB, 3, 3), (ColumnType.STRING, 255, 1)],
)
def test_the_length_takes_as_many_bytes_as_the_longest_value_needs(kind, size, length_size):
    assert VARCHAR.length_size(column_of(kind, size=size)) == length_size


def test_text_is_in_the_character_set_of_its_column():
    assert VARCHAR.convert(column_of(ColumnType.VARCHAR, ValueKind.TEXT, charset="latin1"))(b"\xe9") == "é"
    assert VARCHAR.convert(column_of(ColumnType.VARCHAR, ValueKind.TEXT))("é".encode()) == "é"


def test_binary_strings_of_a_fixed_size_get_their_zeros_back():
    assert VARCHAR.convert(column_of(ColumnType.STRING, size=4, charset="binary"))(b"ab") == b"ab\0\0"
    assert VARCHAR.convert(column_of(ColumnType.STRING, size=4))(b"ab") == b"ab"


RAW = zlib.compress(b"abc" * 9)
PACKED = {  # by MariaDB's field_comp.cc: method and size of the size, the size, the data
    "nothing": (b"", b""),
    "not compressed": (b"\0abc", b"abc"),
    "zlib": (b"\x81\x1b" + RAW, b"abc" * 9),
    "zlib with two bytes of size": (b"\x82\0\x1b" + RAW, b"abc" * 9),
    "without the head of zlib": (b"\x89\x1b" + RAW[2:-4], b"abc" * 9),
}


@pytest.mark.parametrize(("data", "value"), PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("kind", [ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED])
def test_a_compressed_value_is_unpacked(kind, data, value):
    assert VARCHAR.convert(column_of(kind))(data) == value


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x71\x03abc", "compression method 7 is not known"),
        (b"\x84\x7f\xff\xff\xff" + RAW, "a compressed value claims 2147483647 bytes"),
        (b"\x81\x1bno zlib", "a compressed value does not unpack"),
        (b"\x81\x1a" + RAW, "of 27 bytes or more claims 26"),
        (b"\x81\x1c" + RAW, "of 27 bytes or more claims 28"),
        (b"\x81\x1b" + RAW[:-1], "claims 27"),
    ],
)
def test_what_does_not_unpack_to_its_size_is_refused(data, problem):
    with pytest.raises(ValueError, match=problem):
        VARCHAR.convert(column_of(ColumnType.BLOB_COMPRESSED))(data)


@pytest.mark.parametrize(
    ("kind", "charset", "text", "found"),
    [
        (ColumnType.BLOB, None, "text", {"kind": ValueKind.TEXT, "charset": "utf8mb4"}),
        (ColumnType.BLOB, None, "text charset latin1", {"kind": ValueKind.TEXT, "charset": "latin1"}),
        (ColumnType.BLOB, "latin2", "text charset latin1", {"kind": ValueKind.TEXT, "charset": "latin2"}),
        (ColumnType.BLOB, "binary", "blob", {"kind": ValueKind.BINARY, "charset": "binary"}),
        (ColumnType.BLOB, "latin1", "blob", {}),  # the event goes first: the table may have been converted since
        (ColumnType.VARCHAR, None, "varchar(5) charset binary", {"kind": ValueKind.BINARY, "charset": "binary"}),
        (ColumnType.VARCHAR, None, "vector(3)", {"kind": ValueKind.VECTOR}),
    ],
)
def test_a_declared_type_says_what_the_event_does_not(kind, charset, text, found):
    assert declare(kind, text, charset=charset) == found


@pytest.mark.parametrize(
    ("kind", "size", "text", "problem"),
    [
        (ColumnType.GEOMETRY, 4, "text", "but the binlog has it as"),
        (ColumnType.STRING, 15, "uuid", "but the binlog has it as"),
        (ColumnType.VARCHAR, 16, "uuid", "but the binlog has it as"),
        (ColumnType.BLOB, 2, "text charset klingon", "character set klingon is not known"),
    ],
)
def test_a_declared_type_that_cannot_be_is_refused(kind, size, text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        declare(kind, text, size=size)


@pytest.mark.parametrize(
    ("text", "value", "data"),
    [
        ("varchar(3)", "aé", b"\x03a\xc3\xa9"),
        ("varchar(64)", "a", b"\x01\x00a"),  # 256 bytes: a length of two
        ("varbinary(3)", "0x00ff", b"\x02\x00\xff"),
        ("varbinary(3)", memoryview(b"ab"), b"\x02ab"),
        ("char(3)", "a  ", b"\x01a"),
        ("binary(3)", b"a\0\0", b"\x01a"),
        ("char", "a", b"\x01a"),
        ("tinytext", "0x00", b"\x040x00"),
        ("mediumblob", b"a", b"\x01\0\0a"),
    ],
)
def test_a_value_is_written_behind_its_length_unless_it_is_longer_than_its_column(text, value, data):
    assert written(text).encode(value) == data
    with pytest.raises(ValueError, match="a string of 13 bytes, at most 12"):
        written("varchar(3)").encode("x" * 13)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("varchar", "needs a length of at most 65535 bytes"),
        ("varchar(16384)", "needs a length of at most 65535 bytes"),
        ("char(256)", "is too long"),
        ("binary(256)", "is too long"),
    ],
)
def test_no_table_has_such_a_column(text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        written(text)


def test_vectors_are_written_from_numbers_or_text():
    encode = written("vector(2)").encode

    assert encode("[1, -0.5]") == encode((1, -0.5)) == bytes.fromhex("08 0000803f 000000bf")
    for value, problem in (("[1]", "of 4 bytes, expected 8"), ("[1,x]", "could not convert"), (5, "is no vector")):
        with pytest.raises(ValueError, match=problem):
            encode(value)
