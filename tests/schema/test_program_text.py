"""Triggers and routines: what their statements say, and what SHOW CREATE makes of it."""

from __future__ import annotations

import pytest

from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.program_text import (
    definer_clause,
    moved_trigger,
    routine_parameters,
    routine_parts,
    routine_text,
    trigger_parts,
    trigger_text,
)
from ibbmaster.schema.stored_program import StoredProgram
from ibbmaster.schema.type_clause import ORACLE
from ibbmaster.sqltext.token import ANSI_QUOTES


def test_a_trigger_is_printed_without_or_replace_and_without_its_place_in_the_order():
    text = (
        "CREATE OR REPLACE DEFINER=`a`@`%` TRIGGER g AFTER UPDATE ON d . t  FOR EACH ROW  FOLLOWS `x y`  SET @a = 1 ; "
    )
    parts = trigger_parts(text, 0)
    assert (parts.timing, parts.events, parts.ordering, parts.body) == (
        "AFTER",
        "UPDATE",
        ("FOLLOWS", "x y"),
        "SET @a = 1",
    )
    assert trigger_text(text, parts, "a@%", 0) == (
        "CREATE DEFINER=`a`@`%` TRIGGER g AFTER UPDATE ON d . t  FOR EACH ROW  SET @a = 1"
    )


def test_a_trigger_may_have_several_events_and_columns():
    parts = trigger_parts("CREATE TRIGGER g BEFORE INSERT OR UPDATE OF a, b ON t FOR EACH ROW SET @a = 1", 0)
    assert (parts.events, parts.body) == ("INSERT,UPDATE", "SET @a = 1")


def test_a_label_before_the_body_is_no_order():
    assert trigger_parts("CREATE TRIGGER g AFTER DELETE ON t FOR EACH ROW follows: BEGIN END", 0).ordering is None


@pytest.mark.parametrize("text", ["CREATE TRIGGER g", "CREATE TRIGGER g LATER INSERT ON t FOR EACH ROW x", "CREATE"])
def test_what_is_no_trigger_is_refused(text):
    with pytest.raises(NotUnderstoodError):
        trigger_parts(text, 0)


def test_a_trigger_goes_with_the_name_of_its_table():
    text = 'CREATE TRIGGER g AFTER DELETE ON "t" FOR EACH ROW SET @a = 1'
    trigger = StoredProgram(kind="TRIGGER", database="d", name="g", table="t", text=text, sql_mode=ANSI_QUOTES)
    moved = moved_trigger(trigger, 'u"v')
    assert (moved.table, moved.text) == ('u"v', text.replace('"t"', '"u""v"'))


def test_names_are_in_the_quotes_of_the_sql_mode_and_a_role_has_no_host():
    assert definer_clause("a`b@%", 0) == "DEFINER=`a``b`@`%` "
    assert definer_clause("a@b@%", ANSI_QUOTES) == 'DEFINER="a@b"@"%" '
    assert (definer_clause("staff", 0), definer_clause("", 0)) == ("DEFINER=`staff` ", "")


@pytest.mark.parametrize(
    ("kind", "tail"),
    [
        ("PROCEDURE", "(IN a INT, OUT b VARCHAR(2))\nSELECT ')'"),
        ("PROCEDURE", "()\n    MODIFIES SQL DATA\n    SQL SECURITY INVOKER\n    COMMENT 'it''s'\nBEGIN END"),
        ("FUNCTION", "(a INT) RETURNS varchar(20) CHARSET latin1 COLLATE latin1_bin\n    DETERMINISTIC\nRETURN a"),
        ("PACKAGE", " AS PROCEDURE a; END"),
        ("PACKAGE BODY", "    SQL SECURITY INVOKER\n    COMMENT 'k'\n AS PROCEDURE a AS BEGIN NULL; END; END"),
    ],
)
def test_a_routine_that_a_server_has_printed_is_printed_the_same(kind, tail):
    text = f"CREATE DEFINER=`a`@`%` {kind} `p`{tail}"
    parts = routine_parts(kind, text, 0)
    assert parts.definer == "a@%"
    assert routine_text(kind, "p", parts, "a@%", 0) == text


def test_what_a_user_wrote_is_printed_as_a_server_does():
    text = "CREATE DEFINER=CURRENT_USER() AGGREGATE FUNCTION f(x INT) RETURNS INT COMMENT 'c' NO SQL RETURN 1;"
    parts = routine_parts("FUNCTION", text, 0, "me@home")
    assert routine_text("FUNCTION", "f", parts, parts.definer, 0) == (
        "CREATE DEFINER=`me`@`home` AGGREGATE FUNCTION `f`(x INT) RETURNS INT\n    NO SQL\n    COMMENT 'c'\nRETURN 1"
    )


def test_parameters_have_modes_names_and_types():
    parts = routine_parts("FUNCTION", "CREATE FUNCTION f(a INT, `in` ENUM('x,', ')')) RETURNS BIGINT RETURN 1", 0)
    found = [(one.mode, one.name, one.type.word) for one in routine_parameters(parts, 0)]
    assert found == [(None, None, "bigint"), ("IN", "a", "int"), ("IN", "in", "enum")]
    parts = routine_parts("PROCEDURE", "CREATE PROCEDURE p(a IN OUT INT, b OUT VARCHAR2) AS BEGIN NULL; END", ORACLE)
    found = [(one.mode, one.name, one.type.word, one.type.length) for one in routine_parameters(parts, ORACLE)]
    assert found == [("INOUT", "a", "int", 11), ("OUT", "b", "varchar", 4000)]
