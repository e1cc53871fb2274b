"""What a user declares is how the tables were when the log began; its statements go on from there."""

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, EventError, PositionError
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.schema.model import TableVersion
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_shape
from ibbmaster.tables.arrow.schema_reading import declared_schema, schema_of_log
from tests.table_versions import inserts, versions_of, write_log
from tests.written_log import inserted
from tests.written_log import write_log as write_named_log

DECLARED = "CREATE TABLE db.t (id INT, a VARCHAR(20), PRIMARY KEY (id, a))"
ALTER = "ALTER TABLE t CHANGE a b VARCHAR(20) FIRST, ADD n INT DEFAULT 5"
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET utf8mb4)"


OLD = inserts({"id": "int", "a": "varchar(20)"}, [(1, "x")])
NEW = inserts({"b": "varchar(20)", "id": "int", "n": "int"}, [("y", 2, 6)])


def test_a_declared_table_is_a_table_from_before_the_log() -> None:
    found = declared_schema({"db.t": {"id": "int PRIMARY KEY", "a": "varchar(20) PRIMARY KEY"}, "db.p": {"@1": "uuid"}})

    (table,) = found.tables.values()
    assert isinstance(table, TableVersion)
    assert (table.full_name, table.since, table.is_created_in_log) == ("db.t", None, False)
    assert [column.name for column in table.columns] == ["id", "a"]
    assert table.primary_key is not None
    assert len(table.primary_key.parts) == 2


@pytest.mark.parametrize("mode", ["latest", "asWritten", "at:0-1-1"])
def test_a_declaration_is_followed_through_the_statements_of_the_log(tmp_path, mode) -> None:
    expected = {
        "latest": [{"b": "x", "id": 1, "n": 5}, {"b": "y", "id": 2, "n": 6}],
        "asWritten": [{"id": 1, "a": "x"}, {"b": "y", "id": 2, "n": 6}],
        "at:0-1-1": [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}],
    }[mode]
    with ibbmaster.open(write_log(tmp_path, OLD, ALTER, NEW), schema=DECLARED) as log:
        rows = [change.after for group in log.groups(schema_mode=mode) for _, change in group.rows()]
        table = log.to_arrow(table="db.t", schema_mode=mode)

    assert rows == expected
    names = {name for row in expected for name in row}
    assert set(table.column_names) >= names
    assert table.select(sorted(names)).to_pylist() == [{name: row.get(name) for name in names} for row in expected]


def test_each_reading_has_its_own_declarations_whatever_was_read_of_the_log_before(tmp_path) -> None:
    path = write_log(tmp_path, inserts({"id": "int", "a": "int"}, [(1, 2)]))
    for declared in ("a", "b", "a"):
        with ibbmaster.open(path, schema=f"CREATE TABLE db.t (id INT, {declared} INT)") as log:
            assert [change.after for group in log for _, change in group.rows()] == [{"id": 1, declared: 2}]
            assert log.to_arrow(table="db.t", columns=["id", declared]).to_pylist() == [{"id": 1, declared: 2}]


def test_what_is_kept_of_a_log_stays_though_it_is_read_with_declarations(tmp_path) -> None:
    """It may know what was purged since; it is not replaced by what one reader has declared."""
    cache = HistoryCache(write_log(tmp_path, CREATE, OLD), is_written=True)
    with ibbmaster.open(tmp_path) as log:
        schema_of_log(log.engine, {}, cache).history()
        kept = list(cache.read())
        schema_of_log(log.engine, {"db.u": {"id": "int"}}, cache).history()
    assert len(kept) == 1
    assert list(cache.read()) == kept


def test_the_statements_of_the_log_are_enough(tmp_path) -> None:
    path = write_log(tmp_path, CREATE, OLD, ALTER, NEW)
    with ibbmaster.open(path) as log:
        assert log.to_arrow(table="db.t", columns=["b", "id", "n"]).to_pylist() == [
            {"b": "x", "id": 1, "n": 5},
            {"b": "y", "id": 2, "n": 6},
        ]
        assert [change.after for group in log for _, change in group.rows()] == [
            {"id": 1, "a": "x"},
            {"b": "y", "id": 2, "n": 6},
        ]
        until = log.to_arrow(table="db.t", until="0-1-2")
    assert until.column_names[-2:] == ["id", "a"]
    shape = find_shape(parse_options({"path": str(path), "table": "db.t"}), "db.t")
    assert [shape.columns[number].name for number in shape.schema.primary_key] == ["id"]


def test_a_log_that_grows_is_followed(tmp_path) -> None:
    path = write_log(tmp_path, CREATE, OLD)
    with ibbmaster.open(path) as log:
        assert [change.after for group in log for _, change in group.rows()] == [{"id": 1, "a": "x"}]
        write_log(path, ALTER, NEW, first=3)
        assert [change.after for group in log for _, change in group.rows()][-1] == {"b": "y", "id": 2, "n": 6}


def test_rows_that_the_statements_contradict_name_gtid_table_and_remedy(tmp_path) -> None:
    with (
        ibbmaster.open(write_log(tmp_path, CREATE, NEW)) as log,
        pytest.raises(EventError, match=r"group 0-1-2: db\.t: .* since GTID 0-1-1; declare the table with option"),
    ):
        [change for group in log for _, change in group.rows()]


def test_a_table_of_nothing_known_is_read_by_position_and_refused_by_name(tmp_path) -> None:
    with ibbmaster.open(write_log(tmp_path, CREATE, "ALTER TABLE t FROBNICATE", OLD)) as log:
        assert [change.after for group in log for _, change in group.rows()] == [{"@1": 1, "@2": b"x"}]
        with pytest.raises(
            ConfigurationError, match=r"db\.t: its columns are not known since GTID 0-1-2: .*FROBNICATE"
        ):
            log.to_arrow(table="db.t")


def test_a_shape_is_taken_only_where_it_is_known(tmp_path) -> None:
    path = write_log(tmp_path, OLD, CREATE, OLD)
    with ibbmaster.open(path) as log:
        with pytest.raises(ConfigurationError, match=r"db\.t: its columns at GTID 0-1-1 are not known"):
            log.to_arrow(table="db.t", schema_mode="at:0-1-1")
        with pytest.raises(PositionError):
            log.to_arrow(table="db.t", schema_mode="at:0-1-9")
    assert len(versions_of(parse_options({"path": str(path), "tables": "db.*"})).of("db", "t")) == 1
    assert not versions_of(parse_options({"path": str(path), "tables": "other.*"})).of("db", "t")


@pytest.mark.parametrize("kernels", ["on", "off"])
def test_where_create_table_is_gone_and_rows_do_not_tell_a_column_that_they_do_not_name_is_absent(
    tmp_path, monkeypatch, kernels
) -> None:
    """Rows with names come first behind RENAME TABLE: those before it may have had others."""
    monkeypatch.setenv("IBBMASTER_KERNELS", kernels)
    old = written_table("d.t", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
    new = written_table("d.t", {"id": "int", "z": "int"}, table_id=2, primary_key=["id"])
    alter = "ALTER TABLE t RENAME COLUMN a TO z"
    path = write_named_log(
        tmp_path / "log", "RENAME TABLE s TO t", [inserted(old, [1, 10])], alter, [inserted(new, [2, 20])]
    )
    with ibbmaster.open(path) as log:
        table = log.to_arrow(table="d.t", columns=["id", "z", "_absent"])

    assert table.to_pylist() == [{"id": 1, "z": None, "_absent": ["z"]}, {"id": 2, "z": 20, "_absent": []}]


@pytest.mark.parametrize("kernels", ["on", "off"])
@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["BINARY(6)"], b"a\0\0\0\0\0"),
        (["VARBINARY(9)"], b"a\0\0"),
        (["BINARY(6)", "VARBINARY(9)"], b"a\0\0\0\0\0"),
        (["VARBINARY(9)", "BINARY(9)", "BLOB"], b"a" + bytes(8)),
    ],
    ids=str,
)
def test_what_is_binary_is_filled_up_as_often_as_alter_table_did_it(tmp_path, monkeypatch, kernels, types, expected):
    """A BINARY(3) of one byte, and one that ADD COLUMN gave; tests/interop/test_schema_versions.py asks servers."""
    monkeypatch.setenv("IBBMASTER_KERNELS", kernels)
    table = written_table("d.t", {"id": "int", "b": "binary(3)"}, table_id=1, primary_key=["id"])
    added = "ALTER TABLE t ADD c BINARY(3) NOT NULL DEFAULT 'a'"
    alters = [f"ALTER TABLE t MODIFY {name} {one}" for one in types for name in "bc"]
    create = "CREATE TABLE t (id INT PRIMARY KEY, b BINARY(3))"
    with ibbmaster.open(write_named_log(tmp_path / "log", create, [inserted(table, [1, b"a"])], added, *alters)) as log:
        rows = [change.after for group in log.groups(schema_mode="latest") for _, change in group.rows()]
        found = [log.to_arrow(table="d.t", columns=["b", "c"]).to_pylist(), log.snapshot("d.t").to_pylist(), rows]

    assert [[(row["b"], row["c"]) for row in one] for one in found] == [[(expected, expected)]] * 3
