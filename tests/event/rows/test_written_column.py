"""Columns that are written, from their types as CREATE TABLE has them."""

from __future__ import annotations

import re

import pytest

from ibbmaster.errors import ConfigurationError
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
        ("geometry", "columns of type 'geometry' cannot be written"),
        ("serial", "columns of type 'serial' cannot be written"),
        ("bit(65)", "BIT(65) does not exist"),
        ("()", "is no column type"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_column(declared, problem):
    with pytest.raises(ConfigurationError, match=r"column a: .*" + re.escape(problem)):
        written_column("a", declared)


@pytest.mark.parametrize("declared", ["varchar(5) charset utf8mb4", "varchar(5) collate utf8mb4_bin", "json"])
def test_utf8mb4_may_be_named(declared):
    assert written_column("a", declared).collation == 45
