"""Tables of a real server are kept as Delta and Iceberg tables: each cell is its own, or it is said that it may not be.

`--maintain-logs=30` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

import functools
import itertools
import random
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pymysql
import pytest
from lanes.answers import SESSIONS, RawClient
from lanes.mixed_logs import LogKind, Transactions, any_campaign
from lanes.primary import IbbPrimary, login_of
from lanes.random_ddl import DATABASE, IMAGES, TYPES, content_of
from lanes.replay import as_sql, cells_of
from lanes.sql import copy_binlogs, take_over

import ibbmaster
from ibbmaster.errors import InexactError
from ibbmaster.lake.maintain.job import Maintained, maintain
from ibbmaster.lake.maintain.source import LogSource
from ibbmaster.lake.maintain.state import HISTORY
from ibbmaster.lake.pasts import Past, Place
from ibbmaster.rows.certainty import doubt_text
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.names import column_of, key_numbers
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import data_beside
from tests.kept_tables import KINDS, KeptTables
from tests.kill_switch import KillSwitch

AS = ("current", "history", "changes")
TARGETS = [*itertools.product(KINDS, AS)]
METADATA = ("NO_LOG", "MINIMAL", "FULL")
STEPS = 12  # between two runs
OF_FILES = ("_file_no", "_offset", "_change_no")  # the order of changes in a log
OF_DOMAIN = ("_seq", "_change_no")  # and in each domain, whichever server's log
OF_A_PAIR = ("--binlog-row-metadata=FULL", "--binlog-format=ROW", "--log-slave-updates")


def current_cells(rows: pa.Table, table: TableVersion) -> list[tuple[object, ...]]:
    """The rows of a table as `content_of` has those of a server; of a history those that hold now."""
    kinds = [column_of(column) for column in table.columns]
    if "_is_current" in rows.column_names:
        rows = rows.filter(rows["_is_current"])
    assert sorted(one for one in rows.column_names if one[0] != "_") == sorted(kind.name for kind in kinds)
    return cells_of(rows.to_pylist(), kinds)


def server_cells(server: RealPrimary, table: TableVersion) -> list[tuple[object, ...]]:
    """The same of the server, hidden columns with them."""
    names = [column.name for column in table.columns]
    return content_of(server, quoted_name(table.name), names, database=quoted_name(table.database))


def folded_cells(
    kept: KeptTables, name: str, table: TableVersion, past: Past, begin: tuple[int, ...], order: Sequence[str]
) -> list[tuple[object, ...]] | None:
    """The rows that changes after a place in an order come to, one by one; None if the server has filled in a value."""
    kinds = [column_of(column) for column in table.columns]
    names = [kind.name for kind in kinds]
    keys = [names[number] for number in key_numbers(table)] or names
    changes = kept.read(name).sort_by([(of, "ascending") for of in order])
    rows: Counter[tuple[object, ...]] = Counter()  # without a key there may be equal ones
    by_key: dict[tuple[object, ...], tuple[object, ...]] = {}
    before: tuple[object, ...] = ()
    for change in changes.to_pylist():
        if tuple(change[of] for of in order[:-1]) <= begin:
            continue
        absent = set(change["_absent"] or ())
        if change["_change_type"] == "insert" and absent - past.nulls:
            return None
        image = {of: as_sql(kind, change[of]) for of, kind in zip(names, kinds, strict=True)}
        if change["_change_type"] == "update_postimage":
            image |= {of: value for of, value in zip(names, before, strict=True) if of in absent}
        key = tuple(image[of] for of in keys)
        if change["_change_type"] in ("delete", "update_preimage"):
            before = by_key[key]
            rows[before] -= 1
            assert rows[before] >= 0, (name, change)
        else:
            by_key[key] = tuple(image.values())
            rows[by_key[key]] += 1
    return sorted(rows.elements(), key=repr)


def number_at(log: Path, place: Place) -> int:
    """The sequence number of the last group up to a place, in a log of one domain."""
    with ibbmaster.open(log) as opened:
        groups = ((group.start.file_no, group.start.offset, group.gtid.seq_no) for group in opened.groups())
        return max((number for *at, number in groups if tuple(at) <= place), default=0)


class Keeper:
    """Brings the tables of one target to the end of a log, again and again, and compares them with the server's."""

    def __init__(self, where: str, kind: str, place: Path, server: RealPrimary, *, zero_dates: str = "text") -> None:
        self.kept = KeptTables(where, place / where / kind)
        self.kind = kind
        self.server = server  # another one if that took over
        self.begins: dict[str, tuple[int, ...]] = {}
        self.counts: Counter[str] = Counter()
        self.doubts: Counter[str] = Counter()
        self._zero_dates = zero_dates
        self._exact: dict[str, tuple[str | None, list[str]]] = {}  # where a table was so last, and its rows

    def bring(self, log: Path) -> Maintained:
        return maintain(str(log), self.kept.target, kind=self.kind, zero_dates=self._zero_dates)

    def _rows(self, name: str) -> list[str]:
        return sorted(map(repr, self.kept.read(name).to_pylist()))

    def expect_cells(self, log: Path, order: Sequence[str] | None = OF_DOMAIN) -> Maintained:
        """After a run every table that is exact has the server's cells; without an order changes are not judged."""
        path = self.kept.place / HISTORY
        known = path.read_bytes() if path.exists() else None
        done = self.bring(log)
        with LogSource(parse_options({"path": str(log)}), done.start, known) as source:
            for full_name, state in done.tables.items():
                if state.is_gone or not state.is_exact:
                    self.counts["gone" if state.is_gone else "not exact"] += 1
                    self.doubts.update([] if state.is_gone else [state.because])
                    assert state.is_gone or VERDICT.match(state.verdict), state.verdict
                    at, rows = self._exact.get(full_name, (None, []))
                    if self.kind == "current" and None not in (at, state.rows_at):
                        assert at != state.rows_at or self._rows(full_name) == rows, (full_name, state.verdict)
                        self.counts["as before" if at == state.rows_at else "as a killed run left it"] += 1
                    continue
                self.counts["exact"] += 1
                if self.kind == "current":
                    self._exact[full_name] = state.rows_at, self._rows(full_name)
                name = parse_table_name(full_name)
                table, past = source.known_table(name), source.past(name)
                if past.cuts:
                    self.begins[full_name] = past.begin if order == OF_FILES else (number_at(log, past.begin),)
                if self.kind != "changes":
                    found = current_cells(self.kept.read(full_name), table)
                elif order is None or past.ancestors:
                    found = None
                else:
                    found = folded_cells(self.kept, full_name, table, past, self.begins.get(full_name, (-1,)), order)
                self.counts["not judged"] += found is None
                assert found in (None, server_cells(self.server, table)), (full_name, self.kind)
        self.counts.update(self.kept.commits(name)[-1] for name in done.written)
        return done


VERDICT = re.compile(
    r"not exact since .+, because (?!\w+(Error|Exception)\b).+; (its rows here are those at|it has no rows here)"
)


def expect_one_answer(server: RealPrimary, primary: IbbPrimary, whole: Path, exact: Maintained) -> Counter[str]:
    """At the end of a log SELECT, a snapshot, a history and tables that are made of all of it agree on each table."""
    counts = Counter[str]()
    theirs = RawClient.of_root(server, SESSIONS[2])
    ours = RawClient(SESSIONS[2], **login_of(primary), ssl_disabled=True)
    with ibbmaster.open(whole) as log, LogSource(parse_options({"path": str(whole)})) as source:
        for full_name, state in exact.tables.items():
            name = parse_table_name(full_name)
            sql = f"SELECT * FROM {quoted_name(name.database)}.{quoted_name(name.name)}"
            table = source.known_table(name)
            wanted = server_cells(server, table)
            answers = {"maintain": "" if state.is_exact else doubt_text(state.since, state.because)}
            try:
                assert sorted(ours.text(sql).rows) == sorted(theirs.text(sql).rows), sql
                answers["SELECT"] = ""
            except pymysql.Error as error:
                answers["SELECT"] = str(error.args[1]).removeprefix(f"{full_name}: ")
            for what, ask in (("snapshot", log.snapshot), ("history", log.history)):
                try:
                    assert current_cells(ask(full_name, zero_dates="text"), table) == wanted, (full_name, what)
                    answers[what] = ""
                except InexactError as error:
                    answers[what] = error.doubts[0]
            print(full_name, answers)
            assert answers["SELECT"] == answers["maintain"] == answers.get("snapshot", answers["SELECT"]), full_name
            assert answers.get("history", answers["SELECT"]) or not answers["SELECT"], full_name
            counts.update({"asked": 1, "exact": not answers["SELECT"]})
    ours.close()
    theirs.close()
    return counts


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "log_number" in metafunc.fixturenames:
        metafunc.parametrize("log_number", range(metafunc.config.getoption("--maintain-logs")))


def test_tables_of_a_log_that_is_purged_between_runs_that_are_killed_are_the_servers_or_in_doubt(
    request, seed, tmp_path, new_server, new_ibb_primary, watch_log, monkeypatch, log_number
):
    rng = random.Random(f"{seed} {log_number}")
    version = MARIADB_VERSIONS[log_number % len(MARIADB_VERSIONS)]
    server = new_server(version)
    kind = LogKind.drawn(rng, log_number)
    campaign = any_campaign(server, rng, kind, log_number)
    watch_log("last statements", campaign.last_statements)
    watch_log("log", lambda: f"{log_number} {version} {kind}")
    whole, log, tables = tmp_path / "whole", tmp_path / "log", tmp_path / "tables"
    copied, copied_whole = set[str](), set[str]()
    keepers = [Keeper(*one, tables, server, zero_dates=kind.zero_dates) for one in TARGETS]
    switches = {where: KillSwitch(tables, where, monkeypatch) for where in KINDS}
    killed, turns = 0, itertools.count()
    of_first = OF_DOMAIN if len(kind.domains) == 1 else OF_FILES
    order: Sequence[str] | None = of_first
    for _ in range(request.config.getoption("--maintain-runs")):
        for _ in range(STEPS):
            campaign.step()
        old = copied.copy()
        copy_binlogs(server, log, copied)
        for keeper in keepers:
            if next(turns) % 3 == 0 and switches[keeper.kept.kind].killed(
                rng.randint(1, 40), functools.partial(keeper.bring, log)
            ):
                killed += 1
                if rng.random() < 0.5:
                    campaign.step()
                    copy_binlogs(server, log, copied)
            keeper.expect_cells(log, order)
        if old and rng.random() < 0.6:
            for name in old:
                (log / name).unlink(missing_ok=True)
            order = OF_DOMAIN if order == OF_DOMAIN else None
    copy_binlogs(server, whole, copied_whole)
    last = Keeper("delta", "current", tmp_path / "anew", server)
    agreed = expect_one_answer(server, new_ibb_primary(whole), whole, last.expect_cells(whole))
    counts = sum((keeper.counts for keeper in keepers), Counter[str]())
    for keeper in keepers:
        print(keeper.kept.kind, keeper.kind, dict(keeper.counts), dict(keeper.doubts))
    print(log_number, version, kind, dict(counts), f"{killed} killed", dict(agreed))
    campaign.close()
    assert counts["exact"]
    if kind.is_whole:
        assert agreed["exact"] == agreed["asked"] > 4
        assert counts["exact"] > counts["not exact"]
        assert killed
        assert counts["patched"]
        assert counts["written"]


OF_TYPES = {kind: make(random.Random(kind)) for kind, make in TYPES.items()} | {
    "FLOAT": 0.5,
    "BOOLEAN": True,
    "BINARY(3)": b"a\0b",
    "LONGTEXT": "long",
    "JSON": '{"a": 1}',
    "UUID": "123e4567-e89b-12d3-a456-426655440000",
    "INET6": "::1",
    "INET4": "10.0.0.1",
    "TIMESTAMP": "2024-02-29 12:30:00",
    "DECIMAL(40,2)": "1.25",
    "VECTOR(2)": b"\0\0\x80?\0\0\0@",
}


@pytest.mark.parametrize("where", KINDS)
def test_a_column_of_each_type_is_read_by_others_whether_it_came_first_was_added_or_was_modified(
    tmp_path, new_server, where
):
    server = new_server("11.8", "--binlog-row-metadata=FULL", "--binlog-format=ROW")
    log, keeper, copied = tmp_path / "log", Keeper(where, "current", tmp_path, server), set[str]()
    columns = {f"c{number}": kind.removesuffix(" NULL") + " NULL" for number, kind in enumerate(OF_TYPES)}
    values = dict(zip(columns, OF_TYPES.values(), strict=True))
    marks = ", ".join(["%s"] * len(columns))
    with server.connect() as connection, connection.cursor() as cursor:

        def bring() -> None:
            copy_binlogs(server, log, copied)
            done = keeper.expect_cells(log)
            assert [one.verdict for one in done.tables.values() if not one.is_exact] == []

        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        of_types = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        cursor.execute(f"CREATE TABLE first (id INT PRIMARY KEY, {of_types})")
        cursor.execute(f"INSERT INTO first VALUES (1, {marks})", list(values.values()))
        of_texts = ", ".join(f"{name} VARCHAR(90)" for name in columns)
        cursor.execute(f"CREATE TABLE modified (id INT PRIMARY KEY, {of_texts})")
        cursor.execute("INSERT INTO modified (id) VALUES (1)")
        for name in columns:
            cursor.execute(f"CREATE TABLE of_{name} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO of_{name} VALUES (1)")
        bring()
        for name, kind in columns.items():
            cursor.execute(f"ALTER TABLE of_{name} ADD {name} {kind}")
        cursor.execute(f"ALTER TABLE modified {', '.join(f'MODIFY {name} {kind}' for name, kind in columns.items())}")
        cursor.execute("TRUNCATE modified")
        bring()
        for name, value in values.items():
            cursor.execute(f"INSERT INTO of_{name} VALUES (2, %s)", (value,))
        cursor.execute(f"INSERT INTO modified VALUES (2, {marks})", list(values.values()))
        bring()


def test_tables_go_on_with_the_log_of_a_replica_that_took_over(seed, tmp_path, new_following, watch_log):
    rng = random.Random(f"{seed} failover")
    first, second = new_following("11.8", *OF_A_PAIR)
    campaign = Transactions(first, rng, (*IMAGES, "FULL", "FULL"))
    watch_log("last statements", campaign.last_statements)
    keepers = [Keeper(*one, tmp_path / "tables", first) for one in TARGETS]
    logs = tmp_path / "first", tmp_path / "second"

    def bring(server: RealPrimary, log: Path, copied: set[str]) -> None:
        copy_binlogs(server, log, copied)
        for keeper in keepers:
            keeper.server = server
            keeper.expect_cells(log)

    of_first, of_second = set[str](), set[str]()
    for _ in range(2):
        for _ in range(STEPS):
            campaign.step()
        bring(first, logs[0], of_first)
    for _ in range(STEPS):  # which no run sees before the failover
        campaign.step()
    take_over(second, first)
    campaign.go_on_with(second)
    for _ in range(2):
        for _ in range(STEPS):
            campaign.step()
        bring(second, logs[1], of_second)
    counts = sum((keeper.counts for keeper in keepers), Counter[str]())
    print(dict(counts))
    assert counts["exact"] > counts["not exact"] / 2
    assert counts["patched"]
    campaign.close()


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
    name: Case(**{step: tuple(given) for step, given in case.items()}) for name, case in data_beside(__file__).items()
}


@pytest.mark.parametrize("metadata", METADATA)
def test_tables_go_on_where_only_what_is_new_is_left_of_the_log(request, seed, tmp_path, new_server, metadata):
    """In a short run each target is kept with one kind of metadata, which the seed draws."""
    targets = random.Random(seed).sample(TARGETS, len(TARGETS))
    if not request.config.getoption("--interop-all"):
        targets = targets[METADATA.index(metadata) :: len(METADATA)]
    server = new_server("11.8", f"--binlog-row-metadata={metadata}", "--binlog-format=ROW", "--sql-mode=")
    log, copied = tmp_path / "log", set[str]()
    server.sql(f"CREATE DATABASE {DATABASE}")
    names = {f"{DATABASE}.t{number}": name for number, name in enumerate(CASES)}
    counts = Counter[bool]()
    keepers = [Keeper(*one, tmp_path / "tables", server) for one in targets]
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
    assert counts[True] > counts[False], counts


def is_exact(case: Case, step: str, where: str, kind: str, derived: str) -> bool:
    """Whether a table can go on; `derived` is what its name ends in if a case has made it of another one."""
    if step == "first" or derived == "l":
        return kind in case.exact_at_first
    return not derived and where in case.exact_in and kind in case.exact_as
