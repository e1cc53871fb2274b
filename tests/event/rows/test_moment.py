"""Moments from texts and from Python's own, and the calendar beside Python's."""

from __future__ import annotations

import datetime
import random

import pytest

from ibbmaster.event.rows.moment import Moment, civil_date, days_of, moment_of

EPOCH = datetime.date(1970, 1, 1)
UTC = datetime.UTC


def test_the_calendar_is_that_of_python():
    for days in (*range(-800, 800), *(random.randrange(-719162, 2932897) for _ in range(2000))):
        day = EPOCH + datetime.timedelta(days=days)
        assert civil_date(days) == (day.year, day.month, day.day)
        assert days_of(day.year, day.month, day.day) == days


@pytest.mark.parametrize("value", ["2026-02-30", "2026-13-01", "2026-00-32", "2026-01-01 24", "26-01-01", "x", 5, None])
def test_what_is_no_day_of_the_calendar_is_refused(value):
    with pytest.raises(ValueError, match=r"is no date and time|there is no such day"):
        moment_of(value)


def test_a_part_of_a_day_may_be_zero():
    assert moment_of("0000-00-00 00:00:00") == Moment(0, 0, 0)
    assert moment_of("2026-00-01")[:3] == (2026, 0, 1)
    assert moment_of("2026-02-00")[:3] == (2026, 2, 0)


def test_a_moment_is_taken_from_texts_and_pythons_own():
    assert moment_of("2024-02-29T23:59:58.5") == Moment(2024, 2, 29, 23, 59, 58, 500000)
    assert moment_of(datetime.date(2024, 2, 29)) == Moment(2024, 2, 29)
    assert moment_of(datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)) == Moment(2024, 2, 29, 1, 2, 3, 4)
