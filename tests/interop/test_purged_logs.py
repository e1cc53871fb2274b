"""The log of a real server is purged after each run: kept tables go on with what it was, or say that they do not."""

import itertools
import shutil
from collections import Counter
from typing import NamedTuple

import pytest
from lanes.binlogs import copy_binlogs
from lanes.random_ddl import DATABASE
from test_maintained import AS, Keeper

from tests.kept_tables import KINDS

WITH_ROWS = ("CREATE TABLE {t} (id INT PRIMARY KEY, v INT)", "INSERT INTO {t} VALUES (1, NULL), (2, 2)")
INSERT = "INSERT INTO {t} (id) VALUES (3)"
LAST = "DELETE FROM {t} WHERE id = 2"


class Case(NamedTuple):
    """What happens to a table before the first run, between the next two, and before the last one.

    `exact_in` are the targets in which it goes on, and `exact_as` what it has there; nowhere if the rows themselves
    would be needed, which are in no log any more.
    """

    between: tuple[str, ...]
    last: tuple[str, ...] = (LAST,)
    first: tuple[str, ...] = WITH_ROWS
    exact_in: tuple[str, ...] = KINDS
    exact_as: tuple[str, ...] = AS
    exact_at_first: tuple[str, ...] = AS


TEXT = (
    "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(5) CHARACTER SET %s)",
    "INSERT INTO {t} VALUES (1, 'é'), (2, 'b')",
)
LIKE = "CREATE TABLE {t}_l LIKE {t}", "INSERT INTO {t}_l VALUES (1, 1), (2, 2)"
SELECT = "CREATE TABLE {t}_l (PRIMARY KEY (id)) SELECT * FROM {t}"
LAST_LIKE = "DELETE FROM {t}_l WHERE id = 2"
CASES = {
    "one insert": Case(("INSERT INTO {t} VALUES (3, 3)",), ("UPDATE {t} SET v = 7 WHERE id = 3",)),
    "nothing": Case((), (INSERT,)),
    "added": Case(("ALTER TABLE {t} ADD w INT", INSERT), ("UPDATE {t} SET w = 1 WHERE id = 1",)),
    "a default": Case(("ALTER TABLE {t} ADD w INT DEFAULT 7", INSERT), exact_in=()),
    "dropped": Case(("ALTER TABLE {t} DROP v",), exact_in=KINDS[1:], exact_as=AS[:2]),
    "dropped, added": Case(
        ("ALTER TABLE {t} DROP v", "ALTER TABLE {t} ADD v INT"), exact_in=KINDS[1:], exact_as=AS[:2]
    ),
    "renamed": Case(("ALTER TABLE {t} RENAME COLUMN v TO w", INSERT), exact_in=KINDS[1:], exact_as=AS[:2]),
    "widened": Case(("ALTER TABLE {t} MODIFY v BIGINT", INSERT), ("UPDATE {t} SET v = 1 << 40",), exact_in=KINDS[1:]),
    "moved": Case(("ALTER TABLE {t} MODIFY v INT FIRST", INSERT)),
    "not null": Case(("ALTER TABLE {t} MODIFY v INT NOT NULL",), exact_in=()),
    "not null, and back": Case(
        ("ALTER TABLE {t} MODIFY v INT NOT NULL", "ALTER TABLE {t} MODIFY v INT NULL"), exact_in=()
    ),
    "another charset": Case(
        ("ALTER TABLE {t} CONVERT TO CHARACTER SET utf8mb4", INSERT), first=(TEXT[0] % "latin1", TEXT[1])
    ),
    "a smaller charset": Case(
        ("ALTER TABLE {t} MODIFY v VARCHAR(5) CHARACTER SET ascii",), first=(TEXT[0] % "utf8mb4", TEXT[1]), exact_in=()
    ),
    "another default": Case(("ALTER TABLE {t} ALTER v SET DEFAULT 6", INSERT)),
    "another formula": Case(
        ("ALTER TABLE {t} MODIFY g INT AS (v + 2)",),
        first=(
            "CREATE TABLE {t} (id INT PRIMARY KEY, v INT, g INT AS (v + 1))",
            "INSERT INTO {t} (id, v) VALUES (1, 1)",
        ),
        exact_in=(),
        exact_at_first=("current", "changes"),
    ),
    "an index": Case(("ALTER TABLE {t} COMMENT 'x', ADD KEY (v)", INSERT), ("CREATE INDEX i ON {t} (v, id)", LAST)),
    "no key": Case(("ALTER TABLE {t} DROP PRIMARY KEY", INSERT), exact_as=AS[2:]),
    "emptied": Case(
        (INSERT, "TRUNCATE {t}", "INSERT INTO {t} VALUES (1, 1)"), (INSERT,), exact_as=("current", "changes")
    ),
    "anew": Case((INSERT,), ("DROP TABLE {t}", "CREATE TABLE {t} (id INT PRIMARY KEY, w INT, v INT)", INSERT)),
    "another name": Case(("RENAME TABLE {t} TO {t}_n", "INSERT INTO {t}_n VALUES (3, 3)"), (), exact_in=()),
    "another name, a default": Case(
        ("RENAME TABLE {t} TO {t}_n", "ALTER TABLE {t}_n ADD w INT DEFAULT 7"), (), exact_in=()
    ),
    "like": Case(LIKE, (LAST_LIKE,)),
    "like, dropped, added": Case((*LIKE, "ALTER TABLE {t}_l DROP v", "ALTER TABLE {t}_l ADD v INT"), (LAST_LIKE,)),
    "like, a default": Case((*LIKE, "ALTER TABLE {t}_l ADD w INT DEFAULT 7"), (LAST_LIKE,)),
    "selected, dropped, added": Case((SELECT, "ALTER TABLE {t}_l DROP v", "ALTER TABLE {t}_l ADD v INT"), (LAST_LIKE,)),
}


@pytest.mark.parametrize("metadata", ["NO_LOG", "MINIMAL", "FULL"])
def test_tables_go_on_where_only_what_is_new_is_left_of_the_log(tmp_path, new_server, metadata):
    server = new_server("11.8", f"--binlog-row-metadata={metadata}", "--binlog-format=ROW", "--sql-mode=")
    log, copied = tmp_path / "log", set[str]()
    server.sql(f"CREATE DATABASE {DATABASE}")
    names = {f"{DATABASE}.t{number}": name for number, name in enumerate(CASES)}
    counts = Counter[bool]()
    keepers = [Keeper(*one, tmp_path / "tables", server) for one in itertools.product(KINDS, AS)]
    with server.connect() as connection, connection.cursor() as cursor:
        for step in ("first", "between", "last"):
            for table, name in names.items():
                for statement in getattr(CASES[name], step):
                    cursor.execute(statement.format(t=table))
            shutil.rmtree(log, ignore_errors=True)
            copy_binlogs(server, log, copied)
            for keeper in keepers:
                where, kind = keeper.kept.kind, keeper.kind
                tables = keeper.expect_cells(log).tables
                found = {name: state for name, state in tables.items() if not state.is_gone}
                for table, state in found.items():
                    own, _, derived = table.partition("_")
                    print(about := (step, where, kind, names[own], derived, state.verdict))
                    assert state.is_exact == is_exact(CASES[names[own]], step, where, kind, derived), about
                counts.update(state.is_exact for state in found.values())
    assert counts[True] > 2 * counts[False], counts


def is_exact(case: Case, step: str, where: str, kind: str, derived: str) -> bool:
    """Whether a table can go on; `derived` is what its name ends in if a case has made it of another one."""
    if step == "first" or derived == "l":
        return kind in case.exact_at_first
    return not derived and where in case.exact_in and kind in case.exact_as
