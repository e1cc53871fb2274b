"""SELECTs answered as a real MariaDB 11.8 answered them: fixtures/answers has what it said."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes.answers import FOLDER, OurTables, expect_equal, load
from lanes.capture import CLASSIC

import ibbmaster
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.sql import answer
from ibbmaster.sql.definitions import column_definition

RECORDED = ("tables", "types-full-crc32", "vectors")


@pytest.fixture
def tables_of(tmp_path: Path) -> Callable[[str], OurTables]:
    """The tables that a recording is about."""

    def make(name: str) -> OurTables:
        own = FOLDER / "11.8" / name / "binlog.000001"
        shutil.copy(own if own.exists() else CLASSIC / "11.8" / name / "binlog.000001", tmp_path)
        return OurTables(ibbmaster.open(tmp_path).engine)

    return make


@pytest.mark.parametrize("name", RECORDED)
def test_columns_and_rows_are_those_of_a_real_server(
    tables_of: Callable[[str], OurTables], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer, "kernels", lambda *sets: None)

    assert expect_equal(tables_of(name), load(FOLDER / "11.8" / name)) == 0


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT DISTINCT a FROM cond.p", "DISTINCT, GROUP BY and HAVING over tables of the log"),
        ("SELECT a FROM cond.p GROUP BY a", "DISTINCT, GROUP BY and HAVING over tables of the log"),
        ("SELECT a, COUNT(*) FROM cond.p", "columns beside COUNT, MIN and MAX"),
        ("SELECT a + 1 FROM cond.p", "expressions over columns of a table"),
        ("SELECT a FROM cond.p ORDER BY d", "ORDER BY other columns than those of the key of cond.p"),
        ("SELECT a FROM cond.p ORDER BY a, b", "ORDER BY in both directions"),
        ("SELECT a FROM cond.p WHERE k = 'v1'", "comparing column k, whose collation is utf8mb4_general_ci"),
        ("SELECT a FROM cond.p WHERE a = 'one' OR d = 1", "comparing column a with 'one'"),
        ("SELECT a FROM cond.p WHERE a = b", "= over columns of a table"),
        ("SELECT MIN(l) FROM cond.p", "MIN() of column l"),
    ],
)
def test_what_is_not_answered_as_a_server_would_is_refused(
    tables_of: Callable[[str], OurTables], sql: str, what: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        tables_of("tables").answer(sql)

    assert refused.value.err.code == 1235
    assert refused.value.err.text == f"This version of ibbmaster doesn't yet support '{what}'"


def test_a_text_of_the_key_is_found_by_its_bytes(tables_of: Callable[[str], OurTables]) -> None:
    tables = tables_of("tables")

    assert len(tables.answer("SELECT * FROM cond.q WHERE s = 'ab'").rows) == 1
    assert len(tables.answer("SELECT * FROM cond.q WHERE s = 'ab  '").rows) == 1  # spaces at the end count for nothing
    assert len(tables.answer("SELECT * FROM cond.q WHERE s = 'AB'").rows) == 0


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
    definition = column_definition(table, column, "c", text_charset="utf8mb4", text_collation_id=45)
    assert definition.extended_metadata == metadata
