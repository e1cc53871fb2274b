"""Triggers, routines and events of a real server's binlog: shown as it logs them, and dumped into another server."""

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from lanes.pair import Pair, ask, connect, expect_alike, served_beside
from lanes.primary import login_options
from lanes.sql_file import sql_beside

from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary

ZONES = ("+00:00", "-05:30")
_SQL = sql_beside(__file__)
DDL = _SQL["ddl"]
#: What a server has as ours: the log has all that it says.
SHOWN = _SQL["shown"]
#: What a server has as ours but for columns that are NULL, because only a statement says what is in them.
LISTED = _SQL["listed"]
#: What an ALTER has changed, or a declaration of parameters says: refused.
REFUSED = _SQL["refused"]


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def pair(request, server_of, tmp_path_factory) -> Iterator[Pair]:
    server = server_of(RealPrimary, request.param, [])
    with served_beside(server, DDL, tmp_path_factory.mktemp("binlogs")) as both:
        yield both


@pytest.mark.parametrize("zone", ZONES)
def test_programs_are_shown_as_a_real_primary_shows_them_as_far_as_the_log_is_read(pair, zone):
    with connect(pair.real) as real, connect(pair.ours) as ours:
        for each in (real, ours):
            ask(each, f"SET time_zone='{zone}'")
        answers = [(sql, ask(ours, sql), ask(real, sql)) for sql in SHOWN]
        for sql in LISTED:
            (names, mine), theirs = ask(ours, sql), ask(real, sql)
            mine, other = sorted(mine, key=named), sorted(theirs[1], key=named)
            told_there = [told(*rows, names) for rows in zip(mine, other, strict=True)]
            answers.append((sql, (names, mine), (theirs[0], told_there)))
        assert {sql: ask(ours, sql)[0] for sql in REFUSED} == dict.fromkeys(REFUSED, 1235)
    expect_alike(answers)


def told(mine: Any, theirs: Any, names: list[str]) -> Any:
    """A row of a real server without what ours leaves open, and with the statement as it was logged."""
    both = zip(mine, theirs, names, strict=True)
    logged = ("Create ", "SQL Original ")
    return tuple(one if one is None or name.startswith(logged) else other for one, other, name in both)


def named(row: Any) -> list[str]:
    """What a row is about."""
    return [str(one) for one in row[:3]]


def test_a_dump_of_ours_makes_the_same_programs_on_a_real_server(pair, new_server):
    options = ["--routines", "--triggers", "--events", "--databases", "r1"]
    version = pair.real.programs.version
    options = ["--no-defaults", *login_options(pair.ours), "--skip-ssl", "--skip-lock-tables", *options]
    command = [*pair.real.programs.command("mariadb-dump"), *options]
    dumped = subprocess.run(command, capture_output=True, check=True).stdout
    server = new_server(version)
    options = ["--no-defaults", f"--socket={server.socket}", "-uroot", "--comments"]
    command = [*server.programs.command("mariadb"), *options]
    loaded = subprocess.run(command, input=dumped, capture_output=True)
    assert loaded.returncode == 0, loaded.stderr.decode()

    created = [sql for sql in (*SHOWN, *LISTED) if sql.startswith("SHOW CREATE ")]
    with connect(pair.real) as real, connect(server) as other:
        differences = [sql for sql in created if without_time(ask(real, sql)) != without_time(ask(other, sql))]
    assert not differences


def without_time(answer: Any) -> str:
    """An answer without moments, which are others in another server."""
    return re.sub(r"'\d{4}-\d\d-\d\d [\d:.]+'", "", str(answer))
