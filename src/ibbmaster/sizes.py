"""Sizes and times as people write them."""

import re
from datetime import UTC, datetime

from .errors import ConfigurationError

_SIZE = re.compile(r"0*([0-9]{1,20})([KMGT]?)B?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Read a number of bytes; K, M, G and T after it mean powers of 1024. Raises ConfigurationError: it is none."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(f"{text[:60]!r} is not a size: expected a number of bytes, as 64M")
    return int(match[1]) * _UNITS[match[2].upper()]


def time_text(timestamp: int) -> str:
    """Seconds since 1970 as `2026-01-31T12:00:00Z`."""
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%dT%H:%M:%S}Z"
