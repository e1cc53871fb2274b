"""A real server and ours that knows its tables from its binlog alone, asked the same."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from ibbmaster.testkit.mariadb_server import RealPrimary
from lanes.binlogs import copy_binlogs
from lanes.primary import IbbPrimary, Primary, login_of


@dataclass(frozen=True)
class Pair:
    """A real primary, and ours that serves its files."""

    real: RealPrimary
    ours: IbbPrimary


@contextmanager
def served_beside(server: RealPrimary, statements: Iterable[str], files: Path) -> Iterator[Pair]:
    """A server that carries out statements, and ours with its closed binlog files, copied to `files`."""
    with server:
        with connect(server) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        primary = IbbPrimary(copy_binlogs(server, files))
        primary.start()
        yield Pair(server, primary)
        primary.stop()
        assert "Traceback" not in primary.log_text(), primary.log_text()


def connect(primary: Primary | RealPrimary) -> Any:
    options: dict[str, Any] = {"charset": "utf8mb4", "ssl_disabled": True, "autocommit": None, "conv": {}}
    return pymysql.connect(**login_of(primary), **options)


def ask(connection: Any, sql: str) -> Any:
    """Names and rows, OK, or number and text of an error."""
    try:
        connection.query(sql)
    except pymysql.Error as error:
        return error.args
    result = connection._result
    if not result.field_count:
        return "OK"
    return [field.name for field in result.fields], list(result.rows)


def difference(one: Any, other: Any) -> str:
    if isinstance(one[-1], list) and isinstance(other[-1], list) and one[0] == other[0]:
        one = [row for row in one[-1] if row not in other[-1]] or "other order"
    return str(one)[:800]


def expect_alike(answers: Iterable[tuple[str, Any, Any]]) -> None:
    """What was asked, what ours answers, and what a real server does."""
    differences = [
        f"{asked}\n  ours {difference(mine, theirs)}\n  real {difference(theirs, mine)}"
        for asked, mine, theirs in answers
        if mine != theirs
    ]
    assert not differences, "\n".join(differences)
