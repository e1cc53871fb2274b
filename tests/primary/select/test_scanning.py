"""SELECTs answered as a real MariaDB 11.8 answered them: fixtures/answers has what it said."""

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from lanes.answers import FOLDER, REFUSED, SESSIONS, OurTables, expect_equal, load
from lanes.capture import CLASSIC

import ibbmaster
from ibbmaster.kernel import loading
from ibbmaster.primary.select import scanning
from ibbmaster.primary.select.definitions import column_definition
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import BlockResultSet, ResultSet
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from tests.case_table import data_beside
from tests.written_log import inserted, write_log

DATA = data_beside(__file__)
RECORDED = ("tables", "types-full-crc32", "vectors")


@pytest.fixture
def tables_of(tmp_path: Path) -> Callable[[str], OurTables]:
    """The tables that a recording is about."""

    def make(name: str) -> OurTables:
        own = FOLDER / "11.8" / name / "binlog.000001"
        shutil.copy(own if own.exists() else CLASSIC / "11.8" / name / "binlog.000001", tmp_path)
        return OurTables(ibbmaster.open(tmp_path).engine)

    return make


@pytest.mark.parametrize("has_kernels", [False, True])
@pytest.mark.parametrize("name", RECORDED)
def test_columns_and_rows_are_those_of_a_real_server(tables_of, name: str, has_kernels: bool, monkeypatch) -> None:
    assert loading.load() is not None
    if not has_kernels:
        monkeypatch.setattr(scanning, "kernels", lambda *sets: None)

    assert expect_equal(tables_of(name), load(FOLDER / "11.8" / name)) == REFUSED.get(name, 0)


@pytest.mark.parametrize(("sql", "is_stored"), DATA["sent as they are stored"])
def test_rows_are_sent_as_they_are_stored_where_that_is_all_that_is_asked(
    tables_of: Callable[[str], OurTables], sql: str, is_stored: bool
) -> None:
    answer = tables_of("tables").response(sql)
    assert isinstance(answer, BlockResultSet if is_stored else ResultSet), answer


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("int", [3, -7, 0, 40]),
        ("bigint unsigned", [1 << 63, 5, 0]),
        ("decimal(12,3)", [Decimal("-1.5"), Decimal("10.25"), Decimal("9.75")]),
        ("date", ["2024-02-29", "1999-12-31", "2024-01-30"]),
        ("datetime(3)", ["2024-02-29 01:02:03.004", "2024-02-29 01:02:03.040", "1999-12-31 23:59:59.999"]),
        ("varbinary(5)", [b"\x00", b"\xff", b"a", b"a\x00"]),
        ("varchar(5) COLLATE utf8mb4_bin", ["b", "B", "a", "ab"]),
    ],
)
def test_what_is_found_does_not_depend_on_whether_the_key_finds_it(tmp_path: Path, declared: str, values: list) -> None:
    written = declared.partition(" COLLATE")[0]
    keyed = written_table("d.k", {"c": written}, table_id=1, primary_key=["c"])
    plain = written_table("d.n", {"c": written}, table_id=2)
    rows = [[value] for value in values]
    statements = (f"CREATE TABLE k (c {declared} NOT NULL PRIMARY KEY)", f"CREATE TABLE n (c {declared})")
    tables = OurTables(
        ibbmaster.open(
            write_log(tmp_path / "log", *statements, [inserted(keyed, *rows)], [inserted(plain, *rows)])
        ).engine
    )
    ends = ("COUNT(c)", "COUNT(c)") if declared[:3] == "var" else ("MIN(c)", "MAX(c)")  # least and most text: refused
    aggregates = (*ends, f"{ends[0]}, {ends[1]}, COUNT(c)")
    asked = [f"SELECT {call} FROM d.{{}}" for call in aggregates]
    for value in values:
        text = f"x'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'" if isinstance(value, str) else value
        for sign in ("=", "!=", "<", "<=", ">", ">="):
            asked += [
                f"SELECT COUNT(*), {ends[0]} FROM d.{{}} WHERE c {sign} {text}",
                f"SELECT {ends[1]} FROM d.{{}} WHERE NOT {text} {sign} c",
            ]
    for sql in asked:
        keyed_rows, plain_rows = (tables.answer(sql.format(table)).rows for table in "kn")
        assert keyed_rows == plain_rows, sql


def test_texts_that_are_equal_and_stored_otherwise_do_not_keep_the_order_of_the_rest_of_a_key(tmp_path: Path) -> None:
    table = written_table("d.t", {"name": "varchar(5)", "id": "int"}, table_id=1, primary_key=["name", "id"])
    create = "CREATE TABLE t (name VARCHAR(5) COLLATE utf8mb4_general_ci, id INT, PRIMARY KEY (name, id))"
    log = write_log(tmp_path / "log", create, [inserted(table, ["A", 1], ["a", 2], ["A", 3])])
    tables = OurTables(ibbmaster.open(log).engine)

    assert tables.answer("SELECT id FROM d.t WHERE name = 'a' ORDER BY id").rows == [b"\x011", b"\x012", b"\x013"]


def test_a_mode_that_changes_values_changes_those_of_conditions_too(tables_of: Callable[[str], OurTables]) -> None:
    tables = tables_of("tables")
    tables._dialog(SESSIONS[0]).query(b"SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'")

    assert len(tables.answer("SELECT id FROM cond.big WHERE id = 7").rows) == 1
    with pytest.raises(RefusedError, match="NO_UNSIGNED_SUBTRACTION"):
        tables.answer("SELECT id FROM cond.big WHERE id + 1 = 8")


def test_a_limit_may_be_larger_than_any_table(tables_of: Callable[[str], OurTables]) -> None:
    tables = tables_of("tables")

    assert len(tables.answer("SELECT id FROM cond.big LIMIT 18446744073709551615 OFFSET 1990").rows) == 10
    assert tables.answer("SELECT id FROM cond.big LIMIT 18446744073709551614, 18446744073709551615").rows == []
    assert tables.answer("SELECT id FROM cond.big LIMIT 0").rows == []


@pytest.mark.parametrize(
    ("word", "check", "metadata"),
    [
        ("uuid", None, b"\x00\x04uuid"),
        ("inet6", None, b"\x00\x05inet6"),
        ("point", None, b"\x00\x05point"),
        ("geometry", None, b""),
        ("longtext", "json_valid(`c`)", b"\x01\x04json"),
        ("longtext", "c <> ''", b""),
        ("int", None, b""),
    ],
)
def test_a_type_that_the_protocol_has_no_number_for_is_told_by_its_name(word, check, metadata):
    column = TableColumn(id=1, name="c", type=SqlType(word=word), check=check)
    table = TableVersion(database="d", name="t", columns=(column,))
    definition = column_definition(table, column, charset="utf8mb4", collation_id=45)
    assert definition.extended_metadata == metadata
