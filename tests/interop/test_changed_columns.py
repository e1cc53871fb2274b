"""What ALTER TABLE makes of rows and of columns on real servers, beside what our reader says of them."""

import contextlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

import pymysql
import pytest
from lanes.answers import OurTables, RawClient, Session, values_of
from lanes.binlogs import copy_binlogs
from lanes.changed_columns import change_of, named, of_every_kind, timestamps
from lanes.described import described_by, differences
from lanes.random_ddl import DATABASE
from lanes.replay import as_sql

import ibbmaster
from ibbmaster.errors import IbbMasterError, InexactError
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.pasts import START, Doubt
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.names import column_of
from ibbmaster.select.table_reader import UnknownRowsError
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from ibbmaster.wire.refusal import RefusedError
from tests.kept_tables import KeptTables

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
