"""Every change of one type into another, by ALTER TABLE on a real server; its values beside those of our reader."""

import contextlib
from typing import NamedTuple

import pytest
from lanes.answers import OurTables, RawClient, Session, values_of
from lanes.binlogs import copy_binlogs
from lanes.shop import run
from lanes.type_changes import TYPES, altered, created, name_of

import ibbmaster
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.shape import keeps_values
from ibbmaster.schema.model import SqlType, TableVersion
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary

AS_SHOWN = Session("SET NAMES utf8mb4, time_zone = '+00:00'", "utf8mb4", 45, 0)
LENIENT = "SET sql_mode = '', time_zone = '+00:00'"  # a value that does not fit becomes one that does
CHANGES = [(old, new) for old in range(len(TYPES)) for new in range(len(TYPES)) if old != new]
TABLES = "ts"  # with the values at the edges, and with one that most types have
Values = list[bytes | None]


class Changed(NamedTuple):
    """Values of a real server before and after, by the number of the types and the table; and its log."""

    before: dict[tuple[str, int, int], Values]
    after: dict[tuple[str, int, int], Values]
    ours: OurTables


def values_on(server: RealPrimary) -> dict[tuple[str, int, int], Values]:
    found: dict[tuple[str, int, int], Values] = {}
    client = RawClient.of_root(server.socket, AS_SHOWN)
    for old in range(len(TYPES)):
        for table in TABLES:
            names = ", ".join(name_of(old, new) for new in range(len(TYPES)))
            rows = client.text(f"SELECT {names} FROM types.{table}{old} ORDER BY k").rows
            columns = zip(*(values_of(row, len(TYPES)) for row in rows), strict=True)
            found |= {(table, old, new): list(values) for new, values in enumerate(columns)}
    client.close()
    return found


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def changed(request, server_of, tmp_path_factory) -> Changed:
    options = ("--innodb-strict-mode=0", "--binlog-format=ROW")
    files = tmp_path_factory.mktemp("binlogs")
    with server_of(RealPrimary, request.param, [], *options) as server:
        run(server, LENIENT, "CREATE DATABASE types", *(sql for old in range(len(TYPES)) for sql in created(old)))
        before = values_on(server)
        run(server, LENIENT, *(sql for old in range(len(TYPES)) for sql in altered(old)))
        after = values_on(server)
        copy_binlogs(server, files)
    return Changed(before, after, OurTables(ibbmaster.open(files).engine))


def types_of(changed: Changed, old: int) -> tuple[SqlType, dict[int, SqlType]]:
    """The type of a table's columns, and what each was changed into."""
    table = changed.ours.history.at().table("types", f"t{old}")
    assert isinstance(table, TableVersion)
    kinds = {new: column.type for new in range(len(TYPES)) if (column := table.column(name_of(old, new)))}
    return kinds[old], kinds


def test_values_are_those_of_the_server_or_refused_and_none_is_refused_that_is_kept(changed):
    snapshot = changed.ours.snapshot()
    wrong, refused, lost = [], 0, []
    for old, new in CHANGES:
        own, others = types_of(changed, old)
        for table in TABLES:
            sql = f"SELECT {name_of(old, new)} FROM types.{table}{old} ORDER BY k"
            try:
                rows = changed.ours.answer(sql, AS_SHOWN, snapshot=snapshot).rows
            except RefusedError as error:
                refused += 1
                if keeps_values(own, others[new]):
                    lost.append((list(TYPES)[old], list(TYPES)[new], error.err.text))
                continue
            mine, theirs = [values_of(row, 1)[0] for row in rows], changed.after[table, old, new]
            if mine != theirs:
                pairs = [(one, other) for one, other in zip(mine, theirs, strict=True) if one != other]
                wrong.append((list(TYPES)[old], list(TYPES)[new], pairs[:3]))
    assert not wrong
    assert not lost
    assert refused < 0.75 * len(CHANGES) * len(TABLES)  # most of these lose a value, or depend on what no log tells


def plain(value: bytes | None, word: str) -> object:
    """A number however it is shown, the labels of a SET in whatever order, or any other value."""
    if value is None or word == "set":
        return None if value is None else set(value.split(b","))
    with contextlib.suppress(ValueError):
        return float(value)
    return value


def test_a_type_that_keeps_values_shows_what_was_there(changed):
    kept = 0
    for old, new in CHANGES:
        own, others = types_of(changed, old)
        if not keeps_values(own, others[new]) or others[new].word == "bit" or own.word == "float":
            continue  # shown by their bytes, or by as many digits as the type has
        kept += 1
        for table in TABLES:
            before, after = changed.before[table, old, new], changed.after[table, old, new]
            for was, now in zip(before, after, strict=True):
                one, other = plain(was, own.word), plain(now, own.word)
                longer = isinstance(one, bytes) and isinstance(other, bytes) and other.startswith(one)
                is_same = one == other or (longer and not other[len(one) :].strip(b" 0:."))  # type: ignore[index,arg-type]
                assert is_same, (list(TYPES)[old], list(TYPES)[new], one, other)
    assert kept > 60
