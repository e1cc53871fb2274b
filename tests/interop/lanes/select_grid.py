"""Every type of column beside every kind of literal, and every function over every kind of value: the grid that says
which SELECTs are answered. `python -m lanes.select_grid` in tests/interop asks real servers, and keeps their answers.
"""

import argparse
import hashlib
import itertools
import lzma
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from ibbmaster.testkit.mariadb_programs import find_programs
from ibbmaster.testkit.mariadb_server import RealPrimary, ServerTemplate
from lanes.sql import copy_binlogs, run
from tests.case_table import data_beside

FOLDER = Path(__file__).parents[3] / "fixtures" / "answers" / "grid"
VERSIONS = ("10.11", "11.8")
SESSION = (
    "SET time_zone = '+00:00', @i = 7, @j = -24, @d = 7.5, @e = 24.0, @r = 5e-1, @q = 24e0, @s = '24', @t = 'a', "
    "@b = x'61', @c = x'07', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
)
OPERATORS = ("=", "<", ">=", "<>", "<=>", "IN", "BETWEEN", "LIKE")
_DATA = data_beside(__file__)
#: Name, type, values; what of them is a key of its own table.
COLUMNS = _DATA["columns"]
#: Literals that are alike, the next of which ends BETWEEN and is in IN.
LITERALS = _DATA["literals"]
#: Functions and operators; $ is a column or a literal.
SCALARS = _DATA["scalars"]
COMPOSED = _DATA["composed"]
AGGREGATES = _DATA["aggregates"]
CLOCK = "NOW()"
COMPUTED = _DATA["computed"]
QUERIES = _DATA["queries"]  # of the tables of one column, and of that with all
PAIRED = ("=", "<", "<=>", "LIKE")
NO_KEY = ("j",)  # columns that no key of its own table is made of
BLOBS = (249, 250, 251, 252)
MISSING = "E"  # before the number of an error


class Asked(NamedTuple):
    """One SELECT, and what of the grid it is about."""

    sql: str
    cell: tuple[str, str, str]  # operator or function, column or literal, literal


def statements() -> Iterator[str]:
    """Makes the tables: `g` of all columns; `g_…`, `x_…` and `k_…` of each, without an index, with one, as the key."""
    yield "CREATE DATABASE grid DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    yield "USE grid"
    yield "SET binlog_format = ROW, time_zone = '+00:00', sql_mode = '', NAMES utf8mb4 COLLATE utf8mb4_general_ci"
    columns = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)
    yield f"CREATE TABLE g (id INT PRIMARY KEY, {columns})"
    lists = [re.findall(r"\w*'[^']*'|\S+", values) for _, _, values in COLUMNS]  # at spaces outside of quotes
    for number in range(max(map(len, lists))):
        row = ", ".join(one[number] if number < len(one) else "NULL" for one in lists)
        yield f"INSERT INTO g VALUES ({number + 1}, {row})"
    for name, kind, _ in COLUMNS:
        part = "v(10)" if kind.split()[0] in ("TEXT", "BLOB") else "v"
        yield f"CREATE TABLE g_{name} (id INT PRIMARY KEY, v {kind})"
        yield f"INSERT INTO g_{name} SELECT id, {name} FROM g"
        if name not in NO_KEY:
            yield f"CREATE TABLE x_{name} (id INT PRIMARY KEY, v {kind}, KEY ({part}))"
            yield f"INSERT INTO x_{name} SELECT id, {name} FROM g"
            yield f"CREATE TABLE k_{name} (id INT, v {kind.replace(' NULL', '')} NOT NULL, PRIMARY KEY ({part}))"
            yield f"INSERT IGNORE INTO k_{name} SELECT id, {name} FROM g WHERE {name} IS NOT NULL"


def conditions() -> Iterator[tuple[str, str, str]]:
    for group in LITERALS:
        for one, other in zip(group, (*group[1:], group[0]), strict=True):
            for operator in OPERATORS:
                rest = {"IN": f"IN ({one}, {other})", "BETWEEN": f"BETWEEN {one} AND {other}"}
                yield operator, one, rest.get(operator, f"{operator} {one}")


def asked_of(table: str, value: str = "v") -> list[Asked]:
    """All conditions on a value, in one table."""
    return [
        Asked(f"SELECT id FROM grid.{table} WHERE {value} {rest}", (operator, value, one))
        for operator, one, rest in conditions()
    ]


def in_brackets(sql: str) -> str:
    """The same as no plain form: the table is a query of its own."""
    table = sql.split()[3]
    return sql.replace(f"FROM {table}", f"FROM (SELECT * FROM {table}) AS q")


def scalars() -> Iterator[Asked]:
    """Every function over every column, and over every literal."""
    for form in (*SCALARS, *COMPOSED, *AGGREGATES):
        for name in (*(name for name, _, _ in COLUMNS), *(COMPUTED if form in SCALARS else ())):
            if name == CLOCK:
                continue  # the servers were asked at another time
            order = "" if form in AGGREGATES else " ORDER BY id"
            yield Asked(f"SELECT {form.replace('$', name)} FROM grid.g{order}", (form, name, ""))
    for form, group in itertools.product((*SCALARS, *COMPOSED), LITERALS):
        for literal in group:
            yield Asked(f"SELECT {form.replace('$', literal)}", (form, literal, ""))
    for form, (name, _, _) in itertools.product(QUERIES, COLUMNS):
        if name not in NO_KEY:
            yield Asked(form.replace("$", name), (form, name, ""))
    firsts = [literal for group in LITERALS for literal in group[:4]]
    for operator, one, other in itertools.product(("=", "<", "<=>", "LIKE"), firsts, firsts):
        yield Asked(f"SELECT {one} {operator} {other}", (operator, one, other))


def told(fields: Iterable[Any], rows: Iterable[Sequence[bytes | None]]) -> str:
    """Types and values, short."""
    types = [(252 if field.type_code in BLOBS else field.type_code, field.charsetnr) for field in fields]
    digest = hashlib.sha256(repr((types, [*rows])).encode()).hexdigest()
    return digest[:10]


def told_rows(rows: Iterable[Sequence[bytes | None]]) -> str:
    """Which rows, as the bits of their ids."""
    return f"{sum(1 << int(row[0] or 0) for row in rows):x}"


class RealAsker:
    def __init__(self, server: RealPrimary) -> None:
        self.connection: Any = pymysql.connect(
            unix_socket=str(server.socket), user="root", charset="utf8mb4", conv={}, use_unicode=False, autocommit=None
        )
        self.connection.query(SESSION)
        self.connection.query("SET autocommit = 1")

    def condition(self, sql: str) -> str:
        return self._ask(sql, lambda found: told_rows(found.rows))

    def scalar(self, sql: str) -> str:
        return self._ask(sql, lambda found: told(found.fields, found.rows))

    def _ask(self, sql: str, show: Any) -> str:
        try:
            self.connection.query(sql)
        except pymysql.Error as error:
            return f"{MISSING}{error.args[0]}"
        return str(show(self.connection._result))


def record(folder: Path) -> None:
    """Ask the servers, and keep what they say, and the log of the older one."""
    answers: list[dict[str, list[str]]] = []
    for version in VERSIONS:
        template = ServerTemplate.of_user(find_programs(version))
        with tempfile.TemporaryDirectory() as directory:
            server = RealPrimary(template, Path(directory) / "s", [])
            with server:
                run(server, *statements())
                asker = RealAsker(server)
                found = {name: [asker.condition(one.sql) for one in questions] for name, questions in asked()}
                found["scalars"] = [asker.scalar(one.sql) for one in scalars()]
                answers.append(found)
                if version == VERSIONS[-1]:
                    copy_binlogs(server, folder)
    with lzma.open(folder / "answers.xz", "wt", preset=9) as file:
        for key in answers[0]:
            pairs = zip(*(one[key] for one in answers), strict=True)
            file.write(key + "\t" + " ".join(a if a == b else f"{a}|{b}" for a, b in pairs) + "\n")


def asked() -> Iterator[tuple[str, list[Asked]]]:
    for name, _, _ in COLUMNS:
        for table in ("g", "x", "k") if name not in NO_KEY else ("g",):
            yield f"{table}_{name}", asked_of(f"{table}_{name}")
    for value in COMPUTED:
        yield f"g {value}", asked_of("g", value)
    names = [*(name for name, _, _ in COLUMNS), *COMPUTED]
    for one in names:
        yield (
            f"g {one} beside others",
            [
                Asked(f"SELECT id FROM grid.g WHERE {one} {operator} {other}", (operator, one, other))
                for operator, other in itertools.product(PAIRED, names)
            ],
        )


def load(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Answers that were kept; where the servers differ, both with a line between."""
    with lzma.open(folder / "answers.xz", "rt") as file:
        lines = (line.rstrip("\n").split("\t") for line in file)
        return {key: text.split(" ") for key, text in lines}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER)
    record(parser.parse_args().to)
