"""Foreign text made safe for a terminal, and addresses."""


def printable(text: str) -> str:
    """A text with its control characters and other invisible ones as numbers."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def address(host: str, port: int) -> str:
    """A host, or an IPv6 address in brackets, with its port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
