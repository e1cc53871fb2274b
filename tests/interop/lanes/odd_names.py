"""Databases and tables whose names have letters that mean something where names are read: nine, and 76.

`python -m lanes.odd_names DIRECTORY` in this folder lets a real server of 10.11 make the log of fixtures/odd-names.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DATABASES = ("shop", "shop.eu", "shop,eu", "sh`op", "*", "s?op", " lead", "100%", '日本 "x"')
IN_EACH = ("orders", "eu.orders", "*", "t", "T")
OTHERS = (
    *("a,b", "x y", "`", "``", "`a`", "`a`.`b`", "'q'", '"dq"', "%", "%2E", "?", "o*s", "[ab]", "[!a]*", "a=b", "="),
    *("a;b", "a\\b", "a/b", ".", "..", ".a", "a.", " a", "#sql", "@a", "-- x", "/* x */", "~2E", "a\nb", "\uffff"),
)
VERSION = "10.11"


class OddTable(NamedTuple):
    """One table, and the two rows that it has in the end."""

    database: str
    name: str
    number: int

    @property
    def rows(self) -> list[tuple[int, str]]:
        return [(self.number, f"row of {self.number}"), (-self.number, "added")]


def odd_tables() -> Iterator[OddTable]:
    """All of them; those that are in one database only go round."""
    names = [(database, name) for database in DATABASES for name in IN_EACH]
    names += [(DATABASES[place % len(DATABASES)], name) for place, name in enumerate(OTHERS)]
    yield from (OddTable(*name, number) for number, name in enumerate(names, 1))


def statements() -> Iterator[str]:
    """What makes them: a row each, then a column more, then all rows changed and one more."""
    from ibbmaster.sqltext.quoting import quoted_name

    tables = [(f"{quoted_name(one.database)}.{quoted_name(one.name)}", one.number) for one in odd_tables()]
    yield from (f"CREATE DATABASE {quoted_name(database)}" for database in DATABASES)
    yield from (f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name, _ in tables)
    yield from (f"INSERT INTO {name} VALUES ({number})" for name, number in tables)
    yield from (f"ALTER TABLE {name} ADD v VARCHAR(20)" for name, _ in tables)
    yield from (f"UPDATE {name} SET v = 'row of {number}'" for name, number in tables)
    yield from (f"INSERT INTO {name} VALUES (-{number}, 'added')" for name, number in tables)


def record(directory: Path) -> None:
    """Let a real server write the log, and say in tables.json what it has in the end."""
    from ibbmaster.sqltext.quoting import quoted_name
    from ibbmaster.testkit.mariadb_programs import find_programs
    from ibbmaster.testkit.mariadb_server import RealPrimary, ServerTemplate

    found = []
    with tempfile.TemporaryDirectory() as own:
        template = ServerTemplate.of_user(find_programs(VERSION))
        with RealPrimary(template, Path(own), [], "--binlog-format=ROW") as server:
            for statement in statements():
                server.sql(statement)
            for table in odd_tables():
                rows = server.sql(f"SELECT * FROM {quoted_name(table.database)}.{quoted_name(table.name)}")
                found.append([table.database, table.name, [list(row) for row in rows]])
            server.sql("FLUSH BINARY LOGS")
            shutil.copy(server.data / "binlog.000001", directory)
    text = "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in found) + "\n]\n"
    (directory / "tables.json").write_text(text)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
