"""The captured binlogs in fixtures/classic, and what real replicas made of each."""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_server import RealServer

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
WITH_GENERATED = {"types.generated"}  # tables whose checksum is not the same in all releases of a version


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a real replica of one version came to."""

    tables: dict[str, TableContent]
    error: str | None  # MariaDB's text, if it could not replay the capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One folder of fixtures/classic."""

    version: str  # of the primary that wrote it
    name: str
    facts: dict[str, Any]  # expected.json

    @property
    def id(self) -> str:
        """As the README of the captures calls it: `10.11/domains`."""
        return f"{self.version}/{self.name}"

    @property
    def folder(self) -> Path:
        return CLASSIC / self.version / self.name

    @property
    def file_names(self) -> list[str]:
        return [file["name"] for file in self.facts["files"]]

    @property
    def last_position(self) -> str:
        return str(self.facts["gtid_binlog_pos_after"])

    @property
    def size(self) -> int:
        return sum(file["bytes"] for file in self.facts["files"])

    @property
    def is_encrypted(self) -> bool:
        return "START_ENCRYPTION" in self.facts["events"]

    @property
    def is_large(self) -> bool:
        """Too large to be followed by every client in every run."""
        return self.size > 100_000_000

    def replayed(self, version: str) -> Replayed:
        """What a real replica of `version` came to when a real primary served it."""
        outcome = self.facts["replayed_by_real_replicas"][version]
        replicas = {name: one["replica"] for name, one in outcome["differ"].items() if one["replica"] is not None}
        tables = {name: TableContent(**numbers) for name, numbers in (self.facts["tables"] | replicas).items()}
        for name in WITH_GENERATED & tables.keys():
            tables[name] = replace(tables[name], checksum=None)
        error = None if outcome["same"] else outcome["io_error"] or outcome["sql_error"]
        return Replayed(tables=tables, error=error)

    def unpack(self, directory: Path) -> list[Path]:
        """Put its binlog files into a directory; large ones are stored compressed."""
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        for name in self.file_names:
            source, target = self.folder / name, directory / name
            if source.exists():
                shutil.copyfile(source, target)
            else:
                with lzma.open(f"{source}.xz") as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
            paths.append(target)
        return paths


def load_captures() -> list[Capture]:
    return [
        Capture(version=path.parts[-3], name=path.parts[-2], facts=json.loads(path.read_text()))
        for path in sorted(CLASSIC.glob("*/*/expected.json"))
    ]


PLAIN = {None, "ROW START", "ROW END"}  # how columns are generated that no expression makes


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """A table in three numbers, as fixtures/classic/README.md defines them."""

    rows: int
    checksum: int | None  # CHECKSUM TABLE ... EXTENDED; None with generated columns, which not every version counts
    content: str  # 16 hex digits of SHA-256 over the sorted rows


def contents(server: RealServer, names: Iterable[str]) -> dict[str, TableContent | None]:
    """What tables hold, each `database.table`; None for one that is not there."""
    with contextlib.closing(server.connect()) as connection:
        return {name: table_content(connection, name) for name in names}


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
    with connection.cursor(SSCursor) as cursor:  # row by row: some tables have 100 MB
        cursor.execute(f"SELECT {values} FROM {quoted}")
        lines = sorted(repr(row).encode() for row in cursor)
    digest = hashlib.sha256()
    for number, line in enumerate(lines):
        digest.update(b"\n" * (number > 0) + line)
    return TableContent(rows=rows, checksum=checksum, content=digest.hexdigest()[:16])
