"""Tables that are asked for one after the other share scans of the log, as far as memory allows."""

from pathlib import Path

import pytest

from ibbmaster.errors import EventError
from ibbmaster.kernel.loading import load
from ibbmaster.lake.maintain import source
from ibbmaster.lake.maintain.job import maintain
from ibbmaster.lake.maintain.source import SharedScan, TableRequest
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.tables.arrow import many_tables
from ibbmaster.tables.arrow.many_tables import find_tables
from ibbmaster.tables.arrow.options import parse_options
from tests.kept_tables import KeptTables
from tests.written_log import inserted, write_log

NAMES = [f"d.t{number}" for number in range(6)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    assert load() is not None
    columns = {"id": "int", "a": "text"}
    tables = [
        written_table(name, columns, table_id=number + 1, primary_key=["id"]) for number, name in enumerate(NAMES)
    ]
    created = [f"CREATE TABLE t{number} (id INT PRIMARY KEY, a TEXT)" for number in range(len(NAMES))]
    groups = [[inserted(table, [number, "x" * 3000]) for table in tables] for number in range(20)]
    return write_log(tmp_path / "log", *created, *groups)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []
    planned = many_tables.plan_tables
    monkeypatch.setattr(
        source, "plan_tables", lambda of, fields, **more: (found.append(list(fields)), planned(of, fields, **more))[1]
    )
    return found


def gathered(log: Path) -> tuple[SharedScan, list[TableRequest]]:
    options = parse_options({"path": str(log)})
    wanted = [TableRequest(name, fields, None) for name, fields in find_tables(options).items()]
    return SharedScan(options, wanted), wanted


@pytest.mark.parametrize(("bytes_max", "tables"), [(source.BYTES_MAX, 6), (140_000, 2), (1, 1)])
def test_a_scan_has_as_many_tables_as_memory_allows_and_one_at_least(
    log, scans, monkeypatch, bytes_max, tables
) -> None:
    monkeypatch.setattr(source, "BYTES_MAX", bytes_max)
    changes, wanted = gathered(log)
    assert [changes.take(one)["id"].to_pylist() for one in wanted] == [list(range(20))] * 6
    assert scans == [NAMES[first:] for first in range(0, 6, tables)]


def test_tables_that_are_not_read_after_the_same_position_share_no_scan(log, scans) -> None:
    _, wanted = gathered(log)
    later = [one._replace(starting_gtid="0-1-16") for one in wanted[:2]]
    changes = SharedScan(parse_options({"path": str(log)}), [*wanted[2:4], *later])
    assert [len(changes.take(one)) for one in (*later, *wanted[2:4], wanted[5])] == [10, 10, 20, 20, 20]
    assert scans == [NAMES[:2], NAMES[2:4], NAMES[5:]]


def test_what_is_wrong_with_one_table_is_no_error_of_the_others(tmp_path, scans) -> None:
    """A value of before an ALTER does not fit into what the column is now."""
    assert load() is not None
    old, other = (written_table(f"d.t{number}", {"id": "bigint"}, table_id=number) for number in (1, 2))
    new = written_table("d.t1", {"id": "int"}, table_id=3)
    log = write_log(
        tmp_path / "log",
        *(f"CREATE TABLE t{number} (id BIGINT)" for number in (1, 2)),
        [inserted(old, [1 << 40]), inserted(other, [1 << 40])],
        "ALTER TABLE t1 MODIFY id INT",
        [inserted(new, [3])],
    )
    changes, wanted = gathered(log)
    with pytest.raises(EventError, match="t1 column id is bigint here, the DataFrame has int"):
        changes.take(wanted[0])
    assert changes.take(wanted[1])["id"].to_pylist() == [1 << 40]
    assert scans == [["d.t1", "d.t2"], ["d.t1"], ["d.t2"]]


@pytest.mark.parametrize("kind", ["current", "changes", "history"])
def test_a_run_reads_the_log_once_for_all_tables(log, scans, tmp_path, kind) -> None:
    kept = KeptTables("delta", tmp_path / "lake")
    done = maintain(str(log), kept.target, kind=kind)
    assert done.written == NAMES
    assert scans == [NAMES]
    assert all(state.is_exact for state in done.tables.values())
    assert maintain(str(log), kept.target, kind=kind).written == []
    assert len(scans) == (2 if kind == "changes" else 1)  # changes are looked for to say that there are none
