"""What ALTER TABLE makes of rows and of columns on real servers, beside what our reader says of them: every change of
one type into another, and random ones of columns.
"""

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import pytest
from lanes.answers import OurTables, RawClient, Session, expect_rows, ours_beside, values_of
from lanes.described import described_by, differences
from lanes.random_ddl import DATABASE
from lanes.replay import as_sql
from lanes.sql import copy_binlogs, run

import ibbmaster
from ibbmaster.errors import IbbMasterError, InexactError
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.pasts import START, Doubt
from ibbmaster.primary.select.table_reader import UnknownRowsError
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.shape import keeps_values
from ibbmaster.schema.model import SqlType, TableVersion
from ibbmaster.schema.names import column_of
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import cases_beside, data_beside
from tests.kept_tables import KeptTables

#: A type, and values that it takes as they are.
TYPES = {kind: tuple(values) for kind, values in cases_beside(__file__).items()}

#: A value of each type that most others take, too, by the beginning of the type.
COMMON = {
    **dict.fromkeys(("BIT", "INT(5)"), "b'1100'"),
    **dict.fromkeys(("DATE", "TIMESTAMP"), "'2020-02-29'"),
    **dict.fromkeys(("ENUM", "SET"), "'a'"),
    "YEAR": "1999",
    "TIME(": "'13:14:15'",
    "UUID": "'123e4567-e89b-12d3-a456-426655440000'",
    "INET4": "'192.0.2.255'",
    "INET6": "'2001:db8::1'",
}


def common(kind: str) -> str:
    """A value that most types take, or that of the type alone."""
    word = "TIME(" if kind == "TIME" else kind
    return next((value for begin, value in COMMON.items() if word.startswith(begin)), "'12'")


def name_of(old: int, new: int) -> str:
    return f"c{old}_{new}"


def created(old: int) -> Iterator[str]:
    """Tables of columns of one type: with a row for each of its values, and one of NULLs; and with a common value."""
    kind, values = list(TYPES.items())[old]
    columns = ", ".join(f"{name_of(old, new)} {kind}" for new in range(len(TYPES)))
    for table, rows in (("t", (*values, "NULL")), ("s", (common(kind),))):
        yield f"CREATE TABLE types.{table}{old} (k INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4"
        written = (f"({number}, {', '.join([value] * len(TYPES))})" for number, value in enumerate(rows))
        yield f"INSERT INTO types.{table}{old} VALUES {', '.join(written)}"


def altered(old: int) -> Iterator[str]:
    """What gives each column of these tables its other type."""
    kinds = list(enumerate(TYPES))
    changes = ", ".join(f"MODIFY {name_of(old, new)} {kind}" for new, kind in kinds if new != old)
    yield from (f"ALTER TABLE types.{table}{old} {changes}" for table in "ts")


STRICT, LENIENT = "STRICT_TRANS_TABLES", ""
_DATA = data_beside(__file__)
#: What a column of the type stores otherwise than it is written.
ROUNDED = _DATA["rounded"]
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
WITH_A_TIMESTAMP = _DATA["with a timestamp"]


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


#: Two types, how one becomes the other, and what is said of NULL before and after.
CHANGES = [*itertools.product(KINDS, KINDS, ("ADD", "MODIFY", "CHANGE"), SAYINGS, SAYINGS)]


def change_of(table: str, kind: Sequence[str], rng: random.Random) -> tuple[list[str], list[str]]:
    """Statements in two parts, between which a program may look at the table: it has a row from before the column
    came, unless its CREATE has the column, and rows from after that."""
    old, new, verb, before, after = kind
    if rng.random() < 0.4:
        new = old
    session = _session(rng)
    column = f"c {old} {before}{_default(old, rng)}"
    first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT)"]
    if rng.random() < 0.3:
        first = [session, f"CREATE TABLE {table} (id INT PRIMARY KEY, d INT, {column})"]
        first += [f"INSERT INTO {table} (id) VALUES (1)"]
    else:
        first += [f"INSERT INTO {table} (id) VALUES (1)", f"ALTER TABLE {table} ADD {column}"]
    if rng.random() < 0.5:
        first += [f"INSERT INTO {table} (id) VALUES (2)"]
        first += [f"INSERT INTO {table} (id, c) VALUES (3, {rng.choice(KINDS[old])})"]
        first += [f"INSERT INTO {table} (id, c) VALUES (4, NULL)"]
    changed = f"{new} {after}{_default(new, rng)}"
    ignored = " IGNORE" if rng.random() < 0.03 else ""
    clause = {"ADD": "ADD e", "MODIFY": "MODIFY c", "CHANGE": "CHANGE c c2"}[verb]
    second = [f"ALTER{ignored if verb != 'ADD' else ''} TABLE {table} {clause} {changed}"]
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
    return first, second


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


AS_SHOWN = Session("SET NAMES utf8mb4, time_zone = '+00:00'", "utf8mb4", 45, 0)
NUMBERS = (ValueKind.INTEGER, ValueKind.YEAR, ValueKind.DECIMAL, ValueKind.FLOAT, ValueKind.BIT)
OF_PAGES = 4  # tables that are read of .ibb files, too
UTC = "SET time_zone = '+00:00'"
Cells = list[tuple[object, ...]]


def test_timestamps_have_the_values_that_their_session_implies(new_server, tmp_path, version):
    server = new_server(version)
    tables = list(timestamps())
    run(server, f"CREATE DATABASE {DATABASE}", UTC, "SET sql_mode = ''", *itertools.chain(*tables), may_fail=True)
    ours = ours_beside(server, tmp_path)
    assert len(tables) > 800
    assert differences(ours.history.at(), described_by(server)) == []


def cells_of_server(server: RealPrimary, name: str, kinds: Iterable[Column]) -> Cells:
    """The rows of a table: numbers, and others as hexadecimal digits of their bytes."""
    forms = dict.fromkeys(NUMBERS, "`{}` + 0") | {ValueKind.FLOAT: "CAST(`{}` AS DOUBLE)"}
    shown = [forms.get(one.kind, "HEX(CAST(`{}` AS BINARY))").format(one.name) for one in kinds]
    server.sql(UTC)
    return sorted(server.sql(f"SELECT {', '.join(shown)} FROM {name}"), key=repr)


def cells_of(rows: Iterable[Mapping[str, object]], kinds: Iterable[Column]) -> Cells:
    kinds = list(kinds)
    return sorted((tuple(_cell(kind, row[kind.name]) for kind in kinds) for row in rows), key=repr)


def _cell(kind: Column, value: object) -> object:
    if value is None or kind.kind not in NUMBERS:
        return as_sql(kind, value)
    if kind.kind is ValueKind.FLOAT:
        return float(value)  # type: ignore[arg-type]
    return Decimal(value) if kind.kind is ValueKind.DECIMAL else int(value)  # type: ignore[call-overload]


def test_changed_columns_have_the_values_of_the_server_or_are_in_doubt(
    request, seed, new_server, import_files, tmp_path, version
):
    rng = random.Random(f"{seed} {version}")
    kinds = rng.sample(CHANGES, request.config.getoption("--column-changes") or len(CHANGES))
    names = [f"{DATABASE}.t{number}" for number in range(len(kinds))]
    changes = {name: change_of(name, kind, rng) for name, kind in zip(names, kinds, strict=True)}
    metadata = rng.choice(("FULL", "NO_LOG"))
    server = new_server(version, "--innodb-strict-mode=0", "--binlog-format=ROW", f"--binlog-row-metadata={metadata}")
    server.sql(f"CREATE DATABASE {DATABASE}")
    kept, log = KeptTables("delta", tmp_path / "tables"), tmp_path / "log"
    for part in (0, 1):
        run(server, UTC, *(one for change in changes.values() for one in change[part]), may_fail=True)
        done = maintain(str(copy_binlogs(server, log)), kept.target, zero_dates="text")

    counts, exact = Counter[str](), []
    with ibbmaster.open(log) as opened, RawClient.of_root(server, AS_SHOWN) as client:
        ours = OurTables(opened.engine)
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
                with pytest.raises(UnknownRowsError) as refused:
                    ours.reader.rows_of(ours.snapshot(), table, [column.id for column in table.columns])
                since, because = refused.value.unknown.gtid, refused.value.unknown.reason
                with pytest.raises(InexactError) as told:
                    opened.snapshot(name, zero_dates="text")
                assert told.value.doubts == [str(Doubt(START, since, because))], change
                state = done.tables[name]
                assert (state.is_exact, state.since, state.because) == (False, since, because), change
                continue
            count = len(columns)
            assert [values_of(row, count) for row in answered] == [values_of(row, count) for row in theirs], change
            assert cells_of(opened.snapshot(name, zero_dates="text").to_pylist(), columns) == cells, change
            with contextlib.suppress(IbbMasterError):
                rows = [row for row in opened.history(name, zero_dates="text").to_pylist() if row["_is_current"]]
                counts["histories"] += 1
                assert cells_of(rows, columns) == cells, change
            if done.tables[name].is_exact:
                counts["maintained"] += 1
                assert cells_of(kept.read(name).to_pylist(), columns) == cells, change
            exact.append((name, columns, cells))
    print(dict(counts), len(exact), "exact")
    assert len(exact) > len(changes) / 2
    import_files(sorted(log.iterdir()), tmp_path / "pages")
    with ibbmaster.open(tmp_path / "pages") as opened:
        for name, columns, cells in rng.sample(exact, OF_PAGES):
            assert cells_of(opened.snapshot(name, zero_dates="text").to_pylist(), columns) == cells, changes[name]


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
    run(server, *statements)
    expect_rows(ours_beside(server, tmp_path), server, f"SELECT id FROM {DATABASE}.t", session=AS_SHOWN)


LENIENTLY = "SET sql_mode = '', time_zone = '+00:00'"  # a value that does not fit becomes one that does
PAIRS = [(old, new) for old in range(len(TYPES)) for new in range(len(TYPES)) if old != new]
TABLES = "ts"  # with the values at the edges, and with one that most types have
Values = list[bytes | None]


class Changed(NamedTuple):
    """Values of a real server before and after, by the number of the types and the table; and its log."""

    before: dict[tuple[str, int, int], Values]
    after: dict[tuple[str, int, int], Values]
    ours: OurTables


def values_on(server: RealPrimary) -> dict[tuple[str, int, int], Values]:
    found: dict[tuple[str, int, int], Values] = {}
    with RawClient.of_root(server, AS_SHOWN) as client:
        for old, table in itertools.product(range(len(TYPES)), TABLES):
            names = ", ".join(name_of(old, new) for new in range(len(TYPES)))
            rows = client.text(f"SELECT {names} FROM types.{table}{old} ORDER BY k").rows
            columns = zip(*(values_of(row, len(TYPES)) for row in rows), strict=True)
            found |= {(table, old, new): list(values) for new, values in enumerate(columns)}
    return found


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def changed(request, server_of, tmp_path_factory) -> Changed:
    options = ("--innodb-strict-mode=0", "--binlog-format=ROW")
    files = tmp_path_factory.mktemp("binlogs")
    with server_of(RealPrimary, request.param, [], *options) as server:
        run(server, LENIENTLY, "CREATE DATABASE types", *(sql for old in range(len(TYPES)) for sql in created(old)))
        before = values_on(server)
        run(server, LENIENTLY, *(sql for old in range(len(TYPES)) for sql in altered(old)))
        return Changed(before, values_on(server), ours_beside(server, files))


def types_of(changed: Changed, old: int) -> tuple[SqlType, dict[int, SqlType]]:
    table = changed.ours.history.at().table("types", f"t{old}")
    assert isinstance(table, TableVersion)
    kinds = {new: column.type for new in range(len(TYPES)) if (column := table.column(name_of(old, new)))}
    return kinds[old], kinds


def test_values_are_those_of_the_server_or_refused_and_none_is_refused_that_is_kept(changed):
    snapshot = changed.ours.snapshot()
    wrong, refused, lost = [], 0, []
    for old, new in PAIRS:
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
    assert refused < 0.75 * len(PAIRS) * len(TABLES)  # most of these lose a value, or depend on what no log tells


def plain(value: bytes | None, word: str) -> object:
    """A number however it is shown, the labels of a SET in whatever order, or any other value."""
    if value is None or word == "set":
        return None if value is None else set(value.split(b","))
    with contextlib.suppress(ValueError):
        return float(value)
    return value


def test_a_type_that_keeps_values_shows_what_was_there(changed):
    kept = 0
    for old, new in PAIRS:
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
