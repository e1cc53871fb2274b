"""Foreign text made safe for a terminal, addresses and times."""

from datetime import UTC, datetime


def printable(text: str) -> str:
    """A text with its control characters and other invisible ones as numbers."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def address(host: str, port: int) -> str:
    """A host, or an IPv6 address in brackets, with its port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def time_text(timestamp: int) -> str:
    """Seconds since 1970 as `2026-01-31T12:00:00Z`."""
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%dT%H:%M:%S}Z"
