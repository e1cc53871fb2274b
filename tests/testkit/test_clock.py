from datetime import UTC, datetime, timedelta, timezone

from ibbmaster.testkit import FixtureClock


def test_it_stands_still_until_it_is_moved_by_times_of_32_bits():
    clock = FixtureClock(1_000_000_000)
    assert (clock.now, clock.now) == (1e9, 1e9)
    clock.advance(1.5)
    assert (clock.now, clock.timestamp) == (1_000_000_001.5, 1_000_000_001)
    clock.advance(-10)
    assert clock.timestamp == 999_999_991
    assert FixtureClock(-1).timestamp == 2**32 - 1
    clock = FixtureClock()
    clock.set(datetime(2026, 7, 1, 12))
    assert clock.now == datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()
    clock.set(datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert clock.text() == "2026-07-01 10:00:00"


def test_it_tells_the_time_in_as_many_digits_as_a_column_has():
    clock = FixtureClock()
    clock.advance(0.123456)
    assert [clock.text(digits) for digits in (0, 1, 6)] == [
        "2026-01-01 00:00:00",
        "2026-01-01 00:00:00.1",
        "2026-01-01 00:00:00.123456",
    ]
