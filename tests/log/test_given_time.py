"""Times have a zone, or are local ones, and who gave one is shown which."""

import time

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.log.given_time import is_date, is_time, parse_time, shown_time


@pytest.mark.parametrize("text", ["2026-11-20 14:03:05+01:00", "2026-11-20T13:03:05Z", "20261120T130305Z"])
def test_a_time_with_a_zone_is_what_it_says(text):
    given = parse_time("--after", text)
    assert (given.seconds, given.is_local) == (1795179785.0, False)
    assert "local" not in str(given)


def test_a_time_without_a_zone_is_local_and_says_so(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        given = parse_time("--after", "2026-11-20 14:03:05")
        assert given.seconds == 1795179785.0
        assert str(given) == "2026-11-20 14:03:05+01:00 (local time)"
        assert shown_time(given.seconds + 1, given) == "2026-11-20 14:03:06+01:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["noon", "", "2026-13-01 00:00", "0-1-7", "25:00", "9999999999"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"^--until .*: expected a time, as "):
        parse_time("--until", text)


def test_a_time_is_told_from_a_position_by_its_colons():
    assert is_time("2026-11-20 14:03")
    assert not is_time("0-1-7,1-1-9")
    assert is_date("2026-11-20")
    assert not is_date("0-1-7")


def test_a_moment_that_no_calendar_has_is_shown_as_a_number():
    assert shown_time(1e30, parse_time("--after", "2026-11-20 14:03Z")) == "1e+30 s since 1970"
