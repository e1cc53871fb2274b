"""Tables of a real server are kept as Delta and Iceberg tables: each cell is its own, or it is said that it may not be.

`--maintain-runs=60` is a longer campaign; a failure prints the seed, and `--interop-seed` brings it back.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from lanes.random_ddl import DATABASE, IMAGES, TYPES, Campaign, content_of
from lanes.replay import as_sql

import ibbmaster
from ibbmaster.lake.maintain.iceberg import IcebergTarget
from ibbmaster.lake.maintain.job import Maintained, maintain
from ibbmaster.lake.maintain.source import LogSource
from ibbmaster.lake.maintain.table_list import HISTORY
from ibbmaster.lake.pasts import Past, Place
from ibbmaster.schema.model import TableVersion
from ibbmaster.schema.names import column_of, key_numbers
from ibbmaster.spark.options import parse_options
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.kept_tables import KINDS, KeptTables

STEPS = 12  # between two runs
OF_FILES = ("_file_no", "_offset", "_change_no")  # the order of changes in a log
OF_DOMAIN = ("_seq", "_change_no")  # and in each domain, whichever server's log
OF_A_PAIR = ("--binlog-row-metadata=FULL", "--binlog-format=ROW", "--log-slave-updates")


class DomainsAndXa(Campaign):
    """The same, in several domains, with transactions in two phases."""

    domains = (0, 0, 1, 7)

    def __init__(self, server: RealPrimary, rng: random.Random, images: tuple[str, ...]) -> None:
        self._prepared: list[str] = []
        super().__init__(server, rng, images)

    def step(self) -> None:
        chance = self._rng.random()
        if chance < 0.05:
            self._run(f"SET gtid_domain_id = {self._rng.choice(self.domains)}")
        elif chance < 0.12:
            self.begin_xa()
        elif chance < 0.18 or len(self._prepared) > 2:
            self.end_xa()
        else:
            super().step()

    def begin_xa(self) -> None:
        """Insert a row in a table of its own, so that nothing waits for it."""
        self._number += 1
        name = f"x{self._number}"
        table = "`xa,1`"
        self._run(f"CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(9))")
        self._run(f"XA START '{name}'")
        self._run(f"INSERT INTO {table} VALUES (NULL, '{name}')")
        self._run(f"XA END '{name}'")
        self._run(f"XA PREPARE '{name}'")
        self._prepared.append(name)
        self._renew()

    def end_xa(self) -> None:
        if self._prepared:
            name = self._prepared.pop(self._rng.randrange(len(self._prepared)))
            self._run(f"XA {self._rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} '{name}'")

    def go_on_with(self, server: RealPrimary) -> None:
        """Take another server, which has all that this one had."""
        self._server = server
        self._renew()

    def _renew(self) -> None:
        """A connection with a prepared transaction can do nothing else."""
        self._connection.close()
        self._connection = self._server.connect()
        for statement in (f"USE {DATABASE}", "SET time_zone='+00:00', sql_mode='STRICT_ALL_TABLES'"):
            self._run(statement)


class OneDomain(DomainsAndXa):
    """With one order of all transactions, which is the same on each server."""

    domains = (0,)


def copy_binlogs(server: RealPrimary, target: Path, copied: set[str]) -> None:
    """Copy what has come since."""
    server.sql("FLUSH BINARY LOGS")
    target.mkdir(exist_ok=True)
    for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
        if name not in copied:
            shutil.copy(server.data / name, target / name)
            copied.add(name)


def purge(log: Path) -> None:
    """Leave only the last file."""
    for path in sorted(log.iterdir())[:-1]:
        path.unlink()


def cells_of(kept: KeptTables, name: str, table: TableVersion) -> list[tuple[object, ...]]:
    """The rows of a table as `content_of` has those of a server; of a history those that hold now."""
    rows = kept.read(name)
    kinds = [column_of(column) for column in table.columns]
    if "_is_current" in rows.column_names:
        rows = rows.filter(rows["_is_current"])
    assert sorted(one for one in rows.column_names if one[0] != "_") == sorted(kind.name for kind in kinds)
    rows = rows.select([kind.name for kind in kinds])
    found = [
        tuple(as_sql(kind, value) for kind, value in zip(kinds, row.values(), strict=True)) for row in rows.to_pylist()
    ]
    return sorted(found, key=repr)


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


def expect_cells(
    server: RealPrimary, log: Path, kept: KeptTables, kind: str, done: Maintained, order: Sequence[str] = OF_FILES
) -> Counter[str]:
    """Every table that is exact has the server's cells; what the verdicts were."""
    counts: Counter[str] = Counter()
    known = (kept.place / HISTORY).read_bytes()
    with LogSource(parse_options({"path": str(log)}), done.end, known) as source:
        for name, state in done.tables.items():
            counts["gone" if state.is_gone else "exact" if state.is_exact else "not exact"] += 1
            if state.is_exact and not state.is_gone:
                table = parse_table_name(name)
                known_table = source.known_table(table)
                if kind == "changes":
                    past = source.past(table)
                    begin = past.begin if order == OF_FILES else (number_at(log, past.begin),)
                    found = None if past.ancestors else folded_cells(kept, name, known_table, past, begin, order)
                    counts["not judged"] += found is None
                else:
                    found = cells_of(kept, name, known_table)
                assert found in (None, content_of(server, quoted_name(table.name))), name
    return counts


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_maintained_table_has_the_cells_of_the_server(
    request, seed, tmp_path: Path, new_server, watch_log, monkeypatch, version
) -> None:
    rng = random.Random(f"{seed} {version}")
    metadata = rng.choice(("FULL", "NO_LOG"))
    zero_dates = rng.choice(("null", "text"))
    server = new_server(version, f"--binlog-row-metadata={metadata}", "--binlog-format=ROW")
    campaign = DomainsAndXa(server, rng, (*IMAGES, "FULL", "FULL"))
    watch_log("last statements", lambda: "\n".join(campaign.statements[-60:]))
    copied: set[str] = set()
    is_purged = False
    reshaped: Counter[bool] = Counter()
    was = IcebergTarget._reshaped
    monkeypatch.setattr(
        IcebergTarget,
        "_reshaped",
        lambda self, reshape, schema: reshaped.update([bool(reshape)]) or was(self, reshape, schema),
    )
    log, target, counts = tmp_path / "log", tmp_path / "tables", Counter[str]()
    for _ in range(request.config.getoption("--maintain-runs")):
        for _ in range(STEPS):
            campaign.step()
        copy_binlogs(server, log, copied)
        for where, kind in itertools.product(KINDS, ("current", "history", "changes")):
            if kind == "changes" and is_purged:
                continue  # a fold of changes begins with the first one
            kept = KeptTables(where, target / where / kind)
            done = maintain(str(log), kept.target, kind=kind, zero_dates=zero_dates)
            found = expect_cells(server, log, kept, kind, done)
            counts += found
            print(where, kind, dict(found))
            counts.update(kept.commits(name)[-1] for name in done.written)
        print([state.verdict for state in done.tables.values() if not state.is_exact and not state.is_gone])
        if rng.random() < 0.04:
            purge(log)
            is_purged = True
    print(dict(counts), f"{reshaped[True]} with other columns and no file written anew for it")
    assert counts["exact"] > counts["not exact"] / 2
    assert counts["patched"]
    assert counts["written"]
    campaign.close()


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
) -> None:
    server = new_server("11.8", "--binlog-row-metadata=FULL", "--binlog-format=ROW")
    log, kept, copied = tmp_path / "log", KeptTables(where, tmp_path / "tables"), set[str]()
    columns = {f"c{number}": kind.removesuffix(" NULL") + " NULL" for number, kind in enumerate(OF_TYPES)}
    values = dict(zip(columns, OF_TYPES.values(), strict=True))
    marks = ", ".join(["%s"] * len(columns))
    with server.connect() as connection, connection.cursor() as cursor:

        def bring() -> None:
            copy_binlogs(server, log, copied)
            done = maintain(str(log), kept.target)
            assert [one.verdict for one in done.tables.values() if not one.is_exact] == []
            expect_cells(server, log, kept, "current", done)

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


def test_tables_go_on_with_the_log_of_a_replica_that_took_over(seed, tmp_path, new_server, watch_log) -> None:
    rng = random.Random(f"{seed} failover")
    first, second = (new_server("11.8", *OF_A_PAIR, f"--server-id={number}") for number in (1, 2))
    second.sql(
        f"CHANGE MASTER TO MASTER_HOST='{first.host}', MASTER_PORT={first.port}, MASTER_USER='{first.user}', "
        f"MASTER_PASSWORD='{first.password}', MASTER_USE_GTID=slave_pos, MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0"
    )
    second.sql("START SLAVE")
    campaign = OneDomain(first, rng, (*IMAGES, "FULL", "FULL"))
    watch_log("last statements", lambda: "\n".join(campaign.statements[-60:]))
    kinds = list(itertools.product(KINDS, ("current", "history", "changes")))
    logs = tmp_path / "first", tmp_path / "second"
    counts = Counter[str]()

    def bring(server: RealPrimary, log: Path, copied: set[str]) -> None:
        copy_binlogs(server, log, copied)
        for where, kind in kinds:
            kept = KeptTables(where, tmp_path / "tables" / where / kind)
            done = maintain(str(log), kept.target, kind=kind, zero_dates="text")
            counts.update(expect_cells(server, log, kept, kind, done, OF_DOMAIN))
            counts.update(kept.commits(name)[-1] for name in done.written)

    of_first, of_second = set[str](), set[str]()
    for _ in range(2):
        for _ in range(STEPS):
            campaign.step()
        bring(first, logs[0], of_first)
    for _ in range(STEPS):  # which no run sees before the failover
        campaign.step()
    position = str(first.sql("SELECT @@gtid_binlog_pos")[0][0])
    assert second.sql("SELECT MASTER_GTID_WAIT(%s, 60)", (position,)) == ((0,),)
    first.kill()
    second.sql("STOP SLAVE")
    campaign.go_on_with(second)
    for _ in range(2):
        for _ in range(STEPS):
            campaign.step()
        bring(second, logs[1], of_second)
    print(dict(counts))
    assert counts["exact"] > counts["not exact"] / 2
    assert counts["patched"]
    campaign.close()
