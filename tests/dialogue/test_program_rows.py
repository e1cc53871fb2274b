"""The rows of information_schema about triggers, routines and events."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue.program_rows import ROWS, SHOWN_COLUMNS, ProgramReader, shown_rows
from ibbmaster.dialogue.table_columns import SHOWN, information_columns

STATEMENTS = (
    "CREATE DATABASE shop CHARACTER SET latin1",
    "CREATE TABLE t (a INT)",
    "CREATE TRIGGER late AFTER INSERT ON t FOR EACH ROW SET @a = 1",
    "CREATE TRIGGER second BEFORE INSERT ON t FOR EACH ROW SET @a = 2",
    "CREATE TRIGGER first BEFORE INSERT ON t FOR EACH ROW PRECEDES second SET @a = 3",
    "CREATE FUNCTION f(a VARCHAR(5), b TEXT CHARACTER SET utf8mb4) RETURNS DECIMAL(5,2) DETERMINISTIC RETURN 1",
    "CREATE PROCEDURE p() SELECT 1",
    "CREATE FUNCTION strange() RETURNS TYPE OF t.a RETURN 1",
    "CREATE EVENT e ON SCHEDULE EVERY 2 HOUR STARTS '2030-01-01' DO SELECT 1",
    "CREATE EVENT unknown ON SCHEDULE AT f(1) DO SELECT 1",
)
READER = ProgramReader(3600, is_uca=True)


@pytest.fixture
def rows(new_catalog):
    """The rows of a table, each as a dictionary."""
    programs = [program for _, program in sorted(new_catalog(*STATEMENTS).programs.items())]

    def rows(table, reader=READER):
        names = [column.name for column in information_columns(table)]
        return [dict(zip(names, row, strict=True)) for row in ROWS[table](programs, reader)]

    return rows


def test_triggers_come_in_the_order_in_which_they_run(rows):
    found = [(row["ACTION_TIMING"], row["ACTION_ORDER"], row["TRIGGER_NAME"]) for row in rows("TRIGGERS")]
    assert found == [("BEFORE", 1, "first"), ("BEFORE", 2, "second"), ("AFTER", 1, "late")]


def test_moments_are_in_the_time_zone_of_the_session_and_a_definer_that_nobody_told_is_null(rows):
    assert {(row["CREATED"], row["DEFINER"]) for row in rows("TRIGGERS")} == {("1970-01-01 01:00:00.00", None)}
    assert rows("ROUTINES")[0]["CREATED"] == "1970-01-01 01:00:00"


def test_routines_tell_what_they_return(rows):
    f, strange, p = rows("ROUTINES")
    assert (f["DATA_TYPE"], f["NUMERIC_PRECISION"], f["DTD_IDENTIFIER"]) == ("decimal", 5, "decimal(5,2)")
    assert (f["IS_DETERMINISTIC"], f["ROUTINE_DEFINITION"]) == ("YES", "RETURN 1")
    assert (p["DATA_TYPE"], p["DTD_IDENTIFIER"]) == ("", None)
    assert (strange["DATA_TYPE"], strange["IS_DETERMINISTIC"]) == (None, None)


def test_a_character_set_that_is_named_alone_has_the_collation_of_the_server_that_answers(rows):
    def collations(reader):
        return [row["COLLATION_NAME"] for row in rows("PARAMETERS", reader)]

    assert collations(READER) == [None, "latin1_swedish_ci", "utf8mb4_uca1400_ai_ci"]
    assert collations(ProgramReader(0, is_uca=False))[2] == "utf8mb4_general_ci"


def test_an_event_of_an_unknown_schedule_says_why(rows):
    known, unknown = rows("EVENTS")
    assert (known["EVENT_TYPE"], known["INTERVAL_VALUE"], known["STARTS"]) == ("RECURRING", "2", "2030-01-01 00:00:00")
    assert (unknown["EVENT_TYPE"], unknown["EXECUTE_AT"], unknown["STATUS"]) == (None, None, None)
    assert unknown["EVENT_COMMENT"].startswith("the schedule of event shop.unknown is a moment that is computed: f(1)")


def test_show_has_as_many_values_as_columns(new_catalog):
    programs = new_catalog(*STATEMENTS).programs.values()
    for table in SHOWN_COLUMNS:
        columns = SHOWN["PROCEDURE STATUS" if table == "ROUTINES" else table].split(", ")
        assert {len(row) for row in shown_rows(table, programs, READER)} == {len(columns)}
