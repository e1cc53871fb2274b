"""The log of a real server is purged after each run: kept tables go on with what it was, or say that they do not."""

import itertools
import json
import shutil
from collections import Counter
from pathlib import Path
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


CASES = {
    name: Case(**{step: tuple(given) for step, given in case.items()})
    for name, case in json.loads(Path(__file__).with_suffix(".json").read_text()).items()
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
