"""Foreign text made safe for a terminal, and addresses."""

import re

# What a terminal obeys, breaks lines or turns their direction, and JSON takes as it is; and halves of letters.
UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    """A text with its control characters and other invisible ones as numbers."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def address(host: str, port: int) -> str:
    """A host, or an IPv6 address in brackets, with its port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
