"""The time in a log that a test writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class FixtureClock:
    """A clock that a test moves, forward or back."""

    def __init__(self, begin: datetime | float = BEGIN) -> None:
        self.set(begin)

    @property
    def now(self) -> float:
        return self._now

    @property
    def timestamp(self) -> int:
        """The 32 bits of whole seconds since 1970 in events."""
        return int(self._now) & 0xFFFFFFFF

    @property
    def microseconds(self) -> int:
        """The microseconds in statements, beyond whole seconds."""
        return round(self._now * 1e6) % 1_000_000

    def set(self, moment: datetime | float) -> None:
        """Set the time; a moment without time zone is in UTC."""
        if isinstance(moment, datetime):
            moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        self._now = float(moment)

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def text(self, digits: int = 0) -> str:
        moment = datetime(1970, 1, 1) + timedelta(microseconds=round(self._now * 1e6))
        text = f"{moment:%Y-%m-%d %H:%M:%S}"
        return f"{text}.{moment.microsecond:06}"[: len(text) + 1 + digits] if digits else text
