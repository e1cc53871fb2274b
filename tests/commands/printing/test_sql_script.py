"""Rows as SQL; that servers come to the same tables is seen in tests/interop/test_printed.py."""

from decimal import Decimal
from pathlib import Path

import pytest

from ibbmaster.api.group import UndecodableValue
from ibbmaster.commands.printing.sql_script import SqlScript, literal
from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.event.rows.encoding import written_table
from tests.table_versions import without_statements
from tests.written_log import deleted, inserted, updated, write_log

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
COLUMN = Column(name="c", type=253, metadata=0, kind=ValueKind.TEXT)


def statements(text):
    return [line for line in text.splitlines() if line.startswith(("INSERT", "UPDATE", "DELETE", "DO"))]


def test_rows_are_found_by_their_key(printed, tmp_path):
    table = written_table("d.t", {"id": "int", "a`b": "varchar(9)"}, table_id=1, primary_key=["id"])
    log = write_log(
        tmp_path / "log",
        [inserted(table, [1, "x"], [2, None])],
        [updated(table, ([1, "x"], [3, "x"]), ([2, None], [2, "it's"]), ([3, "x"], [3, "x"]))],
        [deleted(table, [3, "x"])],
    )
    assert statements(printed(log, SqlScript())) == [
        "INSERT INTO `d`.`t` (`id`, `a``b`) VALUES (1, 'x');",
        "INSERT INTO `d`.`t` (`id`, `a``b`) VALUES (2, NULL);",
        "UPDATE `d`.`t` SET `id` = 3 WHERE `id` = 1;",
        "UPDATE `d`.`t` SET `a``b` = 'it''s' WHERE `id` = 2;",
        "DO 0 /* an UPDATE of `d`.`t` that changed nothing */;",
        "DELETE FROM `d`.`t` WHERE `id` = 3;",
    ]


def test_a_moment_that_stays_is_said_lest_the_server_renews_it(printed, tmp_path):
    table = written_table("d.t", {"id": "int", "n": "int", "at": "datetime"}, table_id=1, primary_key=["id"])
    log = write_log(tmp_path / "log", [updated(table, ([1, 2, "2026-01-01 00:00:00"], [1, 3, "2026-01-01 00:00:00"]))])
    assert statements(printed(log, SqlScript())) == [
        "UPDATE `d`.`t` SET `n` = 3, `at` = '2026-01-01 00:00:00' WHERE `id` = 1;"
    ]


def test_without_a_key_they_are_found_by_all_their_values(printed, tmp_path):
    table = written_table("d.t", {"a": "int", "b": "int"}, table_id=1)
    assert statements(printed(write_log(tmp_path / "log", [deleted(table, [1, None])]), SqlScript())) == [
        "DELETE FROM `d`.`t` WHERE `a` <=> 1 AND `b` <=> NULL LIMIT 1 /* no primary key is known */;"
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (2**64 - 1, "18446744073709551615"),
        (0.5, "0.5"),
        (Decimal("-0.10"), "-0.10"),
        (b"", "X''"),
        (b"\0\xff", "X'00ff'"),
        ("a'b\\", r"'a''b\\'"),
        ("Straße", "'Straße'"),
        ("a\nb", "CONVERT(X'610a62' USING utf8mb4)"),
        ("\x1b[2J", "CONVERT(X'1b5b324a' USING utf8mb4)"),
        ("\u202e", "CONVERT(X'e280ae' USING utf8mb4)"),
        ((0.5, -1.0), "VEC_FromText('[0.5,-1.0]')"),
    ],
)
def test_values_are_literals_that_no_terminal_obeys(value, text):
    assert literal(COLUMN, value) == text
    assert text.isprintable()


def test_a_value_that_cannot_be_read_is_an_error():
    error = UndecodableError("d.t", "c", "INT", "too short")
    with pytest.raises(UndecodableError):
        literal(COLUMN, UndecodableValue(error, b""))


def test_columns_without_names_are_an_error_with_a_remedy(printed, tmp_path):
    log = without_statements(CLASSIC / "10.11" / "domains-none", tmp_path / "log")
    with pytest.raises(EventError, match=r"its columns have no names here; declare them with --schema, or print JSON"):
        printed(log, SqlScript())


def test_statements_end_with_a_semicolon_where_they_have_none(printed, tmp_path):
    found = printed(write_log(tmp_path / "log", "CREATE DATABASE e", "SELECT 1; -- twice", "SELECT 2 # 1"), SqlScript())
    assert "\nCREATE DATABASE e;\n" in found
    assert "\nDELIMITER /*!0*/;\nSELECT 1; -- twice\n/*!0*/;\nDELIMITER ;\n" in found
    assert "\nSELECT 2 # 1\n;\n" in found
