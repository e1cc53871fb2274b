"""What ALTER TABLE makes of rows and of columns on real servers, beside what our reader says of them."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import pymysql
import pytest
from lanes.answers import OurTables
from lanes.changed_columns import timestamps
from lanes.described import described_by, differences
from lanes.random_ddl import DATABASE

import ibbmaster
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary


def run(server: RealPrimary, statements: Iterable[str]) -> None:
    """Carry out statements; a server may refuse some."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            with contextlib.suppress(pymysql.Error):
                cursor.execute(statement)


def copied_log(server: RealPrimary, target: Path) -> Path:
    """Its closed binlog files, in a directory."""
    server.sql("FLUSH BINARY LOGS")
    target.mkdir(exist_ok=True)
    for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
        shutil.copy(server.data / name, target / name)
    return target


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
def test_timestamps_have_the_values_that_their_session_implies(new_server, tmp_path: Path, version: str) -> None:
    server = new_server(version)
    tables = list(timestamps())
    run(server, ["SET sql_mode = '', time_zone = '+00:00'", f"CREATE DATABASE {DATABASE}"])
    run(server, ["SET sql_mode = '', time_zone = '+00:00'", *(statement for table in tables for statement in table)])
    ours = OurTables(ibbmaster.open(copied_log(server, tmp_path / "log")).engine)
    assert len(tables) > 800
    assert differences(ours.history.at(), described_by(server)) == []
