import random
import struct

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.column_types.kind import read_declared
from ibbmaster.replication.event.column_types.registry import BY_WORD, value_reader
from ibbmaster.replication.event.rows.column import ColumnType
from tests.replication.event.conftest import column_of, written

WORDS = {"tinyint": "b", "smallint": "h", "int": "i", "bigint": "q", "boolean": "b", "int8": "q"}


@pytest.mark.parametrize("is_unsigned", [False, True])
@pytest.mark.parametrize("word", WORDS)
def test_a_number_is_packed_as_python_packs_it(word, is_unsigned):
    pack = struct.Struct("<" + (WORDS[word].upper() if is_unsigned else WORDS[word]))
    column = written(f"{word}{' unsigned' * is_unsigned}")
    read = value_reader(column_of(column.type, is_unsigned=is_unsigned))
    bits = 8 * pack.size
    first = 0 if is_unsigned else -(1 << (bits - 1))
    for number in (first, first + (1 << bits) - 1, *(first + random.randrange(1 << bits) for _ in range(50))):
        assert column.encode(number) == pack.pack(number)
        assert read(b"." + pack.pack(number), 1) == (number, 1 + pack.size)
    for number in (first - 1, first + (1 << bits)):
        with pytest.raises(ValueError, match=f"does not fit into {pack.size} bytes"):
            column.encode(number)


def test_what_is_no_number_is_no_integer():
    encode = written("int").encode
    assert encode("12") == encode(12)
    for value, problem in ((None, "None is no number"), ("x", "invalid literal")):
        with pytest.raises(ValueError, match=problem):
            encode(value)


def test_a_number_of_three_bytes_has_its_sign():
    assert value_reader(column_of(ColumnType.INT24))(b"\xff\xff\xff", 0) == (-1, 3)
    assert value_reader(column_of(ColumnType.INT24, is_unsigned=True))(b"\xff\xff\xff", 0) == (2**24 - 1, 3)


def test_a_declared_sign_counts_where_the_event_says_none():
    declared = read_declared("column a", "int unsigned")
    assert BY_WORD["int"].declare(column_of(ColumnType.LONG), declared) == {"is_unsigned": True}
    assert BY_WORD["int"].declare(column_of(ColumnType.LONG, is_unsigned=False), declared) == {}


def test_a_serial_is_read_but_not_written():
    assert written("serial") is None


@pytest.mark.parametrize("bits", [1, 8, 9, 63, 64])
def test_bits_are_big_endian_in_as_many_bytes_as_they_take(bits):
    metadata = bits // 8 << 8 | bits % 8
    size = BY_WORD["bit"].layout("column a", ColumnType.BIT, metadata, metadata.to_bytes(2, "little")).size
    a = column_of(ColumnType.BIT, size=size)
    data = ((1 << bits) - 1).to_bytes((bits + 7) // 8, "big")

    assert (size, BY_WORD["bit"].fixed_size(a)) == (bits, len(data))
    assert BY_WORD["bit"].convert(a)(data) == (1 << bits) - 1


@pytest.mark.parametrize("metadata", [0x0801, 0x0008, 0xFFFF])
def test_no_column_has_more_than_64_bits(metadata):
    with pytest.raises(EventError, match=f"column a has bit metadata {metadata:#06x}"):
        BY_WORD["bit"].layout("column a", ColumnType.BIT, metadata, b"")


def test_a_year_counts_from_1900_and_0_is_the_zero_year():
    encode = BY_WORD["year"].write(read_declared("column a", "year")).encode
    read = BY_WORD["year"].convert(column_of(ColumnType.YEAR))
    for year, data in ((0, b"\0"), (1901, b"\1"), (2155, b"\xff")):
        assert (encode(year), read(data)) == (data, year)
    for year in (1900, 2156, -1):
        with pytest.raises(ValueError, match=f"{year} is no YEAR"):
            encode(year)
