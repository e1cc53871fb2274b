"""A real server and ours that knows its tables from its binlog alone, asked the same."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from ibbmaster.testkit.mariadb_server import RealPrimary
from lanes.primary import IbbPrimary, Primary, login_of
from lanes.sql import copy_binlogs, run


class Pair(NamedTuple):
    """A real primary, and ours that serves its files."""

    real: RealPrimary
    ours: IbbPrimary

    @contextmanager
    def asking(self, *first: str) -> Iterator[tuple[Any, Any]]:
        """Connections to ours and to the real one, in which some statements were run first."""
        with connect(self.ours) as ours, connect(self.real) as real:
            for statement in first:
                ours.query(statement)
                real.query(statement)
            yield ours, real


@contextmanager
def served_beside(server: RealPrimary, statements: Iterable[str], files: Path) -> Iterator[Pair]:
    """A server that carries out statements, and ours with its closed binlog files, copied to `files`."""
    with server:
        run(server, *statements)
        primary = IbbPrimary(copy_binlogs(server, files))
        primary.start()
        yield Pair(server, primary)
        primary.end_well()


def connect(primary: Primary | RealPrimary) -> Any:
    options: dict[str, Any] = {"charset": "utf8mb4", "ssl_disabled": True, "autocommit": None, "conv": {}}
    return pymysql.connect(**login_of(primary), **options)


def ask(connection: Any, sql: str, told: Callable[[Any], object] = lambda field: field.name) -> Any:
    """What is told of fields, and rows; OK; or number and text of an error."""
    try:
        connection.query(sql)
    except pymysql.Error as error:
        return error.args
    result = connection._result
    if not result.field_count:
        return "OK"
    return [told(field) for field in result.fields], list(result.rows)


def answer(connection: Any, sql: str, told: Callable[[Any], object]) -> Any:
    """The same, of an error only its number: its text may be of another version."""
    found = ask(connection, sql, told)
    return found[0] if isinstance(found[0], int) else found


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
