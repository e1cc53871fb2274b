"""Tables of a log without its beginning: a dump of a real server has their rows, and the log goes on from there."""

import shutil
from pathlib import Path

import pytest
from lanes.sql import copy_binlogs, dump_of, position_of, run, sql_beside

import ibbmaster
from ibbmaster.commands.cli.main import main
from ibbmaster.errors import ConfigurationError, InexactError, PositionError, PositionPurgedError
from ibbmaster.lake.maintain.job import Maintained, maintain
from ibbmaster.primary.server.tables import PrimaryTables
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.kept_tables import KINDS, KeptTables

_SQL = sql_beside(__file__)
BEFORE = _SQL["before"]
AFTER = _SQL["after"]
LATER = ("UPDATE d.t SET word = 'later' WHERE id = 1", "INSERT INTO d.keyless VALUES (9, NULL)")
TABLES = ("d.t", "d.keyless", "d.emptied", "d.`odd, one`", "d.late")


class Logged:
    """A server whose first files are gone, its dump, and the files that are left."""

    def __init__(self, server: RealPrimary, place: Path) -> None:
        self.server, self.log, self.dump = server, place / "log", place / "dump.sql"
        run(server, *BEFORE, "FLUSH BINARY LOGS", "INSERT INTO d.emptied VALUES (7)")
        self.dump_now()
        self.go_on(*AFTER)

    def dump_now(self) -> None:
        self.dump.write_bytes(dump_of(self.server, "--databases", "d", "--hex-blob"))

    def go_on(self, *statements: str) -> None:
        """Run statements, and copy all closed files but the first one."""
        run(self.server, *statements)
        shutil.rmtree(self.log, ignore_errors=True)
        copy_binlogs(self.server, self.log, {"binlog.000001"})

    def rows(self, name: str) -> list[str]:
        return _sorted(self.server.query(f"SELECT * FROM {name}"))


def _sorted(rows: list[dict[str, object]]) -> list[str]:
    cells = [
        {name: ",".join(cell) if isinstance(cell, list) else cell for name, cell in row.items() if name[0] != "_"}
        for row in rows
    ]
    return sorted(map(repr, cells))


@pytest.fixture(params=MARIADB_VERSIONS)
def logged(request, new_server, tmp_path) -> Logged:
    metadata = {"10.11": "NO_LOG"}.get(request.param, "FULL")
    return Logged(new_server(request.param, "--binlog-format=ROW", f"--binlog-row-metadata={metadata}"), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_base_begins_tables_and_later_runs_go_on_without_it(logged, kind, tmp_path):
    kept = KeptTables(kind, tmp_path / "lake")

    def go(base: Path | None = None) -> Maintained:
        return maintain(str(logged.log), kept.target, base=base)

    first = go()
    assert {name for name, state in first.tables.items() if state.is_exact} <= {"d.emptied", "d.late"}
    for base in (logged.dump, None):
        done = go(base)
        assert set(done.tables) == set(TABLES)
        for name, state in done.tables.items():
            assert state.is_exact, (name, state.verdict)
            assert _sorted(kept.read(name).to_pylist()) == logged.rows(name)
        assert not (done.written if base is None else set(done.written) & {"d.late"})
    logged.go_on(*LATER)
    done = go()
    for name in ("d.t", "d.emptied", "d.late", "d.`odd, one`"):  # without a key its rows are all in doubt again
        assert done.tables[name].is_exact, done.tables[name].verdict
        assert _sorted(kept.read(name).to_pylist()) == logged.rows(name)
    assert "give a base (--base DUMP)" in done.tables["d.keyless"].verdict
    logged.dump_now()
    logged.go_on("DELETE FROM d.keyless LIMIT 1", "UPDATE d.t SET n = 0")
    done = go(logged.dump)
    assert all(state.is_exact for state in done.tables.values())
    assert "d.keyless" in done.written
    for name in TABLES:
        assert _sorted(kept.read(name).to_pylist()) == logged.rows(name)


def test_a_history_begins_with_the_rows_of_the_dump(logged, tmp_path):
    kept = KeptTables("delta", tmp_path / "lake")
    done = maintain(str(logged.log), kept.target, kind="history", base=logged.dump, leaves_out=["d.keyless"])
    assert all(state.is_exact for state in done.tables.values())
    with ibbmaster.open(logged.log) as log:
        asked = log.history("d.t", base=logged.dump)
    for found in (kept.read("d.t").to_pylist(), asked.to_pylist()):
        assert _sorted([row for row in found if row["_is_current"]]) == logged.rows("d.t")
        versions = sorted((row["id"], row["word"], row["n"] and float(row["n"])) for row in found)
        assert versions == [(1, "é", 1.25), (1, "é", 2.25), (2, None, None), (3, "漢", -7.0), (4, "four", 4.0)]
        begun = {row["_gtid_from"] for row in found if row["_valid_from"] is None}
        assert len(begun) == 1
    gone = [row for row in kept.read("d.emptied").to_pylist() if not row["_is_current"]]
    assert [row["id"] for row in gone] == [1, 2, 7]


def test_snapshots_and_differences_take_a_base(logged, tmp_path, capsys):
    with ibbmaster.open(logged.log) as log:
        remedy = r"give a base \(--base DUMP\)|give its CREATE TABLE with --schema"
        with pytest.raises((InexactError, ConfigurationError), match=remedy):
            log.snapshot("d.t")
        for name in TABLES:
            assert _sorted(log.snapshot(name, base=logged.dump).to_pylist()) == logged.rows(name)
        since = position_of(logged.server)
        logged.go_on(*LATER)
    with ibbmaster.open(logged.log) as log:
        changed = log.difference("d.t", since, base=logged.dump).to_pylist()
        assert [(row["_change_type"], row["word"]) for row in changed] == [
            ("update_preimage", "é"),
            ("update_postimage", "later"),
        ]
        with pytest.raises(PositionError, match=r"dump\.sql is of GTID position 0-1-\d+, which is after 0-1-9$"):
            log.snapshot("d.t", at="0-1-9", base=logged.dump)
    to = tmp_path / "out"
    assert main(["lake", "snapshot", str(logged.log), "d.t", "--base", str(logged.dump), "--to", str(to)]) == 0
    assert capsys.readouterr().out == "d.t: 3 rows\n"


def test_a_dump_that_does_not_fit_is_one_line(logged, tmp_path):
    target = f"delta://{tmp_path / 'lake'}"
    logged.go_on(*LATER)
    sorted(logged.log.iterdir())[0].unlink()
    with pytest.raises(PositionError, match=r"dump\.sql is of GTID position 0-1-\d+: "):
        maintain(str(logged.log), target, base=logged.dump)
    with ibbmaster.open(logged.log) as log:  # SELECT does not take what is missing for nothing, either
        served = PrimaryTables(log.engine, base=logged.dump)
        with pytest.raises(PositionPurgedError, match=r"^the base is of GTID position 0-1-\d+: "):
            served.catalog(served.newest())
    with pytest.raises(ConfigurationError, match="--base is for --as current and history"):
        maintain(str(logged.log), target, kind="changes", base=logged.dump)
