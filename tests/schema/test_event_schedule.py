"""Events: schedules as a server computes them when the statement runs."""

from __future__ import annotations

import pytest

from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.event_schedule import EventParts, event_text, parts_of_event, read_event
from ibbmaster.schema.stored_program import StoredProgram

NOW = 1_709_123_696_000_000  # 2024-02-28 12:34:56 in UTC


def read(tail, *, zone="SYSTEM", old=EventParts(), verb="CREATE"):  # noqa: B008
    return read_event(f"{verb} EVENT e {tail}", 0, NOW, zone, old)


def schedule(written, **given):
    parts = read(f"ON SCHEDULE {written} DO SELECT 1", **given).parts
    return parts.at or f"{parts.value} {parts.field} {parts.starts} {parts.ends}"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("AT '2030-01-02'", "2030-01-02 00:00:00"),
        ("AT TIMESTAMP '2030-01-02 03:04:05'", "2030-01-02 03:04:05"),
        ("AT NOW()", "2024-02-28 12:34:56"),
        ("AT CURRENT_TIMESTAMP + INTERVAL 2 DAY - INTERVAL '1' HOUR", "2024-03-01 11:34:56"),
        ("AT '2023-12-31' + INTERVAL 2 MONTH", "2024-02-29 00:00:00"),
        ("AT '2024-02-29' - INTERVAL 1 YEAR", "2023-02-28 00:00:00"),
        ("AT '2024-12-31' + INTERVAL 1 QUARTER", "2025-03-31 00:00:00"),
        ("EVERY 1 DAY", "1 DAY 2024-02-28 12:34:56 None"),
        ("EVERY '5' WEEK STARTS '2030-01-01' ENDS '2031-01-01'", "5 WEEK 2030-01-01 00:00:00 2031-01-01 00:00:00"),
        ("EVERY '90' MINUTE_SECOND", "'1:30' MINUTE_SECOND 2024-02-28 12:34:56 None"),
        ("EVERY '1 2:3:4' DAY_SECOND", "'1 2:3:4' DAY_SECOND 2024-02-28 12:34:56 None"),
        ("EVERY '1-14' YEAR_MONTH", "'2-2' YEAR_MONTH 2024-02-28 12:34:56 None"),
    ],
)
def test_schedules_are_computed_from_the_time_of_the_statement(written, found):
    assert schedule(written) == found


def test_now_is_in_the_time_zone_of_the_session():
    assert schedule("AT NOW()", zone="-05:30") == "2024-02-28 07:04:56"
    assert schedule("AT '2030-01-01'", zone="Europe/Berlin") == "2030-01-01 00:00:00"
    with pytest.raises(NotUnderstoodError, match="time zone"):
        schedule("EVERY 1 DAY", zone="Europe/Berlin")


@pytest.mark.parametrize(
    "written",
    [
        "AT f(1)",
        "AT '2030-02-31'",
        "AT NOW() + 1",
        "AT NOW() + INTERVAL 1 AGE",
        "AT NOW() + INTERVAL 99999999 YEAR",
        "EVERY @a HOUR",
        "EVERY 1+1 HOUR",
        "EVERY '1:2:3:4:5' DAY_SECOND",
        "EVERY '1' SECOND_DAY",
        "NEVER",
    ],
)
def test_other_expressions_are_refused_with_what_was_written(written):
    with pytest.raises(NotUnderstoodError):
        schedule(written)


def test_an_event_that_is_over_at_once_is_none_unless_it_is_preserved():
    assert read("ON SCHEDULE AT '2001-01-01' DO SELECT 1").is_over
    kept = read("ON SCHEDULE AT '2001-01-01' ON COMPLETION PRESERVE DO SELECT 1")
    assert (kept.is_over, kept.parts.status) == (False, "DISABLED")


def test_alter_keeps_what_it_does_not_name():
    old = read("ON SCHEDULE AT '2030-01-01' ON COMPLETION PRESERVE DISABLE COMMENT 'c' DO SELECT 1").parts
    change = read("RENAME TO d.f ENABLE DO SELECT 2", old=old, verb="ALTER")
    assert (change.to, change.has_schedule, change.has_body) == (("d", "f"), False, True)
    assert event_text("f", change.parts, "a@%") == (
        "CREATE DEFINER=`a`@`%` EVENT `f` ON SCHEDULE AT '2030-01-01 00:00:00' ON COMPLETION PRESERVE ENABLE "
        "COMMENT 'c' DO SELECT 2"
    )


def test_what_is_printed_is_read_again():
    parts = read("ON SCHEDULE EVERY 1 HOUR ENDS '2031-01-01' DISABLE ON REPLICA COMMENT 'it''s' DO SELECT 1").parts
    event = StoredProgram(kind="EVENT", database="d", name="e", text=event_text("e", parts, ""))
    assert parts_of_event(event) == parts
