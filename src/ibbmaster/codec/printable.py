"""Text from outside as it may be shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """A text with its control characters and other invisible ones as numbers."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
