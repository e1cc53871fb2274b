"""What ALTER TABLE makes of rows and of columns on real servers, beside what our reader says of them."""

import contextlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest
from lanes.answers import OurTables, RawClient, Session, values_of
from lanes.binlogs import copy_binlogs
from lanes.described import described_by, differences
from lanes.random_ddl import DATABASE
from lanes.replay import as_sql
from lanes.type_changes import TYPES

import ibbmaster
from ibbmaster.errors import IbbMasterError, InexactError
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.pasts import START, Doubt
from ibbmaster.primary.select.table_reader import UnknownRowsError
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.names import column_of
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.kept_tables import KeptTables

STRICT, LENIENT = "STRICT_TRANS_TABLES", ""
#: What a column of the type stores otherwise than it is written.
ROUNDED = json.loads(Path(__file__).with_suffix(".json").read_text())["rounded"]
KINDS = {kind.removesuffix(" NULL"): values for kind, values in TYPES.items()}
TIMESTAMP_FORM = (
    ("TIMESTAMP{digits}",),
    ("", "NULL", "NOT NULL"),
    ("", "DEFAULT NULL", "DEFAULT 0", "DEFAULT CURRENT_TIMESTAMP{digits}", "DEFAULT '2020-01-01 00:00:00{fraction}'"),
    ("", "ON UPDATE CURRENT_TIMESTAMP{digits}"),
)
SAYINGS = ("", "NULL", "NOT NULL")

EXPLICIT = "explicit_defaults_for_timestamp"
#: What makes a TIMESTAMP of some form: created, added, changed, and there when `{other}` is set for other statements.
WITH_A_TIMESTAMP = (
    "CREATE TABLE {t} (id INT, a {f})",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL, a {f})",
    "CREATE TABLE {t} (id INT, a {f}, z TIMESTAMP)",
    "CREATE TABLE {t} (id INT, a {f}, PRIMARY KEY (a))",
    "CREATE TABLE {t} (id INT, a {f} PRIMARY KEY)",
    "CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD a {f}",
    "CREATE TABLE {t} (id INT); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ADD a {f}, ADD b {f} FIRST",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} ADD a {f}",
    "CREATE TABLE {t} (id INT, z TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} ADD a {f} FIRST",
    "CREATE TABLE {t} (id INT, a TIMESTAMP NULL); INSERT INTO {t} (id) VALUES (1); ALTER TABLE {t} MODIFY a {f}",
    *(
        f"CREATE TABLE {{t}} (id INT PRIMARY KEY, a {{f}}); SET {EXPLICIT} = {{other}}; {later}"
        for later in (
            "ALTER TABLE {t} ADD b INT",
            "ALTER TABLE {t} ADD z TIMESTAMP FIRST",
            "ALTER TABLE {t} CHANGE a c {f}, ADD PRIMARY KEY (id, c), DROP PRIMARY KEY",
            "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)",
            "ALTER TABLE {t} ALTER a DROP DEFAULT",
            "ALTER TABLE {t} ALTER a SET DEFAULT 0",
            "CREATE TABLE {t}l LIKE {t}",
        )
    ),
)


def timestamps() -> Iterator[list[str]]:
    """TIMESTAMP columns in every form and place: the statements of a table."""
    number = 0
    for explicit, form in itertools.product((0, 1), itertools.product(*TIMESTAMP_FORM)):
        digits = "(3)" if number % 2 else ""
        column = " ".join(part for part in form if part).format(digits=digits, fraction=".000" if digits else "")
        for make in WITH_A_TIMESTAMP:
            if explicit and "{other}" in make and column.startswith(("TIMESTAMP NOT", "TIMESTAMP(3) NOT")):
                continue  # a server promotes a column of before to one that follows changes, or not
            number += 1
            text = make.format(t=f"{DATABASE}.ts{number}", f=column, other=1 - explicit)
            yield [f"SET {EXPLICIT} = {explicit}", *text.split("; ")]


class ColumnChange(NamedTuple):
    """What becomes of one table: its statements in two parts, between which a program may look at it."""

    first: list[str]
    second: list[str]


Kind = tuple[str, str, str, str, str]
"""Two types, how one becomes the other, and what is said of NULL before and after."""


def of_every_kind() -> Iterator[Kind]:
    return itertools.product(KINDS, KINDS, ("ADD", "MODIFY", "CHANGE"), SAYINGS, SAYINGS)


def change_of(table: str, kind: Kind, rng: random.Random) -> ColumnChange:
    """A table with a row from before the column came, unless its CREATE has the column, and rows from behind."""
    old, new, verb, before, after = kind
    if rng.random() < 0.4:
        new = old
    values = KINDS[old]
    session = _session(rng)
    column = f"c {old} {before}{_default(old, rng)}"
    first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT)"]
    if rng.random() < 0.3:
        first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT, {column})"]
        first += [f"INSERT INTO {table} (id) VALUES (1)"]
    else:
        first += [f"INSERT INTO {table} (id) VALUES (1)", f"ALTER TABLE {table} ADD {column}"]
    if rng.random() < 0.5:
        first += [
            f"INSERT INTO {table} (id) VALUES (2)",
            f"INSERT INTO {table} (id, c) VALUES (3, {rng.choice(values)})",
        ]
        first += [f"INSERT INTO {table} (id, c) VALUES (4, NULL)"]
    changed = f"{new} {after}{_default(new, rng)}"
    ignored = " IGNORE" if rng.random() < 0.03 else ""
    match verb:
        case "ADD":
            second = [f"ALTER TABLE {table} ADD e {changed}"]
        case "MODIFY":
            second = [f"ALTER{ignored} TABLE {table} MODIFY c {changed}"]
        case _:
            second = [f"ALTER{ignored} TABLE {table} CHANGE c c2 {changed}"]
    second.insert(0, _session(rng) if rng.random() < 0.5 else session)
    if verb != "ADD" and rng.random() < 0.3:
        name = "c" if verb == "MODIFY" else "c2"
        said = rng.choice(SAYINGS)
        second += [f"ALTER TABLE {table} MODIFY {name} {new} {said}{_default(new, rng)}"]
        second += [f"ALTER TABLE {table} MODIFY {name} {new} NOT NULL"] if rng.random() < 0.5 else []
    if rng.random() < 0.1:
        second += [f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id, {'c2' if verb == 'CHANGE' else 'c'})"]
    if rng.random() < 0.3:
        second += [f"INSERT INTO {table} (id) VALUES (9)"]
    return ColumnChange(first, second)


def _session(rng: random.Random) -> str:
    mode, explicit = rng.choice([STRICT, LENIENT]), rng.choice("01")
    image, zone = rng.choice(["FULL", "MINIMAL"]), rng.choice(["+00:00", "+00:00", "-05:30", "SYSTEM"])
    return f"SET sql_mode = '{mode}', {EXPLICIT} = {explicit}, binlog_row_image = {image}, time_zone = '{zone}'"


def _default(kind: str, rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.5:
        return ""
    value = ROUNDED[kind] if kind in ROUNDED and chance < 0.75 else rng.choice(KINDS[kind])
    return " DEFAULT NULL" if chance > 0.95 else f" DEFAULT {value}"


def named(number: int) -> str:
    return f"{DATABASE}.t{number}"


AS_SHOWN = Session("SET NAMES utf8mb4, time_zone = '+00:00'", "utf8mb4", 45, 0)
NUMBERS = (ValueKind.INTEGER, ValueKind.YEAR, ValueKind.DECIMAL, ValueKind.FLOAT, ValueKind.BIT)
OF_PAGES = 4  # tables that are read of .ibb files, too
Cells = list[tuple[object, ...]]


def run(server: RealPrimary, statements: Iterable[str]) -> None:
    """Carry out statements; a server may refuse some."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            with contextlib.suppress(pymysql.Error):
                cursor.execute(statement)


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
def test_timestamps_have_the_values_that_their_session_implies(new_server, tmp_path, version):
    server = new_server(version)
    tables = list(timestamps())
    run(server, ["SET sql_mode = '', time_zone = '+00:00'", f"CREATE DATABASE {DATABASE}"])
    run(server, ["SET sql_mode = '', time_zone = '+00:00'", *(statement for table in tables for statement in table)])
    ours = OurTables(ibbmaster.open(copy_binlogs(server, tmp_path / "log")).engine)
    assert len(tables) > 800
    assert differences(ours.history.at(), described_by(server)) == []


def cells_of_server(server: RealPrimary, name: str, kinds: Iterable[Column]) -> Cells:
    """The rows of a table: numbers, and others as hexadecimal digits of their bytes."""
    shown = [
        f"CAST(`{one.name}` AS DOUBLE)"
        if one.kind is ValueKind.FLOAT
        else f"`{one.name}` + 0"
        if one.kind in NUMBERS
        else f"HEX(CAST(`{one.name}` AS BINARY))"
        for one in kinds
    ]
    server.sql("SET time_zone = '+00:00'")
    return sorted(server.sql(f"SELECT {', '.join(shown)} FROM {name}"), key=repr)


def cells_of(rows: Iterable[Mapping[str, object]], kinds: Iterable[Column]) -> Cells:
    """The same of rows that our jobs have read."""
    kinds = list(kinds)
    return sorted((tuple(_cell(kind, row[kind.name]) for kind in kinds) for row in rows), key=repr)


def _cell(kind: Column, value: object) -> object:
    if value is None or kind.kind not in NUMBERS:
        return as_sql(kind, bytes(value) if isinstance(value, bytearray) else value)
    if kind.kind is ValueKind.FLOAT:
        return float(value)  # type: ignore[arg-type]
    return Decimal(value) if kind.kind is ValueKind.DECIMAL else int(value)  # type: ignore[call-overload]


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
def test_changed_columns_have_the_values_of_the_server_or_are_in_doubt(
    request, seed, new_server, import_files, tmp_path, version
):
    rng = random.Random(f"{seed} {version}")
    kinds = list(of_every_kind())
    kinds = rng.sample(kinds, request.config.getoption("--column-changes") or len(kinds))
    changes = {named(number): change_of(named(number), kind, rng) for number, kind in enumerate(kinds)}
    metadata = rng.choice(("FULL", "NO_LOG"))
    server = new_server(version, "--innodb-strict-mode=0", "--binlog-format=ROW", f"--binlog-row-metadata={metadata}")
    run(server, [f"CREATE DATABASE {DATABASE}"])
    kept, log = KeptTables("delta", tmp_path / "tables"), tmp_path / "log"
    utc = "SET time_zone = '+00:00'"
    run(server, [utc, *(one for change in changes.values() for one in change.first)])
    maintain(str(copy_binlogs(server, log)), kept.target, zero_dates="text")
    run(server, [utc, *(one for change in changes.values() for one in change.second)])
    done = maintain(str(copy_binlogs(server, log)), kept.target, zero_dates="text")

    ours = OurTables(ibbmaster.open(log).engine)
    client, counts, exact = RawClient.of_root(server.socket, AS_SHOWN), Counter[str](), []
    for name, change in changes.items():
        table = ours.history.at().table(*parse_table_name(name))
        if table is None:
            continue  # the server has refused its CREATE
        assert isinstance(table, TableVersion), change
        columns = [column_of(column) for column in table.columns]
        sql = f"SELECT * FROM {name} ORDER BY id"
        theirs, cells = client.text(sql).rows, cells_of_server(server, name, columns)
        try:
            answered = ours.answer(sql, AS_SHOWN).rows
        except RefusedError:
            counts["refused"] += 1
            table = ours.table(name, ours.snapshot())
            with pytest.raises(UnknownRowsError) as refused:
                ours.reader.rows_of(ours.snapshot(), table, [column.id for column in table.columns])
            since, because = refused.value.unknown.gtid, refused.value.unknown.reason
            with pytest.raises(InexactError) as told, ibbmaster.open(log) as opened:
                opened.snapshot(name, zero_dates="text")
            assert told.value.doubts == [str(Doubt(START, since, because))], change
            state = done.tables[name]
            assert (state.is_exact, state.since, state.because) == (False, since, because), change
            continue
        count = len(columns)
        assert [values_of(row, count) for row in answered] == [values_of(row, count) for row in theirs], change
        with ibbmaster.open(log) as opened:
            assert cells_of(opened.snapshot(name, zero_dates="text").to_pylist(), columns) == cells, change
            with contextlib.suppress(IbbMasterError):
                rows = [row for row in opened.history(name, zero_dates="text").to_pylist() if row["_is_current"]]
                counts["histories"] += 1
                assert cells_of(rows, columns) == cells, change
        if done.tables[name].is_exact:
            counts["maintained"] += 1
            assert cells_of(kept.read(name).to_pylist(), columns) == cells, change
        exact.append((name, columns, cells))
    client.close()
    print(dict(counts), len(exact), "exact")
    assert len(exact) > len(changes) / 2
    import_files(sorted(log.iterdir()), tmp_path / "pages")
    with ibbmaster.open(tmp_path / "pages") as opened:
        for name, columns, cells in rng.sample(exact, OF_PAGES):
            assert cells_of(opened.snapshot(name, zero_dates="text").to_pylist(), columns) == cells, changes[name]


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
def test_a_row_that_ended_in_2038_is_history_to_a_server_whose_time_goes_on(new_server, tmp_path, version):
    server = new_server(version, "--binlog-format=ROW")
    rows = "(1, '2020-01-01', '2038-01-19 03:14:07.999999'), (2, '2020-01-01', '2030-01-01')"
    statements = [
        *("SET time_zone = '+00:00'", "SET system_versioning_insert_history = 1", f"CREATE DATABASE {DATABASE}"),
        f"CREATE TABLE {DATABASE}.t (id INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, "
        "e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
        f"INSERT INTO {DATABASE}.t (id, s, e) VALUES {rows}",
        *(f"INSERT INTO {DATABASE}.t (id) VALUES (3)", f"DELETE FROM {DATABASE}.t WHERE id = 3"),
        f"INSERT INTO {DATABASE}.t (id) VALUES (4)",
    ]
    run(server, statements)
    ours = OurTables(ibbmaster.open(copy_binlogs(server, tmp_path / "log")).engine)
    sql = f"SELECT id FROM {DATABASE}.t"
    client = RawClient.of_root(server.socket, AS_SHOWN)
    assert ours.answer(sql, AS_SHOWN).rows == client.text(sql).rows
    client.close()
