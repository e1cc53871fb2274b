"""Damage to files that tests read."""

from pathlib import Path


def flip(path: Path, offset: int, bits: int = 1) -> None:
    """Flip bits of one byte of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ bits]))
