"""Columns that are written, from their types as CREATE TABLE has them."""

import re

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.column_types.kind import StoredText
from ibbmaster.event.rows.column import ColumnType
from ibbmaster.event.rows.written_column import written_column


@pytest.mark.parametrize(
    ("declared", "column_type", "metadata", "is_unsigned", "collation"),
    [
        ("INT UNSIGNED", ColumnType.LONG, "", True, None),
        ("tinyint(1)", ColumnType.TINY, "", False, None),
        ("decimal(10,2)", ColumnType.NEWDECIMAL, "0a02", False, None),
        ("varchar(50)", ColumnType.VARCHAR, "c800", None, 45),
        ("varbinary(50) ", ColumnType.VARCHAR, "3200", None, 63),
        ("text", ColumnType.BLOB, "02", None, 45),
        ("datetime(3)", ColumnType.DATETIME2, "03", None, None),
        ("char(70)", ColumnType.STRING, "ee18", None, 45),  # 280 bytes: bits 8 and 9 inverted in the type
        ("vector(2)", ColumnType.VARCHAR, "0800", None, 63),
        ("point", ColumnType.GEOMETRY, "04", None, 63),
    ],
)
def test_a_type_is_described_as_a_table_map_has_it(declared, column_type, metadata, is_unsigned, collation):
    column = written_column("a", declared)

    assert (column.type, column.metadata) == (column_type, bytes.fromhex(metadata))
    assert (column.is_unsigned, column.collation) == (is_unsigned, collation)
    assert (column.declared, column.is_nullable) == (declared.strip(), True)


def test_not_null_is_seen():
    assert not written_column("a", "int not null default 5").is_nullable


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("varchar(5) character set latin1", "is text in latin1, only utf8mb4 can be written"),
        ("serial", "columns of type 'serial' cannot be written"),
        ("bit(65)", "BIT(65) does not exist"),
        ("()", "is no column type"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_column(declared, problem):
    with pytest.raises(ConfigurationError, match=r"column a: .*" + re.escape(problem)):
        written_column("a", declared)


LATIN1, UTF32, ARMSCII8 = StoredText("latin1", 8, 1), StoredText("utf32", 60, 4), StoredText("armscii8", 32, 1)


@pytest.mark.parametrize(
    ("declared", "storage", "is_compressed", "column_type", "metadata", "encoded"),
    [  # as 11.8 has logged them
        ("varchar(20)", LATIN1, False, ColumnType.VARCHAR, "1400", "03 5af680"),
        ("char(5)", UTF32, False, ColumnType.STRING, "fe14", "0c 0000005a 000000f6 000020ac"),
        ("varchar(200)", None, True, ColumnType.VARCHAR_COMPRESSED, "2103", "0700 00 5ac3b6e282ac"),
        ("text", LATIN1, True, ColumnType.BLOB_COMPRESSED, "02", "0400 00 5af680"),
        ("enum('Zö€')", UTF32, False, ColumnType.STRING, "f701", "01"),
    ],
)
def test_text_is_stored_as_its_column_says(declared, storage, is_compressed, column_type, metadata, encoded):
    column = written_column("a", declared, storage=storage, is_compressed=is_compressed)

    assert (column.type, column.metadata) == (column_type, bytes.fromhex(metadata))
    assert column.encode("Zö€") == bytes.fromhex(encoded)


def test_a_long_value_of_a_compressed_column_is_packed_as_a_server_does_it():
    encode = written_column("a", "text", is_compressed=True).encode

    assert encode("x" * 300) == bytes.fromhex("0a00 8a012caba81805c40200")  # of 11.8
    assert encode("") == bytes.fromhex("0000")
    assert encode(bytes(range(256)))[:3] == bytes.fromhex("0101 00")  # packed it would be longer


def test_text_that_its_character_set_does_not_have_is_refused():
    encode = written_column("a", "varchar(5)", storage=LATIN1).encode

    assert encode("\x81") == b"\1\x81"
    with pytest.raises(ValueError, match="'Ж' is no text of character set latin1"):
        encode("Ж")
    with pytest.raises(ValueError, match="of 6 characters, at most 5"):
        written_column("a", "varchar(5)").encode("x" * 6)
    assert written_column("a", "varchar(5)", storage=ARMSCII8).encode("Ա") == b"\1\xb2"


@pytest.mark.parametrize(
    "declared", ["varchar(5) charset utf8mb4", "varchar(5) collate utf8mb4_bin", "text collate uca1400_ai_ci", "json"]
)
def test_utf8mb4_may_be_named(declared):
    assert written_column("a", declared).collation == 45
