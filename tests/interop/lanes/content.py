"""What a table holds, as one line of numbers that does not depend on how it is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pymysql

from ibbmaster.sqltext.table_name import parse_table_name

PLAIN = {None, "ROW START", "ROW END"}  # how columns are generated that no expression makes


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """A table in three numbers, as fixtures/classic/README.md defines them."""

    rows: int
    checksum: int | None  # CHECKSUM TABLE ... EXTENDED; None with generated columns, which not every version counts
    content: str  # 16 hex digits of SHA-256 over the sorted rows


def table_content(connection: pymysql.Connection[Any], name: str) -> TableContent | None:
    """Read a table `database.table`; None if it does not exist."""
    table = parse_table_name(name)
    quoted = table.sql
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(
            "SELECT column_name, generation_expression FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            table,
        )
        columns = dict(cursor.fetchall())
        if not columns:
            return None
        cursor.execute(f"SELECT COUNT(*) FROM {quoted}")
        rows = cursor.fetchall()[0][0]
        cursor.execute(f"CHECKSUM TABLE {quoted} EXTENDED")
        checksum = None if {*columns.values()} - PLAIN else cursor.fetchall()[0][1]
        values = ", ".join(f"HEX(CAST(`{column}` AS BINARY))" for column in columns)
        cursor.execute(f"SELECT {values} FROM {quoted}")
        lines = sorted(repr(row) for row in cursor.fetchall())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return TableContent(rows=rows, checksum=checksum, content=digest)
